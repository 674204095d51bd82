"""Shapes: which path or column of a file holds what. One per known kind of file is in ``catalogue.yaml``."""

import codecs
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from memsys.assets.hints import of_source
from memsys.errors import ConfigError, DataError, quoted

#: Place of the row itself, where it is not an object but the answer.
VALUE = "@value"
#: Before a key of an object that the row lies in.
PARENT = "@parent."
#: Names of keys or columns that a message lists, and characters of each.
_LISTED, _LONGEST_NAME = 8, 40
#: Characters of a judge's name, which files are called by.
_LONGEST_JUDGE = 60
#: Characters of another program's message.
_LONGEST_SAID = 300
#: Steps of a path to the rows, and characters of a pattern; longer ones are not hand-written paths or patterns.
_MOST_STEPS, _LONGEST_PATTERN = 100, 2000

#: What the conversation of a row is: the data set's own id, a position among its conversations, a position counted
#: from the first conversation of the part file that the row is in, or none but that of the question, as in
#: LongMemEval, where each has a conversation of its own.
ConversationKind = Literal["id", "index", "index_in_file", "question"]


@dataclass(frozen=True, slots=True)
class ValuePlace:
    """Place of a value in a row.

    Attributes:
        path: keys joined by dots, each possibly with a ``*`` in it; ``@1``, ``@2`` are the keys that the stars of the
            rows' path met, ``@file`` the file, ``@value`` the row itself, ``@parent.KEY`` a key of the nearest object
            around the row that has it.
        pattern: regular expression whose first group is the value; the whole text where it is empty.
        values: the file's value (as text) -> ours.
    """

    path: str
    pattern: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shape:
    """Description of one kind of file.

    Attributes:
        name: its name in the catalogue, or the file it was read from.
        about: which projects write it.
        rows: path to the rows; ``*`` goes through the members of an object, ``[]`` through a list.
        prediction: the answer that is scored.
        question: text of the question.
        question_id: id of the question in the data set.
        gold: the file's own gold answer.
        category: the file's category, a number or a name.
        conversation: conversation of the row, see ``conversation_is``.
        conversation_is: see :data:`ConversationKind`.
        conversations: the file's conversation (as text) -> id in the data set, for files that have ids of their own.
        verdicts: judge -> places of its verdicts, one per repetition.
        context: text that the reader saw.
        retrieve_ms: milliseconds of the retrieval.
        answer_ms: milliseconds of the answer.
        cutoffs: path to an object with one member per cut-off; ``{cutoff}`` in the other paths represents the chosen.
        encoding: of the file.
    """

    name: str
    prediction: ValuePlace
    rows: str = "[]"
    about: str = ""
    question: ValuePlace | None = None
    question_id: ValuePlace | None = None
    gold: ValuePlace | None = None
    category: ValuePlace | None = None
    conversation: ValuePlace | None = None
    conversation_is: ConversationKind = "id"
    conversations: Mapping[str, str] = field(default_factory=dict)
    verdicts: Mapping[str, Sequence[ValuePlace]] = field(default_factory=dict)
    context: ValuePlace | None = None
    retrieve_ms: ValuePlace | None = None
    answer_ms: ValuePlace | None = None
    cutoffs: str = ""
    encoding: str = "utf-8"


_PLACES = ("prediction", "question", "question_id", "gold", "category", "conversation", "context", "retrieve_ms")
_ALL_PLACES = (*_PLACES, "answer_ms")


def listed(names: Iterable[object]) -> str:
    """Return the first names of some keys or columns, each cut where it is long, for a message."""
    known = list(map(str, names))
    shown = [one if len(one) <= _LONGEST_NAME else f"{one[:_LONGEST_NAME]}..." for one in known[:_LISTED]]
    return ", ".join(shown) + (f" and {len(known) - _LISTED} more" if len(known) > _LISTED else "")


def make_shape(name: str, settings: Any, where: str) -> Shape:
    """Make a shape of its YAML.

    Args:
        name: of the shape.
        settings: as parsed.
        where: file and key, for messages.

    Raises:
        ConfigError: an unknown or missing setting; says which and where.
    """
    if not isinstance(settings, Mapping):
        raise ConfigError(f"{where}: a shape is a mapping of settings, found {type(settings).__name__}")
    known = {one.name for one in fields(Shape)} - {"name"}
    unknown = sorted(map(str, settings.keys() - known))
    if unknown:
        raise ConfigError(f"{where}.{unknown[0][:_LONGEST_NAME]} is unknown; choose from {', '.join(sorted(known))}")
    if "prediction" not in settings:
        raise ConfigError(f"{where}.prediction is missing: it says where the answers are")
    if "question" not in settings and "question_id" not in settings:
        raise ConfigError(f"{where}: question or question_id is missing: one of them says what was answered")
    made: dict[str, Any] = {
        key: _place(value, f"{where}.{key}") if key in _ALL_PLACES else value for key, value in settings.items()
    }
    for key in ("about", "rows", "cutoffs", "encoding"):
        if not isinstance(made.get(key, ""), str):
            raise ConfigError(f"{where}.{key}={quoted(made[key])} must be a text")
    _check_rows(made.get("rows", ""), f"{where}.rows")
    _check_encoding(made.get("encoding", "utf-8"), f"{where}.encoding")
    made["conversations"] = _conversations(settings.get("conversations", {}), f"{where}.conversations")
    made["verdicts"] = _verdicts(settings.get("verdicts") or {}, f"{where}.verdicts")
    if made.get("conversation_is", "id") not in get_args(ConversationKind):
        raise ConfigError(f"{where}.conversation_is: choose one of {', '.join(get_args(ConversationKind))}")
    return Shape(name=name, **made)


def _check_rows(rows: str, where: str) -> None:
    if rows.count(".") + rows.count("[]") > _MOST_STEPS:
        raise ConfigError(f"{where} has more than {_MOST_STEPS} steps; a path to rows is short, as `results.*[]`")


def _check_encoding(name: str, where: str) -> None:
    """Refuse what is not an encoding of text: ``hex`` and its like are codecs of bytes."""
    try:
        known = codecs.lookup(name)._is_text_encoding and "".encode(name) is not None
    except (LookupError, ValueError):
        known = False
    if not known:
        raise ConfigError(f"{where}={quoted(name)} is not an encoding of text; name one such as utf-8, cp1252, gb18030")


def _conversations(settings: Any, where: str) -> dict[str, str]:
    """Return names and ids as texts, as in rows and data sets: YAML reads ``7: 0`` as numbers."""
    if not isinstance(settings, Mapping) or not all(isinstance(one, str | int | float) for one in settings.values()):
        raise ConfigError(
            f"{where}: name each conversation of the file with its id in the data set, e.g. {{7: conv-26}}"
        )
    return {str(name): str(one) for name, one in settings.items()}


def _verdicts(settings: Any, where: str) -> dict[str, list[ValuePlace]]:
    if not isinstance(settings, Mapping):
        raise ConfigError(f"{where}: name each judge with the places of its verdicts, e.g. gpt-4o-mini: [llm_score]")
    if long := next((str(judge) for judge in settings if len(str(judge)) > _LONGEST_JUDGE), None):
        raise ConfigError(
            f"{where}: {quoted(long)} is too long for a judge's name; at most {_LONGEST_JUDGE} characters"
        )
    return {
        str(judge): [_place(value, f"{where}.{judge}") for value in (own if isinstance(own, list) else [own])]
        for judge, own in settings.items()
    }


def _place(value: Any, where: str) -> ValuePlace:
    if isinstance(value, str):
        return ValuePlace(value)
    if not isinstance(value, Mapping) or "path" not in value or value.keys() - {"path", "pattern", "values"}:
        raise ConfigError(f"{where}: write a path, or a mapping with path, pattern, values")
    pattern = str(value.get("pattern", ""))
    _check_pattern(pattern, f"{where}.pattern")
    values = value.get("values") or {}
    if not isinstance(values, Mapping):
        raise ConfigError(
            f"{where}.values={quoted(values)}: name each value of the file with ours, e.g. {{1: multi-hop}}"
        )
    return ValuePlace(str(value["path"]), pattern, {str(key): one for key, one in values.items()})


def _check_pattern(pattern: str, where: str) -> None:
    if len(pattern) > _LONGEST_PATTERN:
        raise ConfigError(f"{where} has {len(pattern)} characters; at most {_LONGEST_PATTERN} can be read")
    try:
        groups = re.compile(pattern).groups if pattern else 1
    except (re.error, RecursionError, OverflowError) as error:
        raise ConfigError(f"{where} is not a regular expression ({error})") from error
    if not groups:
        raise ConfigError(f"{where} has no group in parentheses, which would be the value")


def read_shape(path: Path) -> Shape:
    """Read a shape of one's own from a YAML file.

    Raises:
        ConfigError: no such file, no YAML, or a wrong setting.
    """
    import yaml

    try:
        settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ConfigError(f"{path}: values lie too deep inside each other; a shape has three levels") from error
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} cannot be read as YAML: {' '.join(str(error).split())[:_LONGEST_SAID]}") from error
    return make_shape(path.stem, settings, str(path))


def column_shape(
    columns: Sequence[str], path: Path, blank: Set[str] = frozenset(), outside: Mapping[str, ValuePlace] | None = None
) -> Shape:
    """Guess the shape of a table with a header from the names of its columns.

    Args:
        columns: their names.
        path: of the file, for messages.
        blank: those that hold nothing in any row. They stand for nothing but the answers, which may all be empty.
        outside: setting -> its place outside of the rows, which counts where no column is it.

    Raises:
        DataError: no column is called question or question_id, none is called prediction, or two that hold something
            have names for one thing.
    """
    named, outside = _named(columns), outside or {}
    if "prediction" not in named or not {"question", "question_id"} & (named.keys() | outside.keys()):
        raise DataError(
            f"{path}: columns {listed(columns)}: needs `prediction` and one of `question`, `question_id`; "
            f"name other columns in a YAML (--shape FILE; {of_source('docs/recorded.md')} has its keys)"
        )
    held = _named([one for one in columns if one not in blank])
    for name, same in held.items():
        if len(same) > 1:
            both = " and ".join(f"`{column}`" for column in same)
            raise DataError(
                f"{path}: columns {both} both stand for {name}; name the right one in a YAML (--shape FILE, key {name})"
            )
    found = {"prediction": named["prediction"], **held}
    places = {**outside, **{name: ValuePlace(columns[0]) for name, columns in found.items()}}
    return Shape(name="columns", **places)  # type: ignore[arg-type]  # verdicts and texts have no column names


def _named(columns: Sequence[str]) -> dict[str, list[str]]:
    """Return the setting of a shape -> the columns whose names match it."""
    found: dict[str, list[str]] = {}
    for column in columns:
        if name := _SYNONYMS.get(column.strip().lower()):
            found.setdefault(name, []).append(column)
    return found


#: Names of columns that say what they are. ``answer`` is left out: in half of the published files it is the gold.
_SYNONYMS = {
    "question": "question",
    "question_id": "question_id",
    "prediction": "prediction",
    "hypothesis": "prediction",
    "gold": "gold",
    "reference": "gold",
    "category": "category",
    "conversation": "conversation",
    "conversation_id": "conversation",
    "context": "context",
}
