"""The rows of scores of a run: what is computed, what a row holds, and reading back what was stored.

:func:`eval.scoring.score_run.score_run` makes them.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eval.loaders.question_types import kind_of
from eval.metrics.evidence import SubstringMatching
from eval.metrics.registry import select_metrics
from eval.runs.manifest import DERIVED
from eval.runs.rows import read_rows
from eval.runs.stored import load_json
from memsys.errors import ConfigError, ScoringError

SCORES, SCORES_META, SUMMARY = DERIVED
#: What the scores depend on; their checksums tell stale scores from fresh ones.
INPUTS = ("answers.jsonl", "settled.jsonl", "retrievals.jsonl", "references.jsonl", "updates.jsonl")
#: Decimals of a stored score, and of the means of a summary.
STORED_DECIMALS = 6
#: Checksum of a file without rows.
_NO_ROWS = hashlib.sha256(b"").hexdigest()

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
        if self.batch_size < 1:
            raise ConfigError(f"scoring.batch_size={self.batch_size}; it must be at least 1")
        if self.bertscore_layers is not None and self.bertscore_layers < 1:
            raise ConfigError(f"scoring.bertscore_layers={self.bertscore_layers} must be at least 1, or null")
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


def is_verdict(metric: str) -> bool:
    """Return whether a metric holds a judge's verdicts, which are averaged as scores are."""
    return metric.startswith("judge_")


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """All scores of one question; ``None`` where there is nothing to score.

    ``kind`` is what is asked (:mod:`eval.loaders.question_types`); in rows of older versions it is derived from the
    category.
    Older versions called ``staleness`` what is ``staleness_of_question`` now; their rows say nothing of the other one.
    """

    question_id: str
    conversation_id: str
    category: int
    metrics: Mapping[str, float | None]
    kind: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", kind_of(self.kind, self.category))
        if "staleness" in self.metrics and "staleness_of_question" not in self.metrics:
            earlier = {"staleness": None, "staleness_of_question": self.metrics["staleness"]}
            object.__setattr__(self, "metrics", {**self.metrics, **earlier})


def checksums(run_dir: Path) -> dict[str, str | None]:
    """Return sha256 of the files that scores depend on, ``None`` for one that does not exist."""
    return {name: _sha256(run_dir / name) for name in INPUTS}


def _sha256(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def changed_inputs(before: Mapping[str, str | None], now: Mapping[str, str | None]) -> list[str]:
    """Name the files whose content has changed.

    A file without rows counts as one that does not exist: opening a run, as judging does, makes what it lacks.

    Args:
        before: as :func:`checksums` gave them.
        now: likewise.
    """
    return [name for name, digest in now.items() if (digest or _NO_ROWS) != (before.get(name) or _NO_ROWS)]


def load_scores(run_dir: Path) -> list[ScoreRow]:
    """Read the stored scores of a run.

    Raises:
        ScoringError: there are none, or answers were added since.
    """
    if not ((run_dir / SCORES_META).is_file() and (run_dir / SCORES).is_file()):
        raise ScoringError(f"{run_dir} has no scores; run `memsys score {run_dir}`")
    inputs = load_json(run_dir / SCORES_META).get("inputs")
    if not isinstance(inputs, dict):
        raise ScoringError(f"{run_dir / SCORES_META} names no inputs; run `memsys score {run_dir}`")
    changed = changed_inputs(inputs, checksums(run_dir))
    if changed:
        raise ScoringError(
            f"{run_dir}: {', '.join(changed)} changed since the scores were made; run `memsys score {run_dir}`"
        )
    advice = f"run `memsys score {run_dir}`"
    return list(read_rows(run_dir / SCORES, ScoreRow, error=ScoringError, advice=advice, unique="question_id"))
