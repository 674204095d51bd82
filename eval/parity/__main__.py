"""Compare a preset with the authors' released code, call by call: ``memsys parity memory=NAME against=NAME``.

Both run over one conversation, on one deterministic backbone that replies to what a prompt shows and not to its
words. Compared are calls, prompts, final memories, contexts and answers; each difference is explained by a documented
deviation (``deviations.yaml``) or makes the command fail. The authors' files are fetched by repository, commit and
sha256 (``MEMSYS_SOURCES``: a folder that holds them) and run in an environment of their own
(``scripts/make_package_env.py``).
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eval.commands.commands import EXIT_DIFFERENT, EXIT_DONE, described, explains_errors, program, start
from eval.commands.help_text import Paragraphs
from eval.commands.int_options import count
from eval.commands.places import RESULTS, check_folder
from eval.commands.terminal import say
from eval.config.overrides import report_repeated
from eval.parity.config import counterparts
from memsys.errors import ConfigError

if TYPE_CHECKING:
    from eval.parity.report import ParityReport

OUT = RESULTS / "parity"


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Compare as the command line says; returns the exit status."""
    report = compared(arguments)
    return EXIT_DIFFERENT if report is not None and report.unexplained else EXIT_DONE


def compared(arguments: Sequence[str] | None = None) -> "ParityReport | None":
    """Compare as the command line says, and show what came of it; ``None`` where the authors' code cannot be had.

    Raises:
        MemsysError: a setting is wrong, or one side failed.
    """
    options = _parser().parse_intermixed_args(arguments)
    report_repeated(options.overrides)
    check_folder(options.out)
    own, overrides = _split(options.overrides)
    if "against" not in own:
        raise ConfigError(f"say what to compare with: against={' or against='.join(counterparts())}")
    from eval.config.prompt_choice import MissingPromptsError
    from eval.parity.run import ParityRun

    try:
        conversation = own.get("conversation")
        run = ParityRun.of(own["against"], conversation, overrides, options.spoil, options.out, options.kept)
        problem = run.missing() if options.skip_without_sources else ""
    except MissingPromptsError as error:
        if not options.skip_without_sources:
            raise
        _say_skipped(str(error))
        return None
    if problem:
        _say_skipped(problem)
        return None
    report = run.compare()
    _show(report, run.folder)
    return report


def _say_skipped(problem: str) -> None:
    say(f"parity skipped: {problem}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program("parity"),
        description=described(__doc__),
        formatter_class=Paragraphs,
        epilog=f"against: {', '.join(counterparts())}. Everything else is as for `memsys run`: dataset=locomo_sample "
        "prompts=authors embedder=hashing memory.buffer_size=20 ...",
    )
    parser.add_argument(
        "--spoil", type=count(), default=0, metavar="N", help="cut, fence or pad one reply in N (default: none)"
    )
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the report (default: results/parity)")
    parser.add_argument("--kept", type=Path, help=argparse.SUPPRESS)  # of mutations
    parser.add_argument(
        "--skip-without-sources",
        action="store_true",
        help="end with 0 and one line where the authors' code or prompts cannot be had",
    )
    parser.add_argument(
        "overrides", nargs="+", metavar="KEY=VALUE", help="against=NAME conversation=ID memory=NAME dataset=NAME ..."
    )
    return parser


def _split(given: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Split arguments into our own two settings and those for ``eval.run``."""
    own, others = {}, []
    for override in given:
        name, equals, value = override.partition("=")
        if equals and name in ("against", "conversation"):
            own[name] = value
        else:
            others.append(override)
    return own, others


def _show(report: "ParityReport", folder: Path) -> None:
    from eval.commands.rendering.terminal import show as show_table
    from eval.parity.report import report_tables

    for table in report_tables(report, ("wording", "order", "tie", "content")):
        show_table(table)
    say(report.verdict)
    say(f"report: {folder / 'parity.md'}")


if __name__ == "__main__":
    start(main)
