"""The field side by side: leaderboard, headline numbers, published orderings, what files give away."""

import json
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from math import comb, sqrt
from pathlib import Path
from statistics import median, stdev

from eval.audit.config import AuditConfig
from eval.audit.readings import COUNTING_TEXT, JUDGE, RunReading, all_readings, applies, estimate, values
from eval.audit.scores import ScoredRun, cache_path
from eval.metrics.locomo import CATEGORY_5
from eval.runs.files import write_atomic
from eval.scoring.inference import LEVEL, t_quantile

Row = dict[str, object]

#: LoCoMo's own names of its categories.
CATEGORY_NAMES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
#: Two printed decimals of a percentage, and a difference in the last of them.
ROUNDING = 0.011


def leaderboard(run: ScoredRun, config: AuditConfig) -> list[Row]:
    """Return one row per reading of a run: mean, interval, questions, median words of the answers that count."""
    found: list[Row] = []
    for reading in all_readings(config):
        mean = estimate(run, reading, with_interval=True) if applies(run, reading) else None
        if mean is None:
            continue
        interval = mean.interval
        found.append(
            {
                "data": run.entry.dataset,
                "run": run.entry.name,
                "system": run.entry.system,
                "backbone": run.entry.backbone,
                "metric": reading.metric,
                "labels": reading.labels,
                "counting": COUNTING_TEXT[reading.counting],
                "questions": mean.questions,
                "mean": mean.value,
                "low": None if interval is None else interval.low,
                "high": None if interval is None else interval.high,
                "interval_by": None if interval is None else interval.by,
                "median_words": median(answer.words for answer, _ in values(run.answers, reading)),
            }
        )
    return found


def stored_leaderboard(run: ScoredRun, config: AuditConfig, cache: Path) -> list[Row]:
    """Return :func:`leaderboard` of a run, from the cache where the run's scores are those of last time."""
    path = cache_path(run.entry, config, cache, "leaderboard")
    if not path.is_file():
        write_atomic(path, json.dumps(leaderboard(run, config)).encode())
    found: list[Row] = json.loads(path.read_text(encoding="utf-8"))
    return found


def headlines(runs: Sequence[ScoredRun]) -> list[Row]:
    """Return the printed number, the file's mean, and the other average for every printed headline."""
    found = []
    for run in runs:
        for printed in run.entry.printed:
            by_question, by_category = (
                estimate(run, RunReading(printed.metric, "printed", counting)) for counting in ("question", "category")
            )
            if by_question is None or by_category is None:
                continue
            means = {"question mean": by_question.value, "category mean": by_category.value}
            if printed.metric == JUDGE and _few_of_category_5(run):  # some authors' mean is of all rows, of those too
                means["mean of all verdicts"] = _mean_verdict(run)
            group = [one for one in runs if run.entry.repeats and one.entry.repeats == run.entry.repeats]
            if len(group) > 1:
                means["mean of repeats"] = _mean_of_repeats(group, printed.metric)
            nearest = min(means, key=lambda name: abs(means[name] - printed.value))
            found.append(
                {
                    "run": run.entry.name,
                    "metric": printed.metric,
                    "printed": printed.value,
                    "question_mean": by_question.value,
                    "category_mean": by_category.value,
                    "nearest": nearest,
                    "difference": means[nearest] - printed.value,
                    "holds": abs(means[nearest] - printed.value) <= ROUNDING,
                    "questions": by_question.questions,
                    "source": printed.source,
                }
            )
    return found


def _mean_verdict(run: ScoredRun) -> float:
    """Return the share of right answers among all that have a verdict, percent."""
    verdicts = [next(iter(answer.verdicts.values())) for answer in run.answers if answer.verdicts]
    return 100 * sum(verdicts) / len(verdicts)


def _mean_of_repeats(group: Sequence[ScoredRun], metric: str) -> float:
    means = [estimate(one, RunReading(metric, "printed", "question")) for one in group]
    known = [one.value for one in means if one is not None]
    return sum(known) / len(known)


def orderings(runs: Sequence[ScoredRun], board: Sequence[Row]) -> list[Row]:
    """Compare every two runs with a printed judge score on the same data: which metrics keep the printed order?

    Args:
        runs: of the catalogue.
        board: rows of their leaderboards.
    """
    printed = {
        run.entry.name: (run, one.value)
        for run in runs
        for one in run.entry.printed
        if one.metric == JUDGE and run.entry.kind == "run"
    }
    means = {name: _means(name, board) for name in printed}
    found: list[Row] = []
    for one, two in combinations(sorted(printed, key=lambda name: -printed[name][1]), 2):
        (first, high), (second, low) = printed[one], printed[two]
        if high == low or first.entry.dataset != second.entry.dataset:
            continue
        common = [reading for reading in means[one] if reading in means[two]]
        flipped = [reading for reading in common if means[one][reading] < means[two][reading]]
        found.append(
            {
                "higher": one,
                "lower": two,
                "printed_higher": high,
                "printed_lower": low,
                "same_source": _table(first, high) == _table(second, low),
                "readings": len(common),
                "kept": len(common) - len(flipped),
                "flips_by_verdicts": any(reading[0] == JUDGE for reading in flipped),
                "flips_under": " ".join(dict.fromkeys(reading[0] for reading in flipped)),
            }
        )
    return found


def _means(name: str, board: Sequence[Row]) -> dict[tuple[str, str, str], float]:
    """Return the mean by metric, labels and counting."""
    return {
        (str(row["metric"]), str(row["labels"]), str(row["counting"])): float(str(row["mean"]))
        for row in board
        if row["run"] == name
    }


def _table(run: ScoredRun, value: float) -> str:
    source = next(one.source for one in run.entry.printed if one.value == value)
    return source.split(",")[0].split("(")[0].strip()


def detectors(runs: Sequence[ScoredRun]) -> list[Row]:
    """Count what makes a file's numbers doubtful; compare questions that were run again with the others."""
    return [{"run": run.entry.name, **_found(run)} for run in runs]


def _found(run: ScoredRun) -> Row:
    counts = run.counts
    return {
        "rows": counts["rows"],
        "aligned": counts["aligned"],
        "altered_questions": counts["aligned_by_order_alone"],
        "unaligned": counts["unaligned"],
        "repeated_rows": counts["repeated"],
        "rows_without_answer": counts["without_prediction"],
        "questions_missing": counts["questions_missing"],
        "think_blocks_cut": counts["think_blocks_cut"],
        "empty_answers": counts["empty_predictions"],
        "gold_differs": counts["gold_differs"],
        "category_5_of_few": _few_of_category_5(run),
        "answers_with_gold_inside": sum(answer.holds_gold for answer in run.answers),
        "renamed_categories": " ".join(renamed(run)),
        **rerun_only(run),
    }


def _few_of_category_5(run: ScoredRun) -> int:
    """Return the category-5 questions in a file otherwise without: the two that have an answer."""
    count = sum(answer.category == CATEGORY_5 for answer in run.answers) if run.entry.dataset == "locomo" else 0
    return count if count < 10 else 0


def renamed(run: ScoredRun) -> list[str]:
    """Return the category names of a file or of its printed table that represent another category than LoCoMo's.

    A name in the file is compared with the data set's number of the same rows; a printed score against the mean of the
    verdicts in each category: the category that gives the printed number is the one that was printed.
    """
    if run.entry.dataset != "locomo":
        return []
    found = {}
    for label, counts in run.categories.items():
        number = int(max(counts, key=lambda name: counts[name]))
        if not label.isdecimal() and label != CATEGORY_NAMES[number]:
            found[label] = CATEGORY_NAMES[number]
    judged = {
        number: estimate(run, RunReading(JUDGE, "printed", "question"), category=number) for number in CATEGORY_NAMES
    }
    for label, value in run.entry.categories.items():
        same = [number for number, mean in judged.items() if mean and abs(mean.value - value) <= ROUNDING]
        if len(same) == 1 and CATEGORY_NAMES[same[0]] != label:
            found[label] = CATEGORY_NAMES[same[0]]
    return [f"{label}={meant}" for label, meant in sorted(found.items())]


def rerun_only(run: ScoredRun) -> Row:
    """Return how errors are distributed between questions that were run again and the others.

    Where only failures are run again, every error that is left is among them; ``p`` is the chance of this many errors
    there if the questions had been drawn at random among those with a verdict (hypergeometric).
    """
    judged = [(answer.rerun, next(iter(answer.verdicts.values()))) for answer in run.answers if answer.verdicts]
    again = sum(rerun for rerun, _ in judged)
    run_again = sum(answer.rerun for answer in run.answers)
    if not again:
        return {"run_again": 0, "errors": None, "errors_among_run_again": None, "rerun_p": None}
    errors = sum(value < 0.5 for _, value in judged)
    among = sum(rerun and value < 0.5 for rerun, value in judged)
    total = comb(len(judged), errors)
    tail = sum(comb(again, k) * comb(len(judged) - again, errors - k) for k in range(among, min(again, errors) + 1))
    return {"run_again": run_again, "errors": errors, "errors_among_run_again": among, "rerun_p": tail / total}


def repeat_spread(runs: Sequence[ScoredRun], config: AuditConfig) -> list[Row]:
    """Return the spread of repeated runs of one experiment, under the leading metric."""
    groups: dict[str, list[float]] = defaultdict(list)
    questions: dict[str, int] = {}
    for run in runs:
        mean = estimate(run, RunReading(config.lead, "printed", "question"))
        if run.entry.repeats and mean is not None:
            groups[run.entry.repeats].append(mean.value)
            questions[run.entry.repeats] = mean.questions
    return [
        {
            "experiment": name,
            "metric": config.lead,
            "runs": len(means),
            "questions": questions[name],
            "lowest": min(means),
            "mean": sum(means) / len(means),
            "highest": max(means),
            "sd": _deviation(means),
            "two_runs": _least_difference(means),
        }
        for name, means in sorted(groups.items())
    ]


def _deviation(means: Sequence[float]) -> float | None:
    return stdev(means) if len(means) > 1 else None


def _least_difference(means: Sequence[float]) -> float | None:
    """Return the smallest difference of two single runs beyond chance (95 %): t times the standard error."""
    deviation = _deviation(means)
    return None if deviation is None else t_quantile((1 + LEVEL) / 2, len(means) - 1) * sqrt(2) * deviation
