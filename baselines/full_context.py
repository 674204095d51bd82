"""The whole conversation as context, cut from its start to what the window holds (LoCoMo's own baseline).

Source: Maharana et al., ACL 2024, and snap-research/locomo. The transcript is filled backwards turn by turn; a session
that is partly kept keeps its date. Below the length of the conversation this is a recency baseline, so the statistics
and every trace say how much was cut.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from memsys.call_model import DataShape, ExpectedCalls
from memsys.errors import ConfigError
from memsys.protocol import BaseMemory, MemorySystem, Parts, State
from memsys.settings import check_choices, check_minimum, refuse_gold
from memsys.texts import ShownTexts
from memsys.turns import TurnFormat
from memsys.vocabulary import Hit, Json, Retrieval, Turn, Unit

TEXTS = ShownTexts(Path(__file__).with_name("full_context.texts.yaml"))

TurnLine = Literal["shared", "locomo"]


@dataclass(frozen=True)
class FullContextConfig:
    """Settings of the baseline.

    Attributes:
        name: of the preset.
        uses_gold: always false.
        window: tokens of prompt and reply; ``None`` takes the backbone's context length. A larger number than that is
            an error, a smaller one gives the recency rows.
        answer_reserve: tokens kept for the reply.
        prompt_reserve: tokens kept for the reader's instruction, the question and the chat template.
        turn_line: ``shared`` writes a turn as every other system does, ``locomo`` as LoCoMo's scripts do.
    """

    name: str
    uses_gold: bool
    window: int | None
    answer_reserve: int
    prompt_reserve: int
    turn_line: TurnLine

    def __post_init__(self) -> None:
        refuse_gold(self, "full_context")
        check_choices(self, "memory", turn_line=TurnLine)
        check_minimum(self, "memory", answer_reserve=0, prompt_reserve=0)
        if self.window is not None:
            check_minimum(self, "memory", window=1)

    @property
    def embeds(self) -> bool:
        """Never; see :class:`memsys.protocol.DeclaresEmbedding`."""
        return False

    @property
    def counts_tokens(self) -> bool:
        """Each line, to see what fits; see :class:`memsys.protocol.CountsTokens`."""
        return True

    def expected_calls(self, shape: DataShape) -> Sequence[ExpectedCalls]:
        """Return the calls of each role; see :class:`memsys.call_model.PlansCalls`."""
        return []

    def context_tokens(self, shape: DataShape) -> float:
        """Return the mean tokens of a question's context."""
        whole = max(shape.turns, default=0) * shape.turn_tokens
        return float(min(whole, self.window or whole))

    def build(self, parts: Parts) -> MemorySystem:
        """Make the empty memory of one conversation."""
        return FullContext(self, parts)


@dataclass(frozen=True, slots=True)
class TranscriptLine:
    """One turn as written, with its session and the tokens of the line and of its session's header."""

    turn_id: str
    session_id: str
    date_time: str
    speaker: str
    text: str
    tokens: int
    header_tokens: int

    @property
    def header(self) -> str:
        """Head of the session's block."""
        return session_header(self.date_time)


@dataclass(frozen=True, slots=True)
class Transcript:
    """The reader's context: the last ``kept`` turns of the conversation, counted as ``tokens``."""

    text: str
    kept: int
    tokens: int
    budget: int


class FullContext(BaseMemory):
    """Keeps every line with its token counts; nothing is counted twice."""

    def __init__(self, config: FullContextConfig, parts: Parts) -> None:
        self._config = config
        self._llm = parts.llm
        self._turn_format = parts.turn_format
        self._lines: list[TranscriptLine] = []
        self._transcript: Transcript | None = None

    async def prepare(self, unit: Unit) -> Sequence[TranscriptLine]:
        """Write the unit's turns and count their tokens."""
        return [await self._line(turn) for turn in unit.turns]

    async def write(self, unit: Unit, prepared: Sequence[TranscriptLine]) -> None:
        """Append the lines."""
        self._lines.extend(prepared)
        self._transcript = None

    async def retrieve(self, query: str) -> Retrieval:
        """Show the end of the conversation that fits, whatever is asked.

        Nothing is ranked: the one hit names the turns that are shown, so that the share of the evidence within the
        window is known (``pool_recall``); its text is the context, and is not stored twice.

        Raises:
            ConfigError: the window exceeds the backbone's, or leaves no room for the conversation.
        """
        if self._transcript is None:
            self._transcript = await self._fill()
        shown = tuple(line.turn_id for line in self._lines[len(self._lines) - self._transcript.kept :])
        hits = (Hit("", 0.0, shown),) if shown else ()
        return Retrieval(hits, self._transcript.text, self._facts(), ranked=False)

    def statistics(self) -> Mapping[str, Json]:
        """Say what was cut, once it is known."""
        return self._facts()

    def state(self) -> State:
        """Return the lines."""
        return {"lines": [_line_state(line) for line in self._lines]}

    def load_state(self, state: State) -> None:
        """Restore a snapshot."""
        self._lines = [TranscriptLine(**entry) for entry in state["lines"]]
        self._transcript = None

    async def consolidate(self) -> None:
        """Fill the window, so that the statistics know what was cut."""
        self._transcript = await self._fill()

    async def _line(self, turn: Turn) -> TranscriptLine:
        text = _locomo_line(turn, self._turn_format) if self._config.turn_line == "locomo" else None
        text = text or self._turn_format.render(turn)
        return TranscriptLine(
            turn_id=turn.turn_id,
            session_id=turn.session_id,
            date_time=turn.date_time,
            speaker=turn.speaker,
            text=text,
            tokens=await self._llm.count_tokens(text + "\n"),
            header_tokens=await self._llm.count_tokens("\n" + session_header(turn.date_time) + "\n"),
        )

    async def _fill(self) -> Transcript:
        opening = _opening(self._lines)
        budget = self._budget()
        spent = await self._llm.count_tokens(opening) if opening else 0
        kept = 0
        for line, following in zip(reversed(self._lines), [None, *reversed(self._lines)], strict=False):
            starts_session = following is None or following.session_id != line.session_id
            cost = line.tokens + (line.header_tokens if starts_session else 0)
            if spent + cost > budget:
                break
            spent += cost
            kept += 1
        text = _written(opening, self._lines[len(self._lines) - kept :])
        return Transcript(text, kept, spent if kept else 0, budget)

    def _budget(self) -> int:
        config, context_length = self._config, self._llm.context_length
        window = context_length if config.window is None else config.window
        if window > context_length:
            raise ConfigError(
                f"memory.window={window} exceeds the backbone's context length {context_length}; "
                "lower it, or raise the backbone's context length"
            )
        budget = window - config.answer_reserve - config.prompt_reserve
        if budget <= 0:
            raise ConfigError(
                f"memory.answer_reserve={config.answer_reserve} and memory.prompt_reserve={config.prompt_reserve} "
                f"leave no room in a window of {window} tokens"
            )
        return budget

    def _facts(self) -> dict[str, Json]:
        transcript = self._transcript
        if transcript is None:
            return {"turns": len(self._lines)}
        first = self._lines[-transcript.kept].turn_id if transcript.kept else None
        return {
            "turns": len(self._lines),
            "kept_turns": transcript.kept,
            "truncated": transcript.kept < len(self._lines),
            "first_turn": first,
            "budget": transcript.budget,
            "tokens": transcript.tokens,
        }


def session_header(date_time: str) -> str:
    """Write the head of a session's block."""
    return TEXTS("dated_header", date=date_time) if date_time else TEXTS("header")


def _opening(lines: Sequence[TranscriptLine]) -> str:
    """Return the introduction of a conversation of two people; other material (passages) has none."""
    speakers = list(dict.fromkeys(line.speaker for line in lines))
    if len(speakers) != 2:
        return ""
    first, second = speakers
    return TEXTS("opening", first=first, second=second)


def _written(opening: str, lines: Sequence[TranscriptLine]) -> str:
    """Write sessions in order, an empty line before each."""
    if not lines:
        return ""
    blocks = [opening] if opening else []
    for position, line in enumerate(lines):
        if position == 0 or lines[position - 1].session_id != line.session_id:
            blocks.append(f"{chr(10) if blocks else ''}{line.header}\n")
        blocks.append(f"{line.text}\n")
    return "".join(blocks)


def _locomo_line(turn: Turn, turn_format: TurnFormat) -> str:
    caption = turn_format.caption(turn)
    if caption:
        return TEXTS("locomo_captioned", speaker=turn.speaker, text=turn.text, caption=caption)
    return TEXTS("locomo_line", speaker=turn.speaker, text=turn.text)


def _line_state(line: TranscriptLine) -> dict[str, Any]:
    return {name: getattr(line, name) for name in TranscriptLine.__slots__}
