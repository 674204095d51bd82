"""Locations of runs and their exports, and lookup below the folders that a user names."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.runs.exports import RUNS_FILE, exported_runs, is_exported_run
from memsys.assets.paths import workplace
from memsys.errors import ConfigError, RunDirectoryError, quoted
from memsys.files import path_problem

RUNS, SUMMARIES = workplace("results", "runs"), workplace("results", "summaries")


def find_run_folders(roots: Sequence[Path]) -> Iterator[Path]:
    """Yield the folders with a ``run.json`` and addresses of exported runs, sorted within each root.

    Args:
        roots: run directories, exported runs, or folders of them.

    Raises:
        RunDirectoryError: a root does not exist, or is a file.
    """
    for root in roots:
        if root.is_file():
            raise RunDirectoryError(f"{root} is a file; name a run directory or a folder of run directories")
        if is_exported_run(root):
            yield root
        elif not root.is_dir():
            raise RunDirectoryError(f"{root} does not exist; name a run directory or a folder of run directories")
        else:
            exported = (run for path in root.rglob(RUNS_FILE) for run in exported_runs(path.parent))
            yield from sorted([*(path.parent for path in root.rglob("run.json")), *exported])


def holds_texts(folder: Path) -> bool:
    """Return whether a folder is a run itself, with questions and answers, and not its exported summary."""
    return (folder / "references.jsonl").is_file()


def runs_first(folders: Iterable[Path]) -> list[Path]:
    """Sort runs before exported summaries, otherwise in the order given.

    What was scored or judged since a run was exported is not in its export.
    """
    return sorted(folders, key=lambda folder: not holds_texts(folder))


def named_run_folders(roots: Sequence[Path]) -> list[Path]:
    """Return the folders with a ``run.json`` in each of the folders a user named.

    Raises:
        RunDirectoryError: a folder does not exist, or holds no run.
    """
    found = {root: list(find_run_folders([root])) for root in roots}
    empty = [str(root) for root, folders in found.items() if not folders]
    if empty:
        raise RunDirectoryError(
            f"no run in {', '.join(empty)}, nor below; name run directories that `memsys run` wrote, runs that "
            "`memsys export` wrote, or folders of them"
        )
    return [folder for folders in found.values() for folder in folders]


def one_run_folder(root: Path) -> Path:
    """Return the folder of the one run that a user named.

    Raises:
        RunDirectoryError: the folder does not exist, or holds no run.
        ConfigError: it holds several.
    """
    found = named_run_folders([root])
    if len(found) > 1:
        raise ConfigError(f"{root} holds {len(found)} runs; name one of them, as {found[0]}")
    return found[0]


def chosen_folders(named: Sequence[Path] | None) -> Sequence[Path]:
    """Return the folders to search: those a user named, each of which must hold a run, else :func:`stored_folders`.

    Raises:
        RunDirectoryError: a named place does not exist, or holds no run.
    """
    if not named:
        return stored_folders()
    named_run_folders(named)
    return named


def summary_folder(out: Path, record: Mapping[str, Any]) -> Path:
    """Return the folder of a run's summary below ``out``, named by the run's id.

    Raises:
        RunDirectoryError: ``run_id`` of the record is not a path below a folder.
    """
    run_id = record.get("run_id")
    if problem := path_problem(run_id):
        raise RunDirectoryError(
            f"run.json: run_id={quoted(run_id)} names the folder of the summary; it must be a name that {problem}; "
            "restore the file"
        )
    return out / str(run_id)


def stored_folders() -> list[Path]:
    """Return the default folders of runs and summaries that exist."""
    return [folder for folder in (RUNS, SUMMARIES) if folder.is_dir()]


def named_places(place: str | Path) -> list[Path]:
    """Return the folders that a user means: a path, or where the runs of an experiment of this name are stored.

    Raises:
        RunDirectoryError: there is neither.
    """
    path = Path(place)
    if path.exists() or is_exported_run(path):
        return [path]
    found = [folder / place for folder in (RUNS, SUMMARIES) if (folder / place).is_dir()]
    if not found:
        raise RunDirectoryError(f"{place} does not exist; name a run directory, a folder of them, or an experiment")
    return found


def short_path(path: Path) -> str:
    """Return a path for messages, relative to the checkout if it is inside."""
    absolute, root = path.resolve(), workplace()
    return str(absolute.relative_to(root)) if absolute.is_relative_to(root) else str(path)
