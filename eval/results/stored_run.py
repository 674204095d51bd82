"""A scored run as everything behind it sees it: what its record says, and the scores of its questions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from eval.config.answer_prompts import prompts_of
from eval.config.presets import current_name
from eval.loaders.registry import info_of, is_own
from eval.runs.identity import NOT_IDENTITY, identity_hash, without_name
from eval.runs.records import ScoreRow
from eval.scoring.columns import ScoreColumns, columns_of
from eval.scoring.unanswered import OUTCOMES, unanswered_text
from memsys.proxies import is_local

#: Name of the backbone of runs that only retrieve.
NO_BACKBONE = "none"
#: Mode of a record whose answers are constants.
FLOOR = "floor"
_VLLM = "vllm"
#: Engines that run on the machine of a run; llama.cpp in it uses no GPU.
_LOCAL_ENGINES = (_VLLM, "llamacpp")
#: Memories that bound what a memory can do.
_REFERENCES = ("no_memory", "oracle", "full_context")
#: Settings in which repetitions of a run differ, and those that move no score.
_NOT_SETTINGS = (*NOT_IDENTITY, "seed", "timing")


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
        path: the run folder, or the address of the exported run, that it was read from.
    """

    record: Mapping[str, Any]
    meta: Mapping[str, Any]
    summary: Mapping[str, Any]
    rows: tuple[ScoreRow, ...]
    labels: str = "printed"
    repeats: tuple["StoredRun", ...] = ()
    path: Path = field(default=Path(), compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", columns_of(self.rows))

    @property
    def columns(self) -> ScoreColumns:
        """The rows with their columns."""
        return columns_of(self.rows)

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
        return in_latency_mode(self.record)

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
        return bool(self.columns.adversarial.any())

    @property
    def has_false_answers(self) -> bool:
        """Whether some of its questions without an answer have a false one (LoCoMo's), not a refusal as gold."""
        return self.columns.only(self.columns.adversarial).has("trapped")

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
    def context_budget(self) -> int | None:
        """Tokens that a context may have; ``None`` without a limit."""
        return (self.record["config"].get("context") or {}).get("budget")

    @property
    def shows_contexts(self) -> bool:
        """Whether what is in a context says more than what was found: a reader was given it, or it has a limit."""
        return not self.retrieval_only or self.context_budget is not None

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
        return self.columns.conversation_names

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

        ``differs`` is there if third parties, not the paper's authors, ran that row's system, and says how.
        """
        found = self.record.get("recorded")
        return (found.get("row") or {}) if isinstance(found, Mapping) else {}

    def settings_hash(self) -> str:
        """Return a hash that is equal for runs that differ in their seed alone."""
        if "settings" in self.record:
            return str(self.record["settings"])
        settings = self.record.get("identity") or self.record["config"]
        return identity_hash({key: without_name(value) for key, value in settings.items() if key not in _NOT_SETTINGS})


def in_latency_mode(record: Mapping[str, Any]) -> bool:
    """Return whether a run asked a few questions, one at a time, for their milliseconds.

    Args:
        record: ``run.json``.
    """
    return bool(record["config"].get("timing") == "latency" and record["mode"] != "retrieval_only")


def engines_are_here(record: Mapping[str, Any]) -> bool:
    """Return whether no engine was reached at the address of another machine.

    Args:
        record: ``run.json``.
    """
    engine = (record["config"].get("backbone") or {}).get("engine") or {}
    urls = (*(engine.get("urls") or ()), *(engine.get("base_urls") or ()))
    return all(is_local(urlsplit(url).hostname or "") for url in urls)


def category_names(run: StoredRun) -> dict[int, str]:
    """Return what the categories of a run's questions are called, by number."""
    present = sorted({row.category for row in run.rows})
    info = info_of(run.dataset)
    names = info.category_names if info is not None else {}
    return {category: names.get(category, f"category {category}").replace("_", " ") for category in present}
