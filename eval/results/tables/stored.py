"""Runs as tables read them: settings and per-question values, from a run directory or from its export."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eval.commands.terminal import stage
from eval.config.answer_prompts import prompts_of
from eval.config.presets import current_name
from eval.loaders.question_types import ADVERSARIAL
from eval.loaders.registry import info_of, is_own
from eval.results.tables.older_rows import with_shown
from eval.results.tables.spec import NO_BACKBONE
from eval.runs.exports import SCORES_FILE, is_exported_run, read_export
from eval.runs.exports import read_record as exported_record
from eval.runs.folders import find_run_folders, runs_first
from eval.runs.identity import identity_hash, without_name
from eval.runs.manifest import check_file, check_folder
from eval.runs.records import SCHEMA_VERSION
from eval.runs.run_json import RunRecord, standing
from eval.scoring.latency import measured_latencies
from eval.scoring.rows import SCORES_META, ScoreRow, load_scores
from eval.scoring.unanswered import OUTCOMES, unanswered_text
from eval.scoring.verdicts.store import with_judgements
from memsys.errors import RunDirectoryError, ScoringError
from memsys.rows import RowError, check_fields

#: Mode of a record whose answers are constants.
FLOOR = "floor"
_VLLM = "vllm"
#: Engines that run on the machine of a run; llama.cpp in it uses no GPU.
_LOCAL_ENGINES = (_VLLM, "llamacpp")
#: Memories that bound what a memory can do.
_REFERENCES = ("no_memory", "oracle", "full_context")
#: Settings that cannot move a score; runs that differ in nothing else and the seed are repetitions of each other.
_NOT_SETTINGS = (
    "seed",
    "experiment",
    "schedule",
    "protocol",
    "scoring",
    "progress",
    "score",
    "show_answers",
    "use_cache",
    "unanswered",
    "timing",
)


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One complete, scored run.

    Attributes:
        record: ``run.json``.
        meta: ``scores_meta.json``.
        summary: ``summary.json``; empty when the run has none.
        rows: values of every question; latencies in milliseconds where they were measured.
        labels: view of disputed labels that the rows are under, where it changes them.
        repeats: the runs of several seeds whose scores the rows are the means of; empty for the rows of one run.
    """

    record: Mapping[str, Any]
    meta: Mapping[str, Any]
    summary: Mapping[str, Any]
    rows: tuple[ScoreRow, ...]
    labels: str = "printed"
    repeats: tuple["StoredRun", ...] = ()

    @property
    def run_id(self) -> str:
        """Names the run."""
        return str(self.record["run_id"])

    def _name(self, part: str) -> str:
        return str((self.record["config"].get(part) or {}).get("name", ""))

    @property
    def memory(self) -> str:
        """Name of the memory config as it is called today."""
        return current_name(self._name("memory"))

    @property
    def times_questions(self) -> bool:
        """Whether it ran in latency mode: a few questions, one at a time, for their milliseconds."""
        return _in_latency_mode(self.record)

    @property
    def dataset(self) -> str:
        """Name of the data set config."""
        return self._name("dataset")

    @property
    def data_sha256(self) -> str:
        """Checksum of the data file; presets that read the same file have the same."""
        return str(self.record["data"].get("sha256"))

    @property
    def asked(self) -> int:
        """Questions that it scored, those that a view of labels leaves out too: what its summary's totals are of."""
        return int((self.summary.get("counts") or {}).get("rows") or len(self.rows))

    @property
    def unanswered(self) -> str:
        """How many of its questions have no whole answer, and how they count; empty where all have one."""
        return unanswered_text(self.summary)

    @property
    def unscored_questions(self) -> bool:
        """Whether some of its questions have no text at all that could be scored: a filter or the server kept it."""
        return not {"withheld", "failed"}.isdisjoint((self.summary.get("counts") or {}).get(OUTCOMES) or {})

    @property
    def asks_unanswerable(self) -> bool:
        """Whether some of its questions have no answer (LoCoMo's category 5)."""
        return any(row.kind == ADVERSARIAL for row in self.rows)

    @property
    def has_false_answers(self) -> bool:
        """Whether some of its questions without an answer have a false one (LoCoMo's), not a refusal as gold."""
        return any(row.kind == ADVERSARIAL and row.metrics.get("trapped") is not None for row in self.rows)

    @property
    def prompts(self) -> str:
        """Prompt set of the run; empty for this version's own."""
        return prompts_of(self.record)

    @property
    def of_sample(self) -> bool:
        """Whether it ran on a sample of the project's own, which is not the published data set."""
        return bool((self.record["config"].get("dataset") or {}).get("sample"))

    @property
    def of_own_data(self) -> bool:
        """Whether its questions, and the words for their kinds, are the user's own."""
        return is_own(self.dataset)

    @property
    def reader(self) -> str:
        """Name of the reader config."""
        return self._name("reader")

    @property
    def asked_by(self) -> str:
        """Name of the reader that asked for the answers; empty where nothing was asked."""
        return "" if self.retrieval_only or self.floor else self.reader

    @property
    def embedder(self) -> str:
        """Name of the embedder."""
        return self._name("embedder")

    @property
    def retrieval_only(self) -> bool:
        """Whether no backbone was involved."""
        return bool(self.record["mode"] == "retrieval_only")

    @property
    def floor(self) -> bool:
        """Whether its answers are constants, given without a model."""
        return bool(self.record["mode"] == FLOOR)

    @property
    def reference(self) -> bool:
        """Whether it is a reference (nothing, the gold evidence, everything) that bounds what a memory can do."""
        found = self.record.get("recorded")
        said = bool(found.get("reference")) if isinstance(found, Mapping) else False
        named = any(self.memory == name or self.memory.startswith(f"{name}_") for name in _REFERENCES)
        return self.floor or said or named

    @property
    def backbone(self) -> str:
        """Name of the backbone config; ``none`` for a run that only retrieves, and for constant answers."""
        return NO_BACKBONE if self.retrieval_only or self.floor else self._name("backbone")

    @property
    def conversations(self) -> tuple[str, ...]:
        """Conversations with a question, sorted."""
        return tuple(sorted({row.conversation_id for row in self.rows}))

    @property
    def gpus(self) -> tuple[str, ...]:
        """Accelerators it ran on."""
        return tuple((self.record.get("hardware") or {}).get("gpus") or ())

    @property
    def processor(self) -> str:
        """Processor that the model ran on, which rounds its arithmetic; empty where an engine elsewhere computed."""
        engine = ((self.record.get("model") or {}).get("engine") or {}).get("engine")
        if engine not in _LOCAL_ENGINES or not engines_are_here(self.record):
            return ""
        gpus = sorted({gpu.partition(",")[0] for gpu in self.gpus}) if engine == _VLLM else []
        return ", ".join(gpus) or str((self.record.get("hardware") or {}).get("cpu") or "")

    @property
    def recorded(self) -> str:
        """Where its answers come from if the authors recorded them; empty for a run of this harness."""
        found = self.record.get("recorded")
        if not isinstance(found, Mapping):
            return str(found or "")
        where = ", ".join(str(found[key]) for key in ("repository", "path") if found.get(key))
        return where + (f" at commit {str(found['commit'])[:12]}" if found.get("commit") else "") or "source not named"

    @property
    def recorded_row(self) -> Mapping[str, str]:
        """The printed row that recorded answers gave: ``paper``, ``memory``, ``backbone``; empty for none.

        ``differs`` is there where others than the paper's authors ran that row's system, and says how.
        """
        found = self.record.get("recorded")
        return (found.get("row") or {}) if isinstance(found, Mapping) else {}

    def settings_hash(self) -> str:
        """Return a hash that is equal for runs that differ in their seed alone."""
        if "settings" in self.record:
            return str(self.record["settings"])
        settings = self.record.get("identity") or self.record["config"]
        return identity_hash({key: without_name(value) for key, value in settings.items() if key not in _NOT_SETTINGS})


def engines_are_here(record: Mapping[str, Any]) -> bool:
    """Return whether no engine was reached at the address of another machine.

    Args:
        record: ``run.json``.
    """
    engine = (record["config"].get("backbone") or {}).get("engine") or {}
    urls = (*(engine.get("urls") or ()), *(engine.get("base_urls") or ()))
    return all("127.0.0.1" in url for url in urls)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A run that no table can use, and why."""

    path: Path
    reason: str


def read_json(path: Path) -> dict[str, Any]:
    """Read one JSON object.

    Raises:
        RunDirectoryError: missing, not as it was written, or not JSON.
    """
    check_file(path)
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RunDirectoryError(f"{path} does not exist; name a run directory that `memsys run` wrote") from error
    except (ValueError, RecursionError) as error:
        raise RunDirectoryError(f"{path} is not JSON ({error}); restore it or remove its folder") from error
    if not isinstance(value, dict):
        raise RunDirectoryError(f"{path} is not a JSON object; restore it or remove its folder")
    return value


def read_run(path: Path) -> StoredRun | Skipped:
    """Read one run directory or exported run.

    Raises:
        RunDirectoryError: a file is broken or of another schema.
    """
    if is_exported_run(path):
        return _exported(path)
    record = read_json(path / "run.json")
    check_folder(path)
    _check(record, path)
    if record["status"] != "complete":
        ways = "the same command resumes it, `memsys settle --close` closes what is open"
        return Skipped(path, f"not complete ({standing(record)}); {ways}")
    try:
        rows = with_judgements(path, load_scores(path))
    except ScoringError as error:
        return Skipped(path, str(error))
    summary = read_json(path / "summary.json") if (path / "summary.json").is_file() else {}
    known = with_shown(_with_latency(path, record, rows), summary, record["config"].get("memory") or {})
    return StoredRun(record, read_json(path / SCORES_META), summary, tuple(known))


def read_record(path: Path) -> Mapping[str, Any]:
    """Read the record of a run directory or of an exported run.

    Raises:
        RunDirectoryError: missing, or damaged.
    """
    return exported_record(path) if is_exported_run(path) else read_json(path / "run.json")


def _exported(path: Path) -> StoredRun | Skipped:
    """Read an exported run."""
    run = read_export(path)
    _check(run.record, path)
    counted = (run.summary.get("counts") or {}).get("rows", len(run.rows))
    if not run.rows or len(run.rows) != counted:
        return Skipped(path, f"{SCORES_FILE} has {len(run.rows)} of its {counted} rows; restore it")
    rows = [ScoreRow(row.question_id, row.conversation_id, row.category, row.metrics, row.kind) for row in run.rows]
    known = with_shown(rows, run.summary, run.record["config"].get("memory") or {})
    return StoredRun(run.record, run.meta, run.summary, tuple(known))


def _check(record: Mapping[str, Any], path: Path) -> None:
    missing = [
        key for key in ("schema_version", "run_id", "status", "started", "config", "mode", "data") if key not in record
    ]
    if missing:
        raise RunDirectoryError(f"{path / 'run.json'} lacks {', '.join(missing)}; it is not a run of this harness")
    try:
        check_fields(RunRecord, record, ("config", "data"))
    except RowError as error:
        raise RunDirectoryError(f"{path / 'run.json'} does not fit this version ({error}); restore it") from error
    if record["schema_version"] != SCHEMA_VERSION:
        raise RunDirectoryError(
            f"{path} was written with schema {record['schema_version']}, this version reads {SCHEMA_VERSION}; "
            "run it again or move it elsewhere"
        )


def _in_latency_mode(record: Mapping[str, Any]) -> bool:
    return bool(record["config"].get("timing") == "latency" and record["mode"] != "retrieval_only")


def _with_latency(path: Path, record: Mapping[str, Any], rows: Sequence[ScoreRow]) -> list[ScoreRow]:
    """Add the latencies of a run in latency mode; values of other runs say nothing about latency."""
    if not _in_latency_mode(record):
        return list(rows)
    latencies = measured_latencies(path)
    return [
        replace(row, metrics={**row.metrics, **latencies[row.question_id]}) if row.question_id in latencies else row
        for row in rows
    ]


def read_runs(roots: Sequence[Path]) -> tuple[list[StoredRun], list[Skipped]]:
    """Read all runs under some folders; one that is met twice counts once: the run itself before its exported summary.

    Raises:
        RunDirectoryError: a folder does not exist or a file is broken.
    """
    runs: dict[str, StoredRun] = {}
    skipped = []
    for folder in runs_first(find_run_folders(roots)):
        with stage(f"reading {folder.name}"):
            run = read_run(folder)
        if isinstance(run, Skipped):
            skipped.append(run)
        elif runs.setdefault(run.run_id, run).record["started"] != run.record["started"]:
            skipped.append(
                Skipped(folder, f"another run has the id {run.run_id} too (run.json); name one of the two at a time")
            )
    return [runs[name] for name in sorted(runs)], skipped


def category_names(run: StoredRun) -> dict[int, str]:
    """Return what the categories of a run's questions are called, by number."""
    present = sorted({row.category for row in run.rows})
    info = info_of(run.dataset)
    names = info.category_names if info is not None else {}
    return {category: names.get(category, f"category {category}").replace("_", " ") for category in present}
