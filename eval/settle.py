"""Show, close or ask again the questions of a run that have no answer: ``memsys settle RUN [--again | --close]``.

Without an option it lists them with what became of each and why. ``--again`` opens them, so that the run's command asks
them again; ``--close`` closes those that an incomplete run has left open, so that the others can be scored.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.commands.commands import explains_errors, program, start
from eval.commands.terminal import say
from memsys.errors import ConfigError, RunDirectoryError

#: Kinds of which nothing can be scored; a malformed reply has a text.
_KINDS = ("withheld", "failed", "empty")


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """List, open or close the questions of each run."""
    options = _parser().parse_args(arguments)
    if options.close and options.kinds:
        raise ConfigError("--close closes every open question; leave --kinds out")
    for run in options.runs:
        _settle(run, options)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program("settle"), description="Questions of a run that have no answer: show them, ask again, or close."
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="directory of a run")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--again", action="store_true", help="open them: the command that started the run asks them again")
    way.add_argument("--close", action="store_true", help="close what an incomplete run has left open, as failed")
    parser.add_argument(
        "--kinds",
        nargs="+",
        choices=_KINDS,
        metavar="KIND",
        help=f"with --again: these alone, of {', '.join(_KINDS)} (default: withheld and failed)",
    )
    return parser


def _settle(run: Path, options: argparse.Namespace) -> None:
    from eval.runs.load import find_record
    from eval.runs.rundir import RunDirectory

    record = find_record(run)
    if record is None:
        raise RunDirectoryError(f"{run} holds no run.json; name a run directory that `memsys run` wrote")
    if record["mode"] != "answers" or record.get("recorded"):
        raise RunDirectoryError(f"{run}: no question of this run was put to a backbone here, so none can be settled")
    directory = RunDirectory(run)
    try:
        if options.again:
            _ask_again(directory, record, options.kinds or ("withheld", "failed"))
        elif options.close:
            _close(directory, record)
        else:
            _list(directory, record)
    finally:
        directory.close()


def _unanswered(directory: Any) -> dict[str, tuple[str, str]]:
    """Return outcome and reason by question, of settled ones and of unanswered ones."""
    from eval.runs.load import load_answers

    found = {name: (row.outcome, row.reason) for name, row in directory.settled.items()}
    answers = load_answers(directory.path)
    return found | {name: (row.outcome, row.reason) for name, row in answers.items() if row.outcome == "empty"}


def _open_questions(directory: Any) -> list[Any]:
    from eval.runs.load import load_references

    done = directory.finished_questions("answers")
    return [gold for name, gold in load_references(directory.path).items() if name not in done]


def _list(directory: Any, record: Mapping[str, Any]) -> None:
    found, still_open = _unanswered(directory), _open_questions(directory)
    for name, (outcome, reason) in found.items():
        say(f"{name}: {outcome}, {reason}" if reason else f"{name}: {outcome}")
    for gold in still_open:
        say(f"{gold.question_id}: open")
    for problem in record["problems"] if still_open else ():
        say(problem, style="yellow")
    say(f"{directory.path}: {len(found)} questions without an answer, {len(still_open)} open")


def _ask_again(directory: Any, record: Mapping[str, Any], kinds: Sequence[str]) -> None:
    from eval.runs.manifest import RUN
    from eval.runs.signing import open_files

    chosen = [name for name, (outcome, _) in _unanswered(directory).items() if outcome in kinds]
    if not chosen:
        say(f"{directory.path}: no question is {' or '.join(kinds)}")
        return
    open_files(directory.path, added_to=(), replaced=("settled.jsonl", "answers.jsonl", "retrievals.jsonl", RUN))
    directory.reopen(chosen)
    _write(directory, record, "incomplete", ["opened again by `memsys settle --again`"])
    say(f"{directory.path}: {len(chosen)} questions are open; the command that started the run asks them again")


def _close(directory: Any, record: Mapping[str, Any]) -> None:
    from eval.runs.records import SettledRecord

    still_open = _open_questions(directory)
    reason = "; ".join(record["problems"]) or "the run did not get to it"
    for gold in still_open:
        directory.settle(SettledRecord(gold.question_id, gold.conversation_id, gold.category, "failed", reason))
    if still_open or record["status"] != "complete":  # else its scores would need to be signed again
        _write(directory, record, "complete", [])
    say(f"{directory.path}: {len(still_open)} questions are closed as failed; score it by `memsys score`")


def _write(directory: Any, record: Mapping[str, Any], status: str, problems: Sequence[str]) -> None:
    """Write ``run.json`` as it is now, and sign the run if it is complete."""
    from eval.runs.files import write_json
    from eval.runs.signing import finish_run, reopen

    counts = {
        **record["counts"],
        "questions_done": len(directory.finished_questions("answers")),
        "calls": directory.booked_calls,
        "settled": len(directory.settled),
    }
    changed = {**record, "status": status, "problems": list(problems), "counts": counts}
    if status == "complete":
        finish_run(directory.path, changed)
    else:
        write_json(directory.path / "run.json", changed)
        reopen(directory.path)


if __name__ == "__main__":
    start(main)
