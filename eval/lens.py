"""Score the same answers under every definition: does the ranking hold? ``memsys lens RUN...``."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from eval.audit.sensitivity.config import load_config
from eval.audit.sensitivity.markdown import lens_page
from eval.audit.sensitivity.standings import Lens, compare_readings
from eval.audit.sensitivity.terminal import show
from eval.commands.commands import explains_errors, program, start
from eval.commands.places import RESULTS, check_file
from eval.commands.terminal import console, say
from eval.results.frame import read_runs, say_left_out
from eval.results.tables.judges import without_unmeasured
from eval.results.tables.label_view import under_labels
from eval.runs.files import write_atomic
from eval.runs.folders import named_run_folders
from eval.scoring.labels import VIEW_HELP, LabelView
from eval.scoring.protocols import load_protocol, protocol_names
from eval.scoring.verdicts.judge_quality import SHOW_ANYWAY, SHOW_ANYWAY_HELP
from memsys.errors import RunDirectoryError

OUT = RESULTS / "lens.md"


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, show the lens and write it; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog=program("lens"),
        description="Stored answers under every metric, reading of unanswerable questions and mean, with ranks.",
    )
    parser.add_argument("runs", type=Path, nargs="+", help="run directories or summaries, or folders of them")
    parser.add_argument("--out", type=Path, default=OUT, help="Markdown file (default: results/lens.md)")
    parser.add_argument("--labels", default="printed", help=f"{VIEW_HELP} (default: %(default)s)")
    parser.add_argument(SHOW_ANYWAY, action="store_true", help=SHOW_ANYWAY_HELP)
    options = parser.parse_args(arguments)
    check_file(options.out)
    lenses = write_page(options.runs, options.out, options.labels, unmeasured_judges=options.unmeasured_judges)
    show(lenses)
    say(f"written: {options.out}")
    return 0


def write_page(
    places: Sequence[Path], out: Path, labels: LabelView = "printed", *, unmeasured_judges: bool = False
) -> list[Lens]:
    """Compare the readings of stored answers and write the page.

    Args:
        places: run directories or summaries, or folders of them.
        out: Markdown file.
        labels: view of disputed labels.
        unmeasured_judges: also the columns of judges whose agreement with people was not measured.

    Raises:
        RunDirectoryError: there is no run, or none that answered anything.
    """
    runs, skipped = read_runs(named_run_folders(places))
    if not runs:
        raise RunDirectoryError("nothing to read: " + "; ".join(f"{run.path}: {run.reason}" for run in skipped))
    say_left_out([f"{run.path}: {run.reason}" for run in skipped])
    runs = [under_labels(run, labels) for run in runs]
    if not unmeasured_judges:
        runs, notes = without_unmeasured(runs)
        for note in notes:
            _report(note)
    lenses = compare_readings(runs, load_config(), [load_protocol(name) for name in protocol_names()], _report_left_out)
    write_atomic(out, lens_page(lenses).encode())
    return lenses


def _report_left_out(reason: str) -> None:
    _report(f"left out: {reason}")


def _report(text: str) -> None:
    console().print(text, style="yellow", highlight=False, markup=False)


if __name__ == "__main__":
    start(main)
