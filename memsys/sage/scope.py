"""The memories of one person: what is stored, how novel a fact is to it, and what happened to each."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memsys.counting import counter_from, counter_state
from memsys.embedding.contract import Vectors
from memsys.facts.stored import StoredFact
from memsys.gate.vmf import VmfScope
from memsys.llm.usage import Usage
from memsys.sage.config import SageConfig
from memsys.sage.extent import RunningVolume
from memsys.sage.threshold import Action, route
from memsys.vocabulary import Json, Unit

#: Columns of the trace with one entry per write, and with one per fact.
WRITE_COLUMNS = (
    "memories", "resultant", "kappa_uncapped", "kappa", "ln_volume", "ln_density", "target", "tau", "facts",
)  # fmt: skip
FACT_COLUMNS = ("novelty", "cosine", "action")


@dataclass(frozen=True, slots=True)
class FactDecision:
    """Decision on a fact, and the memory nearest to it (``None`` in an empty scope)."""

    action: Action
    nearest: str | None = None


@dataclass(slots=True)
class SageScope:
    """One person's memories in the order they were written, the threshold, and counts.

    Attributes:
        owner: the person, or ``conversation``.
        config: hyperparameters.
        vectors: one per memory.
        memories: by id, oldest first.
        tau: the threshold after the last write; ``None`` before the first.
        counts: of this scope.
        usage: calls for this scope.
        trace: what every write and every fact met.
    """

    owner: str
    config: SageConfig
    vectors: VmfScope
    memories: dict[str, StoredFact] = field(default_factory=dict)
    tau: float | None = None
    counts: Counter[str] = field(default_factory=Counter)
    usage: Usage = field(default_factory=Usage)
    trace: dict[str, list[Json]] = field(default_factory=lambda: {name: [] for name in WRITE_COLUMNS + FACT_COLUMNS})
    #: how many memories have a text
    _texts: Counter[str] = field(default_factory=Counter)
    #: of the scope as it is; ``None`` when it has changed since
    _ln_volume: float | None = None
    _extent: RunningVolume = field(init=False)

    def __post_init__(self) -> None:
        self._extent = RunningVolume(self.config.pca_components, self.config.span_floor)

    def step(self, facts: int) -> float:
        """Move the threshold by one write, whose facts are still to come, and return it.

        The threshold moves with every write, also with one that has no facts: that is the official code's clock.
        """
        rule = self.config.threshold_rule
        volume = density = target = None
        if rule.mode == "adaptive":
            volume = self._volume()
            density = rule.ln_density(len(self.memories), volume)
            target = rule.target(density)
        self.tau = rule.step(self.tau, target if target is not None else 0.0)
        used = self.vectors.kappa if self.memories else None
        uncapped = self.vectors.kappa_uncapped if self.memories else None
        row = (len(self.memories), self.vectors.resultant, uncapped, used, volume, density, target, self.tau, facts)
        self._trace(WRITE_COLUMNS, row)
        return self.tau

    def judge(self, text: str, vector: Vectors, tau: float) -> FactDecision:
        """Route a fact with its embedding (d,), given the scope as it is now."""
        verdict, novelty, cosine = self._judged(vector, tau)
        if self._texts[text]:
            self.counts["exact_duplicates"] += 1
            if self.config.dedupe_exact:
                verdict = FactDecision("noop", verdict.nearest)
        self.counts[f"route.{verdict.action}"] += 1
        self._trace(FACT_COLUMNS, (novelty, cosine, verdict.action))
        return verdict

    def _judged(self, vector: Vectors, tau: float) -> tuple[FactDecision, float | None, float | None]:
        if not self.memories:
            return FactDecision("add"), None, None
        support = self.vectors.support(vector)
        novelty = self.config.novelty(support.score if self.config.score == "vmf" else support.cosine)
        return FactDecision(route(novelty, tau, self.config.delta), support.nearest), novelty, support.cosine

    def add(self, text: str, vector: Vectors, unit: Unit) -> None:
        """Store a fact of a batch as a new memory."""
        memory_id = f"{self.owner}#{len(self.memories)}"
        self.memories[memory_id] = StoredFact.of(memory_id, text, unit)
        self.vectors.add(memory_id, vector)
        self._extent.added(vector)
        self._texts[text] += 1
        self._ln_volume = None

    def merge(self, memory_id: str, text: str, vector: Vectors, unit: Unit) -> None:
        """Give a memory the text that a fact of a batch was merged into, and that batch's turns besides its own."""
        memory = self.memories[memory_id]
        self.counts["merge.unchanged"] += text == memory.text
        self._texts[memory.text] -= 1
        self._texts[text] += 1
        memory.rewrite(text, unit, self.config.update_timestamp)
        self._extent.replaced(self.vectors.rows([memory_id])[0], vector)
        self.vectors.replace(memory_id, vector)
        self._ln_volume = None

    def _volume(self) -> float:
        if self._ln_volume is None:
            self._ln_volume = self._extent.ln_volume(self.vectors)
        return self._ln_volume

    def _trace(self, columns: tuple[str, ...], row: tuple[Json, ...]) -> None:
        for name, value in zip(columns, row, strict=True):
            self.trace[name].append(round(value, 6) if isinstance(value, float) else value)

    def state(self) -> dict[str, Any]:
        """Return the snapshot."""
        return {
            "owner": self.owner,
            "memories": [memory.state() for memory in self.memories.values()],
            "vectors": self.vectors.state(),
            "tau": self.tau,
            "ln_volume": self._ln_volume,
            "extent": self._extent.state(),
            "counts": counter_state(self.counts),
            "usage": self.usage.state(),
            "trace": {name: list(column) for name, column in self.trace.items()},
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a snapshot."""
        memories = [StoredFact.from_state(entry) for entry in state["memories"]]
        self.memories = {memory.memory_id: memory for memory in memories}
        self._texts = Counter(memory.text for memory in memories)
        self.vectors.load_state(state["vectors"])
        self.tau, self._ln_volume = state["tau"], state["ln_volume"]
        self._extent.load_state(state.get("extent", {}), len(self.vectors.total))
        self.counts = counter_from(state["counts"])
        self.usage = Usage.from_state(state["usage"])
        self.trace = {name: list(column) for name, column in state["trace"].items()}
