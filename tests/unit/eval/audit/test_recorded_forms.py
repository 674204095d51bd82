"""Files of recorded answers as people have them: other quotes, other orders, forms that nobody named."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from eval.audit.recorded.catalogue import load_catalogue
from eval.audit.recorded.folding import folded, without_accents
from eval.audit.recorded.guess import guess_shape
from eval.audit.recorded.shapes import make_shape, read_shape
from eval.loaders.trees import read_tree
from eval.recorded import main
from eval.runs.load import load_answers
from eval.score import main as score
from memsys.errors import ConfigError, DataError

TURN = {"conversation": "c1", "session": "1", "id": "1", "speaker": "Ann", "text": "My cat is called Pixel."}


def _data(folder: Path, *texts: str, gold: str = "Pixel", ids: str = "q") -> Path:
    """Write a data set whose questions have some texts."""
    folder.mkdir(exist_ok=True)
    asked = [
        {"conversation": "c1", "id": f"{ids}{number}", "question": text, "answers": [f"{gold}{number}"]}
        for number, text in enumerate(texts, 1)
    ]
    (folder / "turns.jsonl").write_text(json.dumps(TURN) + "\n")
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    return folder


def _run(tmp_path: Path, content: str, *options: str, name: str = "a.json", texts: tuple[str, ...] = ()) -> int:
    data = _data(tmp_path / "data", *(texts or ("What is the cat called?", "Where did Ben's sister move?")))
    (tmp_path / name).write_text(content, encoding="utf-8")
    given = [str(tmp_path / name), "--as", str(tmp_path / "run"), "--dataset", "custom", f"dataset.data_dir={data}"]
    return main(["import", *given, *options])


def _answers(tmp_path: Path) -> Mapping[str, str]:
    return {name: one.prediction for name, one in load_answers(tmp_path / "run").items()}


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ("Where did Ben's sister move?", "Where did Ben\u2019s sister move ?"),
        ("Who said \"well-known\"?", "Who said \u201cwell\u2013known\u201d"),
        ("What is a cafe\u0301?", "what is a  caf\u00e9?"),
        ("Who is 5 years old?", "Who is \uff15 years old\uff1f"),
        ("Is it \ufb01ne?", "Is it fine?"),
        ("Who... knows?", "Who\u2026 knows\u200b?"),
    ],
)  # fmt: skip
def test_texts_are_compared_without_their_signs(asked: str, written: str) -> None:
    assert folded(asked) == folded(written)


def test_sound_marks_of_other_scripts_are_no_accents() -> None:
    assert without_accents("Qui est André?") == "qui est andre"
    assert without_accents("が") != without_accents("か")


def test_quotes_and_order_that_differ_do_not_swap_answers(tmp_path: Path) -> None:
    """Both rows took the question at their place, and Pixel was the answer to where the sister lives."""
    table = 'question,prediction\n"Where did Ben\u2019s sister move?",Oslo\nWhat is the cat called ?,Pixel\n'
    assert _run(tmp_path, table, name="a.csv") == 0
    assert _answers(tmp_path) == {"q1": "Pixel", "q2": "Oslo"}


def test_an_exact_text_goes_before_one_without_accents(tmp_path: Path) -> None:
    rows = [{"question": "Who is André?", "prediction": "a"}, {"question": "who is Andre", "prediction": "b"}]
    assert _run(tmp_path, json.dumps(rows), texts=("Who is Andre?", "Who is André?")) == 0
    assert _answers(tmp_path) == {"q2": "a", "q1": "b"}


def test_order_alone_is_refused_unless_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"question": text, "prediction": text} for text in ("Name of the cat?", "Home of the sister?")]
    assert _run(tmp_path, json.dumps(rows)) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "rows that match no question of the data set: 2 (the first is a.json row 1" in said
    assert "--by-order" in said and not (tmp_path / "run").exists()
    assert _run(tmp_path, json.dumps(rows), "--by-order") == 0
    assert _answers(tmp_path) == {"q1": "Name of the cat?", "q2": "Home of the sister?"}


def test_one_text_of_several_questions_is_decided_by_gold_or_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ("Who sings?", "Who sings?", "Who sings")
    rows = [{"question": "Who sings", "prediction": "x", "gold": "Pixel2"}]
    assert _run(tmp_path, json.dumps(rows), texts=texts[:2]) == 0
    assert set(_answers(tmp_path)) == {"q2"}
    rows = [{"question": "who sings?", "prediction": "x"}] * 2
    assert _run(tmp_path, json.dumps(rows), texts=texts) == 2
    assert "several questions, also by conversation, gold and category: 2 " in " ".join(capsys.readouterr().err.split())


def test_a_text_of_several_questions_is_taken_between_its_neighbours(tmp_path: Path) -> None:
    texts = ("Who sings?", "Who cooks?", "Who sings?", "Who runs?")
    rows = [{"question": text, "prediction": text} for text in ("Who cooks?", "Who sings?", "Who runs?")]
    assert _run(tmp_path, json.dumps(rows), texts=texts) == 2
    assert _run(tmp_path, json.dumps(rows), "--by-order", texts=texts) == 0
    assert set(_answers(tmp_path)) == {"q2", "q3", "q4"}


LINES = '{"question_id": "q1", "hypothesis": "Pixel"}\n{"question_id": "q2", "hypothesis": "Oslo"}\n'


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.json", '{"q1": "Pixel", "q2": "Oslo"}', "shape id_to_answer"),
        ("a.json", '{"What is the cat called": "Pixel", "Where did Ben\u2019s sister move": "Oslo"}', "id_to_answer"),
        ("a.json", '{"answer": {"q1": "Pixel", "q2": "Oslo"}, "sp": {"q1": [["A", 0]]}}', "shape hotpotqa_prediction"),
        ("a.json", LINES, ""),
        ("a.jsonl", json.dumps([json.loads(line) for line in LINES.splitlines()], indent=1), ""),
        ("a.jsonl", json.dumps([json.loads(line) for line in LINES.splitlines()]), ""),
        ("a.json", '{"model": "m", "results": [{"question_id": "q1", "prediction": "Pixel"}, '
                   '{"question_id": "q2", "prediction": "Oslo"}]}', ""),
        ("a.json", '{"q1": {"prediction": "Pixel"}, "q2": {"prediction": "Oslo"}}', ""),
        ("a.json", '[{"sample_id": "c1", "qa": [{"question": "What is the cat called?", "answer": "-", "category": 1, '
                   '"gpt_prediction": "Pixel", "gpt_f1": 1}, {"question": "Where did Ben\'s sister move?", '
                   '"answer": "-", "category": 1, "gpt_prediction": "Oslo"}]}]', "shape locomo_qa:"),
    ],
)  # fmt: skip
def test_known_forms_need_no_shape(
    tmp_path: Path, name: str, content: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each was refused, or asked for ``--shape`` though a known one fits."""
    assert _run(tmp_path, content, name=name) == 0
    assert _answers(tmp_path) == {"q1": "Pixel", "q2": "Oslo"}
    assert said in capsys.readouterr().out


def test_of_shapes_that_fit_the_one_with_more_places_is_taken(tmp_path: Path) -> None:
    row = {"question_id": "q1", "answer": "Pixel", "hypothesis": "x", "question_type": "t", "evaluation": "correct"}
    shapes = load_catalogue().shapes
    for given, name in ((row, "longmemeval_list"), ({"question_id": "q1", "hypothesis": "x"}, "columns")):
        (tmp_path / "a.json").write_text(json.dumps([given]))
        assert guess_shape([tmp_path / "a.json"], shapes.values()).name == name


def test_a_file_of_another_encoding_has_a_known_shape(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes('{"question_id": "q1", "hypothesis": "杭州"}\n'.encode("gb18030") * 2)
    assert guess_shape([tmp_path / "a.jsonl"], load_catalogue().shapes.values()).encoding == "gb18030"


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ({"0": [{"question": "Q?", "answer": "g", "response": "x", "category": "1"}]},
         "of the known shapes mem0_eval is nearest (--shape mem0_eval), but no row has `llm_score`"),
        ([{"ansver": "x"}], "a.json: columns ansver: needs `prediction` and one of"),
        ("no rows", "is not a list of rows; say with --shape"),
    ],
)  # fmt: skip
def test_where_no_shape_fits_the_nearest_is_proposed(
    tmp_path: Path, tree: object, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(tmp_path, json.dumps(tree)) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_of_several_shapes_that_fit_none_is_taken(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([{"q": "Who?", "left": "x", "right": "y"}]))
    shapes = [make_shape(name, {"question": "q", "prediction": name}, name) for name in ("left", "right")]
    with pytest.raises(DataError, match=r"the shapes left, right all fit: choose one with --shape"):
        guess_shape([tmp_path / "a.json"], shapes)


def test_missing_data_are_said_before_a_missing_shape(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.json").write_text('[{"a": 1}]')
    given = [str(tmp_path / "a.json"), "--as", str(tmp_path / "run"), "--dataset", "locomo"]
    assert main(["import", *given, f"dataset.data_dir={tmp_path}"]) == 2
    assert "locomo10.json" in capsys.readouterr().err


def test_a_prediction_that_several_keys_may_be_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"question": "What is the cat called?", "answer": "-", "category": 1, "a_prediction": "x", "b_prediction": ""}
    assert _run(tmp_path, json.dumps([{"sample_id": "c1", "qa": [row]}]), "--shape", "locomo_qa") == 2
    assert "`*_prediction` may be a_prediction, b_prediction; name one" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("yaml", "message"),
    [
        ("[" * 5000, "too deep inside each other"),
        ("{a: " * 5000, "too deep inside each other"),
        ("{question: q, prediction: a, encoding: nope}", "encoding='nope' is not an encoding of text"),
        ("{question: q, prediction: a, encoding: hex}", "encoding='hex' is not an encoding of text"),
        ("{question: q, prediction: a, encoding: undefined}", "is not an encoding of text"),
        ('{question: q, prediction: a, encoding: "utf-8\\0"}', "is not an encoding of text"),
        (f"{{question: q, prediction: {{path: a, pattern: '{'(' * 20000}'}}}}", "pattern has 20000 characters"),
        (
            f"{{question: q, prediction: {{path: a, pattern: '{'(' * 900 + ')' * 900}'}}}}",
            "is not a regular expression",
        ),
        (f"{{question: q, prediction: a, rows: '{'[]' * 20000}'}}", "rows has more than 100 steps"),
    ],
)
def test_a_shape_that_nobody_wrote_is_one_message(tmp_path: Path, yaml: str, message: str) -> None:
    """Each was a traceback."""
    (tmp_path / "mine.yaml").write_text(yaml)
    with pytest.raises(ConfigError) as raised:
        read_shape(tmp_path / "mine.yaml")
    assert message in str(raised.value) and len(str(raised.value)) < 600


def test_a_message_lists_the_first_columns_alone(tmp_path: Path) -> None:
    """All of 200,000 were listed."""
    (tmp_path / "a.json").write_text(json.dumps([{f"{number}{'x' * 99}": 1 for number in range(200_000)}]))
    with pytest.raises(DataError) as raised:
        guess_shape([tmp_path / "a.json"], [])
    assert "and 199992 more" in str(raised.value) and len(str(raised.value)) < 800


@pytest.mark.parametrize("content", ['{"a": 1}\n{"a"', '[{"a": 1},\n{"a"'])
def test_damaged_lines_are_still_named(tmp_path: Path, content: str) -> None:
    for name in ("a.json", "a.jsonl"):
        (tmp_path / name).write_text(content)
        with pytest.raises(DataError, match="line 2"):
            read_tree(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("..", "--as '..' is not a name of a folder"),
        (".", "is where all runs are stored"),
        ("a/..", "is not a name of a folder"),
        ("x" * 400, "is not a name of a folder"),
        ("a\0b", "is not a name of a folder"),
        ("RUNS", "is where all runs are stored; name a folder in it"),
    ],
)
def test_a_run_does_not_take_the_place_of_all_runs(
    tmp_path: Path, name: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--as ..`` made ``results/runs`` a run, and a long name was a traceback."""
    monkeypatch.setattr("eval.recorded.RUNS", tmp_path / "runs" / "recorded")
    named = str(tmp_path / "runs") if name == "RUNS" else name
    (tmp_path / "a.csv").write_text("question,gold,prediction\nWho?,Ann,Ann\n")
    assert main(["import", str(tmp_path / "a.csv"), "--as", named, "--dataset", "own"]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("word", ["x" * 400 + ".csv", "x" * 400 + "=1", "x" * 5000])
def test_a_long_word_is_one_message(tmp_path: Path, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", word, "--as", str(tmp_path / "run"), "--dataset", "custom"]) == 2
    assert main(["import", "a.csv", "--as", str(tmp_path / "run"), "--dataset", word]) == 2
    assert main(["import", "a.csv", "--as", str(tmp_path / "run"), "--dataset", "own", "--shape", word]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_what_a_killed_import_left_is_no_hindrance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own command was refused: the folder was not empty."""
    (tmp_path / "a.csv").write_text("question,gold,prediction\nWho?,Ann,Ann\n")
    given = ["import", str(tmp_path / "a.csv"), "--as", str(tmp_path / "out" / "run"), "--dataset", "own"]
    for moment in ("_answer", "write_json"):
        with monkeypatch.context() as stopped:
            stopped.setattr(f"eval.audit.recorded.run_folder.{moment}", _stopped)
            assert main(given) == 130
        assert not any((tmp_path / "out").iterdir())
    left = tmp_path / "out" / ".run.part" / "judgements"
    left.mkdir(parents=True)
    (left / "a.jsonl").write_text("{")
    assert main(given) == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["run"]


def _stopped(*given: object) -> None:
    raise KeyboardInterrupt


def test_a_folder_of_runs_is_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As docs/scores.md says of most commands; the folder was refused."""
    (tmp_path / "a.csv").write_text("question,gold,prediction\nWho?,Ann,Ann\n")
    for name in ("one", "two"):
        run = str(tmp_path / "runs" / name)
        assert main(["import", str(tmp_path / "a.csv"), "--as", run, "--dataset", "own"]) == 0
    assert score([str(tmp_path / "runs"), "--metrics", "f1_set"]) == 0
    assert all((tmp_path / "runs" / name / "scores.jsonl").is_file() for name in ("one", "two"))
    assert score([str(tmp_path)]) == 0
    (tmp_path / "empty").mkdir()
    assert score([str(tmp_path / "empty")]) == 2
