"""The audit of published answers, on scores made here and on the real files where they are."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eval.audit.config import AuditConfig
from eval.audit.field import headlines, renamed, rerun_only
from eval.audit.people import Labelled, agreement, best_threshold, length_bias
from eval.audit.readings import RunReading, estimate
from eval.audit.scores import AnsweredQuestion, ScoredRun, score_entry
from eval.recorded.catalogue import CatalogueEntry, PrintedScore, find_entry, recorded_folder
from eval.scoring.labels import under
from eval.scoring.rows import ScoreRow
from memsys.errors import ConfigError, ScoringError

ENTRY = CatalogueEntry("made", "a/b", "0" * 40, "MIT", {"a.json": "0" * 64}, "mem0_eval")


def _answer(number: int, category: int = 4, value: float = 1.0, right: bool = True, **more: object) -> AnsweredQuestion:
    made = AnsweredQuestion(
        f"q{number}", f"c{number % 2}", category, {"f1_set": value}, {}, {"judge": float(right)},
        False, False, 2, 1, False, f"d{number}", False,
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


def _run(
    *answers: AnsweredQuestion, entry: CatalogueEntry = ENTRY, categories: dict[str, dict[str, int]] | None = None
) -> ScoredRun:
    return ScoredRun(entry, {}, categories or {}, answers)


def test_views_and_countings_of_the_same_answers() -> None:
    run = _run(
        _answer(0, 1, 0.2),
        _answer(1, 4, 0.6),
        _answer(2, 4, 0.0, doubtful=True, corrected={"f1_set": 1.0}),
    )

    def mean(labels: str, counting: str) -> float:
        found = estimate(run, RunReading("f1_set", labels, counting))  # type: ignore[arg-type]
        assert found is not None
        return found.value

    assert mean("printed", "question") == pytest.approx(100 * 0.8 / 3)
    assert mean("masked", "question") == pytest.approx(40)
    assert mean("corrected", "question") == pytest.approx(60)
    assert mean("printed", "category") == pytest.approx(25)


def test_a_printed_number_is_held_against_both_means() -> None:
    entry = replace(ENTRY, printed=(PrintedScore(25.0, "f1_set", "here"),))
    row = headlines([_run(_answer(0, 1, 0.2), _answer(1, 4, 0.6), _answer(2, 4, 0.0), entry=entry)])[0]
    assert (row["nearest"], row["holds"]) == ("category mean", True)


def test_running_failures_again_is_found() -> None:
    answers = [_answer(number, right=number >= 5, rerun=number < 6) for number in range(40)]
    found = rerun_only(_run(*answers))
    assert (found["run_again"], found["errors"], found["errors_among_run_again"]) == (6, 5, 5)
    assert float(str(found["rerun_p"])) == pytest.approx(6 / 658_008)  # C(6,5) C(34,0) / C(40,5)


def test_renamed_categories_are_found_by_name_and_by_printed_score() -> None:
    by_name = _run(_answer(0, 1), categories={"single-hop": {"1": 1}})
    assert renamed(by_name) == ["single-hop=multi-hop"]
    entry = replace(ENTRY, categories={"multi-hop": 50.0})
    by_score = _run(_answer(0, 2), _answer(1, 2, right=False), _answer(2, 1), entry=entry)
    assert renamed(by_score) == ["multi-hop=temporal"]


def test_agreement_with_labels_by_hand() -> None:
    values, right = np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True])
    assert best_threshold(values, right) == pytest.approx(0.35)
    found = agreement(Labelled(values, right, np.array([0, 1, 0, 1])), 200)
    assert found["accuracy"] == pytest.approx(75)
    assert found["auc"] == pytest.approx(0.75)  # three of four pairs in order
    assert found["kappa"] == pytest.approx(0.5)
    assert found["tau"] == pytest.approx(2 / np.sqrt(4 * 6))


def test_one_run_has_no_other_to_correlate_its_lengths_with() -> None:
    run = _run(_answer(0, 1, 0.2, words=1), _answer(1, 4, 0.6, words=3), _answer(2, 4, 0.9, words=9))
    rows = length_bias([run], AuditConfig(("f1_set",), 100, "", "", 1))
    assert [row["metric"] for row in rows] == ["f1_set", "judge"]  # no answer has a METEOR score
    assert rows[0]["within_run"] == pytest.approx(0.987, abs=1e-3)
    assert np.isnan(rows[0]["within_question"]) and np.isnan(rows[0]["between_runs"])


def test_stored_scores_under_a_view() -> None:
    plain = ScoreRow("q0", "c0", 4, {"f1_set": 0.5})
    disputed = ScoreRow("q1", "c0", 4, {"f1_set": 0.0, "doubtful_answer": 1.0, "f1_set@corrected": 1.0})
    assert under([plain, disputed], "masked") == [plain]
    assert [row.metrics["f1_set"] for row in under([plain, disputed], "corrected")] == [0.5, 1.0]
    bare = replace(disputed, metrics={"f1_set": 0.0, "doubtful_answer": 1.0})
    with pytest.raises(ScoringError, match="scored without the corrected labels"):
        under([plain, bare], "corrected")
    with pytest.raises(ConfigError, match="choose one of printed, masked, corrected, adversarial_masked"):
        under([plain], "other")  # type: ignore[arg-type]


def test_the_audit_takes_texts_alone() -> None:
    with pytest.raises(ConfigError, match="bert_f1 needs a model"):
        AuditConfig(["bert_f1"], 200, "", "", 1)


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["sage_sage", "memu", "human_labels", "mem0_platform_top50"])
def test_own_scores_agree_with_the_check_values(name: str) -> None:
    entry = find_entry(name)
    if not os.environ.get("MEMSYS_DATA") or not Path(recorded_folder() / entry.pinned[0].name).is_file():
        pytest.skip("needs MEMSYS_DATA and MEMSYS_RECORDED")
    run = score_entry(entry, ["f1_squad"])
    for metric, check in (("f1_squad", "f1_multiset"), ("judge", "judge")):
        mean = estimate(run, RunReading(metric, "printed", "question"))
        assert mean is not None and mean.value == pytest.approx(entry.check[check], abs=0.2)
