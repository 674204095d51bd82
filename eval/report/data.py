"""All of the page's data: what the first view needs, and a part for everything that is opened later."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path

from eval.commands.terminal import stage
from eval.metrics.evidence import TURN_RECALL
from eval.report.answer import Board, group_answer
from eval.report.cache import Cache, fingerprint
from eval.report.calls import first_difference
from eval.report.config import PageConfig
from eval.report.groups import GroupRows
from eval.report.live import Unfinished, answers_so_far, unfinished
from eval.report.page import PageData
from eval.report.questions import Browser, Read
from eval.report.reference_tables import audit_tables, definition_tables, own_tables, paper_tables
from eval.report.runs import (
    data_title,
    dataset_names,
    differing_settings,
    group_labels,
    mean_costs,
    model_name,
    run_cards,
    run_costs,
)
from eval.report.scores import metric_list
from eval.report.slices import Known, distances, slices
from eval.results.compare.rows import recall_metric
from eval.results.compare.seeds import group_repeats
from eval.results.frame import Skipped, read_runs
from eval.results.stored_run import StoredRun, category_names
from eval.results.tables.judges import judge_faults, judge_texts, without_unmeasured
from eval.results.tables.run_groups import RunGroup, find_groups
from eval.runs.folders import find_run_folders, holds_texts
from eval.scoring.beam import is_beam_score
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
) -> PageData:
    """Compute everything that the page shows; without questions it holds no word of a data set.

    Papers' tables compare a printed number with the verdicts in its authors' own file, from any judge: they see all.
    """
    cache, whole = cache or Cache(None), collected.runs
    left_out: list[str] = []
    if not unmeasured_judges:
        shown, left_out = without_unmeasured(whole)
        collected = replace(collected, runs=tuple(shown))
    runs = collected.runs
    read = _read(collected) if with_questions else {}
    metrics = metric_list(runs, config)
    groups = _Groups(collected, read, config, [name for name in map(_name, metrics) if not is_beam_score(name)], cache)
    tables = _tables(whole, collected, cache, unmeasured_judges=unmeasured_judges)
    first = {
        "runs": len(runs),
        "groups": [groups.head(place) for place in range(len(groups.found))],
        "metrics": metrics,
        "judgeFaults": judge_faults(runs),
        "judgesLeftOut": [line.replace("`", "") for line in left_out],
        "tables": [{"kind": page["kind"], "title": page["title"]} for page in tables],
        "skipped": [f"{one.path.name}: {one.reason}" for one in collected.skipped],
        "unfinished": [_live(one, config, with_questions=with_questions) for one in collected.unfinished],
    }
    parts = {"runs": _cards(collected, read), **{f"table-{place}": page for place, page in enumerate(tables)}}
    for place in range(len(groups.found)):
        parts |= groups.parts(place)
    return PageData(first, parts)


def _name(metric: Mapping[str, Json]) -> str:
    return str(metric["name"])


def _live(run: Unfinished, config: PageConfig, *, with_questions: bool) -> Json:
    """Return a run on its way; its answers are texts of a data set."""
    shown = {key: value for key, value in asdict(run).items() if key != "folder"}
    count, score, newest = answers_so_far(run.folder, config) if with_questions else (0, None, [])
    shown["answered"] = max(run.answered, count)  # some may have been answered since they were counted
    return {**shown, "score": score, "metric": config.live_score, "newest": [asdict(one) for one in newest]}


def _tables(whole: Sequence[StoredRun], collected: Collected, cache: Cache, *, unmeasured_judges: bool) -> list[Json]:
    runs, inputs = collected.runs, collected.inputs()
    with stage("tables of costs, memories and methods"):
        found = cache.get("own", [inputs], partial(own_tables, runs))
    found += cache.get("tables", [inputs], partial(paper_tables, whole))
    with stage("the same answers under every definition"):
        found += cache.get("definitions", [inputs, judge_texts(runs)], partial(definition_tables, runs))
    with stage("reading the audit of published answers"):
        return [*found, *audit_tables(unmeasured_judges=unmeasured_judges)]


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


class _Groups:
    """Groups of runs that can be compared, with the runs of several seeds as one system.

    Args:
        collected: all runs.
        read: texts by the number of a run.
        config: of the page.
        columns: scores that any run has.
        cache: of what was computed before.
    """

    def __init__(
        self,
        collected: Collected,
        read: Mapping[int, Read],
        config: PageConfig,
        columns: Sequence[str],
        cache: Cache,
    ) -> None:
        self._collected, self._read, self._config, self._columns, self._cache = collected, read, config, columns, cache
        self.runs, self._repeats = _systems(collected.runs)
        self._names = dataset_names(self.runs)
        self._faults = judge_faults(self.runs)
        self._costs = self._all_costs()
        further = {number for same in self._repeats.values() for number in same[1:]}
        self.found = [group for group in find_groups(self.runs, left_out=further) if group.questions]

    def _all_costs(self) -> list[dict[str, float]]:
        costs = [run_costs(run) for run in self._collected.runs]
        for number, own in self._read.items():
            if own.seconds is not None:
                costs[number]["seconds"] = round(own.seconds, 3)
        for first, numbers in self._repeats.items():
            costs[first] = mean_costs([costs[number] for number in numbers])
        return costs

    def head(self, place: int) -> Json:
        """Return what a menu says of a group."""
        group = self.found[place]
        first = self.runs[group.members[0]]
        return {
            "data": data_title(first, self._names[group.members[0]]),
            "model": "" if first.retrieval_only else model_name(first),
            "backbone": first.backbone,
            "prompts": first.prompts,
            "reader": first.asked_by,
            "timed": first.times_questions,
            "systems": len(group.systems),
            "questions": len(group.questions),
            "conversations": len(first.conversations),
            "turns": first.record["data"].get("turns"),
            "texts": any(number in self._read for number in self._every(group)),
        }

    def parts(self, place: int) -> dict[str, Json]:
        """Return a group and its questions, as parts of the page."""
        group = self.found[place]
        with stage(f"comparing the runs of group {place + 1} of {len(self.found)}"):
            whole = self._group(group)
        browser = Browser(self._config.questions)
        for number in self._every(group):
            if number in self._read:
                browser.add(number, self._collected.runs[number], self._read[number])
        conversations = browser.conversations
        overview = {"scores": browser.score_names, "parts": list(conversations), "questions": browser.overview}
        texts = {f"texts-{place}-{index}": part for index, part in enumerate(conversations.values())}
        return {f"group-{place}": whole, **({f"questions-{place}": overview, **texts} if conversations else {})}

    def _every(self, group: RunGroup) -> list[int]:
        """Return numbers of a group's runs, every seed of a system."""
        return [number for member in group.members for number in self._repeats[member]]

    def _group(self, group: RunGroup) -> Json:
        every, members = self._every(group), group.members
        own = [self.runs[number] for number in members]
        board = Board(self.runs, group_labels(self.runs, members), self._costs, self._names[members[0]])
        by_turns = recall_metric(own)[1] == TURN_RECALL  # else some of the runs would have no row
        tested = [name for name in self._config.tested if by_turns or name != TURN_RECALL]
        metrics = [*tested, *_judges(own)]
        inputs = [self._collected.inputs(every), list(members), board.dataset, metrics, list(self._columns)]
        inputs.append(self._faults)
        answer = self._cache.get("group", inputs, partial(group_answer, group, board, metrics, self._columns))
        return {
            **answer,
            "costs": {str(number): self._costs[number] for number in members},
            "averaged": [number for number in members if len(self._repeats[number]) > 1],
            "textLabels": {str(number): label for number, label in group_labels(self._collected.runs, every).items()},
            "texts": [number for number in every if number in self._read],
            "settings": differing_settings(own),
            "categories": _categories(own),
            "slices": self._slices(group, answer),
            "writing": _writing(every, self._read),
        }

    def _slices(self, group: RunGroup, answer: Json) -> Json:
        """Return slices under the first metric, questions without an answer left out where there are others."""
        metric = next(iter(answer["boards"]), None)
        if metric is None:
            return None
        treatment = next(iter(answer["boards"][metric]))
        found = GroupRows(self.runs, group).scored(metric, treatment)
        if found is None:
            return None
        own = [self._read[number] for number in group.members if number in self._read]
        references = {name: one for part in own for name, one in part.references.items()}
        places, ages = distances(references, [part.memories for part in own])
        names = {int(number): name for number, name in _categories([self.runs[n] for n in group.members]).items()}
        kinds = slices(found, Known(references, places, ages, names))
        return {"metric": metric, "five": treatment, "runs": list(found.runs), "kinds": kinds}


def _systems(runs: Sequence[StoredRun]) -> tuple[list[StoredRun], dict[int, list[int]]]:
    """Return the first of each system's seeds as its run, and by its number those of the system's runs."""
    number_of = {id(run): number for number, run in enumerate(runs)}
    found, repeats = list(runs), {}
    for system in group_repeats(runs):
        numbers = [number_of[id(run)] for run in system.runs]
        found[numbers[0]] = system.averaged
        repeats[numbers[0]] = numbers
    return found, repeats


def _judges(runs: Sequence[StoredRun]) -> list[str]:
    """Return columns of the judges of any of the runs."""
    return sorted({name for run in runs for name in (run.summary.get("judges") or {})})


def _writing(numbers: Sequence[int], read: Mapping[int, Read]) -> dict[str, dict[str, str]]:
    """Return by two runs and conversation: the first call of writing in which they differ."""
    found: dict[str, dict[str, str]] = {}
    for one, other in combinations([number for number in numbers if number in read], 2):
        ours, theirs = read[one].ledger.writing, read[other].ledger.writing
        texts = {name: first_difference(ours.get(name, ()), theirs.get(name, ())) for name in {*ours, *theirs}}
        found[f"{one}-{other}"] = {name: text for name, text in sorted(texts.items()) if text}
    return found


def _categories(runs: Sequence[StoredRun]) -> dict[str, str]:
    """Return names of the categories by number, as text, as JSON has it."""
    found = {number: name for run in runs for number, name in category_names(run).items()}
    return {str(number): found[number] for number in sorted(found)}
