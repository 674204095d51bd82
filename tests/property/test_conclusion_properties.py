"""The sentence of a comparison over random results: its English, and that it says what the rows say."""

import re
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from eval.results.compare.columns import ANSWERABLE
from eval.results.compare.conclusion import conclusion
from eval.results.tables.pairs import Pair, adjust_family
from eval.scoring.inference import Interval
from eval.scoring.paired import PairedComparison

NAMES = ("rag", "amem_small", "clag, 1.5B", "BM25")
NEGATIONS = r"\b(?:no|not|none|nothing|never|neither|nor|without|cannot)\b"
#: What claims a difference, and what says that none can be.
CLAIMS = ("so the lead holds", "there the opposite lead holds", "the lead holds there too", "a lead holds for",
          "the lead holds for F1 alone", "these hold for")  # fmt: skip
DENIALS = ("no difference can be claimed", "no verdict follows")

points = st.floats(-60, 60).map(lambda value: round(value, 3))


@st.composite
def results(draw: st.DrawFn) -> PairedComparison:
    """A result with an interval around the difference, or without one."""
    difference, half = draw(points | st.just(0.0) | st.floats(-0.06, 0.06)), draw(st.just(0.01) | st.floats(0.001, 20))
    units = draw(st.integers(1, 12))
    interval = None
    if draw(st.booleans()) or units > 5:
        by = "question" if units == 1 else "conversation"
        interval = Interval(difference - half, difference + half, 0.95, by, units)  # type: ignore[arg-type]
    p_value = None if interval is None else draw(st.floats(0.0001, 1))
    return PairedComparison(difference, interval, p_value, 3, 4, 3, None, draw(st.integers(1, 1986)))


def row(label: str, mean: float, reference: bool) -> Any:
    run = SimpleNamespace(reference=reference, conversations=["c1", "c2"], dataset="locomo")
    estimate = SimpleNamespace(value=mean, spread=None)
    repeats = SimpleNamespace(runs=(run,), seeds=(0,))
    return SimpleNamespace(label=label, run=run, estimates={"F1": estimate}, questions=100, repeats=repeats)


@st.composite
def comparisons(draw: st.DrawFn) -> tuple[list[Any], Any, list[Pair]]:
    """Rows, the best first, the baseline among them, and the tests of the others in F1 and F1 answerable."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=2, unique=True))
    baseline, others = names[0], names[1:]
    explored, differing = draw(st.booleans()), ("reader",) if draw(st.booleans()) else ()
    tests = {name: draw(results()) for name in others}
    pairs = adjust_family([Pair("", name, baseline, "F1", tests[name], None, differing, explored) for name in others])
    if draw(st.booleans()):
        family = [Pair("", name, baseline, ANSWERABLE, draw(results()), None, differing, False) for name in others]
        pairs += adjust_family(family)
    means = {baseline: 50.0, **{name: 50.0 + tests[name].difference for name in others}}
    rows = [row(name, mean, draw(st.integers(0, 5)) == 0 and name != baseline) for name, mean in means.items()]
    rows.sort(key=lambda one: -one.estimates["F1"].value)
    return rows, next(one for one in rows if one.label == baseline), pairs


@given(comparisons())
def test_the_sentence_is_english_and_says_what_the_rows_say(found: tuple[list[Any], Any, list[Pair]]) -> None:
    rows, baseline, pairs = found
    said = conclusion(rows, baseline, pairs, "F1")
    sentences = re.split(r"(?<=\.) (?=On|Of|That)", said)
    assert said.startswith("On ") and said.endswith(".") and "  " not in said and ".." not in said
    for sentence in sentences:
        for clause in re.split(r"[;:,]", sentence):
            assert len(re.findall(NEGATIONS, clause)) <= 1, clause
        assert sentence.count("leads") <= 1
        assert not re.search(r"\b[0-9a-f]{7,}\b", sentence), "a hash"
        assert "leads" not in sentence or "level" not in sentence
        assert not re.search(r"\b0\.0 points", sentence) or "level" in sentence
    first = sentences[0]
    assert any(each in first for each in CLAIMS) != any(each in first for each in DENIALS)
    named = [pair for pair in pairs if pair.column == "F1" and pair.system in first and pair.baseline in first]
    claimed = "so the lead holds" in first
    assert not re.search("are level .* so the lead holds", first)
    assert claimed == any(pair.verdict in ("above", "below") for pair in named) or len(named) > 1
    if claimed:
        leader, _, other = first.partition(" conversations ")[2].partition(" by ")[0].partition(" leads ")
        pair = next(one for one in named if {one.system, one.baseline} == {leader, other})
        assert pair.verdict == ("above" if leader == pair.system else "below")
        assert pair.result.interval is not None and pair.result.interval.low * pair.result.interval.high > 0
        assert pair.adjusted is not None and pair.adjusted < 0.05
