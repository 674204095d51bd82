"""PerLTQA's known irregularities in known numbers, and the traps that its format sets, one test each."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from eval.inspect_data import main
from eval.loaders.label_problems import LABEL_PROBLEM
from eval.loaders.locate import sample_path
from eval.loaders.perltqa import PerltqaConfig
from eval.loaders.perltqa_questions import SECTIONS
from eval.metrics.locomo import locomo_official
from eval.metrics.overlap import f1_set
from eval.scoring.protocols import load_protocol
from memsys.assets.paths import ROOT
from memsys.errors import ConfigError
from memsys.vocabulary import Question, Reference
from tests.support.composing import ingest, memory_config, parts
from tests.support.fakes import FakeModel
from tests.support.perltqa import MEMORY, QUESTIONS, MadePerltqa


def load(folder: Path, **settings: Any) -> Any:
    return PerltqaConfig(path=str(folder), **settings).load()


def test_the_published_irregularities_are_repaired_and_counted(tmp_path: Path) -> None:
    """25 relationship sections as text, 11 questions that refer to what is not there, one character without memory."""
    data = load(MadePerltqa(characters=30, asked=29, as_text=25, absent=11).write(tmp_path))
    assert data.notes["sections_from_text"] == 25
    assert "sections_unreadable" not in data.notes
    assert data.notes["unresolved_references"] == data.counts["unresolved_evidence_ids"] == 11
    assert (data.notes["characters_without_memory"], data.notes["questions_without_memory"]) == (1, 1)
    assert data.notes["characters_without_questions"] == 1
    assert data.counts["conversations"] == 29
    per_character = {"7": 1, "8": 1, "9": 12, "10": 4}
    expected = {number: 29 * count for number, count in per_character.items()}
    expected["9"] += 11
    assert data.counts["questions_by_category"] == expected
    assert data.counts["questions_without_evidence"] == 11


def test_sections_as_text_give_the_same_turns_as_objects(tmp_path: Path) -> None:
    as_text = load(MadePerltqa(as_text=4).write(tmp_path / "text"))
    as_object = load(MadePerltqa().write(tmp_path / "object"))
    assert as_text.samples == as_object.samples
    described = [t.text for t in as_text.samples[0].conversation.turns if t.session_id == "relationships"]
    assert described[0] == "Friend 0 (friend): They've known each other for 2 years."


def test_questions_with_an_absent_reference_are_asked_but_have_no_evidence(tmp_path: Path) -> None:
    data = load(MadePerltqa(absent=2).write(tmp_path))
    lost = {key: ref for sample in data.samples for key, ref in sample.references.items() if ref.unresolved_evidence}
    assert {key: ref.unresolved_evidence for key, ref in lost.items()} == {
        "Person 0|events|gone|0": ("0_9_0",),
        "Person 0|events|gone|1": ("0_9_1",),
    }
    assert all(ref.answers == ("Nothing.",) and not ref.evidence for ref in lost.values())
    asked = {question.question_id for question in data.samples[0].questions}
    assert set(lost) <= asked


def test_p1_low_support_is_marked_counted_and_never_left_out(tmp_path: Path) -> None:
    folder = MadePerltqa().write(tmp_path)
    data = load(folder)
    marked = [
        key
        for sample in data.samples
        for key, ref in sample.references.items()
        if ref.extra.get(LABEL_PROBLEM) == "low_support"
    ]
    assert len(marked) == data.notes["low_support_by_section"]["dialogues"] == 3
    assert all("|dialogues|" in key for key in marked)
    assert data.notes["low_support_by_section"]["events"] == 0
    assert data.counts["questions"] == 3 * (1 + 1 + 12 + 4)
    none = load(folder, min_support=0.0)
    assert set(none.notes["low_support_by_section"].values()) == {0}
    assert none.counts == data.counts
    with pytest.raises(ConfigError, match=r"dataset.min_support=2 must be a number from 0 to 1"):
        PerltqaConfig(min_support=2)


def test_p2_equal_questions_are_kept_apart_by_position(tmp_path: Path) -> None:
    data = load(MadePerltqa().write(tmp_path))
    first, second = (data.samples[0].references[f"Person 0|events|0_0_0|{n}"] for n in (0, 1))
    assert (first.answers, second.answers) == (("It was w0x0.",), ("It was work.",))
    assert first.extra["answers_of_same_question"] == ["It was w0x0.", "It was work."]
    assert data.notes["repeated_questions"] == 3 * 12


def test_p3_names_are_trimmed_and_nothing_else(tmp_path: Path) -> None:
    folder = MadePerltqa(without_memory=0).write(tmp_path)
    memory = json.loads((folder / MEMORY).read_text())
    memory[" Person 0 "] = memory.pop("Person 0")
    memory["person 1"] = memory.pop("Person 1")
    (folder / MEMORY).write_text(json.dumps(memory))
    data = load(folder)
    assert [sample.conversation.conversation_id for sample in data.samples] == ["Person 0", "Person 2"]
    assert data.notes["characters_without_memory"] == 1


def test_p4_a_run_without_memory_can_be_made(tmp_path: Path) -> None:
    sample = load(MadePerltqa().write(tmp_path)).samples[0]
    memory = memory_config("no_memory").build(parts(FakeModel(lambda role, values, key: "")))
    ingest(memory, sample.conversation)
    assert asyncio.run(memory.retrieve(sample.questions[0].text)).context == ""


def test_p5_and_p13_one_memory_per_asked_character(tmp_path: Path) -> None:
    data = load(MadePerltqa(characters=9, asked=2).write(tmp_path))
    assert data.notes["characters_without_questions"] == 7
    assert len(data.samples) == 2
    for number, sample in enumerate(data.samples):
        others = {turn.speaker for turn in sample.conversation.turns} - {f"Person {number}", "narrator"}
        assert not others


def test_p6_repeating_the_question_scores_high_on_full_sentences() -> None:
    assert f1_set("Person 0 is", "Person 0 is female.") == pytest.approx(6 / 7)


def test_p7_a_long_event_is_one_turn_with_one_id(tmp_path: Path) -> None:
    sample = load(MadePerltqa(words=900).write(tmp_path)).samples[0]
    assert sample.references["Person 0|events|0_0_0|0"].evidence == ("0_0_0",)
    text = next(turn.text for turn in sample.conversation.turns if turn.turn_id == "0_0_0")
    assert "w0x899" in text


def test_p9_a_number_in_the_profile_becomes_text(tmp_path: Path) -> None:
    turns = load(MadePerltqa().write(tmp_path)).samples[0].conversation.turns
    assert next(turn.text for turn in turns if turn.turn_id == "profile:Age") == "Age: 30"


def test_p10_free_text_dates_order_the_sessions(tmp_path: Path) -> None:
    """Written as May 12 2022, October 2021, 2012, "during an election", nothing, and a range from March 3 2020."""
    data = load(MadePerltqa(dialogues=1).write(tmp_path))
    turns = data.samples[0].conversation.turns
    events = [(turn.turn_id, turn.date_time) for turn in turns if turn.turn_id.startswith("0_") and "#" not in
              turn.turn_id and turn.session_id != "relationships"]  # fmt: skip
    assert events == [
        ("0_0_1", "2012"),
        ("0_0_2", ""),
        ("0_1_2", "March 3, 2020 to March 9, 2020"),
        ("0_1_0", "October 2021"),
        ("0_1_1", ""),
        ("0_0_0", "May 12, 2022"),
    ]
    assert data.notes["undated_events"] == 3 * 2
    undated = {turn.turn_id: turn for turn in turns if turn.extra.get("undated")}
    assert undated["0_1_1"].text.endswith("Time: during an election.")


def test_p11_times_within_a_line_do_not_split_it(tmp_path: Path) -> None:
    turns = load(MadePerltqa().write(tmp_path)).samples[0].conversation.turns
    line = next(turn for turn in turns if turn.turn_id == "0_0_0#0:1")
    assert (line.speaker, line.text) == ("Person 0", "At 1:00 we meet, item 0 of 12.")
    assert line.date_time == "2021-01-01 09:00"
    later = next(turn for turn in turns if turn.turn_id == "0_0_0#0:3")
    assert (later.session_id, later.date_time) == ("0_0_0#0/1", "2021-01-02 09:00")


def test_p12_curly_quotes_and_wide_marks_stay_as_they_are(tmp_path: Path) -> None:
    folder = MadePerltqa().write(tmp_path)
    questions = json.loads((folder / QUESTIONS).read_text())
    questions[0]["Person 0"]["profile"][0].update(Answer="She’s “female”，they say.")
    (folder / QUESTIONS).write_text(json.dumps(questions, ensure_ascii=False), encoding="utf-8")
    assert load(folder).samples[0].references["Person 0|profile|-|0"].answers == ("She’s “female”，they say.",)


def test_p14_no_rule_of_locomo_reaches_these_sections() -> None:
    """Its categories have other numbers: no temporal prompt, no cut at a comma or semicolon, no label of LoCoMo's."""
    locomo = load_protocol("locomo")
    assert not set(SECTIONS.values()) & {*locomo.labels, "list"}
    assert {locomo_official("a; b", "a, b", category) for category in SECTIONS} == {None}
    for name in ("clag", "perltqa"):
        reader = yaml.safe_load((ROOT / "conf" / "reader" / f"{name}.yaml").read_text())
        roles = {(reader["by_kind"] or {}).get(kind, reader["default"]) for kind in SECTIONS.values()}
        assert len(roles) == 1 and not roles & {"temporal", "adversarial", "list"}
    for name in ("clag", "xmemory"):
        protocol = load_protocol(name)
        assert [protocol.label(kind) for kind in SECTIONS.values()] == [
            "profile",
            "relationships",
            "events",
            "dialogues",
        ]


def test_p14_its_own_prompt_asks_for_a_sentence_and_knows_no_conversation_dates() -> None:
    from hydra.utils import instantiate

    reader = instantiate(yaml.safe_load((ROOT / "conf" / "reader" / "perltqa.yaml").read_text())).build(0)
    asked: list[str] = []

    class Model(FakeModel):
        async def ask(self, role: Any, values: Any, *, key: str) -> Any:
            asked.append(role.prompt.render(values))
            return await super().ask(role, values, key=key)

    question = Question("q", "Person 0", "What is Person 0's gender?", 7)
    answer = asyncio.run(
        reader.answer(Model(lambda role, values, key: "Person 0 is female."), question, Reference("q", ()), "MEMORIES")
    )
    assert answer.prediction == "Person 0 is female."
    assert "MEMORIES" in asked[0] and "sentence" in asked[0]
    assert "conversation" not in asked[0]


def test_draws_are_stratified_by_section_and_seeded(tmp_path: Path) -> None:
    folder = MadePerltqa().write(tmp_path)
    data = load(folder, per_section=2, seed=5)
    assert data.counts["questions_by_category"] == {"7": 3, "8": 3, "9": 6, "10": 6}
    assert data == load(folder, per_section=2, seed=5)
    whole = load(folder)
    for drawn, full in zip(data.samples, whole.samples, strict=True):
        assert drawn.conversation == full.conversation
        order = [question for question in full.questions if question in drawn.questions]
        assert list(drawn.questions) == order


def test_the_report_shows_what_was_met(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset=perltqa", "sample=true"]) == 0
    shown = capsys.readouterr().out
    assert "low support by section" in shown.replace("_", " ")
    assert sample_path("perltqa", "sample").is_dir()
