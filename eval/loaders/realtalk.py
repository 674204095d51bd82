"""REALTALK (Lee et al., 2025): ten real chats of 21 days between two people each, with 728 questions.

Source: github.com/danny911kr/REALTALK, ``data/Chat_*.json``. Made by LoCoMo's authors, with files like LoCoMo's; what
differs, and what is irregular, is in ``datasets/realtalk/README.md`` and is counted in ``LoadedData.notes``.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.loaders.contract import DatasetInfo, LoadedData, PinnedFile
from eval.loaders.jsonfile import JsonNode, read_json
from eval.loaders.locate import find_source, sample_path, warn_of_missing
from eval.loaders.question_types import MULTI_HOP, OPEN_DOMAIN, TEMPORAL
from eval.loaders.realtalk_evidence import TurnIds, resolve
from eval.loaders.records import hash_of_files, read_question
from eval.loaders.selection import Selection, count
from memsys.errors import DataError
from memsys.vocabulary import Conversation, Question, Reference, Sample, Turn

FOLDER = "realtalk"
_COMMIT = "b903e06a9770bf4e5fe9018c3e132889666d3b4a"
_URL = f"https://raw.githubusercontent.com/danny911kr/REALTALK/{_COMMIT}/data"
#: File -> its sha256 and size in bytes.
_PINS = {
    "Chat_1_Emi_Elise.json": ("4e947998a751a1ba2c3710fc873b90fbcbc234fda7a5e4e75db2b762e0f25a36", 236_990),
    "Chat_2_Kevin_Elise.json": ("4ac6e319c206731aa9a025c93325eb1edb43686cf39473f058c87ae7deb2d62a", 228_327),
    "Chat_3_Kevin_Paola.json": ("10c9208016538cbe7a28aafa6cfd72587b072677964c36ec242159fdf58961f2", 231_570),
    "Chat_4_Emi_Paola.json": ("80aa012ed6a918f5b317bd942b4d4811a158d27a6e07b7a5c6182994107a9367", 232_501),
    "Chat_5_Nicolas_Nebraas.json": ("32dd7c45786b1a26861dc1574a1bb698a855196fd2ae3fc0c091f3c9ab2d6d06", 466_832),
    "Chat_6_Vanessa_Nicolas.json": ("9d5ee072ab5a0667ef71d5644d7cd3a4c6777a1e6e2252bf306f310d982e40ac", 467_008),
    "Chat_7_Nebraas_Vanessa.json": ("b5716bb093217980e747dec0d98996829b569febc09587a025efc6b79806e9ce", 383_849),
    "Chat_8_Akib_Muhhamed.json": ("814f64ad7e8a46f0398f550fe84184e2ba495a292290b9ff96ffc95448280800", 364_402),
    "Chat_9_Fahim_Akib.json": ("05b9b4331bf0e25a2a64dc89c404622c83a61ab5e7c935fb7d844449caf6dd39", 400_397),
    "Chat_10_Fahim_Muhhamed.json": ("26135a9e3482f40bea4c71de570a2d994a361848111067e60587be1dd82a0127", 283_618),
}

REALTALK = DatasetInfo(
    key="realtalk",
    title="REALTALK",
    homepage="https://github.com/danny911kr/REALTALK",
    licence="no licence stated",
    citation="Lee, Maharana, Pujara, Ren, Barbieri: REALTALK: A 21-Day Real-World Dataset for Long-Term Conversation, "
    "arXiv 2502.13270, 2025",
    files=tuple(
        PinnedFile(f"{FOLDER}/{name}", sha256, size, f"{_URL}/{name}") for name, (sha256, size) in _PINS.items()
    ),
    category_names={1: "multi-hop", 2: "temporal", 3: "commonsense"},
    kinds={1: MULTI_HOP, 2: TEMPORAL, 3: OPEN_DOMAIN},
    question_counts={1: 301, 2: 319, 3: 108},
    floor_preset="realtalk",
    note_meanings={
        "evidence_strings": "entries in the questions' evidence lists",
        "evidence_strings_irregular": "of these, not the id of a turn as written",
        "evidence_strings_repaired": "of these, turns found by pattern, range or picture",
        "evidence_ranges": "first and last id of several turns",
        "evidence_of_pictures": "ids of messages that the file merged into the neighbour with the picture",
        "evidence_repeated": "ids that a question names twice",
        "evidence_ids_unresolved": "ids in evidence strings that name no turn",
        "evidence_strings_empty": "empty strings in evidence lists",
        "questions_without_evidence": "in the whole data set",
        "turn_numbers_missing": "numbers that the turns of a session leave out, before its last",
        "pictures": "turns with at least one picture",
    },
)

_FILE = re.compile(r"Chat_([0-9]{1,9})_.+\.json")
_SESSION = re.compile(r"session_(0|[1-9][0-9]{0,8})")


@dataclass(frozen=True, kw_only=True)
class RealtalkConfig(Selection):
    """Settings; see :class:`eval.loaders.selection.Selection`. ``path`` is a folder of ``Chat_*.json``, or one file.

    Attributes:
        name: the preset's name.
    """

    name: str = "realtalk"

    @property
    def info(self) -> DatasetInfo:
        """Facts of REALTALK."""
        return REALTALK

    def load(self) -> LoadedData:
        """Read the chats in the order of their numbers, and select."""
        source = (
            sample_path("realtalk", "sample")
            if self.sample
            else find_source(REALTALK, FOLDER, self.path, self.data_dir)
        )
        quirks: Counter[str] = Counter()
        hashes: dict[str, str] = {}
        everything = []
        for file in chat_files(source):
            top, hashes[file.name] = read_json(file)
            everything.append(_sample(top, file.stem, quirks))
        warn_of_missing(source, REALTALK, () if self.sample or source.is_file() else _PINS, hashes)
        samples = self.apply(everything, REALTALK.category_names)
        return LoadedData(
            samples=samples,
            sha256=hash_of_files(dict(sorted(hashes.items()))),
            source_name=source.name,
            category_names=REALTALK.category_names,
            counts=count(samples),
            notes={
                "pinned": hashes == {name: sha256 for name, (sha256, _) in _PINS.items()},
                "sample": self.sample,
                "files": hashes,
                **dict(sorted(quirks.items())),
            },
        )


def chat_files(source: Path) -> list[Path]:
    """Return the files of a folder's chats by number, or the one file.

    Raises:
        DataError: the folder has none.
    """
    if source.is_file():
        return [source]
    numbered = {path: match for path in source.glob("Chat_*.json") if (match := _FILE.fullmatch(path.name))}
    if not numbered:
        raise DataError(f"{source}: holds no Chat_<number>_<names>.json of {REALTALK.title}")
    return sorted(numbered, key=lambda path: (int(numbered[path][1]), path.name))


def _sample(top: JsonNode, name: str, quirks: Counter[str]) -> Sample:
    conversation = _conversation(top, name, quirks)
    ids = TurnIds.of(conversation.turns)
    quirks["turn_numbers_missing"] += len(ids.gaps)
    questions: list[Question] = []
    references: dict[str, Reference] = {}
    for position, item in enumerate(top.get("qa").elements()):
        question_id = f"{name}:q{position:03d}"
        questions.append(read_question(item, question_id, name, REALTALK))
        evidence, unresolved = resolve(item.get("evidence").texts(), ids, quirks)
        answer = item.get("answer").text_or_number()
        references[question_id] = Reference(question_id, (answer,), evidence, unresolved)
    return Sample(conversation, tuple(questions), references)


def _conversation(top: JsonNode, name: str, quirks: Counter[str]) -> Conversation:
    members = top.members()
    numbers = sorted(int(match[1]) for key in members if (match := _SESSION.fullmatch(key)))
    turns: list[Turn] = []
    seen: set[str] = set()
    for number in numbers:
        for item in members[f"session_{number}"].elements():
            turn = _turn(item, f"session_{number}")
            if turn.turn_id in seen:
                raise item.get("dia_id").error(f"duplicate turn id {turn.turn_id!r}")
            seen.add(turn.turn_id)
            turns.append(turn)
            quirks["pictures"] += bool(turn.extra)
    if not turns:
        raise top.error("no session with turns (keys session_<number>)")
    people = top.get("name")
    return Conversation(name, tuple(turns), (people.get("speaker_1").text(), people.get("speaker_2").text()))


def _turn(node: JsonNode, session_id: str) -> Turn:
    """Read a message. Every one has its own date, and pictures as files or addresses that nothing here opens."""
    caption = node.find("blip_caption")
    pictures = _pictures(node)
    return Turn(
        turn_id=node.get("dia_id").text(),
        session_id=session_id,
        speaker=node.get("speaker").text(),
        text=node.get("clean_text").text(),
        date_time=node.get("date_time").text(),
        caption=caption.text() if caption else "",
        extra={"img_url": True} if pictures else {},
    )


def _pictures(node: JsonNode) -> Sequence[str]:
    listed = [node.find(key) for key in ("img_file", "img_url")]
    return [name for found in listed if found for name in found.texts()]
