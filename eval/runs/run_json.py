"""``run.json`` of a run: where its numbers come from, and how far it got."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from eval.runs.records import SCHEMA_VERSION
from eval.runs.row_checksums import RowChecksums
from memsys.vocabulary import Json

Status = Literal["running", "complete", "incomplete", "interrupted"]


@dataclass(slots=True)
class RunRecord:
    """``run.json``: everything that says where the numbers of this run come from.

    ``identity`` is what must agree for a resume: resolved config without the fields that cannot change a result,
    data checksum, and model fingerprint. ``config`` is the whole resolved config. ``departures`` names where the memory
    deviates from its paper or release (:mod:`eval.config.recorded_deviations`); ``None`` where its system does not say.
    ``prompt_sources`` says of each role whether its prompt is the authors', from which file and with which checksums,
    or why not (:mod:`eval.config.prompt_choice`); ``None`` where all prompts are ours.
    """

    run_id: str
    experiment: str
    seed: int
    mode: str
    config: Mapping[str, Json]
    identity: Mapping[str, Json]
    data: Mapping[str, Json]
    model: Mapping[str, Json]
    commit: str | None
    dirty: bool | None
    packages: Mapping[str, str]
    hardware: Mapping[str, Json]
    started: str
    status: Status = "running"
    finished: str | None = None
    resumed: int = 0
    #: commits, and whether code differed from them, of earlier starts of this run by other code
    earlier_code: list[dict[str, Json]] = field(default_factory=list)
    schema_version: int = SCHEMA_VERSION
    prompts: dict[str, str] = field(default_factory=dict)
    counts: dict[str, Json] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    departures: list[dict[str, Json]] | None = None
    #: where the answers come from, if they were recorded elsewhere (:mod:`eval.audit.recorded.importing`)
    recorded: dict[str, Json] | None = None
    prompt_sources: list[dict[str, Json]] | None = None
    #: seconds that loading took, by part (``backbone``, ``embedder``), in the process that wrote this last
    loading: dict[str, float] = field(default_factory=dict)
    #: checksum of the memory system's source (:mod:`eval.runs.memory_code`) with which the run began
    memory_code: str | None = None
    #: whether the memory may embed a text; ``None`` in runs of earlier versions
    embeds: bool | None = None
    #: of lexical searches (:mod:`memsys.index.words`), but for those that keep a published one
    tokenizer: str | None = None
    #: settings of backbones that were chosen again, as a server refused a field (:mod:`memsys.llm.accepted`)
    adaptations: list[dict[str, Json]] = field(default_factory=list)
    #: what was found about the external servers that backbones ask, and which settings were chosen for them
    #: (:mod:`memsys.llm.findings`)
    servers: list[dict[str, Json]] = field(default_factory=list)
    #: distinct texts of which only the beginning was embedded; of a run that was taken up, those of the longest part
    cut_texts: int = 0
    #: names of what is cut from replies before they are read (:mod:`memsys.llm.thoughts`)
    reply_rules: list[str] | None = None
    #: how rows of the run's files are checked (:mod:`eval.runs.row_checksums`); ``each`` in runs of earlier versions
    row_checksums: RowChecksums = "each"


def status_text(record: Mapping[str, Any]) -> str:
    """Return the status of a stored run with the first error that ended it: ``incomplete: the server is gone``."""
    problems = record.get("problems") or []  # older versions kept none of most errors
    more = f" (and {len(problems) - 1} more in run.json)" if len(problems) > 1 else ""
    return f"{record.get('status')}: {problems[0]}{more}" if problems else str(record.get("status"))


def has_random_weights(record: Mapping[str, Any]) -> bool:
    """Return whether a model of a stored run had random weights, so that its times are measurements and no answer is.

    Args:
        record: ``run.json``.
    """
    return _says_random(record.get("model"))


def _says_random(model: Any) -> bool:
    """Search a fingerprint, of one model or of two, for the mark."""
    if not isinstance(model, Mapping):
        return False
    return model.get("random_weights") is True or any(map(_says_random, model.values()))


def now() -> str:
    """Return the UTC time, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
