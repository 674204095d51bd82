"""Sort CLAG's failures by pattern: ``python -m eval.results.analysis.clag_failures CLAG_RUN BASELINE_RUN``.

Source: CLAG, appendix G. A case is a question with EM = 0 and F1 at most that of the same backbone searching all notes
(``clag_global_retrieval``, or A-Mem). The rules are deterministic and read stored records alone; their order decides
cases that several rules fit, is in ``clag_failures.yaml`` next to this file and is shown with every result.
"""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from eval.commands.commands import explains_errors, start
from eval.commands.rendering.table import Table, columns
from eval.commands.rendering.terminal import show
from eval.config.presets import make_preset
from eval.results.analysis.clag_failure_rules import RESIDUAL, Case, FailureConfig, pattern
from eval.runs.files import write_json
from eval.runs.load import load_answers, load_references, load_retrievals, load_scores
from eval.runs.records import AnswerRecord, ReferenceRecord, RetrievalRecord
from memsys.errors import ScoringError

CONFIG = Path(__file__).parent / "clag_failures.yaml"
RESULT = "clag_failures.json"


def label_failures(clag_run: Path, baseline_run: Path, config: FailureConfig) -> dict[str, Any]:
    """Label all failures of a run.

    Args:
        clag_run: scored run of CLAG.
        baseline_run: scored run of the baseline, on the same questions.
        config: rules.

    Returns:
        Order used, counts and shares per pattern, and the pattern of each case.

    Raises:
        ScoringError: a run is not scored, or the runs' questions differ.
    """
    cases = load_cases(clag_run, baseline_run, config)
    labels = {case.question_id: pattern(case, config) for case in cases}
    counts = Counter(labels.values())
    return {
        "clag_run": clag_run.name,
        "baseline_run": baseline_run.name,
        "order": list(config.order),
        "metrics": {"em": config.em_metric, "f1": config.f1_metric},
        "cases": len(cases),
        "cases_searching_all_notes": sum(not case.selected for case in cases),
        "patterns": {
            rule: {"count": counts[rule], "share": counts[rule] / len(cases) if cases else None}
            for rule in (*config.order, RESIDUAL)
        },
        "labels": labels,
        "config": asdict(config),
    }


def load_cases(clag_run: Path, baseline_run: Path, config: FailureConfig) -> list[Case]:
    """Find the failures: scored in both runs, EM = 0, F1 not above the baseline's. In the order of the references."""
    references, answers = load_references(clag_run), load_answers(clag_run)
    ours, theirs = _scores(clag_run, config), _scores(baseline_run, config)
    clag, baseline = load_retrievals(clag_run), load_retrievals(baseline_run)
    if set(ours) != set(theirs):
        raise ScoringError(
            f"{clag_run} and {baseline_run} answered different questions ({len(set(ours) ^ set(theirs))} in one only); "
            "compare finished runs of the same data"
        )
    return [
        _case(reference, answers[question_id], clag[question_id], baseline[question_id])
        for question_id, reference in references.items()
        if question_id in ours and _failed(ours[question_id], theirs[question_id])
    ]


def _case(reference: ReferenceRecord, answer: AnswerRecord, clag: RetrievalRecord, baseline: RetrievalRecord) -> Case:
    evidence = frozenset(reference.evidence)
    return Case(reference.question_id, answer.question, reference.category, evidence, clag, baseline)


def _failed(ours: tuple[float | None, float | None], theirs: tuple[float | None, float | None]) -> bool:
    (exact, f1), (_, other) = ours, theirs
    return exact == 0 and f1 is not None and other is not None and f1 <= other


def _scores(run: Path, config: FailureConfig) -> dict[str, tuple[float | None, float | None]]:
    """Return EM and F1 of each answered question."""
    em, f1 = config.em_metric, config.f1_metric
    rows = [row for row in load_scores(run) if em in row.metrics and f1 in row.metrics]
    if not rows:
        raise ScoringError(f"{run} has no answers scored by {em} and {f1}; run `memsys score {run}`")
    return {row.question_id: (row.metrics[em], row.metrics[f1]) for row in rows}


def load_config(path: Path = CONFIG) -> FailureConfig:
    """Read the rules.

    Raises:
        ConfigError: the file does not exist, or a setting is wrong.
    """
    return make_preset(FailureConfig, path)


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Label a run's failures, store them next to its scores and show the distribution."""
    parser = argparse.ArgumentParser(prog="python -m eval.results.analysis.clag_failures", description=main.__doc__)
    parser.add_argument("clag_run", type=Path, help="scored run of CLAG")
    parser.add_argument("baseline_run", type=Path, help="scored run that searches all notes")
    parser.add_argument("--config", type=Path, default=CONFIG, help="rules (default: %(default)s)")
    options = parser.parse_args(arguments)
    result = label_failures(options.clag_run, options.baseline_run, load_config(options.config))
    write_json(options.clag_run / RESULT, result)
    show(_patterns(result))
    return 0


def _patterns(result: Mapping[str, Any]) -> Table:
    rows = [
        [rule, found["count"], None if found["share"] is None else 100 * found["share"]]
        for rule, found in sorted(result["patterns"].items(), key=lambda item: -item[1]["count"])
    ]
    return Table(
        f"{result['cases']} failures of {result['clag_run']} against {result['baseline_run']}",
        columns(("pattern", "count", "percent")),
        rows,
        [f"rules tried in this order: {', '.join(result['order'])}"],
    )


if __name__ == "__main__":
    start(main)
