"""All of the page's data, as one JSON value."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path

from eval.commands.terminal import stage
from eval.loaders.question_types import ADVERSARIAL
from eval.report.answer import Board, group_answer
from eval.report.cache import Cache, fingerprint
from eval.report.calls import first_difference
from eval.report.config import PageConfig
from eval.report.definitions import definitions
from eval.report.groups import scored
from eval.report.own_tables import own_tables
from eval.report.papers import tables
from eval.report.progress import Unfinished, unfinished
from eval.report.questions import Browser, Read
from eval.report.runs import dataset_names, group_labels, mean_costs, run_cards, run_costs
from eval.report.scores import metric_list, run_scores
from eval.report.slices import Known, distances, slices
from eval.results.compare.seeds import group_repeats
from eval.results.frame import Skipped, read_runs
from eval.results.stored_run import StoredRun, category_names
from eval.results.tables.judges import judge_faults, judge_texts, without_unmeasured
from eval.results.tables.run_groups import RunGroup, find_groups
from eval.runs.folders import find_run_folders, holds_texts
from memsys.errors import RunDirectoryError
from memsys.vocabulary import Json


@dataclass(frozen=True, slots=True)
class Collected:
    """Runs that can be shown, those that cannot, and those that have not ended."""

    runs: tuple[StoredRun, ...]
    skipped: tuple[Skipped, ...] = ()
    unfinished: tuple[Unfinished, ...] = ()

    def inputs(self, numbers: Iterable[int] | None = None) -> Json:
        """Return what the figures of some runs were computed from."""
        chosen = range(len(self.runs)) if numbers is None else numbers
        return [fingerprint(self.runs[number].path) for number in chosen]


def collect(roots: Sequence[Path]) -> Collected:
    """Read the runs under some folders.

    Raises:
        RunDirectoryError: a folder does not exist, a file is broken, or there is no run that can be shown.
    """
    waiting = unfinished(list(find_run_folders(roots)))
    runs, skipped = read_runs(roots)
    if not runs and not waiting:
        reasons = "; ".join(f"{one.path}: {one.reason}" for one in skipped) or "no run directory"
        raise RunDirectoryError(f"nothing to report under {', '.join(map(str, roots))}: {reasons}")
    return Collected(tuple(runs), tuple(skipped), tuple(waiting))


def page_data(
    collected: Collected,
    config: PageConfig,
    *,
    with_questions: bool = True,
    cache: Cache | None = None,
    unmeasured_judges: bool = False,
) -> Json:
    """Compute everything that the page shows; without questions it holds no word of a data set.

    Papers' tables hold a printed number against the verdicts in its authors' own file, whoever judged: they see all.
    """
    cache, whole = cache or Cache(None), collected.runs
    left_out: list[str] = []
    if not unmeasured_judges:
        shown, left_out = without_unmeasured(whole)
        collected = replace(collected, runs=tuple(shown))
    runs, names = collected.runs, dataset_names(collected.runs)
    read = _read(collected) if with_questions else {}
    metrics = metric_list(runs, config)
    browser = Browser(config.questions)
    for number, own in read.items():
        browser.add(number, names[number], runs[number], own)
    everything = collected.inputs()
    return {
        "runs": _cards(collected, read),
        "groups": _groups(collected, read, config, cache),
        "metrics": metrics,
        "judgeFaults": judge_faults(runs),
        "judgesLeftOut": [line.replace("`", "") for line in left_out],
        "categories": _categories(runs, names),
        "adversarial": _adversarial(runs, names),
        "falseAnswers": sorted({name for run, name in zip(runs, names, strict=True) if run.has_false_answers}),
        "scores": _scores(collected, [metric["name"] for metric in metrics], cache),
        "tables": cache.get("tables", [everything], partial(tables, whole)),
        "ownTables": own_tables(runs),
        "definitions": _definitions(runs, everything, cache),
        "questions": browser.questions,
        "questionScores": browser.score_names,
        "texts": browser.texts.all,
        "skipped": [f"{one.path.name}: {one.reason}" for one in collected.skipped],
        "unfinished": [asdict(one) for one in collected.unfinished],
    }


def _definitions(runs: Sequence[StoredRun], inputs: Json, cache: Cache) -> Json:
    with stage("the same answers under every definition"):
        return cache.get("lens", [inputs, judge_texts(runs)], partial(definitions, runs))


def _read(collected: Collected) -> dict[int, Read]:
    found = {}
    for number, run in enumerate(collected.runs):
        if holds_texts(run.path):
            with stage(f"reading the texts of run {number + 1} of {len(collected.runs)}"):
                found[number] = Read.of(run.path)
    return found


def _cards(collected: Collected, read: Mapping[int, Read]) -> list[Json]:
    cards = run_cards(collected.runs, [number in read for number in range(len(collected.runs))])
    for number, own in read.items():
        if own.seconds is not None:
            cards[number]["costs"]["seconds"] = round(own.seconds, 3)
    return cards


def _groups(collected: Collected, read: Mapping[int, Read], config: PageConfig, cache: Cache) -> list[Json]:
    found = []
    runs, repeats = _systems(collected.runs)
    further = {number for same in repeats.values() for number in same[1:]}
    names = dataset_names(runs)
    costs = [run_costs(run) for run in collected.runs]
    for number, own in read.items():
        if own.seconds is not None:
            costs[number]["seconds"] = round(own.seconds, 3)
    for first, numbers in repeats.items():
        costs[first] = mean_costs([costs[number] for number in numbers])
    groups = [group for group in find_groups(runs, left_out=further) if group.questions]
    for place, group in enumerate(groups):
        title = f"comparing the runs of group {place + 1} of {len(groups)}"
        board = Board(runs, group_labels(runs, group.members), costs, names[group.members[0]])
        metrics = _metrics(runs, group, config)
        every = [number for member in group.members for number in repeats[member]]
        with stage(title):
            inputs = [collected.inputs(every), list(group.members), board.dataset, metrics, judge_faults(runs)]
            answer = cache.get("group", inputs, partial(group_answer, group, board, metrics))
        answer["costs"] = {str(number): costs[number] for number in group.members}
        answer["averaged"] = [number for number in group.members if len(repeats[number]) > 1]
        answer["textLabels"] = {str(number): label for number, label in group_labels(collected.runs, every).items()}
        answer["slices"] = _slices(group, runs, read, answer)
        answer["writing"] = _writing(every, read)
        found.append(answer)
    return found


def _systems(runs: Sequence[StoredRun]) -> tuple[list[StoredRun], dict[int, list[int]]]:
    """Return the runs of each system's first seed, and the runs of each system by number."""
    number_of = {id(run): number for number, run in enumerate(runs)}
    found, repeats = list(runs), {}
    for system in group_repeats(runs):
        numbers = [number_of[id(run)] for run in system.runs]
        found[numbers[0]] = system.averaged
        repeats[numbers[0]] = numbers
    return found, repeats


def _metrics(runs: Sequence[StoredRun], group: RunGroup, config: PageConfig) -> list[str]:
    """Return the metrics of the configuration, and the judges of any run of the group."""
    judges = {name for number in group.members for name in (runs[number].summary.get("judges") or {})}
    return [*config.answer, *sorted(judges)]


def _slices(group: RunGroup, runs: Sequence[StoredRun], read: Mapping[int, Read], answer: Json) -> Json:
    """Return the slices under the first metric, category 5 left out where there are others."""
    metric = next(iter(answer["boards"]), None)
    if metric is None:
        return None
    treatment = next(iter(answer["boards"][metric]))
    found = scored(runs, group, metric, treatment)
    if found is None:
        return None
    own = [read[number] for number in group.members if number in read]
    references = {name: one for part in own for name, one in part.references.items()}
    places, ages = distances(references, [part.memories for part in own])
    names = {k: v for number in group.members for k, v in category_names(runs[number]).items()}
    with stage("slices"):
        kinds = slices(found, Known(references, places, ages, names))
    return {"metric": metric, "five": treatment, "runs": list(found.runs), "kinds": kinds}


def _writing(numbers: Sequence[int], read: Mapping[int, Read]) -> dict[str, dict[str, str]]:
    """Return, by two runs and conversation, the first call of writing in which they differ."""
    found: dict[str, dict[str, str]] = {}
    for one, other in combinations([number for number in numbers if number in read], 2):
        ours, theirs = read[one].ledger.writing, read[other].ledger.writing
        texts = {name: first_difference(ours.get(name, ()), theirs.get(name, ())) for name in {*ours, *theirs}}
        found[f"{one}-{other}"] = {name: text for name, text in sorted(texts.items()) if text}
    return found


def _scores(collected: Collected, names: Sequence[str], cache: Cache) -> list[Json]:
    found = []
    for number, run in enumerate(collected.runs):
        with stage(f"means of run {number + 1} of {len(collected.runs)}"):
            inputs = [collected.inputs([number]), list(names)]
            found.append(cache.get("scores", inputs, partial(run_scores, run, names)))
    return found


def _categories(runs: Sequence[StoredRun], datasets: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the names of the categories by data set and number, as text, as JSON has it."""
    found: dict[str, dict[int, str]] = {dataset: {} for dataset in datasets}
    for run, dataset in zip(runs, datasets, strict=True):
        found[dataset] |= category_names(run)
    return {dataset: {str(number): own[number] for number in sorted(own)} for dataset, own in found.items()}


def _adversarial(runs: Sequence[StoredRun], datasets: Sequence[str]) -> dict[str, list[str]]:
    """Return the categories without answers by data set: LoCoMo's is 5, LongMemEval's 27."""
    found: dict[str, set[int]] = {dataset: set() for dataset in datasets}
    for run, dataset in zip(runs, datasets, strict=True):
        found[dataset] |= {row.category for row in run.rows if row.kind == ADVERSARIAL}
    return {dataset: [str(number) for number in sorted(own)] for dataset, own in found.items()}
