"""``python -m eval.results.analysis.design``: how many conversations and runs a claim of this many points needs.

Components are those of paired differences between two committed runs on the same questions; what varies from run to
run is taken from the settings below, because the committed runs have one seed. Writes ``results/audit/design.md``.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from eval.commands.commands import explains_errors, start
from eval.commands.places import RESULTS
from eval.commands.rendering.markdown import page, render_markdown
from eval.commands.rendering.table import Table, columns
from eval.results.frame import read_runs
from eval.results.stored_run import StoredRun
from eval.results.tables.pairs import paired_differences
from eval.runs.files import write_atomic
from eval.runs.folders import SUMMARIES
from eval.scoring.components import Components, Design, conversations_needed, detectable, estimate_components
from eval.scoring.protocols import load_protocol

OUT = RESULTS / "audit" / "design.md"

#: Pairs of memories whose differences are typical, with the metric: two retrievers on all of LoCoMo.
PAIR = ("rag", "hybrid_turn", "recall@10")
DATASET = "locomo"
#: Standard deviations from run to run of a mean over all questions, points.
RUN_DEVIATIONS = (0.0, 0.5, 1.0)
CLAIMS = (1.0, 2.0, 3.0, 5.0, 10.0)
RUNS = (1, 3, 5, 10)
QUESTIONS = 199
DESIGNS = (2, 5, 10, 20, 30)


def measured_components(runs: Sequence[StoredRun]) -> Components:
    """Return the components of the difference between the two retrievers, percentage points squared.

    Raises:
        KeyError: one of the two runs is missing.
    """
    found = {run.memory: run for run in runs if run.retrieval_only and run.dataset == DATASET}
    first, second, metric = PAIR
    scores = paired_differences(found[first].rows, found[second].rows, metric, load_protocol("clag"))
    return estimate_components(scores.values[None, :], scores.conversations)


def design_page(parts: Components) -> str:
    """Return the page."""
    first, second, metric = PAIR
    heads = ["conversations", *(f"run SD {each}, {runs} runs" for each in RUN_DEVIATIONS for runs in RUNS)]
    smallest = [
        [str(size), *(f"{_smallest(parts, size, each, runs):.1f}" for each in RUN_DEVIATIONS for runs in RUNS)]
        for size in DESIGNS
    ]
    claims = [
        [f"{claim:g}", *(_wanted(parts, claim, each, runs) for each in RUN_DEVIATIONS for runs in RUNS)]
        for claim in CLAIMS
    ]
    sd = {name: np.sqrt(value) for name, value in (("conv", parts.conversation), ("question", parts.question))}
    return page(
        "# What a design detects",
        f"Paired differences of {metric} between `{first}` and `{second}` on LoCoMo: standard deviation "
        f"{sd['conv']:.1f} points between conversations (an estimate below zero is zero) and {sd['question']:.1f} "
        f"between questions of one. {QUESTIONS} questions a conversation. The run SD is the standard deviation of a "
        "system difference between runs; the committed runs have one seed, so it is assumed here, not measured. Level "
        "5 %, power 80 %, t with one degree of freedom less than the number of conversations. One conversation "
        "detects no difference for other conversations.",
        render_markdown(Table("Smallest detectable difference, points", columns(heads, left=0), smallest)),
        render_markdown(
            Table("Conversations needed for a claim of d points", columns(["d", *heads[1:]], left=0), claims)
        ),
        "-: a thousand conversations are not enough; more runs are needed.",
        "Written by `python -m eval.results.analysis.design`.",
    )


def _with_runs(parts: Components, deviation: float) -> Components:
    return Components(parts.conversation, parts.question, run=deviation**2)


def _smallest(parts: Components, size: int, deviation: float, runs: int) -> float:
    return detectable(_with_runs(parts, deviation), Design(size, QUESTIONS, runs))


def _wanted(parts: Components, claim: float, deviation: float, runs: int) -> str:
    found = conversations_needed(_with_runs(parts, deviation), claim, QUESTIONS, runs)
    return "-" if found is None else str(found)


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m eval.results.analysis.design", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--out", type=Path, default=OUT, help="the page that is written")
    options = parser.parse_args(arguments)
    runs, _ = read_runs([SUMMARIES / "locomo_retrieval"])
    write_atomic(options.out, design_page(measured_components(runs)).encode())
    return 0


if __name__ == "__main__":
    start(main)
