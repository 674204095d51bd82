"""A run folder of recorded answers. What they lack stays empty, and ``run.json`` says so."""

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from eval.audit.recorded.importing import Imported
from eval.audit.recorded.questions import RecordedQuestion
from eval.audit.recorded.rows import Recorded
from eval.loaders.question_types import ADVERSARIAL
from eval.runs.files import JsonLines, write_json
from eval.runs.provenance import commit
from eval.runs.records import SCHEMA_VERSION, AnswerRecord, ReferenceRecord, RetrievalRecord
from eval.runs.run_json import RunRecord, now
from eval.runs.signing import finish_run
from eval.scoring.verdicts.store import FOLDER, input_checksums, input_digest
from eval.scoring.verdicts.values import CORRECT, WRONG
from memsys.errors import RunDirectoryError
from memsys.llm.thoughts import RULES
from memsys.vocabulary import Json

#: What an imported run never has.
LACKS = ("calls and tokens", "times of writing", "what was retrieved, memory by memory")
#: File next to ``run.json``: how the rows fit, and every row that did not.
REPORT = "import.json"


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin and maker of recorded answers; every field may be unknown.

    ``row`` names the printed row that they answer: ``paper``, and its configs ``memory`` and ``backbone``.
    ``reference`` says that they bound what a memory can do (gold evidence, everything, wrong on purpose) and are none.
    """

    system: str
    backbone: str = ""
    repository: str = ""
    commit: str = ""
    path: str = ""
    sha256: str = ""
    licence: str = ""
    notes: Sequence[str] = field(default_factory=tuple)
    row: Mapping[str, str] = field(default_factory=dict)
    reference: bool = False


def write_run(imported: Imported, folder: Path, origin: Origin, protocol: str) -> dict[str, Json]:
    """Write the run folder.

    Args:
        imported: the answers.
        folder: must not exist, or be empty.
        origin: for ``run.json``.
        protocol: name in ``conf/protocol`` by which the run is read unless another is asked for.

    Returns:
        The report that was written to ``import.json``.

    Raises:
        RunDirectoryError: the folder holds something, is a file, or cannot be made.
    """
    unfinished = _make_place(folder)
    try:
        report = _write_files(imported, unfinished, _record(imported, folder.name, origin, protocol))
        unfinished.replace(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return report


def _make_place(folder: Path) -> Path:
    """Make the folder in which a run is written until it is whole; what a killed import left there goes.

    Raises:
        RunDirectoryError: the run's own folder holds something, is a file, or cannot be made.
    """
    unfinished = folder.with_name(f".{folder.name}.part")
    try:
        if folder.exists() and not folder.is_dir():
            raise RunDirectoryError(f"{folder} is a file; choose another --as")
        if folder.exists() and any(folder.iterdir()):
            raise RunDirectoryError(f"{folder} is not empty; choose another --as, or delete it")
        if unfinished.exists():
            shutil.rmtree(unfinished)
        unfinished.mkdir(parents=True)
    except OSError as error:
        raise RunDirectoryError(f"cannot make {folder} ({error.strerror}); choose another --as") from error
    return unfinished


def _write_files(imported: Imported, folder: Path, record: RunRecord) -> dict[str, Json]:
    """Write everything, ``run.json`` last, by which other commands know a run."""
    pairs = [
        (one, imported.alignment.rows[one.question_id])
        for one in imported.questions
        if one.question_id in imported.alignment.rows
    ]
    references = imported.references()
    _write_lines(folder / "references.jsonl", [asdict(one) for one in references])
    _write_lines(folder / "answers.jsonl", [asdict(_answer(one, row)) for one, row in pairs])
    contexts = [asdict(_retrieval(one, row)) for one, row in pairs if row.context is not None]
    if contexts:
        _write_lines(folder / "retrievals.jsonl", contexts)
    report = {"counts": imported.counts(), "lists": imported.lists(), "categories": imported.category_labels()}
    write_json(folder / REPORT, report)
    for judge in sorted({name for _, row in pairs for name in row.verdicts}):
        _write_verdicts(folder, judge, pairs, {one.question_id: one for one in references})
    finish_run(folder, asdict(record))
    return report


def _write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.unlink(missing_ok=True)
    file = JsonLines(path)
    try:
        for row in rows:
            file.append(row)
    finally:
        file.close()


def _answer(one: RecordedQuestion, row: Recorded) -> AnswerRecord:
    return AnswerRecord(
        question_id=one.question_id,
        conversation_id=one.conversation_id,
        category=one.category,
        question=one.text,
        prediction=row.prediction or "",
        raw=row.raw,
        malformed=False,
        options=[],
        retrieve_seconds=row.retrieve_seconds,
        answer_seconds=row.answer_seconds,
        measured=False,
        prompt_tokens=None,
        completion_tokens=None,
    )


def _retrieval(one: RecordedQuestion, row: Recorded) -> RetrievalRecord:
    """Return the text that the reader saw; its memories are not recorded."""
    context = row.context or ""
    return RetrievalRecord(
        question_id=one.question_id,
        conversation_id=one.conversation_id,
        category=one.category,
        hits=[],
        context=context,
        context_chars=len(context),
        context_tokens=None,
        ranked=False,
    )


def _record(imported: Imported, run_id: str, origin: Origin, protocol: str) -> RunRecord:
    code, source = commit(), imported.question_set
    origin_settings = {key: value for key, value in asdict(origin).items() if key != "reference"}
    identity = {"recorded": origin_settings, "data": source.sha256}
    asked = Counter(one.category for one in imported.questions)
    has_context = any(row.context is not None for row in imported.alignment.rows.values())
    lacks = [*LACKS, *([] if has_context else ["the reader's context"])]
    return RunRecord(
        run_id=run_id,
        experiment="recorded",
        seed=0,
        mode="answers",
        config={
            "memory": {"name": origin.system},
            "backbone": {"name": origin.backbone or "not named"},
            "dataset": {"name": source.name, **source.settings},
            "reader": {"name": "recorded"},
            "protocol": {"name": protocol},
        },
        identity=identity,
        data={
            **{"name": source.name, "sha256": source.sha256, **source.data},
            "questions": len(imported.questions),
            "questions_by_category": {str(n): asked[n] for n in sorted(asked)},
        },
        model={},
        commit=code["commit"],
        dirty=code["dirty"],
        packages={},
        hardware={},
        started=now(),
        finished=now(),
        status="complete",
        counts={"questions": len(imported.questions), **imported.counts()},
        reply_rules=list(RULES),
        problems=[f"recorded elsewhere; lacks {text}" for text in lacks],
        recorded={**asdict(origin), "lacks": lacks, "category_labels": imported.category_labels()},
    )


def _write_verdicts(
    folder: Path,
    judge: str,
    pairs: Sequence[tuple[RecordedQuestion, Recorded]],
    references: Mapping[str, ReferenceRecord],
) -> None:
    """Keep a recorded judge's verdicts the way ours are kept; category 5 too, where the file has verdicts on it."""
    name = f"recorded-{_slug(judge)}"
    lines, repeats = [], 0
    for one, row in pairs:
        verdicts = row.verdicts.get(judge, ())
        repeats = max(repeats, len(verdicts))
        for number, verdict in enumerate(verdicts):
            word = None if verdict is None else CORRECT if verdict else WRONG
            gold = " | ".join(references[one.question_id].answers)
            lines.append(
                {
                    "question_id": one.question_id,
                    "repeat": number,
                    "verdict": word,
                    "reason": "",
                    "input_sha256": input_digest(one.text, gold, row.prediction or ""),
                }
            )
    meta = {
        "schema_version": SCHEMA_VERSION,
        "status": "complete",
        "column": f"judge_recorded_{_slug(judge)}",
        "judge": "recorded",
        "backbone": judge,
        "identity": {"judge": {"name": "recorded", "by": judge}, "model": {}},
        "inputs": input_checksums(folder),
        "repeats": repeats,
        "probe": {"items": 0, "accuracy": None, "always": None, "false_accept": None, "false_reject": None,
                  "unscored": 0, "by_kind": {}},
        "adversarial": any(one.reference.kind == ADVERSARIAL for one, row in pairs if judge in row.verdicts),
    }  # fmt: skip
    _write_lines(folder / FOLDER / f"{name}.jsonl", lines)
    write_json(folder / FOLDER / f"{name}.json", meta)


def _slug(text: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in text.lower()).strip("-")
