"""Check runs as they are and write their manifests again: ``memsys sign RUN...``.

For folders of an earlier version, which had none, and for those that were changed on purpose. A run that lacks answers
becomes incomplete: its command resumes it. Scores are computed again from the answers; those by models are kept.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.commands.commands import described, explains_errors, program, start
from eval.commands.terminal import say, stage
from eval.runs.exports import is_exported_run
from eval.runs.files import write_json
from eval.runs.folders import holds_texts, named_run_folders
from eval.runs.load import (
    SCORES_META,
    find_record,
    is_recorded,
    load_answers,
    load_calls,
    load_conversations,
    load_json,
    load_retrievals,
    load_scores,
    load_settled,
)
from eval.runs.manifest import DERIVED, unchecked
from eval.runs.run_json import status_text
from eval.runs.signing import reopen, sign_folder
from eval.scoring.config import lexical_config
from eval.scoring.score_run import score_run
from eval.scoring.summary import summarise
from eval.scoring.verdicts.store import load_judged
from memsys.errors import RunDirectoryError, ScoringError


def sign(folder: Path) -> str:
    """Check a run and sign it.

    Args:
        folder: of the run.

    Returns:
        What was done and found.

    Raises:
        RunDirectoryError: a file is damaged, or files contradict each other.
        ScoringError: the same, of what scores depend on.
    """
    if is_exported_run(folder):
        raise RunDirectoryError(f"{folder} is an exported run, which `memsys export` signs; name the run itself")
    with unchecked(folder):
        if problem := _unfinished(folder, find_record(folder) or {}):
            reopen(folder)
            return f"not signed, {problem}; the run's command resumes it"
        found = _score(folder)
        sign_folder(folder)
    return found


def _unfinished(folder: Path, record: Mapping[str, Any]) -> str:
    """Read every file of a run, and say what keeps it from being complete; then ``run.json`` says so too."""
    if record["status"] != "complete":
        return f"it is {status_text(record)}"
    if not holds_texts(folder):
        return _opened(folder, record, "its references.jsonl is missing")
    load_calls(folder), load_conversations(folder), load_judged(folder)
    answers, retrievals = load_answers(folder), load_retrievals(folder)
    answered = answers.keys() if is_recorded(folder) else answers.keys() & retrievals.keys()
    held = len(retrievals if record.get("mode") == "retrieval_only" else answered | load_settled(folder).keys())
    wanted = (record.get("counts") or {}).get("questions_done", held)
    if held >= wanted:
        return ""
    return _opened(folder, record, f"{held} of {wanted} questions are left")


def _opened(folder: Path, record: Mapping[str, Any], problem: str) -> str:
    write_json(folder / "run.json", {**record, "status": "incomplete"})
    return problem


def _score(folder: Path) -> str:
    """Score a run again as it was scored before, without models, and say how many scores were others."""
    if not (folder / SCORES_META).is_file():
        return "signed; it is not scored"
    try:
        before = {row.question_id: row.metrics for row in load_scores(folder)}
    except ScoringError as error:
        for name in DERIVED:
            (folder / name).unlink(missing_ok=True)
        return f"signed without its scores ({error})"
    after = score_run(folder, lexical_config(load_json(folder / SCORES_META)))
    summarise(folder)
    changed = sum(_changed(before.get(row.question_id, {}), row.metrics) for row in after)
    return f"signed; {changed} scores were not those of the answers and are computed again" if changed else "signed"


def _changed(before: Mapping[str, float | None], after: Mapping[str, float | None]) -> int:
    return sum(before[name] != value for name, value in after.items() if name in before)


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and sign; returns the exit status."""
    parser = argparse.ArgumentParser(prog=program("sign"), description=described(__doc__))
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="run directories, or folders of them")
    options = parser.parse_args(arguments)
    for folder in named_run_folders(options.runs):
        with stage(f"checking {folder}"):
            found = sign(folder)
        say(f"{folder}: {found}")
    return 0


if __name__ == "__main__":
    start(main)
