"""The LoCoMo loader on the project's own sample and on small broken files."""

import copy
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.loaders.contract import DatasetConfig
from eval.loaders.locomo import LocomoConfig, read_locomo, resolve_evidence
from memsys.errors import ConfigError, DataError

SAMPLE = Path(__file__).resolve().parents[4] / "datasets" / "locomo" / "sample.json"


@pytest.fixture
def tiny() -> list[dict[str, Any]]:
    return [
        {
            "sample_id": "c",
            "conversation": {
                "speaker_a": "Ann",
                "speaker_b": "Bo",
                "session_10_date_time": "ten",
                "session_10": [{"speaker": "Bo", "dia_id": "D10:1", "text": "late"}],
                "session_2_date_time": "two",
                "session_2": [{"speaker": "Ann", "dia_id": "D2:1", "text": "early"}],
                "session_0_date_time": "zero",
                "session_0": [{"speaker": "Ann", "dia_id": "D0:1", "text": "first"}],
                "session_3_date_time": "three",
                "session_3": [],
                "session_11_date_time": "never held",
            },
            "qa": [{"question": "When?", "answer": 2022, "evidence": ["D2:1"], "category": 2}],
        }
    ]


def write(folder: Path, data: object) -> Path:
    path = folder / "locomo10.json"
    path.write_text(json.dumps(data))
    return path


def test_sessions_are_ordered_by_number_and_dates_without_session_are_left(tmp_path: Path, tiny: Any) -> None:
    samples, quirks, _ = read_locomo(write(tmp_path, tiny))
    turns = samples[0].conversation.turns
    assert [(turn.turn_id, turn.session_id, turn.date_time) for turn in turns] == [
        ("D0:1", "session_0", "zero"),
        ("D2:1", "session_2", "two"),
        ("D10:1", "session_10", "ten"),
    ]
    assert samples[0].conversation.speakers == ("Ann", "Bo")
    assert quirks["dates_without_session"] == 1
    assert quirks["empty_sessions"] == 1


def test_number_answers_become_text(tmp_path: Path, tiny: Any) -> None:
    samples, quirks, _ = read_locomo(write(tmp_path, tiny))
    assert samples[0].references["c:q000"].answers == ("2022",)
    assert quirks["number_answers"] == 1


@pytest.mark.parametrize(
    ("strings", "resolved", "unresolved", "irregular"),
    [
        (["D1:1"], ("D1:1",), (), 0),
        (["D1:1; D2:3"], ("D1:1", "D2:3"), (), 1),
        (["D1:1 D2:3  D10:12"], ("D1:1", "D2:3", "D10:12"), (), 1),
        (["D02:03"], ("D2:3",), (), 1),
        (["D:10:12"], ("D10:12",), (), 1),
        (["D"], (), ("D",), 1),
        (["D1:99"], (), ("D1:99",), 1),
        (["D1:1; D1:99"], ("D1:1",), ("D1:99",), 1),
        (["D2:3", "D2:3"], ("D2:3",), (), 0),
        ([], (), (), 0),
    ],
)
def test_evidence_strings_are_repaired(
    strings: list[str], resolved: tuple[str, ...], unresolved: tuple[str, ...], irregular: int
) -> None:
    known = {turn_id: turn_id for turn_id in ("D1:1", "D2:3", "D10:12")}
    quirks: Counter[str] = Counter()
    assert resolve_evidence(strings, known, quirks) == (resolved, unresolved)
    assert quirks["evidence_strings_irregular"] == irregular
    assert quirks["evidence_ids_unresolved"] == len(unresolved)
    assert quirks["questions_without_evidence"] == (not resolved)


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), max_size=6), st.sampled_from(["; ", " ", ", "]))
def test_joined_ids_resolve_like_a_list_of_ids(pairs: list[tuple[int, int]], separator: str) -> None:
    ids = [f"D{session}:{turn}" for session, turn in pairs]
    known = {f"D{s}:{t}": f"D{s}:{t}" for s in range(1, 4) for t in range(1, 4)}
    joined = [separator.join(ids)] if ids else []
    assert resolve_evidence(joined, known, Counter()) == resolve_evidence(ids, known, Counter())


BREAKAGES = [
    (lambda d: d[0]["qa"][0].update(question=7), "[0].qa[0].question: expected string, found number"),
    (lambda d: d[0]["qa"][0].pop("answer"), "[0].qa[0].answer: missing field"),
    (lambda d: d[0]["qa"][0].update(answer=None), "[0].qa[0].answer: expected string or number, found null"),
    (lambda d: d[0]["qa"][0].update(category=6), "[0].qa[0].category: unknown category 6"),
    (lambda d: d[0]["qa"][0].update(category=5), "[0].qa[0].adversarial_answer: missing field"),
    (lambda d: d[0]["qa"][0].update(evidence="D2:1"), "[0].qa[0].evidence: expected array, found string"),
    (lambda d: d[0].pop("sample_id"), "[0].sample_id: missing field"),
    (lambda d: d[0]["conversation"].pop("session_2_date_time"), "[0].conversation.session_2_date_time: missing field"),
    (
        lambda d: d[0]["conversation"]["session_10"][0].update(dia_id="D2:1"),
        "[0].conversation.session_10[0].dia_id: duplicate turn id 'D2:1'",
    ),
    (
        lambda d: d[0]["conversation"]["session_2"][0].update(blip_caption=["x"]),
        "[0].conversation.session_2[0].blip_caption: expected string, found array",
    ),
    (lambda d: d.append(copy.deepcopy(d[0])), "[0].sample_id: duplicate id 'c'"),
    (lambda d: d[0].update(conversation={}), "[0].conversation: no session with turns"),
    (lambda d: d.__setitem__(0, "x"), "[0]: expected object, found string"),
]


@pytest.mark.parametrize(("damage", "message"), BREAKAGES, ids=[message for _, message in BREAKAGES])
def test_bad_files_are_refused_with_file_and_place(tmp_path: Path, tiny: Any, damage: Any, message: str) -> None:
    damage(tiny)
    with pytest.raises(DataError, match=re.escape(f"locomo10.json: {message}")):
        read_locomo(write(tmp_path, tiny))


def test_image_queries_stand_behind_text_and_caption_where_the_preset_asks_for_them(tmp_path: Path, tiny: Any) -> None:
    turn = tiny[0]["conversation"]["session_2"][0]
    turn.update(text="Look", query="red kayak", blip_caption="a boat", speaker="Ann")
    path = str(write(tmp_path, tiny))

    def shown(**settings: Any) -> str:
        config = LocomoConfig(path=path, **settings)
        turns = config.load().samples[0].conversation.turns
        return next(config.turn_format.render(each) for each in turns if each.extra.get("image_query"))

    assert shown() == "Ann: Look [shares a boat]"
    assert shown(turn_queries="all") == "Ann: Look [shares a boat] [searched for red kayak]"
    assert shown(turn_queries="all", turn_captions="none") == "Ann: Look [searched for red kayak]"
    assert shown(turn_queries="all", turn_style="bare") == "Look [shares a boat] [searched for red kayak]"
    assert re.fullmatch(r"Ann \(D2:\d+\): Look", shown(turn_style="with_id", turn_captions="none"))
    clag = shown(turn_queries="all", turn_style="clag", turn_captions="all")
    assert clag == "Speaker Annsays : [Image: a boat] Look [searched for red kayak]"


def test_a_missing_file_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"locomo10.json: no such file.*memsys data locomo.*MEMSYS_DATA.*sample=true"):
        LocomoConfig(data_dir=str(tmp_path)).load()


def test_the_data_folder_comes_from_the_environment(tmp_path: Path, tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, tiny)
    monkeypatch.setenv("MEMSYS_DATA", str(tmp_path))
    data = LocomoConfig().load()
    assert data.source_name == "locomo10.json"
    assert data.notes["pinned"] is False
    assert len(data.sha256) == 64


def test_the_config_is_what_the_contract_asks_for() -> None:
    config: DatasetConfig = LocomoConfig(turn_style="clag", turn_captions="with_img_url")
    assert (config.name, config.turn_format.style, config.turn_format.captions) == ("locomo", "clag", "with_img_url")
    assert config.info.category_names[4] == "single-hop"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"turn_style": "fancy"}, "turn_style='fancy' is unknown"),
        ({"turn_captions": "some"}, "turn_captions='some' is unknown"),
        ({"turn_queries": "some"}, "turn_queries='some' is unknown"),
        ({"labels": "mine"}, "dataset.labels='mine' is unknown"),
        ({"limit_questions": 0}, "dataset.limit_questions=0 must be a whole number from 1"),
        ({"limit_conversations": "all"}, "dataset.limit_conversations='all' must be"),
        ({"conversations": "conv-26"}, "dataset.conversations='conv-26' must be a list"),
        ({"categories": "temporal"}, "dataset.categories='temporal' must be a list of kinds or of their numbers"),
        ({"categories": [1.0]}, "must be a list of kinds or of their numbers"),
        ({"sample": True, "path": "x.json"}, "leave path and data_dir null"),
    ],
)
def test_bad_settings_are_refused(settings: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        LocomoConfig(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"conversations": ["conv-1"]}, "choose from sample-1"),
        (
            {"categories": [9]},
            r"\[9\] not in this data set; choose from 1 \(multi_hop\), 2 \(temporal\), 3 \(open_domain\)",
        ),
        (
            {"categories": ["temporl", 1]},
            r"dataset.categories: \['temporl'\] not in this data set; choose from 1 \(multi_",
        ),
        ({"labels": "audited"}, "needs the published locomo10.json"),
    ],
)
def test_selections_of_what_is_not_there_are_refused(settings: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        LocomoConfig(sample=True, **settings).load()


@pytest.mark.parametrize("kinds", [["multi-hop", "temporal"], ["multi_hop", 2], ["Temporal", "Multi hop", 1]])
def test_categories_are_picked_by_kind(kinds: list[str | int]) -> None:
    """Numbers alone were taken, which mean something else in every data set."""
    by_number = LocomoConfig(sample=True, categories=[1, 2]).load()
    by_kind = LocomoConfig(sample=True, categories=kinds).load()
    assert by_kind.samples == by_number.samples


def test_the_sample_has_every_quirk() -> None:
    data = LocomoConfig(sample=True).load()
    assert data.counts == {
        "conversations": 1,
        "sessions": 6,
        "turns": 73,
        "turns_per_conversation": [73],
        "questions": 34,
        "questions_by_category": {"1": 7, "2": 7, "3": 4, "4": 10, "5": 6},
        "captions": 7,
        "captions_with_img_url": 4,
        "evidence_ids": 47,
        "unresolved_evidence_ids": 2,
        "questions_without_evidence": 1,
    }
    assert {key: value for key, value in data.notes.items() if value} == {
        "sample": True,
        "adversarial_with_answer": 1,
        "adversarial_without_answer": 5,
        "dates_without_session": 1,
        "evidence_ids_unresolved": 2,
        "evidence_strings": 48,
        "evidence_strings_irregular": 5,
        "evidence_strings_repaired": 3,
        "number_answers": 1,
        "questions_without_evidence": 1,
    }
    references = data.samples[0].references
    assert references["sample-1:q005"].evidence == ("D1:3", "D2:4")
    assert references["sample-1:q027"].unresolved_evidence == ("D6:19",)
    traps = [reference for reference in references.values() if reference.adversarial_answer is not None]
    assert sorted(len(reference.answers) for reference in traps) == [0, 0, 0, 0, 0, 1]


def test_sample_text_holds_no_list_field_of_the_file() -> None:
    turn = LocomoConfig(sample=True).load().samples[0].conversation.turns[2]
    assert (turn.turn_id, turn.caption, dict(turn.extra)) == (
        "D1:3",
        "a small green wooden boat on a rusty trailer",
        {"img_url": True, "image_query": "small green wooden"},
    )


def test_limits_spread_over_what_the_category_filter_left() -> None:
    data = LocomoConfig(sample=True, categories=[5, 1], limit_questions=3).load()
    assert [question.question_id for question in data.samples[0].questions] == [
        "sample-1:q005",
        "sample-1:q025",
        "sample-1:q029",
    ]
    assert set(data.samples[0].references) == {question.question_id for question in data.samples[0].questions}
    assert len(data.samples[0].conversation.turns) == 73


def test_two_loads_are_equal() -> None:
    assert LocomoConfig(sample=True).load() == LocomoConfig(sample=True).load()


def test_limited_sessions_keep_the_questions_they_answer() -> None:
    whole = LocomoConfig(sample=True).load().samples[0]
    part = LocomoConfig(sample=True, limit_sessions=3).load().samples[0]
    assert {turn.session_id for turn in part.conversation.turns} == {"session_1", "session_2", "session_3"}
    known = {turn.turn_id for turn in part.conversation.turns}
    expected = [
        question
        for question in whole.questions
        if whole.references[question.question_id].evidence
        and set(whole.references[question.question_id].evidence) <= known
    ]
    assert list(part.questions) == expected
    assert 0 < len(expected) < len(whole.questions)
    assert set(part.references) == {question.question_id for question in expected}


def test_a_part_of_the_set_may_lie_in_a_file_of_another_name(tmp_path: Path) -> None:
    top = json.loads(SAMPLE.read_text(encoding="utf-8"))
    top[0]["qa"] = top[0]["qa"][:3]
    (tmp_path / "part.json").write_text(json.dumps(top), encoding="utf-8")
    data = LocomoConfig(data_dir=str(tmp_path), file="part.json").load()
    assert data.counts["questions"] == 3 and data.source_name == "part.json" and data.notes["pinned"] is False
    with pytest.raises(DataError, match=r"other.json: no such file.*preset in conf/dataset says where it comes from"):
        LocomoConfig(data_dir=str(tmp_path), file="other.json").load()
