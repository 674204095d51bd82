"""The file of a pack: its members, their digests, and limits that hold before anything is unpacked."""

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eval.audit.packs.questions import PackedQuestion
from eval.loaders.archives import any_encrypted, check_paths, opened_archive, unpacked_bytes
from eval.runs.exports import RUNS_FILE, SCORES_FILE, exported_runs
from eval.runs.files import write_atomic, write_json
from eval.runs.manifest import MANIFEST
from eval.runs.records import AnswerRecord, ConversationRecord, RetrievalRecord
from eval.runs.rows import read_rows
from memsys.errors import RunDirectoryError, quoted
from memsys.llm.ledger import CallRecord
from memsys.rows import RowError, record_from

#: Version of the format; raised whenever a reader of old packs would misread new ones.
FORMAT = 1
QUESTIONS = "questions.jsonl"
#: Rows of a run that a pack holds.
ROWS = ("answers.jsonl", "retrievals.jsonl", "settled.jsonl", "conversations.jsonl", "calls.jsonl")
_EXPORT = (RUNS_FILE, SCORES_FILE)
MEMBERS = (MANIFEST, *_EXPORT, QUESTIONS, *ROWS)
#: Bytes of a pack, and of all its files once they are unpacked.
MOST_PACKED, MOST_UNPACKED = 32 << 20, 512 << 20
#: Rows and values of the table of scores, which a small file may claim any number of.
_MOST_ROWS, _MOST_VALUES = 1_000_000, 100_000_000
#: Time of the members: the same run gives the same bytes.
_TIME = (1980, 1, 1, 0, 0, 0)
_ADVICE = "fetch it again, or pack the run again (`memsys pack RUN`)"


@dataclass(frozen=True, slots=True)
class PackManifest:
    """``manifest.json`` of a pack.

    Attributes:
        format: version.
        texts: whether questions, answers and memories are included as texts.
        licence: of the data that the texts quote, with its source; of included texts the terms they are under.
        files: sha256 of every other member.
    """

    format: int
    texts: bool
    licence: str
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OpenPack:
    """A pack whose files lie in a folder for a while.

    Attributes:
        path: of the pack.
        manifest: of it.
        run: address of its run, as of an exported one.
        rows: folder of its rows and digests.
        altered: members whose sha256 is not the manifest's.
    """

    path: Path
    manifest: PackManifest
    run: Path
    rows: Path
    altered: Sequence[str]

    def questions(self) -> dict[str, PackedQuestion]:
        """Return the digests by question id."""
        return self._by_question(QUESTIONS, PackedQuestion)

    def answers(self) -> dict[str, AnswerRecord]:
        """Return the answers by question id."""
        return self._by_question("answers.jsonl", AnswerRecord)

    def retrievals(self) -> dict[str, RetrievalRecord]:
        """Return the retrievals by question id."""
        return self._by_question("retrievals.jsonl", RetrievalRecord)

    def conversations(self) -> list[ConversationRecord]:
        """Return the ingested conversations."""
        return list(read_rows(self.rows / "conversations.jsonl", ConversationRecord))

    def calls(self) -> list[CallRecord]:
        """Return the requests to the backbone."""
        return list(read_rows(self.rows / "calls.jsonl", CallRecord))

    def _by_question(self, name: str, kind: type[Any]) -> dict[str, Any]:
        return {row.question_id: row for row in read_rows(self.rows / name, kind, unique="question_id")}


def write_pack(path: Path, manifest: PackManifest, contents: Mapping[str, bytes]) -> None:
    """Write a pack; the same contents give the same bytes.

    Args:
        path: of the file.
        manifest: of which the digests are filled in here.
        contents: bytes by name of the member.

    Raises:
        RunDirectoryError: it is larger than any reader takes, or cannot be written.
    """
    files = {name: _digest(content) for name, content in contents.items()}
    about = {"format": manifest.format, "texts": manifest.texts, "licence": manifest.licence, "files": files}
    whole = {MANIFEST: f"{json.dumps(about, indent=2, sort_keys=True, ensure_ascii=False)}\n".encode(), **contents}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in MEMBERS:
            if name in whole:
                archive.writestr(_member(name), whole[name])
    packed = buffer.getvalue()
    _check_sizes(path, len(packed), sum(map(len, whole.values())))
    write_atomic(path, packed)


def _member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, _TIME)
    member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
    return member


@contextmanager
def opened_pack(path: Path) -> Iterator[OpenPack]:
    """Unpack a pack into a folder that goes with the block.

    Args:
        path: of the file.

    Raises:
        DataError: it is not a whole zip archive.
        RunDirectoryError: it is not there, too large, or not a pack of this version; says what is wrong.
    """
    contents = _contents(path)
    manifest = _manifest(path, contents.pop(MANIFEST))
    named = manifest.files.keys()
    if named != contents.keys():
        strange = sorted(named ^ contents.keys())
        raise _no_pack(path, f"its manifest and its files differ: {', '.join(strange)}")
    _check_scores(path, contents[SCORES_FILE])
    with TemporaryDirectory(prefix="memsys-pack-") as folder:
        export, rows = Path(folder) / "export", Path(folder) / "rows"
        for name, content in contents.items():
            write_atomic((export if name in _EXPORT else rows) / name, content)
        write_json(export / MANIFEST, {"files": {name: _digest(contents[name]) for name in _EXPORT}})
        runs = exported_runs(export)
        if len(runs) != 1:
            raise _no_pack(path, f"it holds {len(runs)} runs")
        altered = [name for name in contents if _digest(contents[name]) != manifest.files[name]]
        yield OpenPack(path, manifest, runs[0], rows, altered)


def _contents(path: Path) -> dict[str, bytes]:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise RunDirectoryError(f"{path}: cannot be read ({error.strerror}); name a file of `memsys pack`") from error
    if path.is_dir():
        raise RunDirectoryError(f"{path} is a folder; name a file of `memsys pack`")
    _check_sizes(path, size, 0)
    with opened_archive(path, _ADVICE) as archive:
        members = archive.infolist()
        names = [member.filename for member in members]
        check_paths(path, members, "a pack")
        strange = [name for name in names if name not in MEMBERS] or [name for name in names if names.count(name) > 1]
        if strange:
            raise _no_pack(path, f"{quoted(strange[0], 80)} is not a file of a pack, or is there twice")
        if lacking := {MANIFEST, QUESTIONS, *_EXPORT} - set(names):
            raise _no_pack(path, f"it lacks {', '.join(sorted(lacking))}")
        if any_encrypted(members):
            raise _no_pack(path, "it is encrypted")
        _check_sizes(path, size, unpacked_bytes(members))
        return {member.filename: archive.read(member) for member in members}


def _check_sizes(path: Path, packed: int, unpacked: int) -> None:
    for size, most, what in ((packed, MOST_PACKED, "packed"), (unpacked, MOST_UNPACKED, "unpacked")):
        if size > most:
            raise RunDirectoryError(
                f"{path}: has {size >> 20} MiB {what}, more than the {most >> 20} MiB of any pack; "
                "pack a run on fewer questions"
            )


def _manifest(path: Path, content: bytes) -> PackManifest:
    try:
        found: Any = json.loads(content)
        if isinstance(found, dict) and found.get("format") != FORMAT:
            raise _no_pack(path, f"its format is {quoted(found.get('format'))}, this version reads {FORMAT}")
        return record_from(PackManifest, found)
    except (ValueError, RecursionError, RowError) as error:
        raise _no_pack(path, f"{MANIFEST}: {error}") from error


def _check_scores(path: Path, content: bytes) -> None:
    """Refuse a table that would fill the memory: its own head says how much it unpacks to."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        head = parquet.read_metadata(io.BytesIO(content))
        size = sum(head.row_group(number).total_byte_size for number in range(head.num_row_groups))
    except (pa.ArrowException, OSError) as error:
        raise _no_pack(path, f"{SCORES_FILE}: {' '.join(str(error).split())[:100]}") from error
    if head.num_rows > _MOST_ROWS or head.num_rows * head.num_columns > _MOST_VALUES or size > MOST_UNPACKED:
        raise _no_pack(path, f"{SCORES_FILE} says that it holds {head.num_rows} rows of {head.num_columns} columns")


def _no_pack(path: Path, problem: str) -> RunDirectoryError:
    return RunDirectoryError(f"{path}: is not a pack that this version reads ({problem}); {_ADVICE}")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
