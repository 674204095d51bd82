"""Make your own data set of a chat export: ``memsys convert_data FORMAT IN --out FOLDER``.

Formats: openai (messages of role and content, JSON or JSON Lines), chatgpt (conversations.json of an export), sharegpt,
locomo, longmemeval; docs/your_own_data.md shows each. Exports of chats have no questions: write them into
FOLDER/questions.jsonl.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from eval.cli.commands import described, explains_errors, program, start
from eval.cli.places import check_folder
from eval.cli.terminal import say
from eval.loaders.custom_files import QUESTIONS, TURNS, write_custom
from eval.loaders.exports import FORMATS, distinct, read_export
from memsys.errors import DataError

#: New ids of chats that one message names.
_NAMED = 5


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Convert one file; returns the exit status."""
    options = _parser().parse_args(arguments)
    check_folder(options.out)
    present = [name for name in (TURNS, QUESTIONS) if (options.out / name).exists()]
    if present:
        raise DataError(f"{options.out} holds {' and '.join(present)} already; name another folder, or move them away")
    samples, renamed = distinct(read_export(options.format, options.source))
    turns, questions = write_custom(samples, options.out)
    lost = sum(len(reference.unresolved_evidence) for sample in samples for reference in sample.references.values())
    say(f"{options.out}: {len(samples)} conversations, {turns} turns, {questions} questions")
    if renamed:
        more = f" and {len(renamed) - _NAMED} more" if len(renamed) > _NAMED else ""
        say(f"chats that had the id of an earlier one are now called {', '.join(renamed[:_NAMED])}{more}")
    if lost:
        say(f"{lost} evidence ids name no turn and are left out")
    if not questions:
        say(f"the export has no questions: write them into {options.out / QUESTIONS} (docs/your_own_data.md)")
    say(f"next: memsys inspect_data dataset=custom dataset.data_dir={options.out}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program("convert_data"), description=described(__doc__))
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("format", choices=list(FORMATS), help="of the file")
    parser.add_argument("source", type=Path, metavar="IN", help="the file")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FOLDER", help="gets turns.jsonl and questions.jsonl"
    )
    return parser


if __name__ == "__main__":
    start(main)
