"""Content of a comparison, and the text of its cells, the same on the terminal and in files."""

from collections.abc import Sequence
from dataclasses import dataclass

from eval.results.compare.baseline import choose_baseline
from eval.results.compare.columns import (
    ANSWERABLE,
    ComparisonColumn,
    columns,
    judge_columns,
    lead_column,
    session_columns,
)
from eval.results.compare.conclusion import conclusion, no_evidence, unanswered
from eval.results.compare.pairs import compare_with
from eval.results.compare.rows import (
    ComparisonEstimate,
    SystemRow,
    lead_metric,
    price_dates,
    recall_metric,
    system_rows,
)
from eval.results.compare.seeds import fewer_seeds, listed_seeds, named_seeds
from eval.results.stored_run import StoredRun
from eval.results.tables.judges import without_unmeasured
from eval.results.tables.label_view import views
from eval.results.tables.pairs import Pair
from eval.results.tables.text import PAIR_LEGEND
from eval.scoring.aggregate import unlabelled_kinds
from eval.scoring.inference import BY_QUESTION, ONE_CONVERSATION
from eval.scoring.protocols import Protocol
from eval.scoring.remarks import remarks

_REFUSAL = "unanswerable questions scored against the data set's own refusal, by words"
_UNANSWERABLE = {
    "paper_trap": (
        "unanswerable questions (category 5) scored against the false answer, so being fooled counts as correct"
    ),
    "abstain": "unanswerable questions correct when declined",
    "exclude": "unanswerable questions excluded",
}

#: Stands for a model where a test needs none.
TEST_EMBEDDER = "hashing"

_ANSWERABLE_TESTS = f"{ANSWERABLE}: the tests of F1 on the answerable questions; Holm's correction over these only"
_RECALL_TESTS = "no run here has answers: the primary metric is {heading}, and Holm's correction runs over its tests"
_BY_SESSION = (
    "session any, all: share of the questions with any or all of their gold sessions among the first 5 or 10 sessions "
    "retrieved"
)


def _may_embed(run: StoredRun) -> bool:
    """Return whether a run's memory may embed texts, by its record, else by its settings."""
    said = run.record.get("embeds")
    if said is not None:
        return bool(said)
    return not run.reference and (run.record["config"].get("memory") or {}).get("scorer") != "bm25"


@dataclass(frozen=True, slots=True)
class Report:
    """All that a comparison shows.

    Attributes:
        protocol: how means are taken.
        rows: the systems, sorted by the lead column, the best first.
        pairs: tests against the baseline.
        judges: columns of judges.
        baseline: label of what the others were tested against.
        conclusion: what can be claimed, in a sentence or a few.
        left_out: a line for each judge whose verdicts are not shown.
    """

    protocol: Protocol
    rows: tuple[SystemRow, ...]
    pairs: tuple[Pair, ...]
    judges: tuple[ComparisonColumn, ...]
    baseline: str
    conclusion: str
    left_out: tuple[str, ...] = ()

    @property
    def unlabelled(self) -> list[str]:
        """Kinds of questions that the protocol has no label for."""
        return unlabelled_kinds((score for row in self.rows for score in row.run.rows), self.protocol)

    @property
    def has_figure(self) -> bool:
        """Whether there are systems to draw next to each other; one is a row of numbers."""
        return len(self.rows) > 1

    @property
    def lead(self) -> str:
        """The column that the rows are sorted by."""
        return lead_metric([row.run for row in self.rows], self.protocol)[0]

    @property
    def data(self) -> tuple[str, str]:
        """Name and checksum of the data set, which all systems ran on."""
        run = next((row.run for row in self.rows if not row.run.floor), self.rows[0].run)
        return run.dataset, run.data_sha256

    @property
    def recall(self) -> str:
        """The column of evidence recall that is tested."""
        return recall_metric([row.run for row in self.rows])[0]

    @property
    def lead_columns(self) -> tuple[ComparisonColumn, ...]:
        """That column, where the protocol's primary metric is none of those that every comparison has."""
        return lead_column(*lead_metric([row.run for row in self.rows], self.protocol))

    @property
    def warnings(self) -> list[str]:
        """Warnings about the protocol and about omitted judges, for a reader of the means."""
        published = (score for row in self.rows if not row.run.of_own_data for score in row.run.rows)
        names = ", ".join(unlabelled_kinds(published, self.protocol))
        found = [*self.left_out, *self._unlike_questions(), *self._test_embedder(), *self._unsplit(), *self._remarks()]
        if not names:
            return found
        return [
            *found,
            f"warning: protocol {self.protocol.name} has no label for questions of the kind {names}: they count in all "
            "means and have rows of their own; name them in the protocol's labels",
        ]

    def _unlike_questions(self) -> list[str]:
        """Return the note that means are over different questions, while tests use the common ones."""
        asked: dict[frozenset[str], list[str]] = {}
        for row in self.rows:
            asked.setdefault(frozenset(score.question_id for score in row.run.rows), []).append(row.label)
        if len(asked) == 1:
            return []
        counts = "; ".join(f"{', '.join(names)}: {len(questions)}" for questions, names in asked.items())
        return [
            f"warning: means are over different questions: {counts}; each test is over the questions that its two "
            "systems share"
        ]

    def _remarks(self) -> list[str]:
        found = [(row.label, text) for row in self.rows for run in row.repeats.runs for text in remarks(run.summary)]
        return [f"warning: {label}: {text}" for label, text in dict.fromkeys(found)]

    def _test_embedder(self) -> list[str]:
        names = [row.label for row in self.rows if row.run.embedder == TEST_EMBEDDER and _may_embed(row.run)]
        if not names:
            return []
        return [
            f"warning: {', '.join(names)}: embedder={TEST_EMBEDDER} compares words and is for tests; what a system "
            "finds with its embeddings is not measured by it"
        ]

    def _unsplit(self) -> list[str]:
        """Return the note that published metrics cannot tokenize the gold answers of some runs."""
        names = [row.label for row in self.rows if row.run.meta.get("unsplit")]
        if not names:
            return []
        return [
            f"warning: {', '.join(names)}: the published F1, BLEU, METEOR and ROUGE do not split gold answers in their "
            "script into words; read the columns that end in mixed"
        ]

    @property
    def columns(self) -> tuple[ComparisonColumn, ...]:
        """All columns, judges last."""
        return (*self.lead_columns, *columns(), *self.judges)

    def _scored_on_fewer(self) -> str:
        """Return the columns with means over fewer questions than asked, as ``F1 answerable: 152; E-F1, R@10: 197``."""
        found: dict[str, list[str]] = {}
        for column in self.columns:
            known = [(row.estimates[column.name].questions, row) for row in self.rows if column.name in row.estimates]
            counts = sorted({count for count, _ in known if count is not None})
            if any(count is not None and count < row.questions for count, row in known):
                found.setdefault(" to ".join(map(str, dict.fromkeys((counts[0], counts[-1])))), []).append(column.name)
        return "; ".join(f"{', '.join(names)}: {count}" for count, names in found.items())

    def _unanswerable(self) -> str:
        """Return what the protocol does with questions that have no answer, on these data."""
        trap = self.protocol.adversarial == "paper_trap"
        false_answers = any(row.run.has_false_answers for row in self.rows)
        return _REFUSAL if trap and not false_answers else _UNANSWERABLE[self.protocol.adversarial]

    @property
    def pair_notes(self) -> list[str]:
        """Notes on the columns of the paired tests."""
        notes = []
        if all(row.run.retrieval_only for row in self.rows):
            notes = [_RECALL_TESTS.format(heading=self.lead)]
        elif any(pair.column == ANSWERABLE for pair in self.pairs):
            notes = [_ANSWERABLE_TESTS]
        return [*PAIR_LEGEND[:2], *notes, *PAIR_LEGEND[2:-1], *self._of_fewer_seeds(), PAIR_LEGEND[-1]]

    def _of_fewer_seeds(self) -> list[str]:
        """Return the tests that are of fewer seeds than the means: of those that both systems ran."""
        baseline = next(row for row in self.rows if row.label == self.baseline)
        tested = {pair.system for pair in self.pairs}
        found = {row.label: fewer_seeds(row.repeats, baseline.repeats) for row in self.rows if row.label in tested}
        return [
            f"{label}: tested on {named_seeds(seeds)}, which {self.baseline} has too"
            for label, seeds in found.items()
            if seeds
        ]

    @property
    def legend(self) -> list[str]:
        """Meanings of the columns."""
        by_question = any(
            estimate.interval is not None and estimate.interval.by == "question"
            for row in self.rows
            for estimate in row.estimates.values()
        )
        answered = any(not row.run.retrieval_only for row in self.rows)
        unanswerable = any(row.run.asks_unanswerable for row in self.rows)
        lines = [f"protocol {self.protocol.name}"]
        if answered and unanswerable:
            lines[0] += f": {self._unanswerable()}"
        if scored := self._scored_on_fewer():
            lines.append(f"n: questions asked; means over fewer: {scored}")
        if shown_columns(self, session_columns()):
            lines.append(_BY_SESSION)
        lines.append("[low, high]: 95 % cluster t interval over conversations")
        if by_question:
            lines.append(ONE_CONVERSATION)
        if any(len(row.repeats.runs) > 1 for row in self.rows):
            lines.append("sd: standard deviation over seeds; scores are means over them, paired by seed in tests")
        if dates := price_dates(run for row in self.rows for run in row.repeats.runs):
            lines.append(
                f"dollars: of reading, per 1,000 questions; list prices of {dates} (conf/prices.yaml), with the lower "
                "prices for batches and for prompts in the provider's cache; paid embeddings included"
            )
        lines += [
            f"{row.label}: answers recorded elsewhere, {row.run.recorded}" for row in self.rows if row.run.recorded
        ]
        return lines + views([row.run for row in self.rows])


def make_report(
    runs: Sequence[StoredRun], protocol: Protocol, against: str | None = None, *, unmeasured_judges: bool = False
) -> Report:
    """Compute everything that is shown.

    Args:
        runs: at least one.
        protocol: how means are taken.
        against: names the baseline; ``None``: see :func:`eval.results.compare.baseline.choose_baseline`.
        unmeasured_judges: show judges too that were never measured, see :mod:`eval.scoring.verdicts.judge_quality`.

    Raises:
        UnknownBaselineError: ``against`` names no system.
        ConfigError: it names several.
    """
    left_out: list[str] = []
    if not unmeasured_judges:
        runs, left_out = without_unmeasured(runs)
    lead = lead_metric(runs, protocol)[0]
    rows = sorted(system_rows(runs, protocol), key=lambda row: _place(row, lead))
    baseline = choose_baseline(rows, lead, against)
    pairs = compare_with(baseline, rows, protocol)
    said = (conclusion(rows, baseline, pairs, lead), no_evidence(rows), unanswered(rows))
    return Report(
        protocol=protocol,
        rows=tuple(rows),
        pairs=tuple(pairs),
        judges=tuple(judge_columns(runs)),
        baseline=baseline.label,
        conclusion=" ".join(filter(None, said)),
        left_out=tuple(left_out),
    )


def _place(row: SystemRow, lead: str) -> tuple[bool, float]:
    """Return the sort key: best first, missing scores last."""
    found = row.estimates.get(lead)
    return (True, 0.0) if found is None else (False, -found.value)


def cell(estimate: ComparisonEstimate | None, column: ComparisonColumn) -> str:
    """Return the rounded mean; empty if there is none."""
    return "" if estimate is None else f"{estimate.value:.{column.digits}f}"


def interval_text(estimate: ComparisonEstimate | None) -> str:
    """Return ``[low, high]`` with the mark of an interval over questions."""
    interval = None if estimate is None else estimate.shown_interval
    if interval is None:
        return ""
    return f"[{interval.low:.1f}, {interval.high:.1f}]{BY_QUESTION if interval.by == 'question' else ''}"


def spread_text(estimate: ComparisonEstimate | None) -> str:
    """Return the standard deviation over seeds; empty where there is one seed."""
    return "" if estimate is None or estimate.spread is None else f"{estimate.spread:.1f}"


def seeds_text(row: SystemRow) -> str:
    """Return ``3 (0-2)``: how many seeds, and which; a single seed is not a number worth a column's width."""
    seeds = row.repeats.seeds
    return "1" if len(seeds) == 1 else f"{len(seeds)} ({listed_seeds(seeds)})"


def shown_columns(report: Report, candidates: Sequence[ComparisonColumn]) -> list[ComparisonColumn]:
    """Return the columns that at least one run fills."""
    return [column for column in candidates if any(column.name in row.estimates for row in report.rows)]
