"""Groups of hyperparameters, each a mapping of the YAML."""

from dataclasses import dataclass
from typing import Literal

from memsys.settings import check_choices, check_flags, check_minimum

PieceCut = Literal["pairs", "turns"]
PortraitOf = Literal["both", "user_only", "off"]
NamedTurns = Literal["none", "all"]


@dataclass(frozen=True, slots=True)
class SummaryRules:
    """Settings of the summaries of days and the whole conversation.

    Attributes:
        days: each day has summaries, which are found by questions as pieces are.
        part_tokens: a longer day is summarised in parts that end with a turn (with a record of the data set where that
            has some), each at most this long, counted with the backbone's tokenizer.
        fallback_sentences: sentences of the day that replace an empty summary.
        portrait: each day's traits of ``both`` speakers, or of the first alone (``user_only``), and a portrait made of
            them; ``off`` makes neither.
        overall_history: a digest of all days' summaries is made and shown. The released code makes it and never shows
            it.
        named_turns: what a summary that is found names as its evidence: ``none``, or ``all`` turns of its day. A few
            sentences about some twenty turns do not say what each of them said, so figures by turn ids take the pieces
            alone.
        reserve_tokens: of the window, for instructions and reply, where days are put together.
    """

    days: bool
    part_tokens: int
    fallback_sentences: int
    portrait: PortraitOf
    overall_history: bool
    named_turns: NamedTurns
    reserve_tokens: int

    def __post_init__(self) -> None:
        check_choices(self, "memory.summaries", portrait=PortraitOf, named_turns=NamedTurns)
        check_flags(self, "memory.summaries", "days", "overall_history")
        check_minimum(self, "memory.summaries", part_tokens=1, fallback_sentences=1, reserve_tokens=0)


@dataclass(frozen=True, slots=True)
class MemoryBankContextRules:
    """Settings of the reader's context.

    Attributes:
        dates_recalled: repeat the dates of what was found at the end.
        max_tokens: limit, counted with the backbone's tokenizer: portrait and digest first, then what was found, best
            first. ``None`` for no limit of its own.
        reserve_tokens: of the window, for instructions, question and reply.
    """

    dates_recalled: bool
    max_tokens: int | None
    reserve_tokens: int

    def __post_init__(self) -> None:
        check_flags(self, "memory.context", "dates_recalled")
        check_minimum(self, "memory.context", reserve_tokens=0)
        if self.max_tokens is not None:
            check_minimum(self, "memory.context", max_tokens=1)
