"""Counters as snapshots and statistics hold them."""

from collections import Counter

from memsys.counting import counter_from, counter_state, counts_with


def test_a_counter_survives_its_state_in_the_order_of_names() -> None:
    counts = Counter({"b": 2, "a": 1, "none": 0})
    assert list(counter_state(counts).items()) == [("a", 1), ("b", 2)]
    assert counter_from(counter_state(counts)) == +counts


def test_some_counts_stand_at_zero() -> None:
    assert list(counts_with(("z", "b"), Counter({"b": 2, "a": 1})).items()) == [("z", 0), ("b", 2), ("a", 1)]
