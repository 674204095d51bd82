"""BM25 against rank-bm25, and rank fusion by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from memsys.index.bm25 import BM25Index
from memsys.index.fusion import fuse, reciprocal_rank_scores
from memsys.index.words import STOP_WORDS, words

VOCABULARY = ["river", "lake", "boat", "sun", "tree", "tree", "dog", "cat"]
documents = st.lists(
    st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=8).map(" ".join), min_size=1, max_size=12
)
queries = st.lists(st.sampled_from([*VOCABULARY, "absent"]), max_size=5).map(" ".join)


def filled(texts: list[str]) -> BM25Index:
    index = BM25Index()
    index.add([f"d{row}" for row in range(len(texts))], texts)
    return index


def test_words_are_lower_case_without_punctuation_and_function_words() -> None:
    assert words("Where is Anna's red CAR, the 2nd one?") == ["anna", "red", "car", "2nd", "one"]
    assert "not" not in STOP_WORDS and "no" not in STOP_WORDS


@settings(deadline=None)
@given(documents, queries)
def test_scores_equal_rank_bm25(texts: list[str], query: str) -> None:
    reference = BM25Okapi([words(text) for text in texts])
    assert filled(texts).scores(query) == pytest.approx(reference.get_scores(words(query)), abs=1e-9)


def test_a_hand_worked_score() -> None:
    # N = 3, every document of length 2; "boat" in one document: idf = ln(2.5 / 1.5); f = 1 -> factor 2.5 / 2.5 = 1
    scores = filled(["red boat", "green tree", "blue lake"]).scores("boat")
    assert scores.tolist() == pytest.approx([np.log(2.5 / 1.5), 0, 0])


def test_query_words_count_with_multiplicity() -> None:
    index = filled(["red boat", "green tree", "blue lake"])
    assert index.scores("boat boat").tolist() == pytest.approx((2 * index.scores("boat")).tolist())


def test_adding_later_equals_adding_at_once() -> None:
    texts = ["red boat", "green tree tree", "the blue lake", "a boat on a lake"]
    index = BM25Index()
    for row, text in enumerate(texts):
        index.add([f"d{row}"], [text])
        index.scores("boat")
    assert index.scores("lake boat tree").tolist() == filled(texts).scores("lake boat tree").tolist()


@settings(deadline=None)
@given(documents, st.lists(st.tuples(st.integers(0, 11), documents), max_size=4), queries)
def test_replacing_equals_having_added(texts: list[str], changes: list[tuple[int, list[str]]], query: str) -> None:
    index = filled(texts)
    texts = list(texts)
    for place, (text, *_) in changes:
        row = place % len(texts)
        texts[row] = text
        index.scores(query)
        index.replace([f"d{row}"], [text])
    assert index.scores(query).tolist() == filled(texts).scores(query).tolist()
    assert index.state() == filled(texts).state()


def test_what_is_not_there_cannot_be_replaced() -> None:
    with pytest.raises(KeyError, match="d7"):
        filled(["red boat"]).replace(["d7"], ["blue boat"])


def test_search_keeps_document_order_where_nothing_matches() -> None:
    index = filled(["red boat", "green tree", "blue lake"])
    assert [item for item, _ in index.search("absent", 2)] == ["d0", "d1"]
    assert [item for item, _ in index.search("lake", 3)] == ["d2", "d0", "d1"]
    assert BM25Index().search("lake", 3) == []


@settings(deadline=None)
@given(documents, queries, st.integers(0, 14))
def test_search_is_the_head_of_a_stable_sort(texts: list[str], query: str, k: int) -> None:
    index = filled(texts)
    scores = np.round(index.scores(query), 6)
    expected = sorted(range(len(texts)), key=lambda row: (-scores[row], row))[:k]
    assert [item for item, _ in index.search(query, k)] == [f"d{row}" for row in expected]


def test_documents_without_words_score_0() -> None:
    assert filled(["the", "..."]).scores("the lake").tolist() == [0, 0]


def test_state_round_trip() -> None:
    index = filled(["red boat", "green tree"])
    other = filled(["stale"])
    other.load_state(index.state())
    other.add(["d2"], ["boat boat"])
    index.add(["d2"], ["boat boat"])
    assert other.ids == ("d0", "d1", "d2")
    assert other.search("boat", 3) == index.search("boat", 3)


def test_reciprocal_rank_scores_by_hand() -> None:
    scores = reciprocal_rank_scores([["a", "b"], ["b", "c"]])
    assert scores == pytest.approx({"a": 1 / 61, "b": 1 / 62 + 1 / 61, "c": 1 / 62})


def test_fusion_order_weights_and_depth() -> None:
    dense = {"a": 0.9, "b": 0.5, "c": 0.1}
    assert [item for item, _ in fuse([["a", "b", "c"], ["c", "b"]], dense)] == ["c", "b", "a"]
    assert [item for item, _ in fuse([["a", "b", "c"], ["c", "b"]], dense, [1, 0.01])] == ["a", "b", "c"]
    long = [str(place) for place in range(150)]
    assert len(reciprocal_rank_scores([long])) == 150, "no hidden limit"
    assert [item for item, _ in fuse([["a", "b", "c"], ["c", "b"]], dense, depth=1)] == ["a", "c"]


def test_fusion_ties_go_to_the_dense_score_then_to_the_older() -> None:
    assert [item for item, _ in fuse([["a"], ["b"]], {"a": 0.2, "b": 0.7})] == ["b", "a"]
    assert [item for item, _ in fuse([["b"], ["a"]], {"a": 0.5, "b": 0.5})] == ["a", "b"]


def test_words_can_be_split_in_another_way() -> None:
    index = BM25Index(tokenise=str.split)
    index.add(["a", "b", "c"], ["New York", "the new york", "a boat"])
    assert index.search("New", 1)[0][0] == "a" and index.scores("the").tolist()[0] == 0
    assert index.scores("the").tolist()[1] > 0  # no stop words
