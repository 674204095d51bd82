"""The formats by name, and reading a file of one of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from eval.loaders.exports import chatgpt, claude, datasets, openai, sharegpt, slack, table, whatsapp
from eval.loaders.exports.chats import Export, Options
from eval.loaders.exports.json_chats import chat_nodes, has
from eval.loaders.exports.samples import said_only
from eval.loaders.exports.sources import check_source
from memsys.errors import DataError

#: Endings of files that are no JSON.
_TABLES = (".csv", ".tsv")


@dataclass(frozen=True, slots=True)
class Format:
    """One format.

    Attributes:
        read: reads a file, folder or archive.
        holds: what it holds, in the words of a message.
        marks: members by which a chat of the format is known.
        json: whether its files are JSON alone.
    """

    read: Callable[[Path, Options], Export]
    holds: str
    marks: tuple[str, ...] = ()
    json: bool = True


def read_export(form: str, source: Path, options: Options | None = None) -> Export:
    """Read an export of a known format.

    Args:
        form: a key of :data:`FORMATS`.
        source: file, folder or zip archive.
        options: what the file does not say of itself.

    Returns:
        Chats with a message each, or conversations with questions where the format has them.

    Raises:
        DataError: it is empty or not of this format; names the place, the line of JSON Lines, and the format that fits.
    """
    known = FORMATS[form]
    check_source(source, known.holds)
    if known.json and source.suffix.lower() in _TABLES:
        raise DataError(f"{source}: is a table ({source.suffix}), where {form} expects JSON: {known.holds}")
    try:
        export = known.read(source, options or Options())
    except DataError as error:
        raise DataError(f"{error}{_better(form, source)}") from error
    chats = said_only(export.chats, export.left_out)
    if not chats and not any(sample.conversation.turns for sample in export.samples):
        raise DataError(
            f"{source}: holds no turn that could be converted from {form}; expected {known.holds}"
            f"{counted(export.left_out, '; left out: ')}{_better(form, source)}"
        )
    samples = [sample for sample in export.samples if sample.conversation.turns]
    return Export(chats, samples, export.left_out)


def counted(left_out: Mapping[str, int], before: str) -> str:
    """Return what was left out, the most first, behind some words; nothing where nothing was."""
    found = sorted(((number, reason) for reason, number in left_out.items() if number), reverse=True)
    return before + ", ".join(f"{reason} ({number})" for number, reason in found) if found else ""


def _better(form: str, source: Path) -> str:
    """Return the end of a message that names the format whose marks a chat of the export has."""
    try:
        nodes = chat_nodes(source, r"\.json$")
    except DataError:
        return ""
    fits = [name for name, other in FORMATS.items() if other.marks and any(has(node, *other.marks) for node in nodes)]
    return "" if not fits or form in fits else f"; it looks like {fits[0]}: memsys convert_data {fits[0]} ..."


_OPENAI = "objects with messages of role and content, or arrays of such messages, as a JSON array or JSON Lines"
_SHAREGPT = (
    "objects with conversations (or items) of from and value (or role and content), as a JSON array or JSON Lines"
)

#: Formats by name.
FORMATS: Mapping[str, Format] = {
    "openai": Format(openai.read, _OPENAI, ("messages",)),
    "chatgpt": Format(
        chatgpt.read, "conversations.json of an export, an array of objects with mapping and current_node", ("mapping",)
    ),
    "claude": Format(
        claude.read, "conversations.json of an export, an array of objects with chat_messages", ("chat_messages",)
    ),
    "sharegpt": Format(sharegpt.read, _SHAREGPT, ("conversations",)),
    "slack": Format(slack.read, "the folder or zip archive of an export, with CHANNEL/YYYY-MM-DD.json", ("ts", "user")),
    "whatsapp": Format(whatsapp.read, "the text of a chat, as a .txt file or in its zip archive", json=False),
    "table": Format(table.read, "a table of messages: CSV, TSV, JSON or JSON Lines", json=False),
    "locomo": Format(datasets.locomo, "an array of conversations as in locomo10.json", ("conversation", "qa")),
    "longmemeval": Format(
        datasets.longmemeval,
        "an array of questions with haystack_sessions, or such objects as JSON Lines",
        ("haystack_sessions",),
    ),
}
