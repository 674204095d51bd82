"""The table of overruled facts: hand-worked shares, answers by what was shown, and what is not known."""

import csv
import io

import pytest

from eval.results.own.memory_quality import QualityGroup, quality_groups
from eval.results.own.stages import MeanScore
from eval.results.own.updates import update_groups, update_lines, updates_page
from eval.results.stored_run import StoredRun
from eval.runs.records import ScoreRow

#: Question -> category, its figures (stored, retrieved, in context, staleness, of the question), whether the answer was
#: right.
ASKED = {
    "q0": (4, (1.0, 1.0, 1.0, 0.1, 0.0), 1.0),
    "q1": (4, (1.0, 0.0, 1.0, 0.3, 0.1), 0.0),
    "q2": (1, (0.0, 0.0, 0.0, 0.5, 0.2), 1.0),
    "q3": (1, (None, None, None, None, None), 1.0),  # nothing overruled: in no figure
}
OWN = "staleness_of_question"
NAMES = ("newest_stored", "newest_retrieved", "newest_in_context", "staleness", "staleness_of_question")


def run_of(dataset: str = "factconsolidation", *, name: str = "rag", conversation: str = "c") -> StoredRun:
    rows = tuple(
        ScoreRow(question, conversation, category, {**dict(zip(NAMES, figures, strict=True)), "substring_em": right},
                 "single_hop" if category == 4 else "multi_hop")
        for question, (category, figures, right) in ASKED.items()
    )  # fmt: skip
    protocol = {"name": "factconsolidation"}
    config = {"memory": {"name": name}, "dataset": {"name": dataset}, "backbone": {"name": "b"}, "protocol": protocol}
    record = {"run_id": f"x/{name}-{conversation}", "config": config, "mode": "full", "seed": 0, "data": {}}
    return StoredRun(record, {}, {}, rows)


def groups_of(*runs: StoredRun) -> list[QualityGroup]:
    return update_groups(quality_groups(runs))


def test_figures_by_hand() -> None:
    everything, multi, single = update_lines(run_of())
    assert [one.label for one in (everything, multi, single)] == ["all", "multi-hop", "single-hop"]
    assert everything.questions == 3
    assert everything.shares == pytest.approx(
        {"newest_stored": 200 / 3, "newest_retrieved": 100 / 3, "newest_in_context": 200 / 3, "staleness": 30.0,
         "staleness_of_question": 10.0}
    )  # fmt: skip
    assert everything.answer == MeanScore(3, pytest.approx(200 / 3))
    assert (everything.shown, everything.unshown) == (MeanScore(2, 50.0), MeanScore(1, 100.0))
    assert (single.questions, single.shares["staleness"]) == (2, pytest.approx(20.0))
    assert multi.shown == MeanScore(0, None)


def test_all_formats_show_the_figures_and_a_dash_for_what_is_not_known() -> None:
    groups = groups_of(run_of())
    page, data, latex = updates_page(groups).files.values()
    row = "| rag | all | 3 | 66.7 | 33.3 | 66.7 | 30.0 | 10.0 | 66.7 | 50.0 (2) | 100.0 (1) | – |"
    assert row in page and "– (0)" in page and "`x/rag-c`" in page
    assert "30.0" in latex
    first, *_ = csv.DictReader(io.StringIO(data))
    assert (first["staleness"], first["n_answer_newest_shown"], first["entries_overruled"]) == ("30.0000", "2", "")


def test_data_without_updates_has_no_table() -> None:
    run = run_of("locomo")
    bare = StoredRun(run.record, {}, {}, tuple(ScoreRow(r.question_id, "c", 4, {"f1_set": 1.0}) for r in run.rows))
    assert groups_of(bare) == [] and update_lines(bare) == []
    assert updates_page([]).files["knowledge_updates.csv"].count("\n") == 1


def test_groups_of_equal_size_name_their_conversations() -> None:
    small = run_of(conversation="sh_6k")
    rows = tuple(ScoreRow(f"o{r.question_id}", "sh_32k", r.category, r.metrics, r.kind) for r in small.rows)
    other = StoredRun({**small.record, "run_id": "x/rag-32"}, {}, {}, rows)
    titles = {group.title for group in groups_of(small, other)}
    assert titles == {f"factconsolidation, backbone b, 4 questions of {name}" for name in ("sh_6k", "sh_32k")}
    assert groups_of(small)[0].title == "factconsolidation, backbone b, 4 questions"
