"""Hyperparameters of SAGE; the presets are in ``conf/memory/sage``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from memsys.errors import ConfigError
from memsys.facts.batches import Scopes
from memsys.facts.extraction import UserPrompt
from memsys.facts.stored import UpdateTimestamp
from memsys.gate.config import check_kappa
from memsys.gate.vmf import KappaRule
from memsys.sage.roles import MergePrompt, make_roles
from memsys.sage.threshold import ThresholdMode, ThresholdRule
from memsys.settings import check_between, check_choices, check_minimum, refuse_gold
from memsys.system_config import SystemConfig
from memsys.vocabulary import Json

Score = Literal["vmf", "max_cosine"]
NoveltyScale = Literal["half", "full"]

_CHOICES = {
    "scopes": Scopes,
    "score": Score,
    "novelty_scale": NoveltyScale,
    "threshold": ThresholdMode,
    "extract_prompt": UserPrompt,
    "merge_prompt": MergePrompt,
    "update_timestamp": UpdateTimestamp,
}
_MINIMA = {
    "batch_size": 1,
    "tau_0": 0,
    "tau_min": 0,
    "decay": 0,
    "alpha": 0,
    "delta": 0,
    "pca_components": 1,
    "span_floor": 1e-12,
    "volume_floor": 1e-300,
    "top_k": 1,
}


@dataclass(frozen=True)
class SageConfig(SystemConfig):
    """The choices of the paper and of the official code.

    Attributes:
        name: of the preset.
        uses_gold: always false.
        batch_size: messages of one session per write; each write extracts once for every scope.
        scopes: one memory per speaker of the conversation (of those who speak), or one for all.
        prompt_date: the date in the extraction's prompt: ``session`` for the batch's date, any other text as it is.
        extract_prompt: what the prompt makes of that date: ``user`` says that the conversation took place on it and
            asks for dates in the facts; ``user_today`` says that it is today's date (code).
        max_facts: facts kept of one extraction; null for all (code).
        score: ``vmf``, or ``max_cosine``, to which a large kappa leads.
        kappa_cap: upper bound of kappa; null for the printed formula, 50 in the official code.
        kappa_floor: lower bound of kappa.
        novelty_scale: ``half`` is ``(1 - s) / 2`` (paper), ``full`` is ``1 - s`` (code); all thresholds are on it.
        threshold: adaptive, or fixed at ``tau_fixed``.
        tau_fixed: fixed threshold; null for an adaptive one.
        tau_0: height of the threshold's decaying part.
        tau_min: floor of the threshold.
        decay: lambda, how fast density lowers the threshold.
        alpha: momentum of the threshold's moving average over writes.
        delta: width of the band above the threshold in which the backbone merges.
        pca_components: directions in which the volume of a scope is measured.
        span_floor: least extent of a direction.
        volume_floor: least volume.
        merge_prompt: ``short``, or ``lossless``, with which the printed GPT-4o-mini tables were made.
        update_timestamp: a merged memory has the new date alone, the old ones, or both.
        dedupe_exact: ignore a fact whose very text is stored already.
        top_k: memories retrieved per scope.
        context_max_tokens: tokens of memories shown to the reader; null for no limit.
        roles: per role (``extract``, ``merge``) the fields of :class:`memsys.llm.roles.RoleSettings`.
    """

    name: str
    uses_gold: bool
    batch_size: int
    scopes: Scopes
    prompt_date: str
    extract_prompt: UserPrompt
    max_facts: int | None
    score: Score
    kappa_cap: float | None
    kappa_floor: float
    novelty_scale: NoveltyScale
    threshold: ThresholdMode
    tau_fixed: float | None
    tau_0: float
    tau_min: float
    decay: float
    alpha: float
    delta: float
    pca_components: int
    span_floor: float
    volume_floor: float
    merge_prompt: MergePrompt
    update_timestamp: UpdateTimestamp
    dedupe_exact: bool
    top_k: int
    context_max_tokens: int | None
    roles: Mapping[str, Mapping[str, Json]]

    def __post_init__(self) -> None:
        check_choices(self, "memory", **_CHOICES)
        check_minimum(self, "memory", **_MINIMA)
        check_kappa(self.kappa_cap, self.kappa_floor)
        largest = 1 if self.novelty_scale == "half" else 2
        for key in ("tau_0", "tau_min", "tau_fixed"):
            if getattr(self, key) is not None:
                check_between(f"memory.{key}", getattr(self, key), 0, largest)
        refuse_gold(self, "SAGE")
        if self.alpha >= 1:
            raise ConfigError(f"memory.alpha={self.alpha} must be below 1: at 1 the threshold never moves")
        if (self.threshold == "fixed") != (self.tau_fixed is not None):
            raise ConfigError(
                f"memory.tau_fixed={self.tau_fixed} with memory.threshold={self.threshold}: give a number for a fixed "
                "threshold, null for an adaptive one"
            )
        for key in ("tau_fixed", "context_max_tokens", "max_facts"):
            if getattr(self, key) is not None:
                check_minimum(self, "memory", **{key: 0 if key == "tau_fixed" else 1})
        make_roles(self.roles, self.merge_prompt, self.extract_prompt)

    @property
    def kappa(self) -> KappaRule:
        """Settings of the estimate of the concentration."""
        return KappaRule(self.kappa_cap, self.kappa_floor)

    @property
    def threshold_rule(self) -> ThresholdRule:
        """Settings of the adaptive threshold."""
        return ThresholdRule(
            mode=self.threshold,
            tau_fixed=self.tau_fixed,
            tau_0=self.tau_0,
            tau_min=self.tau_min,
            decay=self.decay,
            alpha=self.alpha,
            pca_components=self.pca_components,
            span_floor=self.span_floor,
            volume_floor=self.volume_floor,
        )

    def novelty(self, score: float) -> float:
        """Turn a score in [-1, 1] into a novelty: the larger, the more novel."""
        return (1.0 - score) / 2.0 if self.novelty_scale == "half" else 1.0 - score
