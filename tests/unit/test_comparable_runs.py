"""Which runs are put into one figure, table or board: those that were asked the same of the same data."""

from eval.scoring.rows import ScoreRow
from eval.tables.groups import comparable_runs
from eval.tables.stored import StoredRun


def _run(name: str, data: str = "a" * 64, questions: tuple[str, ...] = ("q1", "q2")) -> StoredRun:
    config = {part: {"name": value} for part, value in (("dataset", "custom"), ("memory", name), ("backbone", "tiny"))}
    rows = tuple(ScoreRow(question, "c", 4, {"f1_set": 1.0}) for question in questions)
    return StoredRun({"run_id": name, "data": {"sha256": data}, "config": config, "mode": "answers"}, {}, {}, rows)


def test_data_of_two_folders_whose_questions_have_the_same_ids_are_two_groups() -> None:
    first, second = comparable_runs([_run("rag"), _run("amem"), _run("clag", "b" * 64)])
    assert [run.run_id for run in first.runs] == ["rag", "amem"]
    assert [run.run_id for run in second.runs] == ["clag"]
    assert first.key != second.key and first.title() != second.title()
    assert first.checksum in first.title()


def test_one_data_set_needs_no_checksum() -> None:
    alone, fewer = comparable_runs([_run("rag"), _run("amem", questions=("q1",))])
    assert alone.data == fewer.data == "" and alone.which == fewer.which == ""
    assert (alone.key, fewer.key) == ("custom_tiny_2", "custom_tiny_1")


def test_questions_about_one_conversation_that_differ_keep_their_checksum_whatever_the_data() -> None:
    once, other = comparable_runs([_run("rag"), _run("amem", questions=("q1", "q3"))])
    again, *_ = comparable_runs([_run("rag", "c" * 64), _run("amem", "c" * 64, ("q1", "q3"))])
    assert once.checksum == again.checksum != other.checksum
