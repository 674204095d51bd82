"""Evidence in a context next to a search's in as many tokens, by hand."""

import csv
import io

from eval.results.own.equal import equal_groups, equal_page
from eval.results.own.matched_tokens import difference, fitting, in_as_many, wide_runs
from eval.results.own.memory_quality import quality_groups
from eval.results.stored_run import StoredRun
from eval.runs.records import ScoreRow

CURVE = ("recall_tokens@256", "recall_tokens@512", "recall_tokens@1024", "recall_tokens@2048")


def made(name: str, metrics: list[dict[str, float | None]], *, model: bool = True, sha: str = "d") -> StoredRun:
    rows = tuple(ScoreRow(f"q{number}", "c", 4, found, "single_hop") for number, found in enumerate(metrics))
    config = {"memory": {"name": name}, "dataset": {"name": "locomo"}, "protocol": {"name": "clag"}}
    config |= {"backbone": {"name": "m"}, "reader": {"name": "r"}} if model else {}
    mode = "run" if model else "retrieval_only"
    record = {"run_id": f"x/{name}", "config": config, "mode": mode, "seed": 0, "data": {"sha256": sha}}
    return StoredRun(record, {}, {}, rows)


def wide(last: float = 8192.0) -> StoredRun:
    first = dict(zip(CURVE, (0.0, 0.5, 0.5, 1.0), strict=True)) | {"recall_tokens_area": 0.5}
    other = dict(zip(CURVE, (1.0, 1.0, 1.0, 1.0), strict=True)) | {"recall_tokens_area": 0.9}
    return made("rag", [{**first, "context_chars": 9000.0}, {**other, "context_chars": last}], model=False)


def system() -> StoredRun:
    # 384 tokens are half way from 256 to 512; 128 half way from 0 to 256.
    shown = [{"shown_recall": 0.5, "context_chars": 1536.0}, {"shown_recall": 1.0, "context_chars": 512.0}]
    return made("sage", [{"recall@10": 0.25, **one} for one in shown])


def shares(run: StoredRun) -> list[float | None]:
    return [None if share != share else share for share in run.columns.column("shown_recall").tolist()]


def test_a_context_is_compared_with_as_many_tokens_by_hand() -> None:
    assert shares(in_as_many(system(), wide())) == [0.25, 0.5]
    assert shares(difference(system(), in_as_many(system(), wide()))) == [0.25, 0.5]
    past = made(
        "large", [{"shown_recall": 0.5, "context_chars": 40000.0}, {"shown_recall": None, "context_chars": 0.0}]
    )
    assert shares(in_as_many(past, wide())) == [1.0, None]  # as of 2,048 tokens; what is not known stays unknown


def test_tokens_are_estimated_by_script_where_the_run_was_scored_so() -> None:
    """Of Chinese a character is a token: 384 of them are half way from 256 to 512, as characters over four 96."""
    chinese = [{"shown_recall": 0.5, "context_chars": 384.0, "context_estimated_tokens": 384.0}]
    assert shares(in_as_many(made("sage", chinese), wide())) == [0.25]
    full = [{**dict.fromkeys(CURVE, 1.0), "context_chars": 2048.0, "context_estimated_tokens": 2048.0}]
    assert len(wide_runs([made("rag", full, model=False)])) == 1


def test_only_runs_that_fill_the_last_budget_on_the_same_questions_are_compared_with() -> None:
    assert wide_runs([wide(), system()]) == [wide()] and wide_runs([wide(last=8000.0)]) == []
    assert fitting([system()], [wide()]) == [wide()]
    assert fitting([made("other", [{}], sha="e")], [wide()]) == [] == fitting([made("more", [{}] * 3)], [wide()])


def test_the_page_shows_systems_that_were_scored_without_budgets() -> None:
    groups = equal_groups(quality_groups([wide(), system()]))
    page, data, _ = equal_page(groups).files.values()
    # Differences of 25 and 50 points: their mean has a standard error of 12.5, and t of 1 degree of freedom is 12.7.
    assert "| sage | 25.0 | 256 | 75.0 | 37.5 | 37.5 | [-121.3, 196.3]‡ |" in page
    values = {row["system"]: row for row in csv.DictReader(io.StringIO(data)) if row["slice"] == "all"}
    assert float(values["sage"]["rag_in_as_many"]) == 37.5 and values["rag"]["rag_in_as_many"] == ""
