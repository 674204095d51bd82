"""Groups of hyperparameters, each a mapping of the YAML."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memsys.errors import ConfigError
from memsys.settings import (
    check_choices,
    check_cosines,
    check_flags,
    check_minimum,
    check_optional,
    check_template,
)

CompressMode = Literal["off", "llmlingua2"]
PeakMode = Literal["off", "attention"]
UpdateMode = Literal["off", "offline", "offline_by_time"]
SearchScope = Literal["combined", "per_speaker"]
FactLayout = Literal["ranked", "speakers"]
BareLists = Literal["lost", "read"]


@dataclass(frozen=True, slots=True)
class CompressRules:
    """Settings of the compression of turns before anything else sees them.

    Attributes:
        mode: ``llmlingua2`` prunes each turn with ``memory.compressor``; ``off`` keeps it as it was said.
        min_tokens: shorter turns are kept whole, counted with the backbone's tokenizer.
    """

    mode: CompressMode
    min_tokens: int

    def __post_init__(self) -> None:
        check_choices(self, "memory.compress", mode=CompressMode)
        check_minimum(self, "memory.compress", min_tokens=0)


@dataclass(frozen=True, slots=True)
class SegmentRules:
    """Settings of cutting the sensory buffer into topics.

    Attributes:
        enabled: else the turns of each session are one segment.
        buffer_tokens: the buffer is cut when the next turn would exceed it.
        peaks: ``attention`` keeps only drops of similarity near a peak of attention between neighbouring turns, by
            the encoder of ``memory.compressor``; ``off`` keeps all drops.
        layers: of the encoder whose attention is averaged.
        edge: token positions at both ends of the encoder's input that do not count.
        near: greatest distance, in turns, of a drop from a peak.
        tau: first and last threshold below which a cosine of neighbouring turns is a drop, and the step between them.
    """

    enabled: bool
    buffer_tokens: int
    peaks: PeakMode
    layers: Sequence[int]
    edge: int
    near: int
    tau: Sequence[float]

    def __post_init__(self) -> None:
        check_choices(self, "memory.segment", peaks=PeakMode)
        check_flags(self, "memory.segment", "enabled")
        check_minimum(self, "memory.segment", buffer_tokens=1, edge=0, near=0)
        if len(self.tau) != 3 or self.tau[0] > self.tau[1] or self.tau[2] <= 0:
            raise ConfigError(f"memory.segment.tau={list(self.tau)} must be the first, the last and the step above 0")
        if not self.layers:
            raise ConfigError("memory.segment.layers=[] must name at least one layer of the encoder")
        if any(isinstance(layer, bool) or not isinstance(layer, int) or layer < 0 for layer in self.layers):
            raise ConfigError(f"memory.segment.layers={list(self.layers)} must be numbers of layers, from 0 on")

    @property
    def needs_encoder(self) -> bool:
        """Whether attention is looked at."""
        return self.enabled and self.peaks == "attention"

    @property
    def thresholds(self) -> list[float]:
        """All thresholds, lowest first."""
        first, last, step = self.tau
        return [round(first + place * step, 9) for place in range(int(round((last - first) / step, 6)) + 1)]


@dataclass(frozen=True, slots=True)
class RevisionRules:
    """Settings of the revision of stored facts once the conversation has ended.

    Attributes:
        mode: ``offline``, where a fact may change those of earlier turns and those before it of its own;
            ``offline_by_time``, where it may change every other one whose time stamp is not later, by the stamps of the
            released code (see :func:`baselines.lightmem.entries.moments`); or ``off`` for facts as they were extracted.
        theta: least cosine of a later fact that may change an earlier one.
        keep: earlier facts that each fact may change, the most similar ones.
        reembed: a rewritten fact gets the vector of its new text; the released code keeps the old one.
    """

    mode: UpdateMode
    theta: float
    keep: int
    reembed: bool

    def __post_init__(self) -> None:
        check_choices(self, "memory.update", mode=UpdateMode)
        check_cosines(self, "memory.update", "theta")
        check_minimum(self, "memory.update", keep=1)
        check_flags(self, "memory.update", "reembed")


@dataclass(frozen=True, slots=True)
class FactSearchRules:
    """Settings of the search.

    Attributes:
        scope: the best ``k`` facts of all, or of each speaker.
        k: facts.
    """

    scope: SearchScope
    k: int

    def __post_init__(self) -> None:
        check_choices(self, "memory.retrieve", scope=SearchScope)
        check_minimum(self, "memory.retrieve", k=1)


@dataclass(frozen=True, slots=True)
class LightMemContextRules:
    """Settings of the reader's context.

    Attributes:
        layout: all facts best first, or speaker by speaker in the order in which the ranking names them.
        max_tokens: limit, counted with the backbone's tokenizer; ``None`` for no limit of its own.
        reserve_tokens: of the window, for instructions, question and reply.
    """

    layout: FactLayout
    max_tokens: int | None
    reserve_tokens: int

    def __post_init__(self) -> None:
        check_choices(self, "memory.context", layout=FactLayout)
        check_optional(self, "memory.context", max_tokens=1)
        check_minimum(self, "memory.context", reserve_tokens=0)


@dataclass(frozen=True, slots=True)
class LightMemTexts:
    """Words of the context (``memory.context_texts``).

    Attributes:
        facts: heading of all facts.
        speaker: heading of a ``{speaker}``'s facts.
        episodes: heading of a section that stays empty; left out where it is the empty text.
        nothing: text under that heading when there are none.
        entry: a ``{fact}``.
        dated_entry: a ``{fact}`` with its ``{date}`` and ``{weekday}``.
    """

    facts: str
    speaker: str
    episodes: str
    nothing: str
    entry: str
    dated_entry: str

    def __post_init__(self) -> None:
        for key in ("facts", "episodes", "nothing"):
            check_template(f"memory.context_texts.{key}", getattr(self, key))
        check_template("memory.context_texts.speaker", self.speaker, "speaker")
        check_template("memory.context_texts.entry", self.entry, "fact")
        check_template("memory.context_texts.dated_entry", self.dated_entry, "fact", "date", "weekday")
