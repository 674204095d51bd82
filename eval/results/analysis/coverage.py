"""``python -m eval.results.analysis.coverage``: how often intervals over conversations hold the truth, by simulation.

Ten conversations with LoCoMo's numbers of questions, scores between 0 and 1 whose conversations differ as an intraclass
correlation says. Writes ``results/audit/coverage.md``; seeded, so that the file is the same on every machine.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eval.commands.commands import explains_errors, start
from eval.commands.int_options import count
from eval.commands.places import RESULTS
from eval.commands.rendering.markdown import page, render_markdown
from eval.commands.rendering.table import Table, columns
from eval.runs.files import write_atomic
from eval.scoring.estimates import mean_of_scores
from eval.scoring.inference import MetricScores, bootstrap_interval
from memsys.seeding import generator

OUT = RESULTS / "audit" / "coverage.md"

#: Questions of LoCoMo's ten conversations.
SIZES = (199, 105, 193, 260, 242, 158, 190, 239, 196, 204)
CORRELATIONS = (0.005, 0.02, 0.05)
#: Share of questions that are answered right, before conversations differ.
CENTRE = 0.25
SIMULATIONS, RESAMPLES = 2_000, 2_000

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage of intervals for one intraclass correlation.

    Attributes:
        correlation: intraclass correlation of the scores.
        percentile: percentile bootstrap over conversations.
        cluster_t: cluster t interval over conversations.
        one_of_ten: interval over the questions of one conversation, against the mean of all.
    """

    correlation: float
    percentile: float
    cluster_t: float
    one_of_ten: float


def simulate(correlation: float, simulations: int = SIMULATIONS, resamples: int = RESAMPLES) -> Coverage:
    """Draw data sets and count the intervals that hold the true mean.

    Args:
        correlation: intraclass correlation: variance between conversations over all variance.
        simulations: data sets drawn.
        resamples: of each percentile bootstrap.
    """
    rng = generator("coverage", 0, simulations, int(correlation * 1000))
    names = tuple(name for number, size in enumerate(SIZES) for name in [f"c{number}"] * size)
    hits = np.zeros(3)
    for _ in range(simulations):
        scores = MetricScores(_draw(rng, correlation), names, np.ones(len(names), dtype=np.int64))
        hits += _inside(scores, resamples)
    percentile, cluster_t, one = hits / simulations
    return Coverage(correlation, float(percentile), float(cluster_t), float(one))


def _draw(rng: np.random.Generator, correlation: float) -> Floats:
    """Draw right or wrong by question; conversations' shares are beta-distributed with the wanted correlation."""
    strength = 1 / correlation - 1
    shares = rng.beta(CENTRE * strength, (1 - CENTRE) * strength, len(SIZES))
    return (rng.random(sum(SIZES)) < np.repeat(shares, SIZES)).astype(np.float64)


def _inside(scores: MetricScores, resamples: int) -> Floats:
    first = slice(0, SIZES[0])
    alone = MetricScores(scores.values[first], scores.conversations[first], scores.strata[first])
    means = mean_of_scores(scores), mean_of_scores(alone)
    intervals = bootstrap_interval(scores, resamples=resamples), *(mean.interval for mean in means if mean)
    return np.array([found.low <= CENTRE <= found.high for found in intervals if found], dtype=np.float64)


def coverage_page(found: Sequence[Coverage], simulations: int, resamples: int) -> str:
    """Return the page."""
    heads = ("ICC", "percentile bootstrap", "cluster t", "questions of one conversation")
    rows = [(str(one.correlation), one.percentile, one.cluster_t, one.one_of_ten) for one in found]
    error = np.sqrt(0.95 * 0.05 / simulations)
    return page(
        "# Coverage of the intervals",
        f"Share of {simulations:,} simulated data sets with a 95 % interval that contains the true mean; simulation "
        f"error {error:.3f}. Ten conversations with LoCoMo's {sum(SIZES):,} questions, each right or wrong, mean "
        f"{CENTRE}; conversations differ by the given intraclass correlation (ICC). {resamples:,} resamples a "
        "bootstrap.",
        render_markdown(Table("", columns(heads, left=0, digits=3), rows), level=0),
        "The last column is the coverage of an interval over the questions of one conversation, taken as an interval "
        "for the mean over conversations: tables print it as a marked range over questions, never as an interval.",
        "Written by `python -m eval.results.analysis.coverage`.",
    )


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate and write the page; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m eval.results.analysis.coverage", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "--simulations", type=count(1), default=SIMULATIONS, help="data sets drawn for each correlation"
    )
    parser.add_argument("--resamples", type=count(1), default=RESAMPLES, help="of each percentile bootstrap")
    parser.add_argument("--out", type=Path, default=OUT, help="the page that is written")
    options = parser.parse_args(arguments)
    found = [simulate(each, options.simulations, options.resamples) for each in CORRELATIONS]
    write_atomic(options.out, coverage_page(found, options.simulations, options.resamples).encode())
    return 0


if __name__ == "__main__":
    start(main)
