"""BioASQ's questions asked of another data set's memories, on the samples and by hand."""

import csv
import io
from math import comb

import pytest

from eval.commands.rendering.separated import render_csv
from eval.inspect_data import read_config
from eval.results.analysis.foreign_memories import (
    COLUMNS,
    DISTINCT,
    at_random,
    compare_memories,
    printed_rows,
    score_records,
    scored,
)
from memsys.embedding.hashing import HashingEmbedder
from memsys.turns import TurnFormat
from memsys.vocabulary import Conversation, Question, Reference, Sample, Turn


def pool(name: str, texts: list[str], gold: list[int], question: str) -> Sample:
    turns = tuple(Turn(f"{name}:{number}", "s", "System", text) for number, text in enumerate(texts))
    evidence = tuple(turns[number].turn_id for number in gold)
    return Sample(
        Conversation(name, turns),
        (Question(f"{name}:q", name, question, 4),),
        {f"{name}:q": Reference(f"{name}:q", ("x",), evidence)},
    )


def test_scraps_are_found_in_memories_that_hold_other_text() -> None:
    """Gold "the" is in most texts of any data set; what the question is about is in its own memory alone."""
    asked = pool("own", ["insulin lowers glucose", "the", "bones grow", "a cat"], [0, 1], "what lowers glucose?")
    other = pool("far", ["the river runs", "the town is old", "music of lowers", "glass"], [0], "which river?")
    rows = compare_memories([asked], [other], TurnFormat(), HashingEmbedder(64, name="hashing", noise=0.0), draws=50)
    own, foreign = rows["its own memory, by the question"], rows["HotpotQA's memory, by the question"]
    assert own["recall@10"] == 100 and foreign["recall@10"] == 50
    assert (own["e_precision"], foreign["e_precision"]) == (50, 50)  # two of four memories hold some gold
    assert foreign["E-Prec, distinct gold over ten"] == 10  # of one gold text that was found
    assert rows["its own memory, ten turns at random"]["recall@10"] == 100  # there are four turns to draw from


def test_chance_is_by_substring_as_the_column_is() -> None:
    texts = ["the end"] * 6 + [f"word{number}" for number in range(14)] + ["the"]
    sample = pool("p", texts, [20], "anything?")
    found = scored([sample], [texts], at_random([texts], draws=4_000))
    assert found["e_precision"] == pytest.approx(100 * 7 / 21, abs=0.6)
    assert found["recall@10"] == pytest.approx(100 * (1 - comb(14, 10) / comb(21, 10)), abs=0.6)


def test_the_samples_give_every_row_and_column() -> None:
    bioasq, hotpotqa = read_config("bioasq20_sample", {}), read_config("hotpotqa20_sample", {})
    asked = bioasq.load().samples[:1]
    rows = compare_memories(
        asked, hotpotqa.load().samples[:1], bioasq.turn_format, HashingEmbedder(64, name="hashing", noise=0.0), draws=5
    )
    own, foreign = rows["its own memory, by the question"], rows["HotpotQA's memory, by the question"]
    assert own["recall@10"] > foreign["recall@10"]
    table = [*csv.reader(io.StringIO(render_csv(score_records({**rows, **printed_rows()}))))]
    assert table[0] == ["search", *COLUMNS.values(), *DISTINCT]
    assert [row[:6] for row in table if row[0] == "printed rag"] == [
        ["printed rag", "4.60", "1.65", "2.29", "1.48", "20.19"]
    ]
