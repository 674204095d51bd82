"""Making a pack of a run: its rows without what may not be passed on."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eval.audit.packs.files import FORMAT, QUESTIONS, PackManifest, write_pack
from eval.audit.packs.questions import packed_question, terms
from eval.export import export_run
from eval.runs.exports import RUNS_FILE, SCORES_FILE, is_exported_run
from eval.runs.load import (
    is_recorded,
    load_answers,
    load_calls,
    load_conversations,
    load_references,
    load_retrievals,
    load_settled,
    read_record,
)
from eval.runs.records import AnswerRecord, ConversationRecord, HitRecord, RetrievalRecord, SettledRecord
from eval.scoring.shown import shown_hits, with_others
from memsys.errors import RunDirectoryError
from memsys.llm.ledger import CallRecord
from memsys.vocabulary import Json


def pack_run(folder: Path, out: Path) -> PackManifest:
    """Pack a complete, scored run.

    Args:
        folder: of the run.
        out: file to write.

    Returns:
        What the pack says of itself.

    Raises:
        RunDirectoryError: the run is an exported one, not complete or not scored, or too large.
        ScoringError: a file of it is damaged.
    """
    if is_exported_run(folder):
        raise RunDirectoryError(f"{folder} is an exported run, which has scores alone; name the run itself")
    record = read_record(folder)
    texts, licence = terms(record)
    with TemporaryDirectory(prefix="memsys-pack-") as place:
        export = export_run(folder, Path(place)).parent
        contents = {name: (export / name).read_bytes() for name in (RUNS_FILE, SCORES_FILE)}
    contents |= _rows(folder, texts=texts)
    manifest = PackManifest(FORMAT, texts, licence)
    write_pack(out, manifest, contents)
    return manifest


def _rows(folder: Path, *, texts: bool) -> dict[str, bytes]:
    answers, retrievals = load_answers(folder), load_retrievals(folder)
    questions = [
        packed_question(reference, answers.get(name), retrievals.get(name), texts=texts)
        for name, reference in load_references(folder).items()
    ]
    recorded = is_recorded(folder)  # the calls behind externally recorded answers are not known
    kept: dict[str, Iterable[Any]] = {
        QUESTIONS: questions,
        "answers.jsonl": (packed_answer(row, texts=texts) for row in answers.values()),
        "retrievals.jsonl": (packed_retrieval(row, texts=texts) for row in retrievals.values()),
        "settled.jsonl": (_settled(row) for row in load_settled(folder).values()),
        "conversations.jsonl": () if recorded else map(_conversation, load_conversations(folder)),
        "calls.jsonl": () if recorded else _calls(load_calls(folder)),
    }
    return {name: b"".join(map(_line, rows)) for name, rows in kept.items()}


def _line(row: Any) -> bytes:
    return f"{json.dumps(asdict(row), ensure_ascii=False, separators=(',', ':'))}\n".encode("utf-8", "surrogatepass")


def packed_answer(row: AnswerRecord, *, texts: bool) -> AnswerRecord:
    """Return an answer as a pack holds it: without the raw reply, and where texts may not be passed on, without any."""
    if texts:
        return replace(row, raw="", reason="")
    return replace(row, question="", prediction="", raw="", reason="", options=[])


def packed_retrieval(row: RetrievalRecord, *, texts: bool) -> RetrievalRecord:
    """Return a retrieval as a pack holds it: turn ids, scores and sizes; texts of memories where they may be passed on.

    Which memories the context holds is decided here, where the texts are: :mod:`eval.scoring.shown` gives the same of
    the packed row.
    """
    shown = shown_hits(row)
    every = with_others(row, shown)
    besides = None if every is None else every[len(shown or ()) :]
    kept = set(map(id, shown or ()))
    places = None if shown is None else [place for place, hit in enumerate(row.hits) if id(hit) in kept]
    return replace(
        row,
        hits=[_hit(hit, place, texts=texts) for place, hit in enumerate(row.hits)],
        context=row.context if texts else "",
        trace=({"left_out": 1} if shown is None else {}) | ({"linked_ids": [""]} if every is None else {}),
        shown=places,
        also_shown=None if besides is None else [_hit(hit, place, texts=texts) for place, hit in enumerate(besides)],
    )


def _hit(hit: HitRecord, place: int, *, texts: bool) -> HitRecord:
    return hit if texts else replace(hit, memory_id=str(place), text="")


def _settled(row: SettledRecord) -> SettledRecord:
    return replace(row, reason="")


def _conversation(row: ConversationRecord) -> ConversationRecord:
    return replace(row, statistics=_numbers(row.statistics))


def _numbers(found: Mapping[str, Json]) -> dict[str, Json]:
    """Return the statistics that are numbers; others may name what was said."""
    return {name: value for name, value in found.items() if isinstance(value, int | float)}


def _calls(rows: Iterable[CallRecord]) -> Iterator[CallRecord]:
    """Yield the calls of a ledger with numbers for keys, which other programs make of any text."""
    numbers: dict[str, str] = {}
    for row in rows:
        key, item = (numbers.setdefault(text, str(len(numbers))) for text in (row.key, row.item))
        seconds = round(row.seconds, 3)
        yield replace(row, key=key, item=item, request_hash="", endpoint="", seconds=seconds, queue_seconds=0.0)


def file_name(record: Mapping[str, Any]) -> str:
    """Return the name of a run's pack: its id, which has no signs that a file's name lacks."""
    parts: Sequence[str] = str(record["run_id"]).split("/")
    return f"{parts[-1]}.zip"
