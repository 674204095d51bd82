"""The comparisons of ``make parity`` (``stages.yaml``), one after the other: ``python -m eval.parity.stages``.

``--whole`` makes those of ``whole.yaml`` (``make parity-whole``): a whole conversation of LoCoMo for each system.

A stage whose released code, environment or prompts cannot be had here is told and left out; the last line says how many
were compared. Ends with 2 where a stage failed, with 5 where a difference has no explanation, and with ``--require``
with 3 where a stage was left out.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.commands.commands import (
    EXIT_DIFFERENT,
    EXIT_DONE,
    EXIT_ERROR,
    EXIT_INCOMPLETE,
    described,
    explains_errors,
    start,
)
from eval.commands.help_text import Paragraphs
from eval.commands.places import check_folder
from eval.commands.terminal import complain, say
from eval.config.compose import choice_settings
from eval.config.presets import make_preset
from eval.loaders.locate import data_folder
from eval.parity.__main__ import OUT, compared
from eval.parity.config import name_of
from memsys.errors import ConfigError, MemsysError

FILE = Path(__file__).with_name("stages.yaml")
WHOLE = Path(__file__).with_name("whole.yaml")
#: In the place of the whole conversation where its file is not there.
SAMPLE = ["dataset=locomo_sample"]


@dataclass(frozen=True, slots=True)
class ParityStages:
    """``stages.yaml``.

    Attributes:
        every: arguments of all stages.
        stages: further arguments by the name of the stage.
    """

    every: Sequence[str]
    stages: Mapping[str, Sequence[str]]

    def chosen(self, names: Sequence[str] | None = None) -> dict[str, list[str]]:
        """Return the arguments of the named stages, or of all; what a stage says itself comes before ``every``.

        Raises:
            ConfigError: there is no stage of that name.
        """
        if unknown := [name for name in names or () if name not in self.stages]:
            raise ConfigError(f"--only {', '.join(unknown)}: choose from {', '.join(self.stages)}")
        return {name: self._arguments(own) for name, own in self.stages.items() if names is None or name in names}

    def over_sample(self) -> "ParityStages":
        """Return the same stages over the sample conversation."""
        kept = [one for one in self.every if name_of(one) not in ("dataset", "conversation")]
        return ParityStages([*SAMPLE, *kept], self.stages)

    def _arguments(self, own: Sequence[str]) -> list[str]:
        said = {name_of(one) for one in own}
        return [*own, *(one for one in self.every if name_of(one) not in said)]


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Compare every stage; returns the exit status."""
    parser = argparse.ArgumentParser(description=described(__doc__), formatter_class=Paragraphs)
    parser.add_argument("--require", action="store_true", help="end with 3 where a stage cannot be compared")
    parser.add_argument("--whole", action="store_true", help="compare whole conversations (whole.yaml)")
    parser.add_argument("--only", nargs="+", metavar="STAGE", help="compare these stages alone")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of reports by stage (default: results/parity)")
    parser.add_argument("--kept", type=Path, help=argparse.SUPPRESS)  # of mutations
    options = parser.parse_args(arguments)
    check_folder(options.out)
    options.out.mkdir(parents=True, exist_ok=True)
    found = make_preset(ParityStages, WHOLE if options.whole else FILE)
    stages = (found.over_sample() if options.whole and not has_locomo() else found).chosen(options.only)
    before = "whole_" if options.whole else ""
    further = ["--skip-without-sources", *([f"--kept={options.kept}"] if options.kept else [])]
    statuses = {
        name: _status(name, [*given, *further, f"--out={options.out / (before + name)}"])
        for name, given in stages.items()
    }
    return _summary(statuses, require=options.require)


def has_locomo() -> bool:
    """Return whether the whole conversation can be read here; report where it cannot."""
    file = data_folder() / str(choice_settings("dataset", "locomo")["file"])
    if not file.is_file():
        say(f"{file} is not there (`memsys data locomo` fetches it): the sample conversation replaces LoCoMo's")
    return file.is_file()


def _status(name: str, arguments: Sequence[str]) -> int:
    """Compare one stage; the status is that of incomplete work where it was left out."""
    say(f"== {name}")
    try:
        report = compared(arguments)
    except MemsysError as error:
        complain(str(error))
        return EXIT_ERROR
    if report is None:
        return EXIT_INCOMPLETE
    return EXIT_DIFFERENT if report.unexplained else EXIT_DONE


def _summary(statuses: Mapping[str, int], *, require: bool) -> int:
    """Say how many stages were compared; returns the exit status of all."""
    words = {EXIT_ERROR: "failed", EXIT_DIFFERENT: "with unexplained differences", EXIT_INCOMPLETE: "not compared"}
    named = {word: [name for name, one in statuses.items() if one == status] for status, word in words.items()}
    done = sum(status in (EXIT_DONE, EXIT_DIFFERENT) for status in statuses.values())
    rest = "".join(f"; {word}: {', '.join(names)}" for word, names in named.items() if names)
    say(f"parity: {done} of {len(statuses)} stages compared{rest}")
    failing = (EXIT_ERROR, EXIT_DIFFERENT, EXIT_INCOMPLETE) if require else (EXIT_ERROR, EXIT_DIFFERENT)
    return next((status for status in failing if status in statuses.values()), EXIT_DONE)


if __name__ == "__main__":
    start(main)
