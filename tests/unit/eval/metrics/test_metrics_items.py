"""Evidence by items, worked out by hand on a dialogue of four lines and the event that it retells."""

import pytest

from eval.metrics.items import item_scores
from eval.metrics.registry import METRICS

LINES = ["e#1:0", "e#1:1", "e#1:2", "e#1:3"]


def test_one_line_finds_the_dialogue() -> None:
    """By turns one of four gold lines is found; by items the dialogue is, and a second line of it adds nothing."""
    scores = item_scores([["e#1:2"], ["x:0"], ["e#1:0"]], {"e#1": LINES}, "_items")
    assert (scores["recall@10_items"], scores["ndcg@10_items"], scores["e_recall_items"]) == (1.0, 1.0, 1.0)
    assert scores["e_precision_items"] == pytest.approx(2 / 3)


def test_event_and_dialogue_are_two_items_or_one() -> None:
    retrieved = [["e"], ["y"]]
    assert item_scores(retrieved, {"e": ["e"], "e#1": LINES}, "_items")["recall@10_items"] == 0.5
    assert item_scores(retrieved, {"e": ["e", *LINES]}, "_items_lenient")["recall@10_items_lenient"] == 1.0


def test_a_memory_of_several_items_finds_them_all() -> None:
    assert item_scores([["a", "b:0"]], {"a": ["a"], "b": ["b:0", "b:1"]}, "_items")["recall@5_items"] == 1.0


def test_without_gold_or_ranking_there_is_no_score() -> None:
    assert set(item_scores([["a"]], {}, "_items").values()) == {None}
    assert set(item_scores([["a"]], {"a": ["a"]}, "_items", ranked=False).values()) == {None}


def test_every_figure_is_a_metric() -> None:
    assert {"recall@10_items", "e_f1_items_lenient"} <= METRICS.keys()
