"""Settings of the scoring (``conf/scoring``): which metrics are computed, and how questions without an answer count."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from eval.metrics.evidence import SubstringMatching
from eval.metrics.registry import select_metrics
from memsys.errors import ConfigError
from memsys.settings import check_minimum, check_optional

#: Decimals of a stored score, and of the means of a summary.
STORED_DECIMALS = 6

Scores = dict[str, float | None]

#: How questions without an answer count where nothing else is said. The authors' codes score an empty reply with 0,
#: and the text of one that does not parse.
UNANSWERED: Mapping[str, str] = {"empty": "wrong", "malformed": "text", "withheld": "left_out", "failed": "left_out"}
_WITH_TEXT = ("empty", "malformed")


@dataclass(frozen=True, slots=True)
class ScoringConfig:
    """Settings of scoring (``conf/scoring``).

    Attributes:
        name: name of the preset.
        metrics: names or groups of :mod:`eval.metrics.registry`; evidence metrics are computed in any case.
        bertscore_model: hub name or local folder of the encoder behind ``bert_*``.
        bertscore_layers: layers of it to use; ``None`` takes the tuned layer, else all.
        bertscore_rescaled: subtract the published baseline.
        sbert_model: sentence encoder behind ``sbert`` and the ``order_*_semantic`` metrics.
        batch_size: texts per forward pass.
        evidence_nfkc: see :class:`eval.metrics.evidence.SubstringMatching`.
        evidence_deduplicated: see :class:`eval.metrics.evidence.SubstringMatching`.
        unanswered: how questions without an answer count, by what became of them (:mod:`memsys.llm.outcomes`):
            ``wrong`` with 0, ``left_out`` of the means, or ``text``, as the text that the reader took all the same,
            which only empty and malformed replies have.
    """

    name: str = "default"
    metrics: Sequence[str] = ("lexical",)
    bertscore_model: str = "roberta-large"
    bertscore_layers: int | None = None
    bertscore_rescaled: bool = False
    sbert_model: str = "all-MiniLM-L6-v2"
    batch_size: int = 64
    evidence_nfkc: bool = True
    evidence_deduplicated: bool = True
    unanswered: Mapping[str, str] = field(default_factory=lambda: dict(UNANSWERED))

    def __post_init__(self) -> None:
        if isinstance(self.metrics, str):
            raise ConfigError(f"scoring.metrics={self.metrics} must be a list, e.g. scoring.metrics=[{self.metrics}]")
        if not self.metrics:
            raise ConfigError(
                "scoring.metrics=[] scores no answer; name metrics or groups, e.g. scoring.metrics=[lexical]"
            )
        select_metrics(self.metrics)
        check_minimum(self, "scoring", batch_size=1)
        check_optional(self, "scoring", bertscore_layers=1)
        self._check_unanswered()

    def _check_unanswered(self) -> None:
        if not isinstance(self.unanswered, Mapping) or set(self.unanswered) != set(UNANSWERED):
            raise ConfigError(f"scoring.unanswered={self.unanswered!r} must be a mapping of {', '.join(UNANSWERED)}")
        for outcome, chosen in self.unanswered.items():
            choices = ("wrong", "left_out", *(["text"] if outcome in _WITH_TEXT else []))
            if chosen not in choices:
                raise ConfigError(f"scoring.unanswered.{outcome}={chosen!r}; choose one of {', '.join(choices)}")

    @property
    def matching(self) -> SubstringMatching:
        """Options of the substring matching."""
        return SubstringMatching(nfkc=self.evidence_nfkc, deduplicate=self.evidence_deduplicated)


def lexical_config(meta: Mapping[str, Any]) -> ScoringConfig:
    """Return a run's settings of scoring, without the metrics that need a model.

    Args:
        meta: ``scores_meta.json``.

    Raises:
        ConfigError: a setting is wrong.
    """
    known = {one.name for one in fields(ScoringConfig)}
    config = ScoringConfig(**{name: value for name, value in meta["config"].items() if name in known})
    lexical = [metric.name for metric in select_metrics(config.metrics) if not metric.neural]
    return replace(config, metrics=lexical or ("lexical",))


def is_verdict(metric: str) -> bool:
    """Return whether a metric holds a judge's verdicts, which are averaged as scores are."""
    return metric.startswith("judge_")
