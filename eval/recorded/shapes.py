"""Shapes: which path or column of a file holds what. One per known kind of file stands in ``catalogue.yaml``."""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from memsys.errors import ConfigError, DataError

#: What the conversation of a row is: the data set's own id, a position among its conversations, a position counted
#: from the first conversation of the part file that the row stands in, or none but that of the question, as in
#: LongMemEval, where each has a conversation of its own.
ConversationKind = Literal["id", "index", "index_in_file", "question"]


@dataclass(frozen=True, slots=True)
class ValuePlace:
    """Where a value stands in a row.

    Attributes:
        path: keys joined by dots; ``@1``, ``@2`` are the keys that the stars of the rows' path met, ``@file`` the file.
        pattern: regular expression whose first group is the value; the whole text where it is empty.
        values: the file's value (as text) -> ours.
    """

    path: str
    pattern: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shape:
    """How to read one kind of file.

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
        cutoffs: path to an object with one member per cut-off; ``{cutoff}`` in the other paths stands for the chosen.
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
        raise ConfigError(f"{where}.{unknown[0]} is unknown; choose from {', '.join(sorted(known))}")
    if "prediction" not in settings:
        raise ConfigError(f"{where}.prediction is missing: it says where the answers stand")
    if "question" not in settings and "question_id" not in settings:
        raise ConfigError(f"{where}: question or question_id is missing: one of them says what was answered")
    made: dict[str, Any] = {
        key: _place(value, f"{where}.{key}") if key in _ALL_PLACES else value for key, value in settings.items()
    }
    for key in ("about", "rows", "cutoffs", "encoding"):
        if not isinstance(made.get(key, ""), str):
            raise ConfigError(f"{where}.{key}={made[key]!r} must be a text")
    made["conversations"] = _conversations(settings.get("conversations", {}), f"{where}.conversations")
    made["verdicts"] = _verdicts(settings.get("verdicts") or {}, f"{where}.verdicts")
    if made.get("conversation_is", "id") not in get_args(ConversationKind):
        raise ConfigError(f"{where}.conversation_is: choose one of {', '.join(get_args(ConversationKind))}")
    return Shape(name=name, **made)


def _conversations(settings: Any, where: str) -> dict[str, str]:
    """Names and ids as texts: YAML reads ``7: 0`` as numbers, and rows and data sets hold texts."""
    if not isinstance(settings, Mapping) or not all(isinstance(one, str | int | float) for one in settings.values()):
        raise ConfigError(
            f"{where}: name each conversation of the file with its id in the data set, e.g. {{7: conv-26}}"
        )
    return {str(name): str(one) for name, one in settings.items()}


def _verdicts(settings: Any, where: str) -> dict[str, list[ValuePlace]]:
    if not isinstance(settings, Mapping):
        raise ConfigError(f"{where}: name each judge with the places of its verdicts, e.g. gpt-4o-mini: [llm_score]")
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
    try:
        groups = re.compile(pattern).groups if pattern else 1
    except re.error as error:
        raise ConfigError(f"{where}.pattern is no regular expression ({error})") from error
    if not groups:
        raise ConfigError(f"{where}.pattern has no group in parentheses, which would be the value")
    values = value.get("values") or {}
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where}.values={values!r}: name each value of the file with ours, e.g. {{1: multi-hop}}")
    return ValuePlace(str(value["path"]), pattern, {str(key): one for key, one in values.items()})


def read_shape(path: Path) -> Shape:
    """Read a shape of one's own from a YAML file.

    Raises:
        ConfigError: no such file, no YAML, or a wrong setting.
    """
    import yaml

    try:
        settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} cannot be read as YAML: {' '.join(str(error).split())}") from error
    return make_shape(path.stem, settings, str(path))


def column_shape(columns: Sequence[str], path: Path, blank: Set[str] = frozenset()) -> Shape:
    """Guess the shape of a table with a header from the names of its columns.

    Args:
        columns: their names.
        path: of the file, for messages.
        blank: those that hold nothing in any row. They stand for nothing but the answers, which may all be empty.

    Raises:
        DataError: no column is called question or question_id, none is called prediction, or two that hold something
            have names for one thing.
    """
    named = _named(columns)
    if "prediction" not in named or not {"question", "question_id"} & named.keys():
        raise DataError(
            f"{path}: columns {', '.join(columns)}: needs `prediction` and one of `question`, `question_id`; "
            "name other columns in a YAML (--shape FILE; docs/scores.md has its keys)"
        )
    held = _named([one for one in columns if one not in blank])
    for name, same in held.items():
        if len(same) > 1:
            listed = " and ".join(f"`{column}`" for column in same)
            raise DataError(
                f"{path}: columns {listed} both stand for {name}; name the right one in a YAML "
                f"(--shape FILE, key {name})"
            )
    found = {"prediction": named["prediction"], **held}
    places = {name: ValuePlace(columns[0]) for name, columns in found.items()}
    return Shape(name="columns", **places)  # type: ignore[arg-type]  # verdicts and texts have no column names


def _named(columns: Sequence[str]) -> dict[str, list[str]]:
    """Setting of a shape -> the columns that their names say are it."""
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
