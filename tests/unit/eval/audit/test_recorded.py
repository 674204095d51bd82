"""Recorded answers: every shape and every trap of the published files, on small files written here."""

import csv
import errno
import gzip
import json
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

import pytest

from eval.audit.recorded.align import align
from eval.audit.recorded.catalogue import load_catalogue
from eval.audit.recorded.fetching import fetch_entry
from eval.audit.recorded.importing import Imported, checksum, import_rows
from eval.audit.recorded.questions import QuestionSet, RecordedQuestion, load_questions, number_categories
from eval.audit.recorded.rows import Recorded, read_rows
from eval.audit.recorded.run_folder import Origin, write_run
from eval.audit.recorded.shapes import Shape, column_shape, make_shape, read_shape
from eval.compare import main as compare
from eval.loaders.locate import sample_path
from eval.loaders.trees import read_tree
from eval.recorded import main
from eval.results.compare.pairs import on_the_same_data
from eval.results.compare.rows import system_rows
from eval.results.frame import Skipped, read_run
from eval.runs.load import load_answers, load_json, load_references
from eval.runs.records import ReferenceRecord
from eval.score import main as score
from eval.scoring.protocols import load_protocol
from eval.scoring.score_run import score_run
from eval.scoring.summary import summarise
from eval.scoring.verdicts.store import load_judged
from memsys.errors import ConfigError, DataError, RunDirectoryError
from memsys.llm.thoughts import read_answer

ROOT = Path(__file__).resolve().parents[4]


def _asked(number: int, text: str, gold: str, conversation: str = "c0", category: int = 4) -> RecordedQuestion:
    record = ReferenceRecord(f"{conversation}:q{number}", conversation, category, [gold], None, [], [], [])
    return RecordedQuestion(text, record)


def _set(*asked: RecordedQuestion) -> QuestionSet:
    return QuestionSet("test", "0" * 64, asked, tuple(dict.fromkeys(one.conversation_id for one in asked)))


QUESTIONS = _set(
    _asked(0, "Who sings?", "Ann", category=1),
    _asked(1, "Who dances?", "Bob", category=2),
    _asked(2, "Who sings?", "Cid", category=4),
    _asked(0, "Who sings?", "Dan", "c1"),
)


def _import(
    tmp_path: Path, tree: object, shape: str, questions: QuestionSet | None = QUESTIONS, by_order: bool = False
) -> Imported:
    path = tmp_path / "answers.json"
    path.write_text(json.dumps(tree))
    return import_rows([path], load_catalogue().shapes[shape], questions, by_order=by_order)


def _mem0(question: str, gold: str, response: str, category: str = "4", score: int = 1) -> dict[str, object]:
    return {"question": question, "answer": gold, "response": response, "category": category, "llm_score": score}


def test_rows_are_aligned_by_conversation_and_repeated_texts_by_gold(tmp_path: Path) -> None:
    rows = [_mem0("who  SINGS?", "Cid", "x"), _mem0("Who sings?", "Ann", "y", "1")]
    imported = _import(tmp_path, {"1": [_mem0("Who sings?", "Dan", "z")], "0": rows}, "mem0_eval")
    given = {name: row.prediction for name, row in imported.alignment.rows.items()}
    assert given == {"c0:q2": "x", "c0:q0": "y", "c1:q0": "z"}
    assert imported.alignment.missing == []  # category 2 is not covered by the file


def test_prediction_under_answer_is_no_gold(tmp_path: Path) -> None:
    row = {"question": "Who dances?", "answer": "It is Bob", "golden_answer": "Bob", "category": 2, "grade": True}
    imported = _import(tmp_path, {"locomo_experiment_user_0": [row]}, "zep_grades")
    assert imported.alignment.rows["c0:q1"].prediction == "It is Bob"


def test_altered_questions_are_aligned_by_order_and_keep_their_own_gold(tmp_path: Path) -> None:
    rows = [
        {"question": text, "standard_answer": gold, "generated_answer": "a", "category": category, "is_correct": True}
        for text, gold, category in (("Who sings?", "Ann", 1), ("Who hops?", "Roberto", 2), ("Who sings?", "Cid", 4))
    ]
    imported = _import(tmp_path, {"detailed_results": rows}, "memu_result", by_order=True)
    assert imported.alignment.by_order == {"c0:q1"}
    gold = {one.question_id: one.answers for one in imported.references()}
    assert gold["c0:q1"] == ["Roberto"] and gold["c0:q0"] == ["Ann"]


def test_rows_whose_texts_are_questions_elsewhere_are_not_aligned_by_order(tmp_path: Path) -> None:
    """In a file whose conversations have other names every row took the question that stands at its place."""
    path = tmp_path / "answers.csv"
    texts = ("Who sings?", "Who dances?", "Who sings?", "Who sings?")
    path.write_text("conversation,question,prediction\n" + "".join(f"x,{text},a\n" for text in texts))
    shape = column_shape(["conversation", "question", "prediction"], path)
    alignment = import_rows([path], shape, QUESTIONS).alignment
    assert alignment.rows == {} and len(alignment.unaligned) == 4


def test_a_row_that_fits_nowhere_or_repeats_is_listed(tmp_path: Path) -> None:
    rows = [_mem0("Who dances?", "Bob", "x", "2"), _mem0("Who dances?", "Bob", "y", "2"), _mem0("Why?", "-", "z", "7")]
    imported = _import(tmp_path, {"0": rows}, "mem0_eval")
    lists = imported.lists()
    assert lists["repeated"] == lists["repeated_with_other_answer"] == ["answers.json row 2"]
    assert lists["unaligned"] == ["answers.json row 3"]
    assert imported.alignment.rows["c0:q1"].prediction == "x"


def test_all_that_is_counted_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Empty predictions, and gold answers and categories that differ, were counted alone."""
    rows = [_mem0("Who dances?", "Rob", " ", "4"), _mem0("Who sings?", "Cid", "<think>hm</think>x")]
    lists = _import(tmp_path, {"0": rows}, "mem0_eval").lists()
    assert lists["empty_predictions"] == lists["gold_differs"] == lists["category_differs"]
    assert lists["gold_differs"] == ["answers.json row 1 (c0:q1)"]
    assert lists["think_blocks_cut"] == ["answers.json row 2 (c0:q2)"]
    path = _table(tmp_path, "question,gold,prediction", "Who?,Ann,", "Who?,Bob,Bob", "Who?,Ann,Ann")
    assert main(["import", str(path), "--as", str(tmp_path / "run"), "--dataset", "own"]) == 0
    report = load_json(tmp_path / "run" / "import.json")
    assert report["lists"]["empty_predictions"] == ["answers.csv row 1 (Who?)"]
    assert report["lists"]["repeated_with_other_gold"] == ["answers.csv row 2 (Who?)"]
    assert report["counts"] == {
        "rows": 3, "data_set_questions": 1, "aligned": 1, **{key: len(one) for key, one in report["lists"].items()}
    }  # fmt: skip
    shown = capsys.readouterr().out
    assert "  repeated: 2\n  repeated with other gold: 1\n  repeated with other answer: 2\n  empty pred" in shown


def test_missing_questions_are_listed(tmp_path: Path) -> None:
    questions = _set(*(_asked(number, f"Question {number}?", "g") for number in range(3)))
    imported = _import(tmp_path, {"0": [_mem0("Question 1?", "g", "x")]}, "mem0_eval", questions)
    assert imported.alignment.missing == ["c0:q0", "c0:q2"]


def test_positions_of_part_files_go_on_from_file_to_file(tmp_path: Path) -> None:
    row = {"qa_question": "Who sings?", "qa_response": "x", "qa_category": 4, "labels": []}
    for number, gold in enumerate(("Ann", "Dan"), 1):
        (tmp_path / f"part{number}.json").write_text(json.dumps({"0_0": {**row, "qa_answer": gold}}))
    files = [tmp_path / "part1.json", tmp_path / "part2.json"]
    imported = import_rows(files, load_catalogue().shapes["human_labels"], QUESTIONS)
    assert set(imported.alignment.rows) == {"c0:q0", "c1:q0"}
    assert imported.alignment.rows["c1:q0"].verdicts == {"people": [True]}  # no error code: right


def test_several_cut_offs_must_be_chosen(tmp_path: Path) -> None:
    results = {"top_5": {"generated_answer": "a"}, "top_50": {"generated_answer": "b"}}
    row = {
        "question": "Who dances?",
        "question_id": "q",
        "conversation_idx": 0,
        "category": 2,
        "ground_truth_answer": "Bob",
    }
    path = tmp_path / "answers.json"
    path.write_text(json.dumps({"evaluations": [{**row, "cutoff_results": results}]}))
    shape = load_catalogue().shapes["mem0_platform_locomo"]
    with pytest.raises(DataError, match=r"row 1: holds cut-offs top_5, top_50; choose one with --cutoff"):
        read_rows([path], shape)
    assert read_rows([path], shape, "top_50")[0].prediction == "b"


def test_category_names_are_held_against_the_data(tmp_path: Path) -> None:
    row = {"meta": {"sample_id": "c0", "category": "single-hop"}, "query": "Who sings?", "answer": "x", "context": "c",
           "gold_answers": ["Ann"], "correct": True, "retrieve_time_ms": 5.0}  # fmt: skip
    imported = _import(tmp_path, {"results": [row]}, "agent_memory_benchmark")
    assert imported.category_labels() == {"single-hop": {"1": 1}}


@pytest.mark.parametrize(
    ("text", "left"),
    [("<think>so</think>\nBob", "Bob"), ("<think>never ends", ""), ("Bob ", "Bob "), ("a<think>b</think>c", "ac")],
)
def test_think_blocks_are_cut(text: str, left: str) -> None:
    assert read_answer(text).text == left


def test_a_row_without_an_answer_is_not_an_empty_answer() -> None:
    found = align([Recorded("row 1", None, "", question="Who dances?")], QUESTIONS.questions, {})
    assert [row.where for row in found.unanswered] == ["row 1"] and not found.rows


def test_compressed_lines_and_tables_are_read(tmp_path: Path) -> None:
    lines = tmp_path / "a.jsonl.gz"
    lines.write_bytes(gzip.compress(b'{"question_id": "q", "hypothesis": "h"}\n\n'))
    table = tmp_path / "a.csv"
    table.write_text('question_id,prediction\nq,"a, b"\n')
    assert read_tree(lines) == [{"question_id": "q", "hypothesis": "h"}]
    assert read_tree(table) == [{"question_id": "q", "prediction": "a, b"}]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.json",
            b'[\n{"question":',
            r"a.json is not JSON \(Expecting .* at line 2, column 13\); correct it there",
        ),
        ("a.json", b"[" * 10**6, r"a.json is not JSON that can be read \(.*\); correct it"),
        ("a.jsonl", b'{"a": 1}\n{"a"\n', r"a.jsonl:2 is not JSON \(.* at line 2, column 5\)"),
        ("a.json.gz", b"no gzip", r"a.json.gz cannot be read"),
        ("a.json", b'["\xa1\xaf"]', r"is not utf-8 text .* can name its `encoding`"),
        ("a.csv", b"a,b\n1\n", r"a.csv:2: has another number of columns"),
        ("a.xlsx", b"PK\x03\x04\xff", r"a.xlsx: is not JSON, and .xlsx is not one of .json, .jsonl, .ndjson, .csv"),
        ("answers", b"no", r"answers: is not JSON, and no ending is not one of"),
        ("a.jsonl", b'{"a": "so \\ud83d"}\n', r"a.jsonl holds half of a surrogate pair \(\\ud83d\).* behind .*so '"),
    ],
)
def test_a_damaged_file_is_one_message(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_tree(tmp_path / name)


def test_a_cell_may_be_longer_than_those_of_csv(tmp_path: Path) -> None:
    """A context of more than 131,072 characters could not be imported."""
    before, context = csv.field_size_limit(), "x " * 70_000
    (tmp_path / "a.csv").write_text(f"question,context\nWho?,{context}\n")
    assert read_tree(tmp_path / "a.csv") == [{"question": "Who?", "context": context}]
    (tmp_path / "b.csv").write_text("question,context\nWho?\n")
    with pytest.raises(DataError, match="another number of columns"):
        read_tree(tmp_path / "b.csv")
    assert csv.field_size_limit() == before


def test_what_no_program_could_count_is_missing(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"answer": NaN, "whole": "\\ud83d\\ude00"}]')
    assert read_tree(tmp_path / "a.json") == [{"answer": None, "whole": "\U0001f600"}]


def test_a_place_that_matches_nothing_is_named(tmp_path: Path) -> None:
    shape = make_shape("mine", {"question": "q", "prediction": "ansver"}, "mine.yaml")
    (tmp_path / "a.json").write_text('[{"q": "Who dances?", "answer": "Bob"}]')
    with pytest.raises(DataError, match=r"no row has `ansver` \(setting prediction of shape mine\)"):
        read_rows([tmp_path / "a.json"], shape)


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(ConfigError, match=r"mine.yaml.predicton is unknown"):
        make_shape("mine", {"question": "q", "predicton": "a"}, "mine.yaml")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"rows": 5}, r"mine.yaml.rows=5 must be a text"),
        ({"encoding": ["utf-8"]}, r"mine.yaml.encoding=\['utf-8'\] must be a text"),
        ({"conversations": ["a"]}, r"mine.yaml.conversations: name each conversation of the file"),
        ({"conversations": {7: ["a"]}}, r"mine.yaml.conversations: name each conversation of the file"),
        ({"question": {"path": "q", "values": [1]}}, r"mine.yaml.question.values=\[1\]: name each value of the file"),
    ],
)
def test_a_setting_of_another_type_is_one_message(setting: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_shape("mine", {"question": "q", "prediction": "a", **setting}, "mine.yaml")


def test_questions_of_two_conversations_may_have_one_id_or_one_text(tmp_path: Path) -> None:
    """All but the first were left out as repeated, or as fitting nowhere."""
    tree = [
        {"question_id": "1", "question": "Who sings?", "gold": "Ann", "prediction": "Ann", "conversation": "a"},
        {"question_id": "1", "question": "Who dances?", "gold": "Bob", "prediction": "Bob", "conversation": "b"},
        {"question": "Who cooks?", "gold": "Cid", "prediction": "Cid", "conversation": "a"},
        {"question": "Who cooks?", "gold": "Dan", "prediction": "Dan", "conversation": "b"},
    ]
    (tmp_path / "a.json").write_text(json.dumps(tree))
    found = import_rows([tmp_path / "a.json"], column_shape(list(tree[0]), tmp_path), None)
    gold = {one.question_id: one.reference.answers for one in found.questions}
    assert gold == {"a:1": ["Ann"], "b:1": ["Bob"], "a:Who cooks?": ["Cid"], "b:Who cooks?": ["Dan"]}
    assert found.counts()["repeated"] == found.counts()["unaligned"] == 0


def test_rows_without_a_conversation_are_one_together(tmp_path: Path) -> None:
    """Each question was a conversation, and intervals over questions were shown as intervals over conversations."""
    tree = [{"question": f"Who sings {n}?", "gold": "Ann", "prediction": "Ann" if n % 3 else "x"} for n in range(6)]
    (tmp_path / "a.json").write_text(json.dumps(tree))
    shape = column_shape(list(tree[0]), tmp_path)
    write_run(import_rows([tmp_path / "a.json"], shape, None), tmp_path / "run", Origin(system="sys"), "clag")
    score_run(tmp_path / "run")
    stored = read_run(tmp_path / "run")
    assert not isinstance(stored, Skipped)
    assert {row.conversation_id for row in stored.rows} == {"own"}
    (row,) = system_rows([stored], load_protocol("clag"))
    interval = row.estimates["F1"].interval
    assert interval is not None and interval.by == "question"
    apart = replace(shape, conversation_is="question")
    found = import_rows([tmp_path / "a.json"], apart, None)
    assert len(found.question_set.conversations) == 6


def _own(tmp_path: Path, *rows: Mapping[str, object]) -> QuestionSet:
    (tmp_path / "own.json").write_text(json.dumps(rows))
    places = ("question_id", "question", "conversation", "category", "gold", "prediction")
    return import_rows(
        [tmp_path / "own.json"], make_shape("own", {key: key for key in places}, "own.yaml"), None
    ).question_set


ROW = {"question_id": "1", "question": "Who?", "conversation": "a", "category": "x", "gold": "Ann", "prediction": "Ann"}


def test_two_systems_that_were_asked_the_same_ran_on_one_data_set(tmp_path: Path) -> None:
    """The checksum was that of the file with the answers, and two systems were never tested against each other."""
    other = {**ROW, "question_id": "2", "category": "w"}
    ours = _own(tmp_path, ROW, other)
    assert _own(tmp_path, {**other, "prediction": "Bob"}, {**ROW, "prediction": None}).sha256 == ours.sha256
    for key in ("question_id", "question", "conversation", "category", "gold"):
        assert _own(tmp_path, {**ROW, key: "y"}, other).sha256 != ours.sha256
    for name, prediction in (("mine", "Ann"), ("theirs", "Bob")):
        (tmp_path / f"{name}.csv").write_text(f"question,gold,prediction\nWho?,Ann,{prediction}\n")
        given = ["import", str(tmp_path / f"{name}.csv"), "--as", str(tmp_path / name), "--dataset", "own"]
        assert main(given) == 0 and score([str(tmp_path / name), "--metrics", "f1_set"]) == 0
    mine, theirs = read_run(tmp_path / "mine"), read_run(tmp_path / "theirs")
    assert not isinstance(mine, Skipped) and not isinstance(theirs, Skipped)
    assert on_the_same_data(mine, theirs)
    sums = [run.record["recorded"]["sha256"] for run in (mine, theirs)]
    assert sums == [checksum([tmp_path / "mine.csv"]), checksum([tmp_path / "theirs.csv"])]


def test_a_question_that_was_not_answered_is_one_of_its_file(tmp_path: Path) -> None:
    """Categories were numbered without it: 101 was another category than in the file of a system that answered it."""
    first, second = {**ROW, "prediction": None}, {**ROW, "question_id": "2", "category": "y"}
    repeated, without_gold = {**second, "prediction": None, "gold": "Bob"}, {**first, "question_id": "3", "gold": None}
    found = _own(tmp_path, repeated, first, second, without_gold)
    assert [(one.question_id, one.category, one.answers) for one in found.questions] == [
        ("2", 102, ["Ann"]),
        ("1", 101, ["Ann"]),
    ]


def test_a_column_may_be_absent_from_the_first_row(tmp_path: Path) -> None:
    """The columns were those of the first row; what others have was left out for all."""
    files = [tmp_path / "a.jsonl", tmp_path / "b.json"]
    lines = [{"question": "Q1", "gold": "x", "prediction": "x"}, {"question": "Q2", "gold": "y", "prediction": "y"}]
    lines[1]["category"] = "hard"
    files[0].write_text("\n".join(map(json.dumps, lines)))
    files[1].write_text(json.dumps([{**lines[0], "question": "Q3", "conversation": "c1", "context": None}]))
    given = ["import", *map(str, files), "--as", str(tmp_path / "run"), "--dataset", "own"]
    assert main(given) == 0
    answers = load_answers(tmp_path / "run").values()
    assert [(one.question_id, one.conversation_id, one.category) for one in answers] == [
        ("Q1", "own", 101),
        ("Q2", "own", 102),
        ("Q3", "c1", 101),
    ]


@pytest.mark.parametrize(
    ("gold", "answers"),
    [
        (["Paris", "City of Light"], ["Paris", "City of Light"]),
        (["1914", 1914, None], ["1914", "1914"]),
        ("Paris ; City of Light", ["Paris ; City of Light"]),
    ],
)
def test_a_list_of_gold_answers_are_alternatives(tmp_path: Path, gold: object, answers: list[str]) -> None:
    """They were one text, which no answer could equal."""
    (one,) = _own(tmp_path, {**ROW, "gold": gold}).questions
    assert one.answers == answers


def test_an_empty_list_holds_no_gold(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"own.json row 1: .* lacks the gold; write it, or leave the row out"):
        _own(tmp_path, {**ROW, "gold": []})


def test_gold_is_held_against_the_data_by_alternatives(tmp_path: Path) -> None:
    """``Who sings?`` of the second conversation is told by ``Dan``; of ``Bob`` the file knows another form as well."""
    rows = [("Who sings?", ["Dan", "Daniel"]), ("Who dances?", ["robert", "BOB"]), ("Who sings?", ["Eve", "Eva"])]
    tree = [{"question": text, "gold": gold, "prediction": "a"} for text, gold in rows]
    (tmp_path / "a.json").write_text(json.dumps(tree))
    imported = import_rows([tmp_path / "a.json"], column_shape(list(tree[0]), tmp_path), QUESTIONS, by_order=True)
    assert {name: row.gold for name, row in imported.alignment.rows.items()} == {
        "c1:q0": ("Dan", "Daniel"),
        "c0:q1": ("robert", "BOB"),
        "c0:q2": ("Eve", "Eva"),
    }
    assert imported.counts()["gold_differs"] == 1


def test_an_altered_question_keeps_all_gold_answers_of_its_file(tmp_path: Path) -> None:
    rows = [("Who sings?", ["Ann"]), ("Who hops?", ["Roberto", "Rob"]), ("Who sings?", ["Cid"])]
    tree = [{"question": text, "gold": gold, "prediction": "a", "conversation": "c0"} for text, gold in rows]
    (tmp_path / "a.json").write_text(json.dumps(tree))
    imported = import_rows([tmp_path / "a.json"], column_shape(list(tree[0]), tmp_path), QUESTIONS, by_order=True)
    assert {one.question_id: one.answers for one in imported.references()} == {
        "c0:q0": ["Ann"],
        "c0:q1": ["Roberto", "Rob"],
        "c0:q2": ["Cid"],
    }


def _table(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "answers.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_blank_cell_holds_nothing_but_an_empty_answer(tmp_path: Path) -> None:
    """A blank gold replaced the data set's, and a blank conversation was the name of one."""
    path = _table(
        tmp_path,
        "question,conversation,gold,category,context,prediction",
        "Who sings?,c0,Ann,,,Ann",
        "Who hops?,c0,,  ,,",
        "Who sings?,c0,Cid,4,seen,x",
        "Who sings?,,Dan,,,Dan",
    )
    shape = column_shape(["question", "conversation", "gold", "category", "context", "prediction"], path)
    imported = import_rows([path], shape, QUESTIONS, by_order=True)
    assert {name: row.prediction for name, row in imported.alignment.rows.items()} == {
        "c0:q0": "Ann",
        "c0:q1": "",
        "c0:q2": "x",
        "c1:q0": "Dan",
    }
    assert imported.alignment.by_order == {"c0:q1"}
    assert [one.answers for one in imported.references()] == [["Ann"], ["Bob"], ["Cid"], ["Dan"]]
    assert [(row.category, row.context) for row in imported.rows] == [
        (None, None),
        (None, None),
        ("4", "seen"),
        (None, None),
    ]


def test_a_row_without_id_and_text_takes_the_question_between_its_neighbours(tmp_path: Path) -> None:
    """As docs/recorded.md says of rows that are matched by order."""
    rows = ("c0:q0,Who sings?,a", ",,b", "c0:q2,Who sings?,c")
    imported = _rows_with_ids(tmp_path, *rows)
    assert imported.alignment.rows["c0:q1"].prediction == "b" and imported.alignment.by_order == {"c0:q1"}
    imported = _rows_with_ids(tmp_path, rows[0], ",,b", *rows[1:])
    assert imported.counts()["unaligned"] == 2 and "c0:q1" not in imported.alignment.rows


def test_a_question_of_ones_own_needs_gold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A blank cell was its gold, which the answer to anything holds."""
    path = _table(tmp_path, "question,gold,prediction", "Who?,,x", "What?,cat,cat")
    assert main(["import", str(path), "--as", str(tmp_path / "run"), "--dataset", "own"]) == 2
    assert "answers.csv row 1: without a data set" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_blank_column_is_none(tmp_path: Path) -> None:
    """Of two columns for one thing the blank one was taken; a place that is there and blank is not a wrong place."""
    path = _table(tmp_path, "question,gold,reference,category,prediction", "Who?,Ann,,,Ann")
    assert main(["import", str(path), "--as", str(tmp_path / "run"), "--dataset", "own"]) == 0
    assert [one.answers for one in load_references(tmp_path / "run").values()] == [["Ann"]]
    (one,) = read_rows([path], column_shape(["question", "category", "prediction"], path))
    assert one.category is None


def test_two_columns_for_one_thing_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The later one was taken, and nothing said so."""
    path = _table(tmp_path, "question,gold,prediction,hypothesis", "Who?,Ann,Ann,Bob")
    assert main(["import", str(path), "--as", str(tmp_path / "run"), "--dataset", "own"]) == 2
    said = capsys.readouterr().err
    assert "`prediction` and `hypothesis` both stand for prediction" in said
    assert "--shape FILE, key prediction" in said


@pytest.mark.parametrize(
    ("name", "sign", "answer"),
    [("a.csv", ";", "Ann, Bob"), ("a.csv", "\t", "Ann, Bob"), ("a.tsv", ",", "Ann; Bob"), ("a.csv", ",", "Ann; Bob")],
)
def test_columns_are_separated_as_the_header_has_it(tmp_path: Path, name: str, sign: str, answer: str) -> None:
    """A comma in an answer was another number of columns, and without one a column was missing."""
    (tmp_path / name).write_text(f"question{sign}prediction\nWho?{sign}{answer}\n")
    assert read_tree(tmp_path / name) == [{"question": "Who?", "prediction": answer}]


def test_the_documentation_has_every_key_of_a_shape(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "recorded.md").read_text(encoding="utf-8")
    section = page.partition("## A shape of your own")[2].partition("\n## ")[0]
    assert {one.name for one in fields(Shape)} - {"name"} == set(
        re.findall(r"`(\w+)`", " ".join(line.split("|")[1] for line in section.splitlines() if line.startswith("| `")))
    )
    (tmp_path / "mine.yaml").write_text(section.partition("```yaml\n")[2].partition("```")[0])
    rows = [{"q": "Who sings?", "reply": "Ann", "meta": {"type": 4}}]
    (tmp_path / "a.json").write_text(json.dumps({"runs": {"c0": rows}}))
    (row,) = read_rows([tmp_path / "a.json"], read_shape(tmp_path / "mine.yaml"))
    assert (row.conversation, row.question, row.prediction, row.category) == ("c0", "Who sings?", "Ann", "single-hop")


def test_times_of_a_table_are_numbers(tmp_path: Path) -> None:
    """A cell is a text, which was not a time."""
    path = _table(tmp_path, "question,prediction,ms", "A?,x,250", "B?,x,0", "C?,x,nan", "D?,x,", "E?,x,1e999")
    shape = make_shape("mine", {"question": "question", "prediction": "prediction", "answer_ms": "ms"}, "mine")
    assert [row.answer_seconds for row in read_rows([path], shape)] == [0.25, None, None, None, None]
    path = _table(tmp_path, "question,prediction,ms", "A?,x,250", "B?,x,1.2 s")
    with pytest.raises(DataError, match=r"answers.csv row 2: `ms` is '1.2 s'; a time is a number"):
        read_rows([path], shape)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (('Who?,Ann,"Ann', "What?,cat,cat"), r":3: unexpected end of data; correct the quotes there or above"),
        (('Who?,Ann,"Ann" Lee',), r":2: ',' expected after '\"'; correct the quotes there or above"),
    ],
)
def test_quotes_that_are_left_open_are_refused(tmp_path: Path, lines: tuple[str, ...], said: str) -> None:
    """All rows behind one were its cell."""
    path = _table(tmp_path, "question,gold,prediction", *lines)
    with pytest.raises(DataError, match=said):
        read_rows([path], column_shape(["question", "gold", "prediction"], path))


def test_what_stands_twice_is_refused(tmp_path: Path) -> None:
    """The last of two columns or keys of one name counted."""
    path = _table(tmp_path, "question,prediction,prediction", "Who?,Ann,Bob")
    with pytest.raises(DataError, match=r":1: column `prediction` is there twice"):
        read_rows([path], column_shape(["question", "prediction"], path))
    lines = tmp_path / "a.jsonl"
    lines.write_text(
        '{"question": "Who?", "prediction": "x"}\n{"question": "Who?", "prediction": "x", "prediction": ""}'
    )
    with pytest.raises(DataError, match=r"a.jsonl:2: an object has the key 'prediction' twice"):
        read_rows([lines], column_shape(["question", "prediction"], lines))


@pytest.mark.parametrize(
    ("field", "value", "kind"),
    [("prediction", {"text": "x"}, "an object"), ("prediction", True, "true or false"), ("gold", {"a": 1}, "an object"),
     ("gold", [["x"]], "a list"), ("question", [["Who?"]], "a list"), ("category", False, "true or false")],
)  # fmt: skip
def test_what_is_no_text_is_not_scored_as_one(tmp_path: Path, field: str, value: object, kind: str) -> None:
    """``{'text': 'x'}`` was an answer, written as Python writes it."""
    row = {"question": "Who?", "gold": "x", "prediction": "x", "category": "a", "context": [{"shown": 1}], field: value}
    path = tmp_path / "a.json"
    path.write_text(json.dumps([row]))
    with pytest.raises(DataError, match=rf"a.json row 1: `{field}` holds {kind} .*--shape FILE"):
        read_rows([path], column_shape(list(row), path))


def test_two_questions_do_not_share_an_id(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second was left out of the means as a repetition."""
    path = _table(
        tmp_path, "question_id,question,gold,prediction", "q1,Who?,Ann,Ann", "q1,who?,Ann,x", "q1,What?,cat,x"
    )
    assert main(["import", str(path), "--as", str(tmp_path / "run"), "--dataset", "own"]) == 2
    assert "answers.csv row 3: id 'q1' is that of another question" in " ".join(capsys.readouterr().err.split())


def test_a_shape_may_say_what_a_blank_cell_means(tmp_path: Path) -> None:
    path = _table(tmp_path, "question,fault,prediction", "Who?,,Ann", "What?,made up,cat")
    fault = {"path": "fault", "values": {"": "correct", "made up": "wrong"}}
    shape = make_shape("mine", {"question": "question", "prediction": "prediction", "verdicts": {"x": fault}}, "mine")
    assert [row.verdicts for row in read_rows([path], shape)] == [{"x": [True]}, {"x": [False]}]


def test_conversations_of_a_shape_may_be_numbers(tmp_path: Path) -> None:
    """YAML reads ``{7: 0}`` as numbers, which no row's text was."""
    (tmp_path / "mine.yaml").write_text(
        "{question: q, prediction: a, conversation: c, conversations: {7: c1, 8: 0}}", encoding="utf-8"
    )
    (tmp_path / "a.json").write_text(json.dumps([{"q": "Who?", "a": "x", "c": 7}, {"q": "Who?", "a": "y", "c": "8"}]))
    found = read_rows([tmp_path / "a.json"], read_shape(tmp_path / "mine.yaml"))
    assert [row.conversation for row in found] == ["c1", "0"]


def test_no_two_categories_share_a_number() -> None:
    """``food`` stands second, so it was 102 as the other."""
    assert number_categories({"102", "food"}) == {"102": 102, "food": 103}
    assert number_categories({"b", "a", "4"}) == {"4": 4, "a": 102, "b": 103}
    assert number_categories({"9" * 30}) == {"9" * 30: 101}
    assert number_categories({"adversarial", "a"}) == {"adversarial": 5, "a": 101}
    assert number_categories({"adversarial", "5"}) == {"adversarial": 102, "5": 5}


def test_a_category_of_ones_own_is_no_category_of_locomo(tmp_path: Path) -> None:
    """A 5 was adversarial, and an abstention right."""
    places = {key: key for key in ("question", "gold", "prediction", "category")}
    (tmp_path / "a.json").write_text(json.dumps([{**places, "category": "5", "grade": "CORRECT"}]))
    shape = make_shape("mine", {**places, "verdicts": {"x": "grade"}}, "mine.yaml")
    imported = import_rows([tmp_path / "a.json"], shape, None)
    write_run(imported, tmp_path / "run", Origin(system="sys"), "clag")
    assert [(one.category, one.reference.kind) for one in imported.questions] == [(5, "category_5")]
    assert not load_json(tmp_path / "run" / "judgements" / "recorded-x.json")["adversarial"]


def test_a_question_of_ones_own_may_have_no_answer(tmp_path: Path) -> None:
    """Its row was refused without gold, and with gold in words declining was a wrong answer."""
    said = ("Bob", "Not mentioned in the conversation", "No information available", "In May")
    rows = [
        {"question": f"Q{number}?", "prediction": reply, "category": "adversarial", "gold": []}
        for number, reply in enumerate(said)
    ]
    rows[0] |= {"category": "people", "gold": "Bob"}
    rows[2] |= {"gold": "Not answerable"}
    (tmp_path / "a.json").write_text(json.dumps(rows))
    run = tmp_path / "out" / "mine"
    assert main(["import", str(tmp_path / "a.json"), "--as", str(run), "--dataset", "own"]) == 0
    scored = {row.question_id: row for row in score_run(run)}
    assert [(row.category, row.kind) for row in scored.values()] == [
        (102, "category_people"),
        *[(5, "adversarial")] * 3,
    ]
    assert [row.metrics["abstained"] for row in scored.values()] == [0.0, 1.0, 1.0, 0.0]
    assert [row.metrics["f1_set"] is None for row in scored.values()] == [False, True, False, True]


def test_a_run_folder_is_scored_and_says_what_it_lacks(tmp_path: Path) -> None:
    imported = _import(tmp_path, {"0": [_mem0("Who dances?", "Bob", "Bob", "2")]}, "mem0_eval")
    run = tmp_path / "run"
    write_run(imported, run, Origin(system="sys"), "clag")
    rows = score_run(run)
    summary = summarise(run)
    answer = load_answers(run)["c0:q1"]
    assert rows[0].metrics["f1_set"] == 1.0 and "e_recall" not in rows[0].metrics
    assert answer.answer_seconds is None and answer.prompt_tokens is None
    assert summary["calls"] is None and summary["cost"] is None and summary["memory"] is None
    assert summary["judges"]["judge_recorded_recorded"]["correct"] == 1.0
    assert load_judged(run)[0].shares() == {"c0:q1": 1.0}
    assert "recorded elsewhere; lacks the reader's context" in load_json(run / "run.json")["problems"]
    with pytest.raises(RunDirectoryError, match="is not empty"):
        write_run(imported, run, Origin(system="sys"), "clag")
    with pytest.raises(RunDirectoryError, match=r"answers\.json is a file; choose another --as"):
        write_run(imported, tmp_path / "answers.json", Origin(system="sys"), "clag")
    with pytest.raises(RunDirectoryError, match=r"cannot make .* choose another --as"):
        write_run(imported, tmp_path / "answers.json" / "run", Origin(system="sys"), "clag")


def test_two_columns_and_own_gold_suffice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "a.csv"
    table.write_text("question,prediction,gold\nWho?,Bob,Bob\n")
    run = tmp_path / "out" / "mine"
    assert main(["import", str(table), "--as", str(run), "--dataset", "own"]) == 0
    assert "1 of 1 rows aligned" in capsys.readouterr().out
    table.write_text("question,ansver\nWho?,Bob\n")
    assert main(["import", str(table), "--as", str(run), "--dataset", "own"]) == 2
    assert "needs `prediction`" in capsys.readouterr().err


def test_own_answers_have_the_protocol_of_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They had that of the catalogue's runs, and were not compared with a run unless ``--protocol`` was named."""
    table = tmp_path / "a.csv"
    table.write_text("question,prediction,gold\nWho?,Bob,Bob\n")
    theirs = _import(tmp_path, {"0": [_mem0("Who dances?", "Bob", "Bob", "2")]}, "mem0_eval")
    monkeypatch.setattr("eval.audit.recorded.catalogue.import_entry", lambda entry: theirs)
    own, entry = [str(table), "--dataset", "own"], ["--entry", "sage_sage"]
    found = []
    for number, options in enumerate((own, [*own, "--protocol", "sage"], entry, [*entry, "--protocol", "sage"])):
        assert main(["import", *options, "--as", str(tmp_path / f"run{number}")]) == 0
        found.append(load_json(tmp_path / f"run{number}" / "run.json")["config"]["protocol"]["name"])
    assert found == ["clag", "sage", "xmemory", "sage"]
    assert main(["import", *own, "--protocol", "nope", "--as", str(tmp_path / "run")]) == 2
    assert "protocol='nope' is unknown; choose one of beam, clag" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "run").exists()


def test_a_file_without_categories_is_no_gap_of_a_protocol(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its questions were of the kind category_101, which no protocol has a label for."""
    table, run = tmp_path / "a.csv", str(tmp_path / "run")
    table.write_text("question,prediction,gold\nWho?,Bob,Bob\nWhere?,here,there\n")
    assert main(["import", str(table), "--as", run, "--dataset", "own"]) == 0
    assert score([run, "--metrics", "f1_set"]) == 0
    assert compare([run, "--out", str(tmp_path / "out")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "no label for questions" not in shown
    assert summarise(tmp_path / "run")["protocols"]["clag"]["unlabelled_kinds"] == ["without_category"]


@pytest.mark.parametrize(
    "order",
    [
        ["FILE", "SETTING", "--dataset", "custom", "--as", "RUN"],
        ["FILE", "--as", "RUN", "--dataset", "custom", "SETTING"],
        ["FILE", "--as", "RUN", "dataset=custom", "SETTING"],
    ],
)
def test_own_answers_to_own_data(tmp_path: Path, order: list[str]) -> None:
    """The setting that says where the data lie was asked for, and then refused."""
    sample = [f"dataset.data_dir={sample_path('custom', 'sample')}", "conversations=[ines-and-tom]"]
    asked = load_questions("custom", {"data_dir": str(sample_path("custom", "sample"))}).questions
    table = tmp_path / "a=b.csv"
    table.write_text("question_id,prediction\n" + "".join(f"{one.question_id},Pixel\n" for one in asked[:2]))
    given = {"FILE": [str(table)], "SETTING": sample, "RUN": [str(tmp_path / "run")]}
    assert main(["import", *(word for part in order for word in given.get(part, [part]))]) == 0
    record = load_json(tmp_path / "run" / "run.json")
    assert record["config"]["dataset"] == {"name": "custom", "conversations": ["ines-and-tom"]}
    assert load_answers(tmp_path / "run").keys() == {one.question_id for one in asked[:2]}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--as", "RUN", "--dataset", "own", "data_dir=x"], "dataset.data_dir=: --dataset own has no settings"),
        (["--as", "RUN", "--dataset", "custom", "folder=x"], "dataset custom has no setting folder"),
        (["--as", " ", "--dataset", "own"], "--as is empty"),
        (["--as", "RUN", "--dataset", "own", "--cutoff", "10"], "--cutoff 10: this shape has no cut-offs"),
        (
            ["--as", "RUN", "--dataset", "own", "EMPTY"],
            "empty.csv: has a header and no rows; write one",
        ),
        (["--as", "RUN", "--entry", "x", "--dataset", "own"], "--entry x has files, shape and data set of its own"),
        (["--as", "RUN", "--dataset", "locomo_sample"], "none of the 1 recorded rows asks a question of locomo_sample"),
    ],
)
def test_what_cannot_be_imported_leaves_no_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    """Options that do not go together were left out without a word, and a run without any answer was written."""
    table = tmp_path / "answers.csv"
    table.write_text("question,gold,prediction\nWhat is the cat called?,Pixel,Pixel\n")
    empty = tmp_path / "empty.csv"
    empty.write_text("question,gold,prediction\n")
    files = [] if "EMPTY" in options else [str(table)]
    places = {"RUN": str(tmp_path / "run"), "EMPTY": str(empty)}
    assert main(["import", *files, *(places.get(option, option) for option in options)]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "run").exists()


def test_the_catalogue_is_whole() -> None:
    entries = load_catalogue().entries
    assert len(entries) == 60
    assert all(
        len(file.sha256) == 64 and file.url.startswith("https://raw.githubusercontent.com/")
        for one in entries.values()
        for file in one.pinned
    )


def test_a_folder_that_cannot_be_written_is_one_message_for_each_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("eval.audit.recorded.fetching.fetch", full)
    assert not fetch_entry(next(iter(load_catalogue().entries.values())), tmp_path)
    assert "No space left on device" in capsys.readouterr().err


def _rows_with_ids(tmp_path: Path, *rows: str) -> Imported:
    path = tmp_path / "answers.csv"
    path.write_text("\n".join(["question_id,question,prediction", *rows]) + "\n")
    shape = column_shape(["question_id", "question", "prediction"], path)
    return import_rows([path], shape, QUESTIONS, by_order=True)


def test_an_unknown_id_answers_nothing(tmp_path: Path) -> None:
    """It took the question that no row had, as if it stood at its place."""
    imported = _rows_with_ids(tmp_path, "c0:q0,,a", "c0:qX,,b", "c0:q2,,c")
    assert set(imported.alignment.rows) == {"c0:q0", "c0:q2"} and not imported.alignment.by_order
    assert imported.counts()["unaligned"] == 1
    (place,) = imported.lists()["unaligned"]
    assert place.endswith("(c0:qX)")


def test_an_id_and_a_text_of_two_questions_answer_neither(tmp_path: Path) -> None:
    imported = _rows_with_ids(tmp_path, "c0:q0,Who dances?,a", "c0:q1,Who dances?,b")
    assert {name: row.prediction for name, row in imported.alignment.rows.items()} == {"c0:q1": "b"}
    assert imported.counts()["id_and_text_of_two_questions"] == 1
