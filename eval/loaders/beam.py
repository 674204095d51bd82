"""BEAM (Tavakoli et al., 2025): long chats of a user with an assistant, with twenty questions of ten kinds on each.

Source: github.com/mohammadtavakoli78/BEAM. A chat is a folder with ``chat.json``, ``topic.json`` and
``probing_questions/probing_questions.json``. One loader reads all four sizes (100K, 500K, 1M, 10M tokens).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from eval.loaders.beam_files import BEAM_PINS
from eval.loaders.beam_questions import CATEGORIES, KINDS, read_questions
from eval.loaders.contract import DatasetInfo, LoadedData, PinnedFile
from eval.loaders.jsonfile import JsonNode, read_json
from eval.loaders.locate import find_source, sample_path, warn_of_missing
from eval.loaders.records import hash_of_files, read_speaker
from eval.loaders.selection import Selection, check_choice, check_name, count
from memsys.errors import DataError
from memsys.vocabulary import Conversation, Json, Sample, Turn

FOLDER = "beam_100k"
COMMIT = "b2a3ee8ba12d68f83143dda191097dc3e028ddd3"
QUESTION_FILE = "probing_questions/probing_questions.json"
_RAW = f"https://raw.githubusercontent.com/mohammadtavakoli78/BEAM/{COMMIT}/chats/100K"

#: ``kept``: as published; ``removed``: without the generator's marker (``->-> 3,14``) at the end of a user's message.
Markers = Literal["kept", "removed"]
_MARKER = "->->"

BEAM = DatasetInfo(
    key="beam",
    title="BEAM (100K)",
    homepage="https://github.com/mohammadtavakoli78/BEAM",
    licence="none stated in the repository: research use, not redistributed here",
    citation="Tavakoli et al., Beyond a Million Tokens: Benchmarking and Enhancing Long-Term Memory in LLMs, "
    "arXiv 2510.27246, 2025",
    files=tuple(
        PinnedFile(f"{FOLDER}/{name}", sha256, size, f"{_RAW}/{name}") for name, (sha256, size) in BEAM_PINS.items()
    ),
    category_names=CATEGORIES,
    kinds=KINDS,
    question_counts=dict.fromkeys(CATEGORIES, 40),
    floor_preset="beam_100k",
    note_meanings={
        "files": "files read",
        "markers": "user messages that end in the generator's marker",
        "nested_source_ids": "questions with source ids in nested lists",
        "repeated_source_ids": "ids that a question names twice",
        "source_ids_as_text": "source ids that are text and hold no number; not used",
        "unresolved_source_ids": "source ids that name no message",
        "questions_without_source": "questions that name no message, abstention aside",
        "half_sources": "questions of two statements where one names no message",
    },
    how_to_get="Fetch the 100K size with `memsys data beam`; the larger sizes are the folders chats/500K, chats/1M and "
    f"chats/10M of the repository at commit {COMMIT[:7]}.",
)


@dataclass(frozen=True, kw_only=True)
class BeamConfig(Selection):
    """Settings of the BEAM loader; see :class:`eval.loaders.selection.Selection` for the rest.

    Attributes:
        name: the preset's name.
        folder: in the data folder, with a numbered folder per chat.
        chat_file: name of the chat in its folder. ``chat_trunecated.json`` (so spelt) is what the authors' own systems
            read where it exists; a chat without it is read from ``chat.json``.
        markers: what becomes of the generator's marker at the end of a user's message.
    """

    name: str = "beam_100k"
    folder: str = FOLDER
    chat_file: str = "chat.json"
    markers: Markers = "kept"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("markers", self.markers, get_args(Markers))
        for name in ("folder", "chat_file"):
            check_name(name, getattr(self, name), f"a {name.replace('_', ' ')}")

    @property
    def info(self) -> DatasetInfo:
        """Facts of BEAM."""
        return BEAM

    def load(self) -> LoadedData:
        """Read every chat of the folder with its questions, and select."""
        source = (
            sample_path("beam", "sample") if self.sample else find_source(BEAM, self.folder, self.path, self.data_dir)
        )
        everything, quirks, hashes = read_beam(source, self.chat_file, self.markers)
        warn_of_missing(source, BEAM, BEAM_PINS if self.folder == FOLDER and not self.sample else (), hashes)
        samples = self.apply(everything, CATEGORIES)
        return LoadedData(
            samples=samples,
            sha256=hash_of_files(dict(sorted(hashes.items()))),
            source_name=source.name,
            category_names=CATEGORIES,
            counts=count(samples),
            notes={
                "pinned": all(hashes.get(name) == pin[0] for name, pin in BEAM_PINS.items())
                and len(hashes) == len(BEAM_PINS),
                "sample": self.sample,
                "files": len(hashes),
                **dict(sorted(quirks.items())),
            },
        )


def read_beam(
    folder: Path, chat_file: str = "chat.json", markers: Markers = "kept"
) -> tuple[list[Sample], Counter[str], dict[str, str]]:
    """Read a folder of chats, in the order of their numbers.

    Returns:
        All samples, how often each irregularity was met, and the sha256 of each file by its name below the folder.

    Raises:
        DataError: no chat is there, or a file is of the wrong shape.
    """
    chats = sorted((path for path in folder.glob("*") if _numbered(path)), key=lambda path: int(path.name))
    if not chats:
        raise DataError(f"{folder}: holds no folder 1, 2, ... with a chat.json. {BEAM.how_to_get}")
    quirks: Counter[str] = Counter()
    hashes: dict[str, str] = {}
    samples = [_read_chat(chat, chat_file, markers, quirks, hashes) for chat in chats]
    return samples, quirks, hashes


def _numbered(path: Path) -> bool:
    return path.name.isascii() and path.name.isdecimal() and len(path.name) < 10 and path.is_dir()


def _read_chat(folder: Path, chat_file: str, markers: Markers, quirks: Counter[str], hashes: dict[str, str]) -> Sample:
    def read(name: str) -> JsonNode:
        node, hashes[f"{folder.name}/{name}"] = read_json(folder / name)
        return JsonNode(node.value, node.path, f"{folder.name}/{name}")

    topic = read("topic.json")
    body = read(chat_file if (folder / chat_file).is_file() else "chat.json")
    conversation = _conversation(f"beam-{folder.name}", body, markers, quirks)
    ids = {turn.turn_id for turn in conversation.turns}
    about = {"topic": topic.get("title").text(), "domain": topic.get("category").text()}
    questions, references = read_questions(read(QUESTION_FILE), conversation.conversation_id, ids, about, quirks)
    return Sample(conversation, questions, references)


def _conversation(name: str, top: JsonNode, markers: Markers, quirks: Counter[str]) -> Conversation:
    turns: list[Turn] = []
    for prefix, batch in _batches(top):
        turns += _batch_turns(prefix, batch, markers, quirks)
    if not turns:
        raise top.error("no message in any batch")
    _check_ids(top, turns)
    return Conversation(name, tuple(turns), speakers=("User", "Assistant"))


def _check_ids(top: JsonNode, turns: Sequence[Turn]) -> None:
    """Refuse a chat whose plans each begin to count again: the sources of its questions could mean any of them."""
    sessions: dict[str, str] = {}
    for turn in turns:
        if turn.turn_id in sessions:
            places = f"in {sessions[turn.turn_id]} and in {turn.session_id}"
            raise top.error(f"message id {turn.turn_id} occurs {places}; which one a question means cannot be said")
        sessions[turn.turn_id] = turn.session_id


def _batches(top: JsonNode) -> list[tuple[str, JsonNode]]:
    """Return the batches with the prefix of their session; in the 10M size they lie below ``{"plan-1": [...]}``."""
    found: list[tuple[str, JsonNode]] = []
    for node in top.elements():
        plans = {key: value for key, value in node.members().items() if key.startswith("plan-")}
        if not plans:
            found.append(("", node))
        for name, plan in plans.items():
            found += [(f"{name}:", batch) for batch in plan.elements()] if plan.value is not None else []
    return found


def _batch_turns(prefix: str, batch: JsonNode, markers: Markers, quirks: Counter[str]) -> list[Turn]:
    number = batch.get("batch_number").integer()
    session = f"{prefix}batch_{number}"
    groups = [group.elements() for group in batch.get("turns").elements()]
    date = _anchor([message for group in groups for message in group])
    turns = []
    for place, group in enumerate(groups, start=1):
        for message in group:
            text = _said(message, markers, quirks)
            speaker = read_speaker(message)
            record: dict[str, Json] = {"record": f"{session}/{place}"}
            turns.append(Turn(str(message.get("id").integer()), session, speaker, text, date, extra=record))
    return turns


def _anchor(messages: Sequence[JsonNode]) -> str:
    """Return the batch's date, from its first message: ``March-15-2024`` becomes ``March 15, 2024``."""
    found = [node.text() for message in messages if (node := message.find("time_anchor")) and node.value is not None]
    parts = found[0].split("-") if found else []
    return f"{parts[0]} {parts[1]}, {parts[2]}" if len(parts) == 3 else "".join(found[:1])


def _said(message: JsonNode, markers: Markers, quirks: Counter[str]) -> str:
    text = message.get("content").text()
    spoken, marker, _ = text.rpartition(_MARKER)
    if not marker or message.get("role").value != "user":
        return text
    quirks["markers"] += 1
    return spoken.rstrip() if markers == "removed" else text
