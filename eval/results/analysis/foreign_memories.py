"""Ask BioASQ-20's questions of memories that hold HotpotQA-20's pools: search results, without a model.

Evidence metrics by substring, as CLAG's Table 4 prints them, of four searches for the questions of each BioASQ pool: of
its own memory, of the memory with HotpotQA's pool of the same number, and at random in either. No model but the
embedder is asked. Writes ``results/audit/foreign_memories.csv``; what follows from it, and what does not:
``docs/bioasq_rows.md``.
"""

import argparse
import asyncio
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import fsum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from baselines.passages import passage_of_turn
from eval.commands.commands import explains_errors, start
from eval.commands.places import RESULTS
from eval.commands.rendering.separated import render_csv
from eval.commands.rendering.table import Table, columns
from eval.commands.terminal import say
from eval.config.compose import choice_settings
from eval.inspect_data import read_config
from eval.metrics.evidence import DEPTH, EVIDENCE_METRICS, SUBSTRING, Ranking, normalise, rank_holding, recall
from eval.metrics.overlap import harmonic
from eval.results.papers.printed import load_printed
from eval.runs.files import write_atomic
from memsys.embedding.contract import Embedder
from memsys.seeding import generator
from memsys.turns import TurnFormat
from memsys.vocabulary import Sample

OUT = RESULTS / "audit" / "foreign_memories.csv"
#: Columns of CLAG's Table 4, by metric.
COLUMNS = {
    "e_precision": "E-Prec", "recall@10": "R@10", "e_f1": "E-F1", "recall@5": "R@5", "ndcg@10_retrieved": "nDCG@10",
}  # fmt: skip


def distinct_precision(ranking: Ranking) -> float:
    """Return the distinct gold found over ten, another definition of precision than equation 14's."""
    return sum(rank is not None for rank in ranking.gold_ranks) / DEPTH


#: The same columns under that other reading.
DISTINCT = {
    "E-Prec, distinct gold over ten": distinct_precision,
    "E-F1 with it": lambda ranking: harmonic(distinct_precision(ranking), recall(ranking)),
}
PRINTED = ("rag", "amem", "clag")
DRAWS = 200

Order = Callable[[str, int], Iterator[Sequence[int]]]
Scores = dict[str, float]


def mean_scores(rankings: Sequence[Ranking]) -> Scores:
    """Return the mean of each column's metric over some rankings, percent."""
    figures = {**{metric: EVIDENCE_METRICS[metric] for metric in COLUMNS}, **DISTINCT}
    return {name: 100 * fsum(map(figure, rankings)) / len(rankings) for name, figure in figures.items()}


def texts_of(sample: Sample, turn_format: TurnFormat) -> list[str]:
    """Return what a memory of turns holds of a pool: a line per turn."""
    return [passage_of_turn(turn, turn_format).undated for turn in sample.conversation.turns]


def scored(asked: Sequence[Sample], memories: Sequence[Sequence[str]], order: Order) -> Scores:
    """Score searches for the questions of each pool in the memory of the same number.

    Args:
        asked: pools whose questions are asked.
        memories: texts of each memory.
        order: gives the places of the texts that a search for a question returns, once or several times.
    """
    found = []
    for number, (sample, texts) in enumerate(zip(asked, memories, strict=True)):
        known = [normalise(text) for text in texts]
        said = {turn.turn_id: turn.text for turn in sample.conversation.turns}
        for question in sample.questions:
            gold = sample.references[question.question_id].evidence
            holds = _holds(known, [said[turn_id] for turn_id in gold])
            for places in order(question.text, number):
                found.append(rank_holding(holds[list(places)].tolist(), holds.shape[1]))
    return mean_scores(found)


def _holds(memory: Sequence[str], gold_texts: Sequence[str]) -> NDArray[np.bool_]:
    """Return which normalised text holds which gold text, shape (texts, gold); gold that is equal counts once."""
    gold = tuple(dict.fromkeys(filter(None, map(normalise, gold_texts))))
    return np.array([[one in text for one in gold] for text in memory], dtype=np.bool_)


async def by_cosine(asked: Sequence[Sample], memories: Sequence[Sequence[str]], embedder: Embedder) -> Order:
    """Search by the question: the ten texts with the highest cosine."""
    vectors = [await embedder.embed(texts) for texts in memories]
    questions = [question.text for sample in asked for question in sample.questions]
    queries = dict(zip(questions, await embedder.embed(questions), strict=True))

    def order(question: str, number: int) -> Iterator[Sequence[int]]:
        yield np.argsort(-(vectors[number] @ queries[question]), kind="stable")[:DEPTH].tolist()

    return order


def at_random(memories: Sequence[Sequence[str]], draws: int = DRAWS) -> Order:
    """Draw ten texts of a memory, this many times for each question."""
    rng = generator("foreign_memories", draws)

    def order(question: str, number: int) -> Iterator[Sequence[int]]:
        for _ in range(draws):
            yield rng.choice(len(memories[number]), size=min(DEPTH, len(memories[number])), replace=False).tolist()

    return order


def compare_memories(
    asked: Sequence[Sample], others: Sequence[Sample], turn_format: TurnFormat, embedder: Embedder, draws: int = DRAWS
) -> dict[str, Scores]:
    """Score the four searches.

    Args:
        asked: pools whose questions are asked, BioASQ-20's.
        others: as many pools of another data set, HotpotQA-20's.
        turn_format: how a turn is written.
        embedder: of questions and texts.
        draws: random searches for each question.

    Returns:
        By name of the search, the means over all questions, percent.
    """
    own, foreign = ([texts_of(sample, turn_format) for sample in samples] for samples in (asked, others))
    return {
        "its own memory, by the question": scored(asked, own, asyncio.run(by_cosine(asked, own, embedder))),
        "its own memory, ten turns at random": scored(asked, own, at_random(own, draws)),
        "HotpotQA's memory, by the question": scored(asked, foreign, asyncio.run(by_cosine(asked, foreign, embedder))),
        "HotpotQA's memory, ten turns at random": scored(asked, foreign, at_random(foreign, draws)),
    }


def printed_rows() -> dict[str, Scores]:
    """Return CLAG's printed rows of BioASQ in Table 4, by system."""
    numbers = [one for one in load_printed("clag") if one.table == 4 and one.dataset == "bioasq"]
    wanted = {metric + SUBSTRING: metric for metric in COLUMNS}
    rows: dict[str, Scores] = {f"printed {system}": {} for system in PRINTED}
    for one in numbers:
        if one.system in PRINTED and one.metric in wanted:
            rows[f"printed {one.system}"][wanted[one.metric]] = one.value
    return rows


def score_records(rows: Mapping[str, Scores]) -> Table:
    """Return one row a search, two decimals."""
    shown = [
        [name, *(f"{scores[one]:.2f}" if one in scores else None for one in (*COLUMNS, *DISTINCT))]
        for name, scores in rows.items()
    ]
    return Table("", columns(("search", *COLUMNS.values(), *DISTINCT)), shown)


def load_embedder() -> Embedder:
    """Return the embedder of CLAG's runs."""
    settings = choice_settings("embedder", "minilm")
    module, _, name = str(settings.pop("_target_")).rpartition(".")
    built: Embedder = getattr(importlib.import_module(module), name)(**settings).build()
    return built


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m eval.results.analysis.foreign_memories",
        description=(__doc__ or "").split("\n")[0],
    )
    parser.add_argument("--out", type=Path, default=OUT, help="the CSV file that is written")
    options = parser.parse_args(arguments)
    bioasq, hotpotqa = (read_config(name, {}) for name in ("bioasq20_clag", "hotpotqa20_clag"))
    rows = compare_memories(bioasq.load().samples, hotpotqa.load().samples, bioasq.turn_format, load_embedder())
    write_atomic(options.out, render_csv(score_records({**rows, **printed_rows()})).encode())
    say(f"written: {options.out}")
    return 0


if __name__ == "__main__":
    start(main)
