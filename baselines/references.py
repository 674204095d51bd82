"""Two references that bound every table: no memory at all, and the gold evidence itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from baselines.passages import Passage, passage_of_turn, shown_together
from memsys.call_model import DataShape, ExpectedCalls
from memsys.errors import ConfigError
from memsys.protocol import BaseMemory, MemorySystem, Parts, State
from memsys.settings import refuse_gold
from memsys.vocabulary import Json, Retrieval, Unit


@dataclass(frozen=True)
class NoMemoryConfig:
    """The reader sees an empty context: what the backbone knows, guesses, or reads off the question.

    Attributes:
        name: of the preset.
        uses_gold: always false.
    """

    name: str
    uses_gold: bool

    def __post_init__(self) -> None:
        refuse_gold(self, "no_memory")

    @property
    def embeds(self) -> bool:
        """Never; see :class:`memsys.protocol.DeclaresEmbedding`."""
        return False

    def expected_calls(self, shape: DataShape) -> Sequence[ExpectedCalls]:
        """Return the calls of each role; see :class:`memsys.call_model.PlansCalls`."""
        return []

    def context_tokens(self, shape: DataShape) -> float:
        """Return the mean tokens of a question's context."""
        return 0.0

    def build(self, parts: Parts) -> MemorySystem:
        """Make the memory, which keeps nothing."""
        return NoMemory()


class NoMemory(BaseMemory):
    """Keeps nothing and finds nothing."""

    async def write(self, unit: Unit, prepared: None) -> None:
        """Forget the unit."""

    async def retrieve(self, query: str) -> Retrieval:
        """Find nothing."""
        return Retrieval(hits=(), context="")

    def state(self) -> State:
        """Return the empty snapshot."""
        return {}

    def load_state(self, state: State) -> None:
        """Restore nothing."""


@dataclass(frozen=True)
class OracleConfig:
    """The reader sees the gold evidence turns and nothing else: a bound for perfect retrieval, not for answering.

    Attributes:
        name: of the preset.
        uses_gold: always true.
    """

    name: str
    uses_gold: bool

    def __post_init__(self) -> None:
        if not self.uses_gold:
            raise ConfigError("memory.uses_gold=False: the oracle is gold evidence; set it to true")

    @property
    def embeds(self) -> bool:
        """Never; see :class:`memsys.protocol.DeclaresEmbedding`."""
        return False

    def expected_calls(self, shape: DataShape) -> Sequence[ExpectedCalls]:
        """Return the calls of each role; see :class:`memsys.call_model.PlansCalls`."""
        return []

    def context_tokens(self, shape: DataShape) -> float:
        """Return the mean tokens of a question's context."""
        return 3 * shape.turn_tokens  # LoCoMo names two to three turns of evidence per question

    def build(self, parts: Parts) -> MemorySystem:
        """Make the empty memory.

        Raises:
            ConfigError: the harness gave no gold evidence.
        """
        if parts.gold_evidence is None:
            raise ConfigError("the oracle memory needs gold evidence, and this run gives none")
        return Oracle(parts, parts.gold_evidence)


class Oracle(BaseMemory):
    """Keeps every turn; shows the gold ones in the order of the conversation."""

    def __init__(self, parts: Parts, gold_evidence: Mapping[str, Sequence[str]]) -> None:
        self._turn_format = parts.turn_format
        self._gold_evidence = gold_evidence
        self._turns: dict[str, Passage] = {}

    async def write(self, unit: Unit, prepared: None) -> None:
        """Keep the unit's turns."""
        for turn in unit.turns:
            self._turns[turn.turn_id] = passage_of_turn(turn, self._turn_format)

    async def retrieve(self, query: str) -> Retrieval:
        """Show the evidence of the question; a question without any gets an empty context."""
        gold = set(self._gold_evidence.get(query, ()))
        found = [passage for turn_id, passage in self._turns.items() if turn_id in gold]
        trace = {"question_known": query in self._gold_evidence, "evidence": len(gold), "shown": len(found)}
        return Retrieval(tuple(passage.hit(1.0) for passage in found), shown_together(found), trace)

    def statistics(self) -> Mapping[str, Json]:
        """Count turns."""
        return {"turns": len(self._turns)}

    def state(self) -> State:
        """Return the turns."""
        return {"turns": [passage.state() for passage in self._turns.values()]}

    def load_state(self, state: State) -> None:
        """Restore a snapshot."""
        turns = [Passage.from_state(entry) for entry in state["turns"]]
        self._turns = {passage.passage_id: passage for passage in turns}
