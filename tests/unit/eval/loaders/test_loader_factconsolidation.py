"""FactConsolidation: which facts hold, which are overruled, and the measures that stand on it; worked out by hand."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eval.loaders.factconsolidation import FactConsolidationConfig
from eval.loaders.factconsolidation_facts import Fact, FactBase, read_fact
from eval.loaders.locate import sample_path
from eval.metrics.overlap import substring_em
from eval.metrics.updates import Update, update_scores
from eval.scoring.protocols import load_protocol
from memsys.errors import ConfigError, DataError
from memsys.vocabulary import OVERRULED


def load(**settings: Any) -> Any:
    return FactConsolidationConfig(**{"sample": True, "facts_per_session": 4, **settings}).load()


@pytest.mark.parametrize(
    ("sentence", "fact"),
    [
        ("Thomas Kyd was born in the city of London", Fact(7, "birthplace", "Thomas Kyd", "London")),
        ("The author of What is Art is Leo Tolstoy", Fact(7, "author", "What is Art", "Leo Tolstoy")),
        ("Aristotle's child is Nicomachus", Fact(7, "child", "Aristotle", "Nicomachus")),
        (
            "The Prime Minister of Sweden is Stefan Löfven",
            Fact(7, "office", "Prime Minister of Sweden", "Stefan Löfven"),
        ),
        ("The name of the current head of the Italy government is X", Fact(7, "head_of_government", "Italy", "X")),
        ("Nothing is known", Fact(7, "", "", "")),
    ],
)
def test_subject_and_relation_are_read_off_a_sentence(sentence: str, fact: Fact) -> None:
    assert read_fact(7, sentence) == fact


def test_what_the_facts_say_about_each_question_of_the_sample() -> None:
    single, multi = load().samples
    found = {
        key.split("_", 1)[1]: (ref.evidence, ref.extra.get(OVERRULED, []), ref.extra["derived"])
        for sample in (single, multi)
        for key, ref in sample.references.items()
    }
    assert found == {
        "sh_own_no0": (("5",), ["0"], "found"),
        "sh_own_no1": (("3",), [], "found"),
        "sh_own_no2": (("7",), ["2"], "found"),
        "sh_own_no3": (("10",), [], "found"),
        "sh_own_no4": (("8",), ["6"], "gold_overruled"),  # the gold answer is Lisbon, fact 8 says Porto
        "sh_own_no5": ((), [], "unknown"),
        "mh_own_no0": (("1", "5", "8"), ["0", "6"], "found"),
        "mh_own_no1": (("7", "5"), ["2", "0"], "found"),
        "mh_own_no2": ((), [], "gold_overruled"),  # Iceland was her country once
    }
    assert single.references["factconsolidation_sh_own_no4"].extra["label_problem"] == "gold_overruled"
    assert single.references["factconsolidation_sh_own_no0"].answers == ("Portugal", "Portuguese Republic")
    turns = single.conversation.turns
    assert (turns[5].turn_id, turns[5].text) == ("5", "5. Edda Vorn is a citizen of Portugal.")
    assert [turn.session_id for turn in turns] == [f"facts_{number}" for number in (1, 2, 3) for _ in range(4)]
    assert {question.kind for question in single.questions} == {"single_hop"}
    assert {question.kind for question in multi.questions} == {"multi_hop"}


def test_every_overruled_turn_of_a_context_is_named_with_what_holds_in_its_place() -> None:
    single, multi = load().samples
    assert single.updates == multi.updates == (("0", "5"), ("2", "7"), ("6", "8"))
    cut, _ = load(limit_sessions=2).samples  # facts 0 to 7: of fact 6 nothing is said again
    assert cut.updates == (("0", "5"), ("2", "7"))


def test_a_context_that_is_not_there_is_named_with_all_that_are() -> None:
    with pytest.raises(ConfigError, match=r"\['sh_7k'\] not in this data set; choose from sh_own, mh_own"):
        load(conversations=["sh_own", "sh_7k"])


def test_no_memory_is_built_that_nothing_is_asked() -> None:
    """Half of the facts were written for contexts whose questions are all of the other category."""
    assert [one.conversation.conversation_id for one in load(categories=["multi_hop"]).samples] == ["mh_own"]
    assert len(load().samples) == 2


def test_two_chains_to_the_answer_are_none() -> None:
    sentences = ("A is married to B", "A's child is C", "B is a citizen of X", "C is a citizen of X", "Ab's child is C")
    base = FactBase([read_fact(number, text) for number, text in enumerate(sentences)])
    assert base.chain("Of which country is the spouse of A a citizen?", ["X"]).outcome == "ambiguous"
    assert base.chain("Of which country is the child of Ab a citizen?", ["X"]).newest[0].number == 4
    assert base.chain("Who is it?", ["X"]).outcome == "unknown"


def update(*hits: tuple[str, ...], **changes: Any) -> Update:
    plain = Update(
        frozenset({"5", "8"}), frozenset({"0", "6"}), hits, hits, None, ranked=True,
        successors={"0": "5", "6": "8", "1": "4", "2": "4"},
    )  # fmt: skip
    return replace(plain, **changes)


@pytest.mark.parametrize(
    ("given", "stored", "retrieved", "in_context", "stale", "of_question"),
    [
        (update(("5",), ("8",), ("0",), ("9",), stored={"5", "8", "0"}), 1.0, 1.0, 1.0, 0.25, 0.25),
        (update(("5",), ("0",), stored={"5", "0"}), 0.0, 0.0, 0.0, 0.5, 0.5),
        (update(("0", "5"), ("8", "6"), stored=set()), 0.0, 1.0, 1.0, 0.0, 0.0),  # merged memories are not stale
        (update(("5",), ("1",), ("8",), ("0",)), None, 1.0, 1.0, 0.5, 0.25),  # what is not asked is overruled too
        (update(("2", "1", "4"), ("5", "1"), ("8", "0")), None, 1.0, 1.0, 2 / 3, 0.0),  # merged, without what holds
        (update(("1",), ("0",), successors=None), None, 0.0, 0.0, None, 0.5),  # the run does not say
        (update(("5",), ("8",), shown=[("5",)]), None, 1.0, 0.0, 0.0, 0.0),  # the second had no room
        (update(("5",), ("8",), shown=None), None, 1.0, None, 0.0, 0.0),  # nobody knows what had
        (
            update(*[("9",)] * 9, ("5",), ("8",), ("0",)),
            None,
            0.0,
            1.0,
            0.0,
            0.0,
        ),  # the eleventh counts for the context alone
        (update(), None, 0.0, 0.0, None, None),
        (update(("5", "8"), ranked=False), None, None, 1.0, None, None),
    ],
)
def test_update_correctness_and_staleness(
    given: Update,
    stored: float | None,
    retrieved: float | None,
    in_context: float,
    stale: float | None,
    of_question: float | None,
) -> None:
    assert update_scores(given) == {
        "newest_stored": stored, "newest_retrieved": retrieved, "newest_in_context": in_context,
        "staleness": stale, "staleness_of_question": of_question,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("prediction", "gold", "score"),
    [("It is the Rugby Union.", "rugby union", 1.0), ("rugby", "rugby union", 0.0),
     ("Washington DC", "Washington, D.C.", 1.0),
     ("a party", "art", 1.0), ("", "x", 0.0),
     ("B", "A", 0.0), ("zzz", "?", 0.0), ("", "", 0.0)],  # nothing is left of the gold, which stood in every answer
)  # fmt: skip
def test_substring_exact_match(prediction: str, gold: str, score: float) -> None:
    assert substring_em(prediction, gold) == score
    assert load_protocol("factconsolidation").columns == {"SubEM": "substring_em"}


Damage = Callable[[list[dict[str, Any]]], object]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: d[0].pop("answers"), "[0].answers: missing field"),
        (lambda d: d[0].update(questions="x"), "[0].questions: expected array, found string"),
        (lambda d: d[1]["metadata"].update(source="other"), "[1].metadata.source: unknown source 'other'"),
        (lambda d: d[0].update(context="none"), "[0].context: holds no numbered fact"),
        (lambda d: d[0].update(context="1. A is B.\n1. A is C."), "[0].context: fact 1 follows one with the same"),
        (lambda d: d[0]["answers"].pop(), "[0]: 6 questions, 5 answers and 6 qa_pair_ids; they must match"),
        (
            lambda d: d[0]["metadata"]["qa_pair_ids"].__setitem__(1, d[0]["metadata"]["qa_pair_ids"][0]),
            "[0].metadata.qa_pair_ids[1]: duplicate question id 'factconsolidation_sh_own_no0'",
        ),
    ],
)
def test_a_fault_is_named_with_file_and_place(tmp_path: Path, damage: Damage, message: str) -> None:
    data = json.loads(sample_path("factconsolidation").read_text())
    damage(data)
    (tmp_path / "facts.json").write_text(json.dumps(data))
    with pytest.raises(DataError, match=f"^facts.json: {re.escape(message)}"):
        load(sample=False, path=str(tmp_path / "facts.json"))


@pytest.mark.real_data
def test_the_published_contexts(data_dir: Path) -> None:
    data = load(sample=False, data_dir=str(data_dir))
    assert data.counts["turns_per_conversation"] == [455, 2310, 4580, 18332] * 2
    assert data.counts["questions_by_category"] == {"1": 400, "4": 400} and data.counts["evidence_ids"] == 1232
    assert [sum(len(group) - 1 for group in one.updates or ()) for one in data.samples] == [161, 837, 1691, 7236] * 2
    notes = {key: value for key, value in data.notes.items() if isinstance(value, int)}
    assert notes == {
        "pinned": True, "sample": False, "facts": 51354, "facts_overruled": 19850, "facts_without_form": 0,
        "lines_without_number": 16, "questions_found": 731, "questions_gold_overruled": 68, "questions_ambiguous": 1,
        "questions_with_update": 613,
    }  # fmt: skip
