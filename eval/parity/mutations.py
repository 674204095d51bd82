"""Mutation test of parity: single changes of our code, each of which a stage must detect (``make parity-mutations``).

Each change of ``mutations.yaml`` is made in a temporary copy of the code, where one stage of ``stages.yaml`` is run;
the stage must end with an unexplained difference, or stop. Before that, each stage must pass without a change. Ends
with 5 where a change was missed, with 3 where a stage could not be compared here, with 2 where one fails by itself.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

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
from eval.commands.int_options import count
from eval.commands.places import check_folder
from eval.commands.terminal import say
from eval.config.presets import read_settings
from memsys.assets.paths import ROOT
from memsys.errors import ConfigError

FILE = Path(__file__).with_name("mutations.yaml")
#: Folders that are copied, and those that a copy only refers to.
COPIED, LINKED = ("baselines", "conf", "eval", "memsys"), ("datasets", "models", ".venv-packages")
#: Seconds that one stage may take.
_LIMIT_S = 600
_OUTCOMES = {EXIT_DIFFERENT: "caught", EXIT_ERROR: "stopped", EXIT_DONE: "missed", EXIT_INCOMPLETE: "not compared"}
_SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change.

    Attributes:
        system: that it is of.
        stage: that must see it.
        file: below the root of the code.
        before: text that the file holds once.
        after: what takes its place.
    """

    system: str
    stage: str
    file: str
    before: str
    after: str

    def __str__(self) -> str:
        before, after = (" ".join(text.split())[:_SHOWN_CHARS] for text in (self.before, self.after))
        return f"{self.file}: {before} -> {after}"

    @contextmanager
    def made(self, root: Path) -> Iterator[None]:
        """Change a copy of the code while the block runs.

        Raises:
            ConfigError: the text is not in the file exactly once, or stays as it is.
        """
        path = root / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.before) != 1 or self.before == self.after:
            raise ConfigError(f"mutations.yaml: {self.file} must hold {self.before!r} once, and after must differ")
        _write(path, text.replace(self.before, self.after))
        try:
            yield
        finally:
            _write(path, text)


def _write(path: Path, text: str) -> None:
    """Write a source and remove what was compiled of it: a change of the same size in the same second goes unseen."""
    path.write_text(text, encoding="utf-8")
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def read_mutations() -> tuple[Mutation, ...]:
    """Read ``mutations.yaml``: system -> stages -> changes.

    Raises:
        ConfigError: an entry has an unknown key, or lacks one.
    """
    found = read_settings(FILE)
    try:
        return tuple(
            Mutation(system=system, stage=stage, **change)
            for system, stages in found.items()
            for stage, changes in stages.items()
            for change in changes
        )
    except TypeError as error:
        raise ConfigError(f"{FILE}: {error}") from error


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Make every change and print what became of it; returns the exit status."""
    parser = argparse.ArgumentParser(description=described(__doc__), formatter_class=Paragraphs)
    parser.add_argument("--only", nargs="+", metavar="SYSTEM", help="changes of these systems alone")
    parser.add_argument("--jobs", type=count(least=1), default=2, metavar="N", help="stages at a time (default: 2)")
    parser.add_argument(
        "--kept", type=Path, metavar="FOLDER", help="keep there what the released codes do, for the next campaign"
    )
    options = parser.parse_args(arguments)
    mutations = _chosen(read_mutations(), options.only)
    with _Copies(options.jobs, options.kept) as copies:
        return _campaign(mutations, copies)


def _chosen(mutations: Sequence[Mutation], systems: Sequence[str] | None) -> Sequence[Mutation]:
    known = dict.fromkeys(one.system for one in mutations)
    if unknown := [name for name in systems or () if name not in known]:
        raise ConfigError(f"--only {', '.join(unknown)}: choose from {', '.join(known)}")
    return [one for one in mutations if systems is None or one.system in systems]


def _campaign(mutations: Sequence[Mutation], copies: "_Copies") -> int:
    """Run the stages without a change, then with each."""
    stages = list(dict.fromkeys(one.stage for one in mutations))
    unchanged = dict(zip(stages, copies.map([(stage, None) for stage in stages]), strict=True))
    for stage, status in unchanged.items():
        if status != EXIT_DONE:
            say(f"{stage}: without a change it is {_OUTCOMES.get(status, status)}: see python -m eval.parity.stages")
    usable = [one for one in mutations if unchanged[one.stage] == EXIT_DONE]
    statuses = copies.map([(one.stage, one) for one in usable], told=True)
    return _summary(Counter(_OUTCOMES[status] for status in statuses), len(mutations), unchanged)


def _summary(outcomes: Mapping[str, int], given: int, unchanged: Mapping[str, int]) -> int:
    caught = outcomes.get("caught", 0) + outcomes.get("stopped", 0)
    left = given - sum(outcomes.values())
    say(
        f"parity: {caught} of {given} changes caught ({outcomes.get('stopped', 0)} of them stopped the run), "
        f"{outcomes.get('missed', 0)} missed, {left} not tried"
    )
    if EXIT_ERROR in unchanged.values() or EXIT_DIFFERENT in unchanged.values():
        return EXIT_ERROR
    if outcomes.get("missed", 0):
        return EXIT_DIFFERENT
    return EXIT_INCOMPLETE if left else EXIT_DONE


class _Copies:
    """Temporary copies of the code, one for each stage that runs at a time."""

    def __init__(self, jobs: int, kept: Path | None = None) -> None:
        self._jobs, self._kept = jobs, kept
        self._free: SimpleQueue[Path] = SimpleQueue()

    def __enter__(self) -> "_Copies":
        self._folder = tempfile.TemporaryDirectory(prefix="memsys-mutations-")
        kept = Path(self._folder.name) / "kept" if self._kept is None else self._kept.absolute()
        check_folder(kept)
        kept.mkdir(parents=True, exist_ok=True)
        self._kept = kept
        for number in range(self._jobs):
            self._free.put(_copy(Path(self._folder.name) / str(number)))
        return self

    def __exit__(self, *error: object) -> None:
        self._folder.cleanup()

    def map(self, runs: Sequence[tuple[str, Mutation | None]], *, told: bool = False) -> list[int]:
        """Run stages, each with its change; returns their exit statuses."""
        with ThreadPoolExecutor(self._jobs) as pool:
            statuses = []
            for (_, mutation), status in zip(runs, pool.map(self._run, runs), strict=True):
                statuses.append(status)
                if told:
                    assert mutation is not None
                    say(f"{_OUTCOMES[status]:<8} {mutation.system:<12} {mutation.stage:<18} {mutation}")
            return statuses

    def _run(self, run: tuple[str, Mutation | None]) -> int:
        stage, mutation = run
        root = self._free.get()
        try:
            if mutation is None:
                return _stage_status(root, stage, self._kept)
            with mutation.made(root):
                return _stage_status(root, stage, self._kept)
        finally:
            self._free.put(root)


def _copy(root: Path) -> Path:
    for name in COPIED:
        shutil.copytree(ROOT / name, root / name)
    for name in LINKED:
        if (ROOT / name).exists():
            (root / name).symlink_to(ROOT / name)
    return root


def _stage_status(root: Path, stage: str, kept: Path | None) -> int:
    """Return the exit status of a stage of the code in a folder; one that does not end counts as stopped."""
    folders = (f"--out={root / 'out'}", f"--kept={kept}")
    command = [sys.executable, "-m", "eval.parity.stages", "--require", "--only", stage, *folders]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    try:
        ended = subprocess.run(command, cwd=root, env=environment, capture_output=True, timeout=_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return EXIT_ERROR
    return ended.returncode if ended.returncode in _OUTCOMES else EXIT_ERROR


if __name__ == "__main__":
    start(main)
