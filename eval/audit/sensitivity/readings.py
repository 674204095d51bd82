"""Readings: every way in which a table may have turned the same answers into one number."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from eval.audit.sensitivity.config import LensConfig
from eval.loaders.question_types import ADVERSARIAL
from eval.metrics.registry import METRICS
from eval.scoring.protocols import Adversarial, Protocol

#: ``counts``: category means weighted by the whole data set's questions; ``conversation``: conversations alike.
Weights = Literal["question", "category", "counts", "conversation"]

ADVERSARIAL_TEXT: Mapping[str, str] = {
    "paper_trap": "no answer: trap",
    "abstain": "no answer: abstention",
    "exclude": "no answer: left out",
}
#: In place of the trap, where the data set's gold for such a question says that there is no answer (LongMemEval, BEAM).
REFUSAL_TEXT = "no answer: the data set's refusal as gold"
WEIGHTS_TEXT: Mapping[str, str] = {
    "question": "mean over questions (micro)",
    "category": "mean of category means (macro)",
    "counts": "category means by the data set's counts",
    "conversation": "mean of conversation means",
}
_WEIGHTINGS: Mapping[str, Weights] = {"question_mean": "question", "category_mean": "category"}


@dataclass(frozen=True, slots=True)
class MetricReading:
    """One way to read the answers.

    Attributes:
        label: what tells it from the others of its section.
        metric: name in ``scores.jsonl``.
        kinds: of questions that count; ``None`` for all that the data set has.
        adversarial: treatment of category 5, see :mod:`eval.scoring.protocols`.
        weights: of the mean.
        source: where the definition comes from.
        no_ranking: why a higher value does not say that a system is better; empty where it does.
    """

    label: str
    metric: str
    kinds: tuple[str, ...] | None = None
    adversarial: Adversarial = "exclude"
    weights: Weights = "question"
    source: str = ""
    no_ranking: str = ""

    def takes(self, kind: str) -> bool:
        """Return whether questions of a category enter the mean."""
        if kind == ADVERSARIAL and self.adversarial == "exclude":
            return False
        return self.kinds is None or kind in self.kinds


@dataclass(frozen=True, slots=True)
class Holdings:
    """Contents of the runs on a data set that definitions depend on.

    Attributes:
        metrics: scores that at least one run has.
        shared: scores that all of them have.
        kinds: of the questions.
        weights: means that differ from each other.
        judges: column of each judge -> its name and how it did on answers whose grade is known.
        faulty: column of each judge whose verdicts are uninformative -> why.
    """

    metrics: frozenset[str]
    shared: frozenset[str]
    kinds: frozenset[str]
    weights: tuple[Weights, ...]
    judges: Mapping[str, str]
    faulty: Mapping[str, str]

    @property
    def adversarial_text(self) -> Mapping[str, str]:
        """Effect of each treatment of unanswerable questions on these data."""
        if ADVERSARIAL not in self.kinds or "trapped" in self.metrics:
            return ADVERSARIAL_TEXT
        return {**ADVERSARIAL_TEXT, "paper_trap": REFUSAL_TEXT}


@dataclass(frozen=True, slots=True)
class Section:
    """Readings that belong together; each is compared with the first."""

    title: str
    readings: tuple[MetricReading, ...]


def sections(config: LensConfig, holdings: Holdings, protocols: Sequence[Protocol]) -> list[Section]:
    """List what can be shown of some runs.

    Args:
        config: what is wanted.
        holdings: of the runs.
        protocols: of the papers.
    """
    found = [_definitions(config, holdings)]
    if ADVERSARIAL in holdings.kinds:
        found.append(_category_five(config, holdings))
    if len(holdings.weights) > 1:
        found.append(_weights(config, holdings))
    found.append(_papers(protocols, holdings))
    return [section for section in found if section.readings]


def _definitions(config: LensConfig, holdings: Holdings) -> Section:
    readings = [
        MetricReading(f"{group}: {metric}", metric, source=METRICS[metric].source)
        for group, names in config.definitions.items()
        for metric in names
        if metric in holdings.metrics
    ]
    readings += [
        MetricReading(f"judge: {text}", column, source="eval.judge", no_ranking=holdings.faulty.get(column, ""))
        for column, text in holdings.judges.items()
        if column in holdings.metrics
    ]
    left_out = ", questions without an answer left out" if ADVERSARIAL in holdings.kinds else ""
    return Section(f"Definitions{left_out}, mean over questions", tuple(readings))


def _category_five(config: LensConfig, holdings: Holdings) -> Section:
    lead, metrics = config.lead, holdings.metrics
    whole = [MetricReading(f"all, {text}", lead, adversarial=name) for name, text in _treatments(holdings)]
    gold = "the false answer" if "trapped" in metrics else "the data set's refusal"
    alone = MetricReading(f"they alone, {lead} against {gold}", lead, (ADVERSARIAL,), "paper_trap")
    shares = [
        MetricReading(f"they alone, {text}", name, (ADVERSARIAL,), "paper_trap")
        for name, text in (("trapped", "share that gives the false answer"), ("abstained", "share that declines"))
        if name in metrics
    ]
    return Section(f"Questions without an answer, {lead}, mean over questions", (*whole, alone, *shares))


def _treatments(holdings: Holdings) -> list[tuple[Adversarial, str]]:
    """Return the treatments of unanswerable questions with their texts; one empty treatment without any."""
    if ADVERSARIAL not in holdings.kinds:
        return [("exclude", "")]
    return [(name, holdings.adversarial_text[name]) for name in get_args(Adversarial)]


def _weights(config: LensConfig, holdings: Holdings) -> Section:
    readings = [
        MetricReading(_joined(WEIGHTS_TEXT[weights], text), config.lead, adversarial=name, weights=weights)
        for name, text in _treatments(holdings)
        if name != "abstain"
        for weights in holdings.weights
    ]
    return Section(f"Means, {config.lead}", tuple(readings))


def _joined(*texts: str) -> str:
    return ", ".join(text for text in texts if text)


def _papers(protocols: Sequence[Protocol], holdings: Holdings) -> Section:
    readings = [
        MetricReading(
            f"{protocol.name}: {column} ({metric}, {holdings.adversarial_text[protocol.adversarial]})",
            metric,
            None,
            protocol.adversarial,
            _WEIGHTINGS[protocol.weighting],
            protocol.source,
        )
        for protocol in protocols
        for column, metric in protocol.columns.items()
        if metric in holdings.metrics
    ]
    return Section("As the papers print", tuple(readings))


def grid(config: LensConfig, holdings: Holdings) -> list[MetricReading]:
    """Cross the definitions of one metric with the readings of questions without an answer and the means."""
    return [
        MetricReading(_joined(metric, text, weights), metric, adversarial=name, weights=weights)
        for metric in config.grid
        if metric in holdings.shared
        for name, text in _treatments(holdings)
        for weights in holdings.weights
    ]
