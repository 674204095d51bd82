"""Evidence metrics by hand."""

from math import log2

import pytest

from eval.metrics.evidence import (
    Ranking,
    SubstringMatching,
    evidence_scores,
    normalise,
    pool_scores,
    rank_by_lineage,
    rank_by_substring,
    shown_scores,
    turn_scores,
)


def test_lineage_by_hand() -> None:
    # Gold a, b, c. Memory 2 holds a and b, memory 3 a again, memory 6 c.
    ranking = rank_by_lineage([["x"], ["a", "b"], ["a"], ["y"], ["z"], ["c"]], ["a", "b", "c", "a"])
    assert ranking == Ranking((False, True, True, False, False, True), (2, 2, 6))
    scores = evidence_scores(ranking)
    ideal = 1 + 1 / log2(3) + 1 / log2(4)
    assert scores["e_precision"] == 0.5
    assert scores["e_recall"] == scores["recall@10"] == 1.0
    assert scores["recall@5"] == pytest.approx(2 / 3)
    assert scores["e_f1"] == pytest.approx(2 / 3)
    assert scores["ndcg@10"] == pytest.approx((1 / log2(3) + 1 / log2(7)) / ideal)
    assert scores["ndcg@10_clipped"] == pytest.approx((1 / log2(3) + 1 / log2(4) + 1 / log2(7)) / ideal)
    assert scores["ndcg@10_retrieved"] == scores["ndcg@10_clipped"]  # three relevant memories, three gold
    assert (scores["hit_rate"], scores["mrr"]) == (1.0, 0.5)


def test_no_gold_is_unscored_and_no_hits_score_zero() -> None:
    assert rank_by_lineage([["a"]], []) is None
    assert set(evidence_scores(None, "_substring").values()) == {None}
    assert all(name.endswith("_substring") for name in evidence_scores(None, "_substring"))
    assert set(evidence_scores(rank_by_lineage([], ["a"])).values()) == {0.0}


def test_only_the_first_ten_count() -> None:
    ranking = rank_by_lineage([["x"]] * 10 + [["a"]], ["a"])
    assert ranking is not None and ranking.gold_ranks == (None,)
    assert len(ranking.relevant) == 10


def test_recall_within_ten_turns_does_not_grow_with_the_size_of_memories() -> None:
    """Eight turns as one memory moved recall@10 from 36.3 to 68.2 with nothing found better."""
    turns = [f"t{number}" for number in range(40)]
    single, eights = [[turn] for turn in turns], [turns[start : start + 8] for start in range(0, 40, 8)]
    for retrieved in (single, eights):
        assert turn_scores(retrieved, ["t3", "t9", "t10", "t30", "t3"]) == {"recall_turns@10": 0.5}
    grown, plain = rank_by_lineage(eights, ["t9", "t10", "t30"]), rank_by_lineage(single, ["t9", "t10", "t30"])
    assert evidence_scores(grown)["recall@10"] == 1.0 and evidence_scores(plain)["recall@10"] == pytest.approx(1 / 3)
    assert turn_scores(None, ["a"]) == turn_scores([["a"]], []) == {"recall_turns@10": None}
    assert turn_scores([], ["a"]) == {"recall_turns@10": 0.0}


def test_the_pool_is_not_cut() -> None:
    retrieved = [["x"]] * 10 + [["a", "b"], ["x"]]
    ranking = rank_by_lineage(retrieved, ["a", "b", "c", "d"], depth=len(retrieved))
    assert pool_scores(ranking) == {"pool_recall": 0.5, "pool_hit_rate": 1.0}
    assert pool_scores(rank_by_lineage([["x"]], ["a"], depth=1), "_substring") == {
        "pool_recall_substring": 0.0, "pool_hit_rate_substring": 0.0,
    }  # fmt: skip
    assert pool_scores(rank_by_lineage([], ["a"], depth=0)) == {"pool_recall": 0.0, "pool_hit_rate": 0.0}
    assert pool_scores(None) == {"pool_recall": None, "pool_hit_rate": None}
    # Of gold a and b, the memories in the context hold b alone, beyond rank 10.
    shown = rank_by_lineage([["x"]] * 11 + [["b"]], ["a", "b"], depth=12)
    assert shown_scores(shown) == {"shown_recall": 0.5}
    assert shown_scores(rank_by_lineage([], ["a"], depth=0)) == {"shown_recall": 0.0}
    assert shown_scores(None) == {"shown_recall": None}


def test_both_matchings_agree_on_raw_turns() -> None:
    turns = {"D1:1": "We went camping.", "D1:2": "It rained!", "D1:3": "So we left."}
    retrieved, gold = ["D1:3", "D1:1"], ["D1:1", "D1:2"]
    lineage = rank_by_lineage([[turn] for turn in retrieved], gold)
    texts = rank_by_substring([f"Speaker Anasays : {turns[turn]}" for turn in retrieved], [turns[t] for t in gold])
    assert lineage == texts


def test_options_of_substring_matching() -> None:
    full_width = "Ｆｕｌｌ ｗｉｄｔｈ"
    assert rank_by_substring([full_width], ["full width"]) == Ranking((True,), (1,))
    assert rank_by_substring([full_width], ["full width"], SubstringMatching(nfkc=False)) == Ranking((False,), (None,))
    twice = ["It rained.", "it rained"]
    assert rank_by_substring(["it rained"], twice) == Ranking((True,), (1,))
    assert rank_by_substring(["it rained"], twice, SubstringMatching(deduplicate=False)) == Ranking((True,), (1, 1))


def test_normalise() -> None:
    assert normalise("  It's\n5°C — OK! ") == "it s 5 c ok"
