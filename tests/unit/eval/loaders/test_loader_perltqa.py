"""PerLTQA: memories laid out in time, questions joined to what they refer to."""

import datetime
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.inspect_data import read_config
from eval.loaders.contract import DatasetConfig
from eval.loaders.locate import sample_path
from eval.loaders.perltqa import PerltqaConfig, read_perltqa
from eval.loaders.perltqa_memory import NARRATOR, said
from eval.loaders.perltqa_questions import QuestionEntry, referenced_items, support
from eval.loaders.perltqa_time import parse_fuzzy
from eval.results.frame import load_run
from eval.run import run_one
from eval.running.composed import compose_plan
from memsys.errors import ConfigError, DataError
from memsys.index.words import TOKENIZER
from tests.support.sample_run import retrieval_run
from tests.support.stub_process import attached
from tests.support.stub_server import StubServer

ALL: Any = ("profile", "relationships", "events", "dialogues")
MEMORY, QUESTIONS = "perltmem_en_v2.json", "perltqa_en_v2.json"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("May 12, 2022", (2022, 5, 12, 0, 0)),
        ("May 12th 2022", (2022, 5, 12, 0, 0)),
        ("12 May 2022", (2022, 5, 12, 0, 0)),
        ("October 2021", (2021, 10, 1, 0, 0)),
        ("Sept. 2021", (2021, 9, 1, 0, 0)),
        ("2012", (2012, 1, 1, 0, 0)),
        ("the autumn of 2012", (2012, 1, 1, 0, 0)),
        ("2022-03-10 08:30", (2022, 3, 10, 8, 30)),
        ("2022/3/1", (2022, 3, 1, 0, 0)),
        ("2022-03", (2022, 3, 1, 0, 0)),
        ("June 3-5, 2019", (2019, 6, 3, 0, 0)),
        ("June 28 - July 2, 2019", (2019, 6, 28, 0, 0)),
        ("March to May 2019", (2019, 3, 1, 0, 0)),
        ("from 2010 to 2012", (2010, 1, 1, 0, 0)),
        ("May 1, 2018 - June 2, 2019", (2018, 5, 1, 0, 0)),
        ("1920-10-20 10:00", (1920, 10, 20, 10, 0)),
        ("during an election", None),
        ("", None),
        ("February 30, 2020", None),
        ("May 12", None),
        ("2022年5月12日", (2022, 5, 12, 0, 0)),
        ("2021年10月", (2021, 10, 1, 0, 0)),
        ("2012年", (2012, 1, 1, 0, 0)),
        ("2019年3月8日至10日", (2019, 3, 8, 0, 0)),
        ("某个秋天", None),
    ],
)
def test_dates(text: str, moment: object) -> None:
    assert parse_fuzzy(text) == moment


@given(st.dates(min_value=datetime.date(1900, 1, 1), max_value=datetime.date(2099, 1, 1)))
def test_every_written_form_of_a_date_means_the_same(date: Any) -> None:
    expected = (date.year, date.month, date.day, 0, 0)
    forms = (date.isoformat(), f"{date:%B} {date.day}, {date.year}", f"{date.day} {date:%b} {date.year}")
    assert [parse_fuzzy(form) for form in forms] == [expected] * 3


def test_the_sample_has_every_quirk() -> None:
    config: DatasetConfig = PerltqaConfig(sample=True)
    data = config.load()
    assert data.counts["questions_by_category"] == {"7": 5, "8": 4, "9": 4, "10": 4}
    assert data.counts["turns_per_conversation"] == [13, 23]
    assert data.notes == {
        "pinned": False,
        "sizes_as_published": False,
        "sample": True,
        "characters_without_memory": 1,
        "characters_without_questions": 1,
        "empty_profile_fields": 12,
        "lines_without_speaker": 1,
        "low_support_by_section": {"dialogues": 1, "events": 0, "profile": 0, "social_relationship": 0},
        "questions_without_answer_dropped": 1,
        "questions_without_memory": 1,
        "repeated_questions": 2,
        "sections_from_text": 1,
        "undated_dialogue_blocks": 0,
        "undated_events": 2,
        "unreadable_references": 1,
        "unresolved_references": 3,
    }


def test_memories_stand_in_time_and_undated_ones_beside_their_siblings() -> None:
    mara = PerltqaConfig(sample=True, conversations=["Mara Kessler"]).load().samples[0].conversation
    sessions = list(dict.fromkeys(turn.session_id for turn in mara.turns))
    assert sessions == [
        "profile",
        "relationships",
        "1_1_0#2/0",
        "1_3_0",
        "1_1_0",
        "1_0_0",
        "1_0_1",
        "1_0_0#1/0",
        "1_0_0#1/1",
    ]
    undated = next(turn for turn in mara.turns if turn.turn_id == "1_0_1")
    assert (undated.date_time, undated.extra["undated"]) == ("", True)
    assert undated.text.endswith("Theme: Family help. Time: during the harvest.")
    age = next(turn for turn in mara.turns if turn.turn_id == "profile:Age")
    assert (age.speaker, age.text) == ("Mara Kessler", "Age: 41")


def test_dialogue_lines_and_html_entities() -> None:
    mara = PerltqaConfig(sample=True, conversations=["Mara Kessler"]).load().samples[0].conversation
    text = {turn.turn_id: (turn.speaker, turn.text) for turn in mara.turns}
    assert text["1_0_0#1:1"] == ("Ruben Kessler", "We start at 10:00 with the gutter, then we are done.")
    assert text["1_0_0#1:3"] == ("Mara Kessler", "Dry as a malt loft. She laughs and pours him a beer.")
    assert text["profile:Achievements"][1].endswith("brewers' fair")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["A: x", "B: y: z"], [("A", "x"), ("B", "y: z")]),
        (["no speaker"], [("narrator", "no speaker")]),
        (["A: x", "at 10:00 sharp"], [("A", "x at 10:00 sharp")]),
        (["A: x", "Really? I think so: yes"], [("A", "x Really? I think so: yes")]),
    ],
)
def test_lines_are_split_at_their_first_colon(lines: list[str], expected: list[tuple[str, str]]) -> None:
    assert said(lines, Counter()) == expected


@pytest.mark.parametrize(
    ("section", "reference", "items"),
    [
        ("profile", "Gender", ["profile:Gender"]),
        ("events", "['4_0_0']", ["4_0_0"]),
        ("events", "['4_0_0', ' 4_0_1', '4_0_0']", ["4_0_0", "4_0_1"]),
        ("dialogues", "['4_7_0#17']", ["4_7_0#17"]),
        ("events", "4_0_0, 4_0_1", ["4_0_0", "4_0_1"]),
        ("events", "['4_0_0'", ["['4_0_0'"]),
        ("events", "[__import__('os')]", ["[__import__('os')]"]),
        ("events", "", []),
    ],
)
def test_references_are_read_but_never_run(section: str, reference: str, items: list[str]) -> None:
    assert referenced_items(QuestionEntry(section, "g", 0, "q", "a", reference), Counter()) == items


def test_evidence_is_every_turn_of_the_items() -> None:
    data = PerltqaConfig(sample=True).load()
    references = {key: ref for sample in data.samples for key, ref in sample.references.items()}
    both = references["Mara Kessler|events|1_0_0|0"]
    lines = ["1_0_0#1:0", "1_0_0#1:1", "1_0_0#1:2", "1_0_0#1:3"]
    assert both.extra["evidence_items"] == {"1_0_0": ["1_0_0"], "1_0_0#1": lines}
    assert both.extra["evidence_items_lenient"] == {"1_0_0": ["1_0_0", *lines]}
    assert both.evidence == ("1_0_0", "1_0_0#1:0", "1_0_0#1:1", "1_0_0#1:2", "1_0_0#1:3")
    assert references["Mara Kessler|social_relationship|1_2|0"].unresolved_evidence == ("1_2",)
    assert references["Mara Kessler|social_relationship|1_1|1"].extra["answers_of_same_question"] == [
        "Mara Kessler's rowing partner is Edda Voss.",
        "It is Edda, who keeps bees.",
    ]
    for sample in data.samples:
        ids = {turn.turn_id for turn in sample.conversation.turns}
        assert all(set(reference.evidence) <= ids for reference in sample.references.values())


def test_support_counts_what_the_answer_adds() -> None:
    entry = QuestionEntry("dialogues", "g", 0, "What does Bo buy?", "Bo plans to buy a red drone.", "")
    assert support(entry, "They spoke of a red kite.") == round(1 / 3, 3)
    assert support(entry, "Bo plans a red drone") == 1.0
    assert support(QuestionEntry("dialogues", "g", 0, "Is it Bo?", "It is Bo.", ""), "nothing") == 1.0


def test_sources_choose_what_is_ingested() -> None:
    data = PerltqaConfig(sample=True, sources=["profile", "profile_description"]).load()
    assert {turn.session_id for sample in data.samples for turn in sample.conversation.turns} == {"profile"}
    assert data.samples[1].conversation.turns[-1].turn_id == "profile_description"
    assert data.counts["questions"] == 17


def test_a_draw_per_section_is_seeded_and_stratified() -> None:
    data = PerltqaConfig(sample=True, per_section=1, seed=1).load()
    assert data.counts["questions_by_category"] == {"7": 2, "8": 2, "9": 2, "10": 2}
    assert data == PerltqaConfig(sample=True, per_section=1, seed=1).load()
    draws = {
        tuple(
            q.question_id
            for sample in PerltqaConfig(sample=True, per_section=1, seed=seed).load().samples
            for q in sample.questions
        )
        for seed in range(6)
    }
    assert len(draws) > 1


def test_the_original_layout_gives_the_same_samples(tmp_path: Path) -> None:
    folder = sample_path("perltqa", "sample")
    memory = json.loads((folder / MEMORY).read_text())
    questions = json.loads((folder / QUESTIONS).read_text())
    for record in memory.values():
        for section in ("events", "dialogues"):
            record[section] = [{key: value} for key, value in record[section].items()]
    for entry in questions:
        for sections in entry.values():
            sections["social relationship"] = sections.pop("social_relationship")
    (tmp_path / "m.json").write_text(json.dumps(list(memory.values())))
    (tmp_path / "q.json").write_text(json.dumps({name: value for entry in questions for name, value in entry.items()}))
    v1 = read_perltqa(tmp_path / "m.json", tmp_path / "q.json", ALL)
    v2 = read_perltqa(folder / MEMORY, folder / QUESTIONS, ALL)
    assert v1[:2] == v2[:2]
    assert v1[2] != v2[2]


def test_relationships_without_ids_are_numbered(tmp_path: Path) -> None:
    memory = json.loads((sample_path("perltqa", "sample") / MEMORY).read_text())
    memory["Mara Kessler"]["social_relationship"] = list(memory["Mara Kessler"]["social_relationship"].values())
    memory["Tobias Lindgren"]["social_relationship"] = "{broken"
    (tmp_path / MEMORY).write_text(json.dumps(memory))
    samples, quirks, _ = read_perltqa(tmp_path / MEMORY, sample_path("perltqa", "sample") / QUESTIONS, ALL)
    ids = [turn.turn_id for turn in samples[1].conversation.turns if turn.session_id == "relationships"]
    assert ids == ["relationship:0", "relationship:1", "relationship:2"]
    assert quirks["sections_unreadable"] == 1


BREAKAGES = [
    (MEMORY, lambda d: d["Mara Kessler"].pop("profile"), "perltmem_en_v2.json: Mara Kessler.profile: missing field"),
    (
        MEMORY,
        lambda d: d["Mara Kessler"]["events"]["1_0_0"].pop("content"),
        "Mara Kessler.events.1_0_0.content: missing field",
    ),
    (
        MEMORY,
        lambda d: d["Mara Kessler"]["profile"].update(Age=None),
        "Mara Kessler.profile.Age: expected string or number, found null",
    ),
    (
        QUESTIONS,
        lambda d: d[0]["Tobias Lindgren"]["profile"][0].update(Question=1),
        "perltqa_en_v2.json: [0].Tobias Lindgren.profile[0].Question: expected string, found number",
    ),
    (QUESTIONS, lambda d: d[0].update({"Tobias Lindgren": 3}), "[0].Tobias Lindgren: expected object, found number"),
]


@pytest.mark.parametrize(("name", "damage", "message"), BREAKAGES, ids=[message for _, _, message in BREAKAGES])
def test_bad_files_are_refused(tmp_path: Path, name: str, damage: Any, message: str) -> None:
    for file in (MEMORY, QUESTIONS):
        data = json.loads((sample_path("perltqa", "sample") / file).read_text())
        if file == name:
            damage(data)
        (tmp_path / file).write_text(json.dumps(data))
    with pytest.raises(DataError, match=re.escape(message)):
        PerltqaConfig(path=str(tmp_path)).load()


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"dataset.sources='diary' is unknown"):
        PerltqaConfig(sources=["diary"])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="must be a list of profile"):
        PerltqaConfig(sources="events")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"dataset.per_section=0 must be"):
        PerltqaConfig(per_section=0)


def test_a_missing_file_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "perltqa").mkdir()
    with pytest.raises(DataError, match=r"perltmem_en_v2.json: no such file.*memsys data perltqa.*sample=true"):
        PerltqaConfig(data_dir=str(tmp_path)).load()


def test_the_chinese_sample_is_read_like_the_english_one() -> None:
    config: DatasetConfig = read_config("perltqa_zh_sample", {})
    data = config.load()
    assert data.source_name == "perltmem.json, perltqa.json"
    assert {key: data.notes[key] for key in ("characters_without_memory", "characters_without_questions")} == {
        "characters_without_memory": 1,
        "characters_without_questions": 1,
    }
    assert data.notes["unresolved_references"] == 0 and set(data.notes["low_support_by_section"].values()) == {0}
    turns = data.samples[0].conversation.turns
    assert [(turn.speaker, turn.text) for turn in turns if turn.session_id == "1_0_0#1/0"] == [
        ("赵明远", "明慧，屋顶总算不漏了，晚上10:00以后的雨声都变小了。"),
        ("赵明慧", "剩下的八片瓦放在你家后院的水缸旁边。"),
        ("赵明远", "好，我明天用Excel记一下库存。"),
    ]
    assert next(turn.text for turn in turns if turn.turn_id == "1_0_0#1:3").endswith("做的。 她说下次多放一点蜂蜜。")
    dated = list(dict.fromkeys(turn.session_id.partition("/")[0] for turn in turns if turn.date_time))
    assert dated == ["1_1_0", "1_1_0#2", "1_0_1", "1_0_0", "1_0_0#1"]  # by time, not by id


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("张三:你好", ("张三", "你好")),
        ("Tom:你好：再见", ("Tom", "你好：再见")),
        ("AI助手：10:00见", ("AI助手", "10:00见")),
        ("张三: OK", ("张三", "OK")),
        ("At 10:00 we meet", (NARRATOR, "At 10:00 we meet")),
        ("他问：“去吗？”", ("他问", "“去吗？”")),
        ("走吧，张三:快点", (NARRATOR, "走吧，张三:快点")),
    ],
)
def test_speakers_of_lines_in_chinese(line: str, expected: tuple[str, str]) -> None:
    assert said([line], Counter()) == [expected]


def test_the_chinese_sample_runs_from_words_to_scores(tmp_path: Path) -> None:
    found = load_run(retrieval_run(tmp_path, "bm25_turn", "dataset=perltqa_zh_sample", "dataset.limit_questions=null"))
    scores = found.scores()
    assert found.record["tokenizer"] == TOKENIZER and len(scores) == 17
    assert scores["recall@10_items"].mean() == 1.0
    assert all(hit["score"] > 0 for hits in found.retrievals()["hits"] for hit in hits[:1])
    with StubServer() as server:
        plan = compose_plan([
            "dataset=perltqa_zh_sample", "memory=bm25_turn", "embedder=hashing", "reader=perltqa_zh",
            "protocol=xmemory", "scoring.metrics=[f1_set]", *attached(server.url), "use_cache=false",
            f"run_dir={tmp_path / 'answers'}",
        ])  # fmt: skip
        path, code = run_one(plan)
        assert code == 0 and "问题：" in server.prompts()[0]
    answered = load_run(Path(path))
    assert {"f1_set", "f1_mixed", "rougeL_mixed"} <= set(answered.scores().columns)
    assert json.loads((Path(path) / "scores_meta.json").read_text())["unsplit"] == {"f1_set": 17}
