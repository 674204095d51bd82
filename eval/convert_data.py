"""Make your own data set of a chat export: ``memsys convert_data FORMAT IN --out FOLDER``.

Formats: openai (messages of role and content, JSON or JSON Lines), chatgpt and claude (conversations.json or the
export's zip archive), sharegpt, slack (folder or archive), whatsapp (text or archive), table (CSV, TSV, JSON; --map
names the columns), locomo, longmemeval; docs/chat_exports.md shows each. Exports of chats have no questions: write
them into FOLDER/questions.jsonl. --one-memory makes all chats the sessions of one memory.
"""

import argparse
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import get_args

from eval.commands.commands import described, explains_errors, program, start
from eval.commands.help_text import Paragraphs
from eval.commands.places import check_folder
from eval.commands.suggestions import did_you_mean
from eval.commands.terminal import say
from eval.loaders.custom_files import PAGE, QUESTIONS, TURNS, write_custom
from eval.loaders.exports.chats import DateOrder, Export, Options
from eval.loaders.exports.formats import FORMATS, counted, read_export
from eval.loaders.exports.samples import as_conversations, as_one_memory, distinct
from eval.loaders.exports.table import FIELDS
from memsys.errors import ConfigError, DataError
from memsys.vocabulary import Sample

#: The comma before another field; others belong to the name of a column.
_NEXT_FIELD = re.compile(rf",\s*(?=(?:{'|'.join(FIELDS)})=)")
#: New ids of chats that one message names.
_NAMED = 5


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Convert one export; returns the exit status."""
    options = _parser().parse_args(arguments)
    _check(options)
    export = read_export(options.format, options.source, Options(options.date_order, _columns(options.map)))
    samples, remarks = _samples(export, options)
    turns, questions = write_custom(samples, options.out)
    sessions = sum(len({turn.session_id for turn in one.conversation.turns}) for one in samples)
    lost = sum(len(reference.unresolved_evidence) for sample in samples for reference in sample.references.values())
    say(
        f"{options.out}: {len(samples)} conversations, {sessions} sessions, {turns} turns, {questions} questions"
        f"{counted(export.left_out, '; left out: ')}"
    )
    for remark in remarks:
        say(remark)
    if lost:
        say(f"{lost} evidence ids name no turn and are left out")
    if not questions:
        say(f"the export has no questions: write them into {options.out / QUESTIONS} ({PAGE})")
    say(f"next: memsys inspect_data dataset=custom dataset.data_dir={options.out}")
    return 0


def _check(options: argparse.Namespace) -> None:
    """Refuse a format that there is not, options of another format, and a folder with data, before anything is read."""
    form = options.format
    if form not in FORMATS:
        raise ConfigError(
            f"format {form!r} is unknown{did_you_mean(form, FORMATS)}; choose one of {', '.join(FORMATS)}"
        )
    if options.map and form != "table":
        raise ConfigError(f"--map names the columns of a table; {form} has none: leave it out")
    if options.date_order and form != "whatsapp":
        raise ConfigError(f"--date-order is for whatsapp, where the order of dates is ambiguous; omit it for {form}")
    check_folder(options.out)
    present = [name for name in (TURNS, QUESTIONS) if (options.out / name).exists()]
    if present:
        raise DataError(f"{options.out} holds {' and '.join(present)} already; name another folder, or move them away")


def _columns(words: Iterable[str]) -> dict[str, str]:
    """Return the field of a turn -> column, from ``FIELD=COLUMN``, several of which may be in one word with commas."""
    pairs = [one.partition("=") for word in words for one in _NEXT_FIELD.split(word)]
    if wrong := [field + sign + column for field, sign, column in pairs if not (field and sign and column)]:
        raise ConfigError(f"--map {wrong[0]}: write FIELD=COLUMN, as --map text=body speaker=author")
    return {field: column for field, _, column in pairs}


def _samples(export: Export, options: argparse.Namespace) -> tuple[list[Sample], list[str]]:
    """Return the conversations to write, and remarks on them."""
    if export.samples:
        if options.one_memory:
            raise ConfigError(f"--one-memory is for chats; {options.format} has questions of each conversation")
        return _renamed(list(export.samples))
    if not options.one_memory:
        return _renamed(as_conversations(export.chats))
    samples, in_time_order = as_one_memory(export.chats, options.source.stem)
    order = "in the order of time" if in_time_order else "in the order of the file, as some have no date"
    return samples, [f"all chats are sessions of the conversation {options.source.stem!r}, {order}"]


def _renamed(samples: Sequence[Sample]) -> tuple[list[Sample], list[str]]:
    found, renamed = distinct(samples)
    more = f" and {len(renamed) - _NAMED} more" if len(renamed) > _NAMED else ""
    said = f"chats that had the id of an earlier one are now called {', '.join(renamed[:_NAMED])}{more}"
    return found, [said] if renamed else []


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program("convert_data"), description=described(__doc__))
    parser.formatter_class = Paragraphs
    parser.add_argument("format", metavar="FORMAT", help=", ".join(FORMATS))
    parser.add_argument("source", type=Path, metavar="IN", help="the file, folder or zip archive")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FOLDER", help="gets turns.jsonl and questions.jsonl"
    )
    parser.add_argument(
        "--one-memory", action="store_true", help="one person's chats as the sessions of one conversation"
    )
    parser.add_argument(
        "--map", nargs="+", default=(), metavar="FIELD=COL",
        help="of a table: text=, speaker=, date=, conversation=, session=",
    )  # fmt: skip
    parser.add_argument(
        "--date-order", choices=get_args(DateOrder), help="of day, month and year in a WhatsApp file (default: found)"
    )
    return parser


if __name__ == "__main__":
    start(main)
