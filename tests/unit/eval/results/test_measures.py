"""Evidence at equal budgets, kept information and slices, by hand."""

import csv
import io
from dataclasses import replace
from math import inf

import pytest

from eval.audit.packs.making import packed_retrieval
from eval.metrics.budgets import budget_scores, lift_scores, token_precision, tokens_until
from eval.metrics.kept import date_parts, kept_scores
from eval.results.own.equal import equal_groups, equal_page
from eval.results.own.memory_quality import quality_groups
from eval.results.stored_run import StoredRun
from eval.runs.records import HitRecord, ReferenceRecord, RetrievalRecord, ScoreRow
from eval.scoring.combination import combination, slices_of
from eval.scoring.config import ScoringConfig
from eval.scoring.retrievals import retrieval_scores
from eval.scoring.shown import shown_memories


def test_tokens_until_a_gold_turn_by_hand() -> None:
    origins = [["x"], ["a", "b"], ["a"], ["c"]]
    assert tokens_until(origins, [100, 200, 50, 800], ["a", "b", "c", "d", "a"]) == [300, 300, 1150, inf]


def test_recall_at_budgets_and_its_area_by_hand() -> None:
    scores = budget_scores([["x"], ["a", "b"], ["a"], ["c"]], [100, 200, 50, 800], ["a", "b", "c", "d"])
    names = [f"recall_tokens@{budget}" for budget in (256, 512, 1024, 2048)]
    assert [scores[name] for name in names] == [0.0, 0.5, 0.5, 0.75]
    assert scores["recall_tokens_area"] == pytest.approx((2 * (1 - 300 / 2048) + (1 - 1150 / 2048)) / 4)
    assert set(budget_scores([["a"]], None, ["a"]).values()) == {None} == set(budget_scores([["a"]], [1], []).values())
    assert set(budget_scores([], [], ["a"]).values()) == {0.0}


def test_one_large_memory_finds_no_more_at_a_budget_than_its_turns() -> None:
    turns = [f"t{number}" for number in range(40)]
    single = budget_scores([[turn] for turn in turns], [32.0] * 40, ["t5", "t20"])
    eights = budget_scores([turns[start : start + 8] for start in range(0, 40, 8)], [256.0] * 5, ["t5", "t20"])
    for name in ("recall_tokens@256", "recall_tokens@1024"):
        assert single[name] == eights[name]


def test_lift_over_chance_by_hand() -> None:
    assert lift_scores(0.5, 200) == {"chance_turns@10": 0.05, "lift_turns@10": 10.0}
    assert lift_scores(1.0, 4) == {"chance_turns@10": 1.0, "lift_turns@10": 1.0}
    assert set(lift_scores(None, 200).values()) == {None} == set(lift_scores(0.5, 0).values())


def test_precision_per_token_by_hand() -> None:
    # Gold turn a (30 tokens) in the first memory and again in the second, b (40 tokens) in the 20 of the third.
    shown = [(["x", "a"], 100.0), (["a"], 60.0), (["b"], 20.0)]
    assert token_precision(shown, {"a": 30.0, "b": 40.0}, 200.0) == {"token_precision": (30 + 0 + 20) / 200}
    assert token_precision([], {"a": 30.0}, 0.0) == {"token_precision": 0.0}
    assert token_precision(None, {"a": 30.0}, 10.0) == {"token_precision": None}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("7 May 2023", {("day", 7), ("month", 5), ("year", 2023)}),
        ("On May 7th, 2023 at 1:56 pm", {("day", 7), ("month", 5), ("year", 2023)}),
        ("2023-05-07T13:56:00", {("day", 7), ("month", 5), ("year", 2023)}),
        ("2023年5月7日", {("day", 7), ("month", 5), ("year", 2023)}),
        ("June 2023", {("month", 6), ("year", 2023)}),
        ("since 1998, in December", {("year", 1998), ("month", 12)}),
        ("you may march 40 miles for 1,500 euros", set()),
    ],
)
def test_parts_of_dates(text: str, parts: set[tuple[str, int]]) -> None:
    assert date_parts(text) == parts


def test_kept_information_by_hand() -> None:
    gold = ["I paid 400 euros for Petrel yesterday"]
    kept = kept_scores(["400 euros, Petrel, larch"], gold, ["Ingrid owns the boat Petrel"])
    assert kept == {"kept_words": pytest.approx(1 / 3), "kept_dates": None}  # larch is not in the gold turn
    dated = kept_scores(["7 May 2023"], gold, ["on 8 May, 2023: bought Petrel", "2023"])
    assert dated == {"kept_words": None, "kept_dates": pytest.approx(2 / 3)}
    assert kept_scores(["400 euros"], gold, []) == {"kept_words": 0.0, "kept_dates": None}
    assert set(kept_scores(["400 euros"], gold, None).values()) == {None}
    assert kept_scores(["四百欧元"], ["他付了四百欧元"], ["付了四百欧元"])["kept_words"] == 1.0


def retrieval(context: str, shown: tuple[int, ...] | None = None) -> RetrievalRecord:
    hits = [HitRecord("m0", "w" * 40, 1.0, ["x"]), HitRecord("m1", "v" * 40, 0.5, ["a"])]
    return RetrievalRecord("q", "c", 4, hits, context, len(context), None, shown=shown)


def reference(**about: object) -> ReferenceRecord:
    gold: dict[str, object] = {"answers": ["yes"], "evidence": ["a"], "evidence_texts": ["v" * 40], **about}
    return ReferenceRecord("q", "c", 4, adversarial_answer=None, unresolved_evidence=[], **gold)  # type: ignore[arg-type]


def test_a_memory_takes_its_share_of_the_context() -> None:
    context = f"{'w' * 40}\n{'v' * 40}{' ' * 79}"  # 160 characters, 40 tokens, 20 for each memory
    scores = retrieval_scores(retrieval(context), reference(), ScoringConfig(), 50)
    assert scores["recall_tokens_area"] == pytest.approx(1 - 40 / 2048)
    assert scores["token_precision"] == pytest.approx(10 / 40)
    assert (scores["chance_turns@10"], scores["lift_turns@10"]) == (0.2, 5.0)
    assert scores["context_estimated_tokens"] == 40.0
    chinese = retrieval_scores(retrieval("他付了四百欧元"), reference(), ScoringConfig(), 50)
    assert (chinese["context_chars"], chinese["context_estimated_tokens"]) == (7.0, 7.0)
    withheld = packed_retrieval(retrieval(context), texts=False)
    assert "context_estimated_tokens" not in retrieval_scores(withheld, reference(), ScoringConfig(), 50)
    rewritten = retrieval_scores(retrieval("a summary of both"), reference(), ScoringConfig(), 50)
    assert rewritten["recall_tokens_area"] is rewritten["token_precision"] is None
    nothing = retrieval_scores(retrieval("", ()), reference(), ScoringConfig(), 50)
    assert nothing["recall_tokens@2048"] == nothing["token_precision"] == 0.0


def test_memories_that_a_budget_keeps_out_count_with_what_is_added_to_those_in_the_context() -> None:
    """The first alone is shown, with its date in 800 characters, 200 tokens: the gold turn is read after 400."""
    cut = retrieval_scores(retrieval("w" * 40 + " " * 760, shown=(0,)), reference(), ScoringConfig(), 50)
    assert (cut["recall_tokens@256"], cut["recall_tokens@512"], cut["shown_recall"]) == (0.0, 1.0, 0.0)


def test_a_memory_that_is_shown_beside_the_hits_is_in_the_context_and_was_not_found() -> None:
    """Three memories of 40 characters in 240 characters, 60 tokens: 20 for each; the gold turn has 10."""
    linked = HitRecord("m2", "u" * 40, 0.0, ["b"])
    found = retrieval(f"{'w' * 40}\n{'v' * 40}\n{'u' * 40}".ljust(240))
    gold = reference(evidence=["b"], evidence_texts=["u" * 40])
    scores = retrieval_scores(replace(found, also_shown=[linked]), gold, ScoringConfig(), 50)
    assert (scores["shown_recall"], scores["recall@10"], scores["recall_tokens@2048"]) == (1.0, 0.0, 0.0)
    assert scores["token_precision"] == pytest.approx(10 / 60)
    absent = replace(found, also_shown=[replace(linked, text="t" * 40)])
    assert retrieval_scores(absent, gold, ScoringConfig(), 50)["shown_recall"] == 0.0
    older = replace(found, trace={"linked_ids": ["b"]})  # of a version that did not store what else is shown
    assert retrieval_scores(older, gold, ScoringConfig(), 50)["shown_recall"] is None
    packed = packed_retrieval(replace(found, also_shown=[linked]), texts=False)
    assert [memory.turn_ids for memory in shown_memories(packed) or ()] == [["x"], ["a"], ["b"]]
    assert shown_memories(packed_retrieval(older, texts=False)) is None


def test_what_must_be_combined() -> None:
    def slices(kind: str = "single_hop", **about: object) -> tuple[str, ...]:
        return slices_of(ScoreRow("q", "c", 4, combination(reference(**about)), kind))

    assert slices(evidence_sessions=1) == slices() == ("one turn",)
    two = {"evidence": ["a", "b"], "evidence_texts": ["I left on Monday", "and came back in 2021"]}
    assert slices(**two, evidence_sessions=1, answers=["2021"]) == ("turns of a session",)
    assert slices(**two, evidence_sessions=2, answers=["5 May 2021"]) == ("several sessions", "a date computed")
    assert slices(evidence=[], evidence_texts=[]) == ("not named",)
    assert slices("adversarial", evidence_sessions=1) == ("no answer",)
    assert slices_of(ScoreRow("q", "c", 4, {"f1_set": 1.0})) == ()


def scored_run(name: str, **extra: float) -> StoredRun:
    marks = [{"evidence_turns": 1.0, "evidence_sessions": 1.0}, {"evidence_turns": 2.0, "evidence_sessions": 2.0}]
    recalls = (1.0, 0.5)
    rows = tuple(
        ScoreRow(f"q{number}", "c", 4, {"recall@10": share, "recall_turns@10": share, **mark, **extra}, "single_hop")
        for number, (share, mark) in enumerate(zip(recalls, marks, strict=True))
    )
    config = {"memory": {"name": name}, "dataset": {"name": "locomo"}, "protocol": {"name": "clag"}}
    record = {"run_id": f"x/{name}", "config": config, "mode": "retrieval_only", "seed": 0, "data": {}}
    return StoredRun(record, {}, {}, rows)


def test_the_page_shows_budgets_slices_and_dashes_for_older_runs() -> None:
    groups = equal_groups(quality_groups([scored_run("older"), scored_run("newer", recall_tokens_area=0.25)]))
    page, data, _ = equal_page(groups).files.values()
    assert "| newer | 75.0 | 75.0 | – | – | – | – | – | – | 25.0 |" in page
    assert "| older | 75.0 | 75.0 | – | – | – | – | – | – | – |" in page
    assert "| newer | 1 | 100.0 | – | 1 | 50.0 | – |" in page
    rows = list(csv.DictReader(io.StringIO(data)))
    assert [(row["system"], row["slice"], row["n"]) for row in rows[3:]] == [
        ("newer", "all", "2"), ("newer", "one turn", "1"), ("newer", "several sessions", "1")
    ]  # fmt: skip
    assert equal_groups(quality_groups([scored_run("older")])) == []
    # 100 and 50 of one conversation: a standard error of 25, and t of one degree of freedom is 12.7.
    assert [rows[3][f"recall@10{end}"] for end in ("", "_low", "_high")] == ["75.0000", "0.0000", "100.0000"]
