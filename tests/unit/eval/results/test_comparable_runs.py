"""Which runs are put into one figure, table or board: those that were asked the same of the same data."""

from eval.results.stored_run import StoredRun
from eval.results.tables.groups import comparable_runs
from eval.results.tables.run_groups import find_groups
from eval.runs.records import ScoreRow


def _run(name: str, data: str = "a" * 64, questions: tuple[str, ...] = ("q1", "q2"), reader: str = "clag") -> StoredRun:
    parts = {"dataset": "custom", "memory": name, "backbone": "tiny", "reader": reader}
    config = {part: {"name": value} for part, value in parts.items()}
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


def test_runs_of_two_readers_are_two_groups_that_name_them() -> None:
    """Each reader's own prompts count as our wording, so that their answers were ranked together."""
    runs = [_run("rag"), _run("amem", reader="xmemory"), _run("clag")]
    first, second = comparable_runs(runs)
    assert [run.run_id for run in first.runs] == ["rag", "clag"]
    assert (first.title(), second.title()) == (
        "custom, tiny, reader clag, 2 questions", "custom, tiny, reader xmemory, 2 questions"
    )  # fmt: skip
    assert (first.key, second.key) == ("custom_tiny_2_clag", "custom_tiny_2_xmemory")
    assert [group.systems for group in find_groups(runs)] == [(0, 2), (1,)]


def test_one_reader_is_not_named() -> None:
    (alone,) = comparable_runs([_run("rag", reader="xmemory")])
    assert alone.title() == "custom, tiny, 2 questions"
