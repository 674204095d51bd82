"""Lexical retrieval on the whole of LoCoMo against reference measurements made apart from this code.

The references come from another BM25 with another stop list, hence the tolerance of two points. Dense and hybrid rows
take minutes on a CPU: ``python -m eval.run +experiment=locomo_retrieval`` measures them.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from eval.loaders.locomo import read_locomo
from memsys.turns import TurnFormat
from memsys.vocabulary import Sample
from tests.support.composing import ingest, memory_config, parts
from tests.support.fakes import FakeModel

DEPTHS = (5, 10, 20)
TOLERANCE = 2.0


def recalls(sample: Sample, preset: str, turn_format: TurnFormat, date_in_index: bool) -> list[list[float]]:
    """Per question with evidence: the share of evidence turns among the first 5, 10 and 20 hits."""
    config = memory_config(preset, k=max(DEPTHS), date_in_index=date_in_index)
    memory = config.build(parts(FakeModel(lambda role, values, key: ""), turn_format=turn_format))
    ingest(memory, sample.conversation)
    rows = []
    for question in sample.questions:
        evidence = set(sample.references[question.question_id].evidence)
        if evidence:
            hits = asyncio.run(memory.retrieve(question.text)).hits
            found = [{turn for hit in hits[:depth] for turn in hit.turn_ids} for depth in DEPTHS]
            rows.append([len(evidence & each) / len(evidence) for each in found])
    return rows


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("turn_format", "date_in_index", "expected"),
    [
        (TurnFormat("bare", "none"), False, (49.8, 56.6, 62.7)),
        (TurnFormat(), False, (51.3, 58.7, 65.7)),
        (TurnFormat(), True, (54.1, 61.2, 67.5)),
    ],
    ids=["text", "speaker and caption", "date, speaker and caption"],
)
def test_bm25_over_turns_finds_what_the_reference_finds(
    locomo_file: Path, turn_format: TurnFormat, date_in_index: bool, expected: Sequence[float]
) -> None:
    samples, _, _ = read_locomo(locomo_file)
    rows = [row for sample in samples for row in recalls(sample, "bm25_turn", turn_format, date_in_index)]
    assert abs(len(rows) - 1981) <= 1
    measured = [100 * sum(column) / len(rows) for column in zip(*rows, strict=True)]
    assert measured == pytest.approx(expected, abs=TOLERANCE)
