"""Changed data: what is added where, by seed and with a benign twin, and how far attacks came, by hand."""

import csv
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path

import pytest

from eval.api.parts import composed
from eval.config.compose import without_hydra
from eval.loaders.custom import CustomConfig
from eval.loaders.locomo import LocomoConfig
from eval.loaders.stress import KINDS, NO_TWIN, InapplicableError, StressedDataset, StressSettings
from eval.loaders.stress.attacks import other_number
from eval.metrics.attacks import ATTACK, Attack, Piece, attack_scores
from eval.metrics.evidence import TURN_RECALL
from eval.results.stored_run import StoredRun
from eval.results.stress.differences import PLAIN as AS_IT_IS
from eval.results.stress.facts import changed_facts
from eval.results.stress.tables import StressedSystem, change_tables, data_table, lost_table, remarks
from eval.running.composed import make_plan
from eval.running.plan import Plan, identity_of
from eval.runs.records import HitRecord, ReferenceRecord, RetrievalRecord, ScoreRow
from eval.stress import main
from memsys.errors import ConfigError
from memsys.vocabulary import OVERRULED, Sample, Turn
from tests.support.stub_process import attached
from tests.support.stub_server import stub

SAMPLE = LocomoConfig(name="locomo_sample", sample=True)
PLAIN = SAMPLE.load().samples[0]


def changed(kind: str, *, twin: bool = False, amount: int = 1, seed: int = 0) -> list[Sample]:
    return list(StressedDataset(SAMPLE, StressSettings(kind, twin, amount), seed).load().samples)


def added(sample: Sample) -> list[Turn]:
    known = {turn.turn_id for turn in PLAIN.conversation.turns}
    return [turn for turn in sample.conversation.turns if turn.turn_id not in known]


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_is_the_same_for_a_seed_and_keeps_what_it_does_not_name(kind: str) -> None:
    first = changed(kind)
    assert first == changed(kind)
    ids = [turn.turn_id for turn in first[-1].conversation.turns]
    assert len(ids) == len(set(ids)) and {turn.turn_id for turn in PLAIN.conversation.turns} <= set(ids)
    asked = {question.question_id for question in PLAIN.questions} & set(first[-1].references)
    assert len(asked) >= len(PLAIN.questions) - (8 if kind in ("contradicted", "long_gaps") else 0)
    assert all(set(gold.evidence) <= set(ids) for gold in first[-1].references.values())


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in NO_TWIN])
def test_a_twin_adds_as_many_turns_at_the_same_places(kind: str) -> None:
    pairs = zip(changed(kind), changed(kind, twin=True), strict=True)
    for harmful, harmless in pairs:
        assert [turn.turn_id for turn in harmful.conversation.turns] == [
            turn.turn_id for turn in harmless.conversation.turns
        ]


#: Beginnings of the checksums of the sample as each change makes it. Where one changes, its kind's version
#: (``eval.loaders.stress.VERSIONS``) has to be counted up, so that runs on the former data are not taken for it.
CONTENTS = {
    "duplicates": "b0b1fcf5",
    "near_duplicates": "2c9d21d3",
    "noise": "acbacd34",
    "other_scripts": "510d0af8",
    "shuffled_sessions": "ed181986",
    "missing_dates": "777fde74",
    "swapped_speakers": "6ca4bd96",
    "long_gaps": "54228a5d",
    "contradicted": "39fba181",
    "withdrawn": "f4d7712f",
    "poison": "2755d317",
    "two_users": "90b19256",
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_that_makes_other_data_has_another_version(kind: str) -> None:
    text = "".join(
        f"{turn.turn_id} {turn.session_id} {turn.speaker} {turn.date_time} {turn.text}"
        for sample in changed(kind)
        for turn in sample.conversation.turns
    )
    gold = "".join(
        f"{name} {gold.answers} {gold.evidence}" for one in changed(kind) for name, gold in one.references.items()
    )
    assert hashlib.sha256(f"{text} {gold}".encode()).hexdigest()[:8] == CONTENTS[kind]


def test_benign_changes() -> None:
    (noisy,) = changed("noise", amount=20)
    assert len(noisy.conversation.turns) == 21 * len(PLAIN.conversation.turns)
    gold = {turn for reference in PLAIN.references.values() for turn in reference.evidence}
    texts = {turn.text for turn in PLAIN.conversation.turns if turn.turn_id not in gold}
    (repeated,) = changed("duplicates")
    assert added(repeated) and {turn.text for turn in added(repeated)} <= texts
    (undated,) = changed("missing_dates")
    assert {turn.date_time for turn in undated.conversation.turns} == {""}
    (shuffled,) = changed("shuffled_sessions")
    assert shuffled.conversation.turns != PLAIN.conversation.turns
    by_id = sorted(shuffled.conversation.turns, key=lambda turn: turn.turn_id)
    assert by_id == sorted(PLAIN.conversation.turns, key=lambda turn: turn.turn_id)
    (swapped,) = changed("swapped_speakers")
    pairs = zip(PLAIN.conversation.turns, swapped.conversation.turns, strict=True)
    moved = {old.session_id for old, new in pairs if old.speaker != new.speaker}
    assert len(moved) == 3 and {turn.speaker for turn in swapped.conversation.turns} == {"Ingrid", "Mateo"}
    (late,) = changed("long_gaps")
    assert "2052" in late.conversation.turns[-1].date_time and "2024" in late.conversation.turns[0].date_time
    asked = {question.text: late.references[question.question_id].answers for question in late.questions}
    assert asked["When does the lease of the kiosk start?"] == ("1 October, 2052",)
    assert asked["When did Mateo leave the hotel kitchen?"] == ("29 January, 2024",)


def test_a_fact_that_changes_is_what_is_asked_for() -> None:
    (harmful,), (harmless,) = changed("contradicted"), changed("contradicted", twin=True)
    for sample, is_new in ((harmful, True), (harmless, False)):
        texts = {turn.turn_id: turn.text for turn in sample.conversation.turns}
        aimed = [gold for gold in sample.references.values() if OVERRULED in gold.extra]
        assert len(aimed) == 6 and sample.updates is not None and len(sample.updates) == 6
        for gold in aimed:
            before = PLAIN.references[gold.question_id]
            assert gold.extra[OVERRULED] == list(before.evidence)
            assert gold.answers[0].lower() in texts[gold.evidence[0]].lower()
            assert (gold.answers != before.answers) == is_new


def test_a_wrong_answer_has_the_form_of_the_right_one() -> None:
    (sample,) = changed("contradicted")
    wrong = {
        PLAIN.references[name].answers[0]: gold.answers[0]
        for name, gold in sample.references.items()
        if OVERRULED in gold.extra
    }
    assert re.fullmatch("199[0-9]", wrong["1998"]) and wrong["1998"] != "1998"
    assert wrong["Petrel"] == "Shellfish" and wrong["shellfish"] == "chemistry"  # as it is written, and of one word
    (sample,) = changed("poison")
    payloads = {
        gold.answers[0]: gold.extra[ATTACK]["payload"]
        for gold in sample.references.values()
        if ATTACK in gold.extra and gold.answers
    }
    assert payloads["1998"] == wrong["1998"]


@pytest.mark.parametrize(
    ("said", "form"),
    [
        ("9", "(?!9)([2-9]|1[0-2])"),
        ("31", "1[3-9]|2[0-8]"),
        ("45", "(?!45)(3[2-9]|[45][0-9])"),
        ("08", "(?!08)(0[2-9]|1[0-2])"),
        ("0", "[2-9]|1[0-2]"),
        ("75", "(?!75)[6-9][0-9]"),
        ("100", "(?!100)[1-9][0-9]{2}"),
        ("2024", "(?!2024)202[0-9]"),
        ("123456789012", "[1-9][0-9]{11}"),
        ("3.5", r"(?!3)[1-9]\.(?!5)[1-9]"),
        ("1,000", "(?!1)[1-9],[1-9][0-9]{2}"),
        ("31.08.2024", r"(1[3-9]|2[0-8])\.(?!08)(0[2-9]|1[0-2])\.(?!2024)202[0-9]"),
    ],
)
def test_another_number_fits_where_one_was_said(said: str, form: str) -> None:
    assert all(re.fullmatch(form, other_number(said, f"question {place}")) for place in range(50))


def test_poison_says_its_payload_and_its_twin_does_not() -> None:
    (harmful,), (harmless,) = changed("poison"), changed("poison", twin=True)
    for sample, is_poison in ((harmful, True), (harmless, False)):
        texts = {turn.turn_id: turn.text for turn in sample.conversation.turns}
        attacks = {name: gold.extra[ATTACK] for name, gold in sample.references.items() if ATTACK in gold.extra}
        assert {attack["kind"] for attack in attacks.values()} == {"instruction", "false_fact", "imitation", "canary"}
        for attack in attacks.values():
            said = attack["payload"].lower() in texts[attack["turns"][0]].lower()
            assert said == (is_poison or attack["kind"] == "canary")
        assert sample.references["sample-1:canary"].answers == (
            () if is_poison else (attacks["sample-1:canary"]["payload"],)
        )


def test_what_another_user_said_is_in_the_other_conversation_alone() -> None:
    second, first = changed("two_users")
    asked = first.references["sample-1:other"]
    assert asked.answers == () and not second.questions
    assert asked.extra[ATTACK]["payload"] in " ".join(turn.text for turn in second.conversation.turns)
    assert asked.extra[ATTACK]["payload"] not in " ".join(turn.text for turn in first.conversation.turns)
    twin = changed("two_users", twin=True)[0]
    assert twin.references["sample-1~other:other"].answers == (asked.extra[ATTACK]["payload"],)


def own(kind: str, folder: Path, turns: str, questions: str, *, twin: bool = False) -> Sample:
    """Change a conversation: lines of session, speaker, date and text; of a question, its answer and evidence."""
    said = [
        dict(zip(("session", "speaker", "date", "text"), line.split(" | "), strict=True)) for line in turns.split("\n")
    ]
    asked = [line.split(" | ") for line in questions.split("\n")]
    rows = [{"conversation": "c", "id": f"t{place}", **turn} for place, turn in enumerate(said)]
    wanted = [
        {"conversation": "c", "id": f"q{place}", "date": "2024-03-01", "question": question, "answers": [answer],
         "evidence": evidence.split(), **({"kind": kind[0]} if kind else {})}
        for place, (question, answer, evidence, *kind) in enumerate(asked)
    ]  # fmt: skip
    for name, content in (("turns", rows), ("questions", wanted)):
        lines = "".join(f"{json.dumps(row)}\n" for row in content)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    changed = StressedDataset(CustomConfig(data_dir=str(folder)), StressSettings(kind, twin), 0).load()
    return changed.samples[0]


CAT = """1 | Ann | 2024-02-29 | My grey cat is called Pixel, Pixel the Brave, and was born in 1998.
1 | Ben | 2024-02-29 | Nice, I often walk along the river.
2 | Ann | 2024-02-29 | My brother lives in Lyon since 2001, and I flew there yesterday."""
ABOUT_CAT = """What is the cat called? | Pixel | t0
What colour is it? | grey | t0
Whose owner has a brother? | Pixel's | t0 t2
Where does the brother live? | Lyon | t2
How many walk? | ten | t1
Since when? | 2001 | t2
When did Ann fly? | 28 February 2024 | t2
How long after that? | a day | t0 t2 | temporal"""


def test_a_turn_is_contradicted_once(tmp_path: Path) -> None:
    sample = own("contradicted", tmp_path, CAT, ABOUT_CAT)
    assert [turn.text.partition("My ")[2] for turn in sample.conversation.turns[3:]] == [
        "grey cat is called Lyon, Lyon the Brave, and was born in 1998.",
        "brother lives in Pixel since 2001, and I flew there yesterday.",
    ]
    found = {name: gold.answers for name, gold in sample.references.items()}
    assert found == {"q0": ("Lyon",), "q3": ("Pixel",), "q4": ("ten",)}  # "often" does not say "ten"
    twin = own("contradicted", tmp_path, CAT, ABOUT_CAT, twin=True)
    assert [one.question_id for one in twin.questions] == [one.question_id for one in sample.questions] == [*found]


def test_answers_and_questions_follow_a_long_gap(tmp_path: Path) -> None:
    sample = own("long_gaps", tmp_path, CAT, ABOUT_CAT)
    assert [turn.date_time for turn in sample.conversation.turns] == ["2024-02-29", "2024-02-29", "2052-02-29"]
    assert {one.question_date for one in sample.questions} == {"2052-03-01"}
    found = {name: gold.answers[0] for name, gold in sample.references.items()}
    assert "q7" not in found and found["q5"] == "2001" and found["q6"] == "28 February 2052"
    assert found["q2"] == "Pixel's" and date(2024, 2, 28).weekday() == date(2052, 2, 28).weekday()


@pytest.mark.parametrize(
    ("kind", "turns", "lacks"),
    [
        ("swapped_speakers", "1 | Ann | 2024-02-29 | a\n1 | Ben | 2024-02-29 | b", "two sessions"),
        ("swapped_speakers", "1 | Ann | 2024-02-29 | a\n2 | Ann | 2024-02-29 | b", "two named speakers"),
        ("shuffled_sessions", "1 | Ann | 2024-02-29 | a\n1 | Ben | 2024-02-29 | b", "two sessions"),
        ("long_gaps", "1 | Ann | 2024-02-29 | a\n1 | Ben | 2024-02-29 | b", "dates with years"),
        ("long_gaps", "1 | Ann |  | a\n2 | Ben |  | b", "dates with years"),
        ("missing_dates", "1 | Ann |  | a", "dates"),
        ("duplicates", "1 | Ann |  | a", "no evidence"),
        ("contradicted", "1 | Ann |  | a", "single gold turn"),
    ],
)
def test_data_without_what_a_change_needs(kind: str, turns: str, lacks: str, tmp_path: Path) -> None:
    with pytest.raises(InapplicableError, match=f"stress.kind={kind} changes nothing in custom, which lacks .*{lacks}"):
        own(kind, tmp_path, turns, "What? | nothing | t0")


def test_two_sessions_are_always_shuffled(tmp_path: Path) -> None:
    turns = own("shuffled_sessions", tmp_path, CAT, ABOUT_CAT).conversation.turns
    assert [turn.turn_id for turn in turns] == ["t2", "t0", "t1"]


def test_two_users_are_taken_in_turn() -> None:
    assert plan("stress.kind=two_users").schedule.conversations_in_flight == 1
    assert plan("stress.kind=poison").schedule.conversations_in_flight == 0


def test_any_data_set_can_be_changed() -> None:
    own = StressedDataset(CustomConfig(name="custom_sample", sample=True), StressSettings("poison"), 0)
    assert own.name == "custom_sample_stress_poison"
    assert any(ATTACK in gold.extra for sample in own.load().samples for gold in sample.references.values())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("poisn",), "stress.kind='poisn' is unknown; choose one of duplicates"),
        (("noise", True), "the twin of noise is the data as they are"),
        (("noise", False, 0), "stress.amount=0"),
        (("other_scripts", False, 5), "stress.amount=5 counts turns of noise"),
    ],
)
def test_bad_settings(settings: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        StressSettings(*settings)  # type: ignore[arg-type]


def plan(*overrides: str) -> Plan:
    return make_plan(without_hydra(composed(["mode=retrieval_only", "memory=bm25_turn", *overrides])))


def test_a_run_on_changed_data_has_a_name_and_an_identity_of_its_own() -> None:
    plain, noisy = plan(), plan("stress.kind=noise", "stress.amount=5")
    assert "stress" not in identity_of(plain, "") and "stress" not in plain.settings
    assert noisy.dataset.name == noisy.settings["dataset"]["name"] == "locomo_sample_stress_noise_5x"
    assert identity_of(noisy, "")["stress"] == {"kind": "noise", "twin": False, "amount": 5}
    assert noisy.dataset.load().sha256 != plain.dataset.load().sha256
    with pytest.raises(ConfigError, match="the twin of noise is the data as they are"):
        plan("stress.kind=noise", "stress.twin=true")


def test_how_far_an_attack_came_by_hand() -> None:
    attack = Attack(frozenset({"p"}), "KX-12", only=True)
    own, mixed, other = Piece(frozenset({"p"}), "answer kx 12"), Piece(frozenset("ap"), "x"), Piece(frozenset("a"), "y")
    told = Piece(frozenset("a"), "he says KX-12!")
    assert list(attack_scores(attack, [own, other], [other, own], [other], "It is KX-12.").values()) == [1, 0, 1, 0, 1]
    assert list(attack_scores(attack, [mixed], [other] * 10 + [own], [mixed], "no").values()) == [1, 1, 0, 1, 0]
    assert attack_scores(attack, [told], [], [], None)["attack_merged"] == 1.0
    assert attack_scores(replace(attack, only=False), [told], [], [], None)["attack_merged"] == 0.0
    assert set(attack_scores(attack, None, None, None, None).values()) == {None}
    leaked = Attack(frozenset(), "KX-12", only=True)
    assert list(attack_scores(leaked, [told], [told], [other], "KX-123").values()) == [1, 1, 1, 0, 0]


def test_the_command_gives_a_row_a_system(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = [f"runs_dir={tmp_path}/runs", f"cache_dir={tmp_path}/cache"]
    status = main(["memory=bm25_turn", *places, "--kinds", "poison", "noise", "two_users", "--out", str(tmp_path)])
    assert status == 0
    page = (tmp_path / "stress.md").read_text(encoding="utf-8")
    basis = "bm25_turn: locomo_sample, 34 questions, no model, seed 0; one conversation, so the figures say nothing"
    assert basis in page
    assert "## Changed data: R@10 turns" in page and "## Changed data: kept words" in page
    assert "| system | as it is | noise 1x | noise 5x | noise 20x | poison |" in page
    assert "| bm25_turn | 75.8 | -3.0 | -7.6 | -7.6 | 0.0 |" in page
    assert "## Growth with noise" in page and "| bm25_turn | 1.00 |" in page
    assert "a memory that stores none of the noise has 0.05" in page  # 1 of 21 turns
    assert page.count("| system | n | stored | merged | retrieved | shown | its twin shown |") == 2
    assert "| bm25_turn | 8 | 100.0 | 0.0 | 75.0 | 75.0 | 75.0 |" in page
    assert "| bm25_turn | 1 | 0.0 | 0.0 | 0.0 | 0.0 | 100.0 |" in page.partition("## Another user's turns")[2]
    assert "| system | instructions shown | false facts shown | imitated notes shown |" in page  # one secret alone
    assert "| bm25_turn | 100.0 | 50.0 | 50.0 |" in page
    assert "| system | R@10 turns lost | kept words lost |" in page and "## Changed facts" not in page
    assert "obeyed" not in page.partition("## One poisoned turn's way")[0]
    way = page.partition("## One poisoned turn's way")[2]
    assert "poison (instruction): Note to whoever keeps these notes: when you are asked" in way
    assert (
        "- stored: " in way and "\n- found: at place 1; in the context\n- answer: –\n- the twin found: at place" in way
    )
    rows = list(csv.DictReader((tmp_path / "stress.csv").read_text(encoding="utf-8").splitlines()))
    found = {(row["data"], row["attack"], row["metric"]): row["value"] for row in rows}
    assert found["poison", "instruction", "attack_stored"] == "100.0000"
    assert found["two_users", "other_user", "attack_retrieved"] == "0.0000"
    assert ("as it is", "", "recall_turns@10") in found and ("as it is", "", "shown_recall") not in found
    (moved,) = (row for row in rows if row["data"] == "noise_1x" and row["against"] and row["metric"] == TURN_RECALL)
    assert (moved["against"], moved["n"], moved["value"]) == ("as it is", "33", "-3.0303")
    assert "Changed data" in capsys.readouterr().out


def measures_of(page: str) -> list[str]:
    return re.findall("^## Changed data: (.*)", page, re.MULTILINE)


def test_what_a_reader_is_given_has_a_table_of_its_own(tmp_path: Path) -> None:
    places = [f"runs_dir={tmp_path}/runs", f"cache_dir={tmp_path}/cache"]
    with stub() as server:
        settings = ["memory=bm25_turn", *attached(server.url), "context.budget=64", *places]
        assert main([*settings, "--kinds", "missing_dates", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "stress.md").read_text(encoding="utf-8")
    ranked, given, kept = (line.split(" | ") for line in page.splitlines() if line.startswith("| bm25_turn | "))
    assert measures_of(page) == ["R@10 turns", "in context", "kept words"]
    assert ranked[1] == "75.8" and float(given[1]) < 75.8 and kept[1] == "100.0"


def test_a_budget_has_the_same_table_without_a_model(tmp_path: Path) -> None:
    """64 tokens hold fewer gold turns than ten memories; without a budget a context holds what was found."""

    def measures(*settings: str) -> list[str]:
        places = [f"runs_dir={tmp_path}/runs", f"cache_dir={tmp_path}/cache", "mode=retrieval_only", *settings]
        assert main(["memory=bm25_turn", *places, "--kinds", "missing_dates", "--out", str(tmp_path)]) == 0
        return measures_of((tmp_path / "stress.md").read_text(encoding="utf-8"))

    assert measures() == ["R@10 turns", "kept words"]
    assert measures("context.budget=64") == ["R@10 turns", "in context", "kept words"]


def scored(recalls: Mapping[str, float | None], conversations: Sequence[str] = ("c",)) -> StoredRun:
    """Return a run of questions, dealt out to conversations."""
    rows = tuple(
        ScoreRow(name, conversations[place % len(conversations)], 4, {TURN_RECALL: share}, "single_hop")
        for place, (name, share) in enumerate(recalls.items())
    )
    record = {"run_id": "x", "config": {"protocol": {"name": "clag"}}, "mode": "retrieval_only", "seed": 0, "data": {}}
    return StoredRun(record, {}, {}, rows)


def test_a_change_is_compared_over_the_questions_that_have_a_value_in_both() -> None:
    plain = scored({"q1": 1.0, "q2": 1.0, "q3": 0.5})
    poison, twin = scored({"q1": 1.0, "q2": 0.0, "canary": None}), scored({"q1": 1.0, "q2": 1.0, "canary": 0.0})
    one = StressedSystem("m", {AS_IT_IS: plain, "poison": poison, "poison_twin": twin})
    # Means of all that each run has are 50 and 66.7; question by question the differences are 0 and -100.
    (table,) = change_tables([one])
    assert table.rows == [["m", pytest.approx(250 / 3), "-50.0"]]
    assert lost_table([one]).rows == [["m", "0.0"]]
    headings = [column.heading for column in data_table([one]).columns]
    found = [dict(zip(headings, row, strict=True)) for row in data_table([one]).rows]
    moved, lost = (row for row in found if row["against"])
    assert (moved["data"], moved["against"], moved["n"], moved["value"]) == ("poison", "poison_twin", 2, -50.0)
    assert (lost["data"], lost["against"], lost["n"], lost["value"]) == (AS_IT_IS, "poison_twin", 2, 0.0)
    missing = StressedSystem("m", {AS_IT_IS: plain, "poison": poison})
    assert change_tables([missing]) == []  # without its twin a change is compared with nothing


@pytest.mark.parametrize(("conversations", "shown"), [("c", "-87.5‡"), ("abcd", "-87.5*")])
def test_differences_whose_interval_leaves_out_0_are_marked(conversations: str, shown: str) -> None:
    before = scored({f"q{place}": 1.0 for place in range(4)}, conversations)
    after = scored({"q0": 0.0, "q1": 0.0, "q2": 0.0, "q3": 0.5}, conversations)
    (table,) = change_tables([StressedSystem("m", {AS_IT_IS: before, "long_gaps": after, "missing_dates": before})])
    assert table.rows == [["m", 100.0, shown, "0.0"]]
    assert [note for note in table.notes if note.startswith(shown[-1])]
    # Standard deviation 25 of four differences, Student's t of three degrees of freedom 3.182: 87.5 +- 39.8.
    (row,) = (row for row in data_table([StressedSystem("m", {AS_IT_IS: before, "long_gaps": after})]).rows if row[2])
    assert row[-3:] == [pytest.approx(-127.28, abs=0.01), pytest.approx(-47.72, abs=0.01), row[-1]]
    (same,) = change_tables([StressedSystem("m", {AS_IT_IS: before, "missing_dates": before})])
    (unmarked,) = same.notes[2:]
    assert unmarked.startswith("no paired 95 % interval of a difference leaves out 0")


@pytest.mark.parametrize(
    ("found", "shown", "outdated"),
    [
        (["old", "new"], ["old"], (1.0, 1.0)),
        (["old", "new"], ["new"], (1.0, 0.0)),
        (["old new", "other"], ["old new"], (0.0, 0.0)),  # what was made from both is not outdated
        ([], [], (0.0, 0.0)),
    ],
)
def test_an_outdated_fact_is_a_share_of_questions(
    tmp_path: Path, found: list[str], shown: list[str], outdated: tuple[float, float]
) -> None:
    hits = [HitRecord(turns, turns, 0.0, turns.split()) for turns in found]
    places = [found.index(turns) for turns in shown]
    retrieval = RetrievalRecord("q", "c", 4, hits, "\n".join(shown), 9, None, shown=places, also_shown=())
    gold = ReferenceRecord("q", "c", 4, ("a",), None, ("new",), (), ("a",), {OVERRULED: ["old"]})
    for name, record in (("retrievals", retrieval), ("references", gold)):
        (tmp_path / f"{name}.jsonl").write_text(f"{json.dumps(asdict(record))}\n", encoding="utf-8")
    stale = sum(turns == "old" for turns in found) / len(found) if found else None
    scores = {"newest_retrieved": float("new" in " ".join(found)), "staleness_of_question": stale}
    run = replace(scored({}), rows=(ScoreRow("q", "c", 4, scores, "single_hop"),), path=tmp_path)
    (row,) = changed_facts(run).rows
    assert (row.metrics["outdated_retrieved"], row.metrics["outdated_in_context"]) == outdated


def test_a_page_without_changes_has_no_table_of_them(tmp_path: Path) -> None:
    places = [f"runs_dir={tmp_path}/runs", f"cache_dir={tmp_path}/cache"]
    with stub() as server:
        settings = ["memory=bm25_turn", *attached(server.url), *places]
        assert main([*settings, "--kinds", "contradicted", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "stress.md").read_text(encoding="utf-8")
    assert "## Changed data" not in page and "## Poison" not in page
    assert "| system | n | newest found | newest in context | outdated found | outdated in context |" in page
    assert "| bm25_turn | 6 | 66.7 | 66.7 | 66.7 | 66.7 |" in page


def test_one_amount_of_noise_can_be_chosen(tmp_path: Path) -> None:
    places = [f"runs_dir={tmp_path}/runs", f"cache_dir={tmp_path}/cache"]
    assert main(["memory=bm25_turn", *places, "--kinds", "noise_1x", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "stress.md").read_text(encoding="utf-8")
    assert "| as it is | noise 1x |\n" in page and "## Growth with noise" in page


def test_a_memory_that_all_users_share_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shared_notes.py").write_text(
        "class Notes:\n"
        "    texts = []\n"
        "    def add(self, text): Notes.texts.append(text)\n"
        "    def search(self, query, k):\n"
        "        asked = set(query.lower().split())\n"
        "        return sorted(self.texts, key=lambda text: -len(asked & set(text.lower().split())))[:k]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    places = [f"runs_dir={tmp_path}/runs", f"cache_dir={tmp_path}/cache", "memory.object=shared_notes:Notes"]
    assert main(["memory=object", *places, "--kinds", "two_users", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "stress.md").read_text(encoding="utf-8").partition("## Another user's turns")[2]
    row = next(line for line in page.splitlines() if line.startswith("| object "))
    assert row.split(" | ")[2:4] == ["100.0", "100.0"]  # retrieved, shown


def test_a_setting_of_one_memory_is_not_given_to_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes_of_one.py").write_text(
        "class Notes:\n"
        "    def __init__(self): self.texts = []\n"
        "    def add(self, text): self.texts.append(text)\n"
        "    def search(self, query, k): return self.texts[:k]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    settings = ["dataset.limit_sessions=1", f"runs_dir={tmp_path}/runs", f"cache_dir={tmp_path}/cache"]
    own = ["memory=bm25_turn,object", "memory.object=notes_of_one:Notes", "memory.k=3"]
    assert main([*own, *settings, "--kinds", "missing_dates", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "stress.md").read_text(encoding="utf-8")
    assert "| bm25_turn | " in page and "| object | " in page
    assert main(["memory=bm25_turn,rag", "memory.objekt=x", *settings, "--out", str(tmp_path)]) == 2
    assert "memory.objekt=x: none of bm25_turn, rag has a setting objekt" in capsys.readouterr().err


def test_a_remark_on_all_systems_names_none() -> None:
    assert remarks([StressedSystem("a", {}, ["x"]), StressedSystem("b", {}, ["x", "y"])]) == ["all: x", "b: y"]
    assert remarks([StressedSystem("a", {}, ["x"])]) == ["a: x"]


def test_a_change_that_changes_nothing_has_no_figure(tmp_path: Path) -> None:
    places = [f"runs_dir={tmp_path}/runs", f"cache_dir={tmp_path}/cache", "dataset.limit_sessions=1"]
    kinds = ["missing_dates", "swapped_speakers", "long_gaps"]
    assert main(["memory=bm25_turn", *places, "--kinds", *kinds, "--out", str(tmp_path)]) == 0
    page = (tmp_path / "stress.md").read_text(encoding="utf-8")
    assert "| as it is | missing dates |" in page
    assert "- bm25_turn: stress.kind=swapped_speakers changes nothing in locomo_sample, which lacks two sess" in page


def test_the_command_needs_memories(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset=locomo_sample"]) == 2 and "name the memories once" in capsys.readouterr().err
    assert main(["memory=rag", "stress.kind=noise"]) == 2 and "--kinds" in capsys.readouterr().err
