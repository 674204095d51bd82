"""Score every published run of the catalogue under every definition."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eval.commands.commands import explains_errors, program, start
from eval.commands.int_options import count
from eval.commands.places import RESULTS, check_folder
from eval.commands.terminal import complain, say, stage
from memsys.errors import ConfigError, DataError

if TYPE_CHECKING:
    from eval.audit.leaderboard import Row
    from eval.audit.recorded.catalogue import CatalogueEntry
    from eval.audit.scores import ScoredRun

OUT, CACHE = RESULTS / "audit", RESULTS / "cache" / "audit"


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, score what is new, and write the tables; returns the exit status."""
    from eval.audit.scores import default_workers
    from eval.scoring.verdicts.judge_quality import SHOW_ANYWAY, SHOW_ANYWAY_HELP

    parser = argparse.ArgumentParser(prog=program("audit"), description=__doc__)
    parser.add_argument("runs", nargs="*", metavar="NAME", help="runs of the catalogue (default: all that are there)")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the tables (default: results/audit)")
    parser.add_argument("--cache", type=Path, default=CACHE, help="scores by question (default: results/cache/audit)")
    parser.add_argument("--workers", type=count(1), default=default_workers(), help="processes (default: %(default)s)")
    parser.add_argument(
        "--page", action="store_true", help="score nothing: make the page again of the CSV files in --out"
    )
    parser.add_argument(SHOW_ANYWAY, action="store_true", help=SHOW_ANYWAY_HELP)
    options = parser.parse_args(arguments)
    if options.page and options.runs:
        raise ConfigError(f"--page scores nothing; leave {' '.join(options.runs)} out, or --page")
    if options.page:
        rewrite(options.out, unmeasured_judges=options.unmeasured_judges)
        return 0
    if options.out != OUT:
        check_folder(options.out)
    check_folder(options.cache, "--cache")
    audit(options.runs, options.out, options.cache, options.workers, unmeasured_judges=options.unmeasured_judges)
    return 0


def rewrite(out: Path, *, unmeasured_judges: bool = False) -> None:
    """Write the page, the LaTeX leaderboard and the plots again of an audit's CSV files.

    Args:
        out: folder.
        unmeasured_judges: show verdicts of judges too that were not measured.

    Raises:
        DataError: there are none, or one is damaged.
    """
    from eval.audit.config import load_config
    from eval.audit.measured import with_measured_judges
    from eval.audit.recorded.catalogue import find_entry
    from eval.audit.stored import stored_tables
    from eval.audit.write import write_page

    tables = stored_tables(out)
    names = [str(row["run"]) for row in tables["detectors"]]
    if not names:
        raise DataError(f"{out} holds no detectors.csv; leave --page out, so that the runs are scored")
    repositories = {find_entry(name).repository for name in names}
    config = load_config()
    shown = with_measured_judges(tables, config, unmeasured=unmeasured_judges)
    write_page(shown, config, out, runs=len(names), repositories=len(repositories))
    say(f"written: {out}/audit.md, .tex, .svg")


def audit(names: Sequence[str], out: Path, cache: Path, workers: int, *, unmeasured_judges: bool = False) -> None:
    """Score the runs and write the tables.

    Args:
        names: of the catalogue; none: all whose files are there.
        out: folder of the tables.
        cache: folder of the scores.
        workers: processes.
        unmeasured_judges: show verdicts of judges too that were not measured.

    Raises:
        ConfigError: a name is not in the catalogue.
        DataError: no file of the catalogue is there, or one is damaged.
    """
    from eval.audit.config import load_config
    from eval.audit.leaderboard import stored_leaderboard
    from eval.audit.recorded.catalogue import find_entry, load_catalogue
    from eval.audit.scores import score_all
    from eval.audit.write import write_all
    from eval.loaders.locomo_corrections import need_corrections

    config = load_config()
    entries = [find_entry(name) for name in names] or _present(load_catalogue().runs())
    need_corrections()
    runs: list[ScoredRun] = []
    for run in score_all(entries, config, cache, workers, stored_leaderboard):
        runs.append(run)
        say(f"[{len(runs)}/{len(entries)}] {run.entry.name}: {len(run.answers)} answers")
    order = {entry.name: place for place, entry in enumerate(entries)}
    runs.sort(key=lambda run: order[run.entry.name])
    with stage("comparing the runs"):
        tables = _tables(runs, cache)
        write_all(tables, runs, config, out, unmeasured_judges=unmeasured_judges)
    say(f"written: {out}/audit.md, .csv, .tex, .svg")


def _present(entries: "Sequence[CatalogueEntry]") -> "list[CatalogueEntry]":
    """Return the entries whose files are present; report the others."""
    from eval.audit.recorded.catalogue import paths_of
    from eval.loaders.published_files import VARIABLE, recorded_folder

    found, problems = [], []
    folder = recorded_folder()
    for entry in entries:
        try:
            paths_of(entry, folder)
        except DataError as error:
            problems.append(f"left out: {error}")
            continue
        found.append(entry)
    if not found:
        raise DataError(
            f"{folder} holds no file of the catalogue; `memsys recorded fetch` fetches them, or "
            f"{VARIABLE} names their folder"
        )
    for problem in problems:
        complain(problem)
    return found


def _tables(runs: "Sequence[ScoredRun]", cache: Path) -> "Mapping[str, Sequence[Row]]":
    from eval.audit import leaderboard, people
    from eval.audit.config import load_config
    from eval.audit.pairs import paired_tests
    from eval.audit.readings import JUDGE

    config = load_config()
    honest = [run for run in runs if run.entry.kind == "run"]
    by_name = {run.entry.name: run for run in runs}
    labelled, wrong = by_name.get(config.people), by_name.get(config.wrong)
    board = [row for run in runs for row in leaderboard.stored_leaderboard(run, config, cache)]
    return {
        "leaderboard": board,
        "pairs": [
            row
            for metric in (config.lead, JUDGE)
            for row in paired_tests([run for run in honest if run.entry.dataset == "locomo"], metric)
        ],
        "headlines": leaderboard.headlines(runs),
        "orderings": leaderboard.orderings(runs, board),
        "detectors": leaderboard.detectors(runs),
        "people": people.against_people(labelled, config) if labelled else [],
        "judges": people.judges_against_people(runs, labelled, config) if labelled else [],
        "wrong": people.on_wrong_answers(wrong) if wrong else [],
        "length": people.length_bias(honest, config),
        "repeats": leaderboard.repeat_spread(runs, config),
    }


if __name__ == "__main__":
    start(main)
