"""Runs read from where they are stored: as scored runs, and as data frames (``memsys.load_run``, ``load_results``).

The one way from a run folder or an exported run to its scores; :mod:`eval.runs.load` opens the files.
"""

import gc
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.commands.terminal import say, stage
from eval.config.prompt_choice import wants_authors
from eval.results.stored_run import StoredRun, in_latency_mode
from eval.runs import load
from eval.runs.exports import SCORES_FILE, is_exported_run, read_export
from eval.runs.files import rows_done
from eval.runs.folders import find_run_folders, named_places, runs_first, stored_folders
from eval.runs.manifest import check_folder
from eval.runs.records import ScoreRow
from eval.runs.run_json import has_random_weights, status_text
from eval.scoring.columns import columns_of
from eval.scoring.latency import measured_latencies
from eval.scoring.score_run import lexical_scores
from eval.scoring.verdicts.store import with_judgements
from memsys.errors import RunDirectoryError, ScoringError

if TYPE_CHECKING:
    from pandas import DataFrame

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A run that no table can use, and why."""

    path: Path
    reason: str


def say_left_out(reasons: Sequence[str], of_several: str = "name one alone to see why") -> None:
    """Say which runs a command left out: of one the reason, of several how many, in one line above what it shows.

    Args:
        reasons: for each run its path, a colon, and why.
        of_several: what to say in place of the reasons.
    """
    if len(reasons) == 1:
        say(f"left out: {reasons[0]}", style="yellow")
    elif reasons:
        first = reasons[0].partition(": ")[0]
        say(f"left out: {len(reasons)} runs ({first} and {len(reasons) - 1} more); {of_several}",
            style="yellow")  # fmt: skip


def read_run(path: Path) -> StoredRun | Skipped:
    """Read one run directory or exported run.

    Raises:
        RunDirectoryError: a file is broken or of another schema.
    """
    record = load.read_record(path)
    if is_exported_run(path):
        return _exported(path)
    check_folder(path)
    if record["status"] != "complete":
        ways = "the same command resumes it, `memsys settle --close` closes what is open"
        return Skipped(path, f"not complete ({status_text(record)}); {ways}")
    try:
        rows = with_judgements(path, load.load_scores(path))
    except ScoringError as error:
        return Skipped(path, str(error))
    meta = load.load_json(path / load.SCORES_META, RunDirectoryError)
    summary = load.load_summary(path)
    if has_random_weights(record):  # its times are measurements, nothing else is
        rows, summary = [replace(row, metrics={}) for row in rows], {}
    return StoredRun(record, meta, summary, tuple(_with_latency(path, record, rows)), path=path)


def _exported(path: Path) -> StoredRun | Skipped:
    """Read an exported run."""
    run = read_export(path)
    counted = (run.summary.get("counts") or {}).get("rows", len(run.rows))
    if not run.rows or len(run.rows) != counted:
        return Skipped(path, f"{SCORES_FILE} has {len(run.rows)} of its {counted} rows; restore it")
    return StoredRun(run.record, run.meta, run.summary, columns_of(run.rows, run.columns), path=path)


def _with_latency(path: Path, record: Mapping[str, Any], rows: Sequence[ScoreRow]) -> list[ScoreRow]:
    """Add the latencies of a run in latency mode; values of other runs say nothing about latency."""
    latencies = measured_latencies(path) if in_latency_mode(record) else {}
    return [replace(row, metrics={**row.metrics, **latencies.get(row.question_id, {})}) for row in rows]


def read_runs(roots: Sequence[Path]) -> tuple[list[StoredRun], list[Skipped]]:
    """Read all runs under some folders; one that is met twice counts once: the run itself before its exported summary.

    Raises:
        RunDirectoryError: a folder does not exist or a file is broken.
    """
    runs: dict[str, StoredRun] = {}
    skipped = []
    for folder in runs_first(find_run_folders(roots)):
        with stage(f"reading {folder.name}"), _without_collecting():
            run = read_run(folder)
        if isinstance(run, Skipped):
            skipped.append(run)
        elif runs.setdefault(run.run_id, run).record["started"] != run.record["started"]:
            skipped.append(
                Skipped(folder, f"another run has the id {run.run_id} too (run.json); name one of the two at a time")
            )
    return [runs[name] for name in sorted(runs)], skipped


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Search for no garbage meanwhile: some hundred thousand new rows are none, and each search goes through them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def load_results(*places: str | Path, live: bool = False) -> "DataFrame":
    """Load the scores of every question of many runs.

    Args:
        places: run directories, exported runs, folders of them, or names of experiments; without any, ``results/runs``
            and ``results/summaries``.
        live: also runs that are not complete, with the lexical scores of what they have answered so far.

    Returns:
        One row for each question of each run:

        * ``run``, ``experiment``, ``status``: id of the run, the experiment it is of, and ``complete``, or how far a
            live run got (``running``, ``incomplete``, ``interrupted``),
        * ``system``, ``backbone``, ``dataset``, ``embedder``, ``reader``: names of its presets; the backbone is
            ``none`` where no model answered,
        * ``prompts``: ``ours`` or ``authors``, whose prompts it was asked with; ``seed``,
        * ``question_id``, ``conversation_id``, ``category`` (number in the data set) and ``kind``
            (:mod:`eval.loaders.question_types`),
        * a column for each metric (:mod:`eval.metrics.registry`; shares from 0 to 1, latencies in milliseconds) and
            ``judge_<judge>_<backbone>`` for each judge; NaN where there is nothing to score.

        Runs that are left out are named in a warning, each with the reason.

    Raises:
        RunDirectoryError: a place does not exist, or a file is damaged.
        ScoringError: the rows of a live run do not fit together.
    """
    import pandas as pd

    runs, skipped = read_runs([place for name in places for place in named_places(name)] or stored_folders())
    live_runs = [run for one in skipped if live and (run := _live(one.path)) is not None]
    read = {run.path for run in live_runs}
    for one in skipped:
        if one.path not in read:
            logger.warning("left out: %s: %s", one.path, one.reason)
    return pd.DataFrame([row for run in (*runs, *live_runs) for row in _rows(run)])


def _live(path: Path) -> StoredRun | None:
    """Score what an unfinished run has answered so far; ``None`` for a complete run, or before the first answer."""
    record = load.read_record(path)
    if record["status"] == "complete" or not rows_done(path, record["mode"]):
        return None
    return StoredRun(record, {}, {}, tuple(lexical_scores(path)), path=path)


def _rows(run: StoredRun) -> Iterator[dict[str, Any]]:
    about = {
        "run": run.run_id,
        "experiment": run.record.get("experiment"),
        "status": run.record["status"],
        "system": run.memory,
        "backbone": run.backbone,
        "dataset": run.dataset,
        "embedder": run.embedder,
        "reader": run.reader,
        "prompts": "authors" if wants_authors(run.record["config"]) else "ours",
        "seed": run.record.get("seed"),
    }
    return ({**about, **_score_columns(row)} for row in run.rows)


def _score_columns(row: ScoreRow) -> dict[str, Any]:
    about = {name: value for name, value in asdict(row).items() if name != "metrics"}
    return {**about, **row.metrics}


class Run:
    """One stored run, whose files are read when asked for.

    Attributes:
        path: the run folder, or the address of an exported run, which has scores alone.
        record: ``run.json``: configuration, commit, packages, data, model, hardware, status.
    """

    def __init__(self, path: Path, record: Mapping[str, Any]) -> None:
        self.path, self.record = path, record

    @property
    def complete(self) -> bool:
        """Whether every question was answered."""
        return bool(self.record["status"] == "complete")

    def answers(self) -> "DataFrame":
        """Return one row per answered question: prediction, raw reply, options, tokens, seconds."""
        return _frame(load.load_answers(self._folder).values())

    def retrievals(self) -> "DataFrame":
        """Return one row per question: hits, the exact context the reader saw, trace."""
        return _frame(load.load_retrievals(self._folder).values())

    def references(self) -> "DataFrame":
        """Return one row per question: gold answers and evidence."""
        return _frame(load.load_references(self._folder).values())

    def calls(self) -> "DataFrame":
        """Return one row per call of the backbone: phase, role, tokens, seconds, cache hit, malformed, repaired."""
        return _frame(load.load_calls(self._folder))

    def conversations(self) -> "DataFrame":
        """Return one row per conversation: sizes, seconds, statistics of its memory."""
        return _frame(load.load_conversations(self._folder))

    def scores(self) -> "DataFrame":
        """Return one row per question, a column per metric and per judge; a value that could not be computed is NaN.

        Raises:
            ScoringError: the run is not complete, or not scored.
            RunDirectoryError: a file of it is missing or damaged.
        """
        run = read_run(self.path)
        if isinstance(run, Skipped):
            raise ScoringError(run.reason)
        return _frame(_score_columns(row) for row in run.rows)

    @property
    def _folder(self) -> Path:
        """The run folder.

        Raises:
            RunDirectoryError: the run is an exported one.
        """
        if is_exported_run(self.path):
            raise RunDirectoryError(f"{self.path} is an exported run, which has scores alone; name the run itself")
        return self.path


def load_run(path: str | Path) -> Run:
    """Open a run folder or an exported run.

    Args:
        path: of the folder that holds ``run.json``, or ``results/summaries/EXPERIMENT/RUN``.

    Raises:
        RunDirectoryError: there is no run, or its record does not fit this version.
    """
    return Run(Path(path), load.read_record(Path(path)))


def _frame(rows: Iterable[Any]) -> "DataFrame":
    import pandas as pd

    return pd.DataFrame([row if isinstance(row, dict) else asdict(row) for row in rows])
