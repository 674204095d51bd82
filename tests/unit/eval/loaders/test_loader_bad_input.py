"""What every loader says to a bad file: the file, the place in it, and what is wrong. One row per set and fault."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from eval.loaders.bioasq import BioasqConfig
from eval.loaders.hotpotqa import HotpotqaConfig
from eval.loaders.locate import sample_path
from eval.loaders.locomo import LocomoConfig
from eval.loaders.perltqa import PerltqaConfig
from memsys.errors import DataError

Damage = Callable[[Any], object]


@dataclass(frozen=True)
class Source:
    """A sample that can be spoilt: its file or folder, the file to spoil, and the loader."""

    folder: str
    sample: str
    file: str
    config: Callable[..., Any]

    def load(self, tmp_path: Path, spoil: Callable[[str], str]) -> None:
        """Copy the sample, rewrite the text of its file, and load it."""
        source = sample_path(self.folder, self.sample)
        target = tmp_path / source.name
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
        file = target / self.file if source.is_dir() else target
        file.write_text(spoil(file.read_text(encoding="utf-8")), encoding="utf-8")
        self.config(path=str(target)).load()


LOCOMO = Source("locomo", "sample.json", "sample.json", LocomoConfig)
HOTPOTQA = Source("hotpotqa20", "sample.json", "sample.json", HotpotqaConfig)
OFFICIAL = Source(
    "hotpotqa20",
    "sample_distractor.json",
    "sample_distractor.json",
    lambda path: HotpotqaConfig(path=path, source="distractor_file", pools=1, pool_questions=1),
)
BIOASQ = Source(
    "bioasq20", "sample", "10B2_golden.json", lambda path: BioasqConfig(path=path, pools=1, pool_questions=1)
)
MEMORY = Source("perltqa", "sample", "perltmem_en_v2.json", PerltqaConfig)
QUESTIONS = Source("perltqa", "sample", "perltqa_en_v2.json", PerltqaConfig)
SOURCES = {
    "locomo": LOCOMO,
    "hotpotqa": HOTPOTQA,
    "hotpotqa official": OFFICIAL,
    "bioasq": BIOASQ,
    "perltqa memory": MEMORY,
    "perltqa questions": QUESTIONS,
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_truncated_file(tmp_path: Path, name: str, share: float) -> None:
    source = SOURCES[name]
    with pytest.raises(DataError, match=rf"{source.file}: no valid JSON at line \d+, column \d+ .*fetch it again"):
        source.load(tmp_path, lambda text: text[: int(share * len(text))])


@pytest.mark.parametrize("name", SOURCES)
def test_a_wrong_top_level(tmp_path: Path, name: str) -> None:
    source = SOURCES[name]
    with pytest.raises(DataError, match=rf"{source.file}: top level: expected (array|object), found string"):
        source.load(tmp_path, lambda text: '"a message of a proxy"')


def _repeat(key: str) -> Damage:
    """Write a key of the first object twice; only text can say that."""
    return lambda text: text.replace(f'"{key}"', f'"{key}": null, "{key}"', 1)


@pytest.mark.parametrize(
    ("source", "key", "place"),
    [
        (LOCOMO, "question", "[0].qa[0]"),
        (HOTPOTQA, "question", "[0].qa[0]"),
        (OFFICIAL, "answer", "[0]"),
        (BIOASQ, "body", "questions[0]"),
        (MEMORY, "Gender", "Mara Kessler.profile"),
        (QUESTIONS, "Answer", "[0].Tobias Lindgren.profile[0]"),
    ],
    ids=SOURCES,
)
def test_a_key_twice_in_one_object(tmp_path: Path, source: Source, key: str, place: str) -> None:
    with pytest.raises(DataError, match=re.escape(f"{source.file}: {place}: duplicate key '{key}'")):
        source.load(tmp_path, _repeat(key))  # type: ignore[arg-type]


def _swap(items: list[Any], key: str) -> None:
    """Give the second the first one's id."""
    items[1][key] = items[0][key]


FAULTS: list[tuple[str, Source, Damage, str]] = [
    # missing field
    ("missing", LOCOMO, lambda d: d[0]["qa"][3].pop("evidence"), "[0].qa[3].evidence: missing field"),
    ("missing", HOTPOTQA, lambda d: d[0]["qa"][0].pop("gold_turn_ids"), "[0].qa[0].gold_turn_ids: missing field"),
    ("missing", HOTPOTQA, lambda d: d[0]["conversation"].pop("session_0"), "[0].conversation.session_0: missing"),
    ("missing", OFFICIAL, lambda d: d[1].pop("supporting_facts"), "[1].supporting_facts: missing field"),
    ("missing", BIOASQ, lambda d: d["questions"][0].pop("type"), "questions[0].type: missing field"),
    ("missing", BIOASQ, lambda d: d["questions"][0].pop("id"), "questions[0].id: missing field"),
    (
        "missing",
        MEMORY,
        lambda d: d["Mara Kessler"]["events"]["1_0_0"].pop("Creation Time"),
        "Mara Kessler.events.1_0_0.Creation Time: missing field",
    ),
    (
        "missing",
        QUESTIONS,
        lambda d: d[0]["Tobias Lindgren"]["profile"][0].pop("Reference Memory"),
        "[0].Tobias Lindgren.profile[0].Reference Memory: missing field",
    ),
    # wrong type
    ("type", LOCOMO, lambda d: d[0].update(qa={}), "[0].qa: expected array, found object"),
    ("type", HOTPOTQA, lambda d: d[0]["qa"][0].update(answer=7), "[0].qa[0].answer: expected string, found number"),
    ("type", OFFICIAL, lambda d: d[0].update(context="x"), "[0].context: expected array, found string"),
    ("type", BIOASQ, lambda d: d["questions"][0].update(snippets={}), "questions[0].snippets: expected array, found"),
    (
        "type",
        MEMORY,
        lambda d: d["Mara Kessler"]["dialogues"]["1_0_0#1"].update(contents="x"),
        "Mara Kessler.dialogues.1_0_0#1.contents: expected object, found string",
    ),
    ("type", QUESTIONS, lambda d: d[0].update({"Tobias Lindgren": []}), "[0].Tobias Lindgren: expected object, found"),
    # duplicate id
    (
        "duplicate",
        LOCOMO,
        lambda d: _swap(d[0]["conversation"]["session_1"], "dia_id"),
        "[0].conversation.session_1[1].dia_id: duplicate turn id 'D1:1'",
    ),
    ("duplicate", HOTPOTQA, lambda d: _swap(d[0]["qa"], "question_id"), "[0].qa[1].question_id: duplicate question id"),
    ("duplicate", OFFICIAL, lambda d: _swap(d, "_id"), "[1]._id: duplicate question id 'own01'"),
    (
        "duplicate",
        BIOASQ,
        lambda d: d["questions"][0].update(id="own01"),
        "questions[0].id: duplicate question id 'own01'",
    ),
    (
        "duplicate",
        MEMORY,
        lambda d: d.update({" Mara Kessler": d["Mara Kessler"]}),
        "Mara Kessler: duplicate character 'Mara Kessler'",
    ),
    (
        "duplicate",
        MEMORY,
        lambda d: d["Mara Kessler"].update(events=[{k: v} for k, v in d["Mara Kessler"]["events"].items()] * 2),
        "Mara Kessler: duplicate ids",
    ),
    ("duplicate", QUESTIONS, lambda d: d.append(d[0]), "Tobias Lindgren: duplicate character 'Tobias Lindgren'"),
    # unknown category
    ("category", LOCOMO, lambda d: d[0]["qa"][0].update(category=0), "[0].qa[0].category: unknown category 0; known"),
    ("category", HOTPOTQA, lambda d: d[0]["qa"][0].update(category=5), "[0].qa[0].category: unknown category 5; known"),
    (
        "category",
        BIOASQ,
        lambda d: d["questions"][0].update(type="riddle"),
        "questions[0].type: unknown type 'riddle'; known are factoid, list, yesno, summary",
    ),
    (
        "category",
        QUESTIONS,
        lambda d: d[0]["Tobias Lindgren"].update(hobbies=[]),
        "[0].Tobias Lindgren.hobbies: unknown section 'hobbies'; known are profile, social_relationship",
    ),
]


@pytest.mark.parametrize(
    ("source", "damage", "message"),
    [fault[1:] for fault in FAULTS],
    ids=[f"{kind} {source.folder} {number}" for number, (kind, source, _, _) in enumerate(FAULTS)],
)
def test_a_fault_is_named_with_file_and_place(tmp_path: Path, source: Source, damage: Damage, message: str) -> None:
    def spoil(text: str) -> str:
        data = json.loads(text)
        damage(data)
        return json.dumps(data, ensure_ascii=False)

    with pytest.raises(DataError, match=f"^{re.escape(source.file)}: .*{re.escape(message)}"):
        source.load(tmp_path, spoil)


def test_every_set_is_tried_with_every_kind_of_fault() -> None:
    tried = {(kind, source.folder) for kind, source, _, _ in FAULTS}
    folders = {source.folder for source in SOURCES.values()}
    assert tried == {(kind, folder) for kind in ("missing", "type", "duplicate", "category") for folder in folders}
