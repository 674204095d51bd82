"""All of the page's data, as one JSON value."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.cli.terminal import stage
from eval.report.config import PageConfig
from eval.report.definitions import definitions
from eval.report.papers import tables
from eval.report.questions import Browser
from eval.report.runs import dataset_names, run_cards
from eval.report.scores import category_names, metric_list, run_scores
from eval.tables.stored import Skipped, StoredRun, find_run_folders, read_json, read_runs
from memsys.errors import RunDirectoryError
from memsys.vocabulary import Json


@dataclass(frozen=True, slots=True)
class Collected:
    """Runs with their directories; ``None`` where only the summary is here."""

    runs: tuple[StoredRun, ...]
    folders: tuple[Path | None, ...]
    skipped: tuple[Skipped, ...]


def collect(roots: Sequence[Path]) -> Collected:
    """Read the runs under some folders.

    Raises:
        RunDirectoryError: a folder does not exist, a file is broken, or there is no run that can be shown.
    """
    runs, skipped = read_runs(roots)
    if not runs:
        reasons = "; ".join(f"{one.path}: {one.reason}" for one in skipped) or "no run directory"
        raise RunDirectoryError(f"nothing to report under {', '.join(map(str, roots))}: {reasons}")
    whole = run_directories(roots)
    return Collected(tuple(runs), tuple(whole.get(run.run_id) for run in runs), tuple(skipped))


def run_directories(roots: Iterable[Path]) -> dict[str, Path]:
    """Directories that hold a run's texts, by run id."""
    found: dict[str, Path] = {}
    for folder in find_run_folders(list(roots)):
        if (folder / "references.jsonl").is_file():
            found.setdefault(str(read_json(folder / "run.json").get("run_id")), folder)
    return found


def page_data(collected: Collected, config: PageConfig, *, with_questions: bool = True) -> Json:
    """Compute everything that the page shows; without questions it holds no word of a data set."""
    runs, names_of_sets = collected.runs, dataset_names(collected.runs)
    metrics = metric_list(runs, config)
    names = [metric["name"] for metric in metrics]
    browser = Browser(config.questions)
    folders = collected.folders if with_questions else (None,) * len(runs)
    for number, (run, folder) in enumerate(zip(runs, folders, strict=True)):
        if folder is not None:
            with stage(f"reading the questions of run {number + 1} of {len(runs)}"):
                browser.add(number, names_of_sets[number], run, folder)
    return {
        "runs": run_cards(runs, [folder is not None for folder in folders]),
        "metrics": metrics,
        "categories": _categories(runs, names_of_sets),
        "scores": [_scores(number, runs, names) for number in range(len(runs))],
        "tables": tables(runs),
        "definitions": definitions(runs),
        "questions": browser.questions,
        "questionScores": browser.score_names,
        "texts": browser.texts.all,
        "skipped": [f"{one.path.name}: {one.reason}" for one in collected.skipped],
    }


def _scores(number: int, runs: Sequence[StoredRun], names: Sequence[str]) -> Json:
    with stage(f"means of run {number + 1} of {len(runs)}"):
        return run_scores(runs[number], names)


def _categories(runs: Sequence[StoredRun], datasets: Sequence[str]) -> dict[str, dict[str, str]]:
    """Names of the categories by data set and number, as text, as JSON has it."""
    found: dict[str, dict[int, str]] = {dataset: {} for dataset in datasets}
    for run, dataset in zip(runs, datasets, strict=True):
        found[dataset] |= category_names(run)
    return {dataset: {str(number): own[number] for number in sorted(own)} for dataset, own in found.items()}
