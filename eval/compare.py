"""Put runs side by side: table, plot and tests against one of them: ``memsys compare RUN RUN...``."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from eval.commands.commands import explains_errors, program, start
from eval.commands.int_options import count
from eval.commands.places import RESULTS, check_folder
from eval.commands.terminal import stage
from eval.config.prompt_choice import SOURCES
from eval.results.compare import ComparisonChoices, compare
from eval.runs.folders import named_run_folders
from eval.scoring.labels import VIEW_HELP
from eval.scoring.verdicts.judge_quality import SHOW_ANYWAY, SHOW_ANYWAY_HELP
from memsys.errors import ConfigError

OUT = RESULTS / "comparison"


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and compare; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog=program("compare"),
        description="Runs side by side: terminal table, Markdown, CSV, LaTeX, plot, and tests against one of them.",
    )
    parser.add_argument("runs", type=Path, nargs="*", help="run directories, or folders of them, as results/runs")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the files (default: results/comparison)")
    parser.add_argument("--protocol", help="protocol of conf/protocol (default: the runs' own)")
    parser.add_argument(
        "--against", metavar="NAME", help="label, preset or run id of the baseline (default: RAG, else the simplest)"
    )
    parser.add_argument(
        "--prompts", choices=SOURCES, help="only runs asked with our prompts, or with the authors' (default: both)"
    )
    parser.add_argument("--labels", default="printed", help=f"{VIEW_HELP} (default: %(default)s)")
    parser.add_argument(
        "--answers", type=count(), default=0, metavar="N", help="also print N questions with the answer of each system"
    )
    parser.add_argument(SHOW_ANYWAY, action="store_true", help=SHOW_ANYWAY_HELP)
    options = parser.parse_args(arguments)
    if not options.runs:
        raise ConfigError("name the runs to compare: run directories, or folders of them, as results/runs")
    check_folder(options.out)
    with stage("comparing the runs"):
        folders = named_run_folders(options.runs)
        choices = ComparisonChoices(
            options.protocol,
            options.against,
            options.labels,
            options.answers,
            options.unmeasured_judges,
            options.prompts,
        )
        compare(folders, options.out, choices)
    return 0


if __name__ == "__main__":
    start(main)
