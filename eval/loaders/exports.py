"""Other people's formats, read for ``memsys convert_data``: chat exports, LoCoMo, LongMemEval.

A chat export has no questions; whoever converts one writes them. LoCoMo and LongMemEval are read by their own loaders.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from eval.loaders.checks import check_samples
from eval.loaders.jsonfile import JsonNode, is_empty, read_json, read_json_lines, type_name
from eval.loaders.locomo import read_locomo
from eval.loaders.longmemeval import read_sample
from memsys.errors import DataError
from memsys.vocabulary import Conversation, Reference, Sample, Turn

#: ShareGPT's names of speakers -> those of all other chats; others stay.
_SHAREGPT = {"human": "user", "gpt": "assistant"}
#: Fields that hold the turns of a ShareGPT chat; the first one that is there counts.
_SHAREGPT_LISTS = ("conversations", "items")
#: Endings of files that are no JSON.
_TABLES = (".csv", ".tsv")
#: Fields of an object that a message names.
_NAMED_FIELDS = 5


@dataclass(frozen=True, slots=True)
class Format:
    """One format.

    Attributes:
        read: reads a file.
        holds: what a file holds, in the words of a message.
    """

    read: Callable[[Path], list[Sample]]
    holds: str


def read_export(form: str, path: Path) -> list[Sample]:
    """Read a file of a known format.

    Args:
        form: a key of :data:`FORMATS`.
        path: the file.

    Returns:
        Conversations, with questions where the format has them.

    Raises:
        DataError: the file is empty or not of this format; names the place, and the line of JSON Lines.
    """
    expected = f"expected {FORMATS[form].holds}"
    if is_empty(path):
        raise DataError(f"{path}: is empty; {expected}")
    if path.suffix.lower() in _TABLES:
        raise DataError(f"{path}: is a table ({path.suffix}), where {form} expects JSON: {FORMATS[form].holds}")
    samples = [_without_blank(sample) for sample in FORMATS[form].read(path)]
    if not any(sample.conversation.turns for sample in samples):
        raise DataError(f"{path}: holds no turn that could be converted from {form}; {expected}")
    return [sample for sample in samples if sample.conversation.turns]


def distinct(samples: Sequence[Sample]) -> tuple[list[Sample], list[str]]:
    """Give chats of one id different ones: the second becomes ``ID#2``, unless there is such a chat.

    Returns:
        The conversations, and the new ids.

    Raises:
        DataError: conversations with questions have one id, or questions have; which of two is meant nobody can say.
            Or a file's evidence names no turn.
    """
    taken = {sample.conversation.conversation_id for sample in samples}
    seen: set[str] = set()
    found, renamed = [], []
    for sample in samples:
        name = sample.conversation.conversation_id
        if name in seen and not sample.questions:
            name = next(free for number in count(2) if (free := f"{name}#{number}") not in taken)
            renamed.append(name)
        seen.add(name)
        taken.add(name)
        found.append(replace(sample, conversation=replace(sample.conversation, conversation_id=name)))
    check_samples(found)
    return found, renamed


def _without_blank(sample: Sample) -> Sample:
    """Leave out turns in which nothing is said, which no data set of one's own may have; and their ids as evidence."""
    said = tuple(turn for turn in sample.conversation.turns if (turn.text + turn.caption).strip())
    if len(said) == len(sample.conversation.turns):
        return sample
    gone = {turn.turn_id for turn in sample.conversation.turns} - {turn.turn_id for turn in said}
    references = {name: _resolved(reference, gone) for name, reference in sample.references.items()}
    return Sample(replace(sample.conversation, turns=said), sample.questions, references)


def _resolved(reference: Reference, gone: Set[str]) -> Reference:
    kept = tuple(name for name in reference.evidence if name not in gone)
    lost = tuple(name for name in reference.evidence if name in gone)
    return replace(reference, evidence=kept, unresolved_evidence=(*reference.unresolved_evidence, *lost))


def _nodes(path: Path) -> list[JsonNode]:
    """The values of a JSON array, or of JSON Lines (``.jsonl``); a single object counts as an array of one."""
    nodes = read_json_lines(path)[0] if path.suffix == ".jsonl" else [read_json(path)[0]]
    return nodes[0].elements() if len(nodes) == 1 and isinstance(nodes[0].value, list) else nodes


def _found(node: JsonNode) -> str:
    """What stands in a place, for a message: the type, of an object its first fields."""
    if not isinstance(node.value, dict) or not node.value:
        return type_name(node.value)
    names = list(node.value)
    more = f" and {len(names) - _NAMED_FIELDS} more" if len(names) > _NAMED_FIELDS else ""
    return f"object with {', '.join(names[:_NAMED_FIELDS])}{more}"


def _has(node: JsonNode, *names: str) -> bool:
    return isinstance(node.value, dict) and all(name in node.value for name in names)


def _chat(name: str, said: Iterable[tuple[str, str, str]]) -> Sample:
    """One session of (speaker, text, date); what has no text is left out."""
    kept = [line for line in said if line[1].strip()]
    turns = (
        Turn(str(number), "1", speaker, text, date_time=date) for number, (speaker, text, date) in enumerate(kept, 1)
    )
    return Sample(Conversation(name, tuple(turns)), (), {})


def _openai(path: Path) -> list[Sample]:
    """OpenAI's messages: objects with ``messages`` of ``role`` and ``content``, arrays of messages, or one array."""
    nodes = _nodes(path)
    if nodes and _has(nodes[0], "role") and not _has(nodes[0], "messages"):
        chats = [("1", nodes)]
    else:
        chats = [(_name(node, number), _messages(node).elements()) for number, node in enumerate(nodes, 1)]
    samples = [_chat(name, [_message(item) for item in messages]) for name, messages in chats]
    messages = [item for _, own in chats for item in own]
    if messages and not any(sample.conversation.turns for sample in samples):
        raise _without_text(messages[0])
    return samples


def _messages(node: JsonNode) -> JsonNode:
    """The array of messages of a chat: the chat itself, or its ``messages``."""
    if isinstance(node.value, list):
        return node
    if _has(node, "messages"):
        return node.get("messages")
    raise node.error(f"expected object with messages, or array of messages, found {_found(node)}")


def _message(node: JsonNode) -> tuple[str, str, str]:
    content = node.find("content")
    return node.get("role").text(), _parts(content) if content else "", ""


def _without_text(message: JsonNode) -> DataError:
    """Make the error of the first message of a file in which no message has text, as under a misspelt field."""
    content = message.find("content")
    if content is None:
        return message.error(f"expected object with role and content, found {_found(message)}")
    return content.error(f"expected text, found {_found(content)}; no message of the file has text")


def _parts(content: JsonNode) -> str:
    """The text of a message: a string, or the texts among its parts."""
    if not isinstance(content.value, list):
        return content.text() if content.value is not None else ""
    texts = (part.value if isinstance(part.value, str) else _part_text(part) for part in content.elements())
    return "\n".join(text for text in texts if text)


def _part_text(part: JsonNode) -> str:
    text = part.find("text")
    return text.text() if text and isinstance(text.value, str) else ""


def _name(node: JsonNode, number: int) -> str:
    named = node.find("id") if _has(node, "id") else None
    name = named.text_or_number() if named else ""
    return name if name.strip() else str(number)


def _chatgpt(path: Path) -> list[Sample]:
    """ChatGPT's ``conversations.json``: of every conversation the branch that ends in ``current_node``."""
    return [
        _chat(node.get("id" if node.find("id") else "conversation_id").text(), _branch(node)) for node in _nodes(path)
    ]


def _branch(node: JsonNode) -> list[tuple[str, str, str]]:
    mapping = node.get("mapping").members()
    found: list[tuple[str, str, str]] = []
    place: str | None = node.get("current_node").text()
    visited: set[str] = set()
    while place is not None and place in mapping and place not in visited:
        visited.add(place)
        message = mapping[place].find("message")
        found += [_said(message)] if message and message.value else []
        parent = mapping[place].find("parent")
        place = parent.text() if parent and parent.value is not None else None
    return found[::-1]


def _said(message: JsonNode) -> tuple[str, str, str]:
    role = message.get("author").get("role").text()
    parts = message.get("content").find("parts")
    seconds = message.find("create_time")
    text = _parts(parts) if parts and role in ("user", "assistant") else ""
    return role, text, _date(seconds.value) if seconds else ""


def _date(seconds: object) -> str:
    """Write Unix seconds as a date in UTC; empty where there are none."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < 1e11:
        return ""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def _sharegpt(path: Path) -> list[Sample]:
    """ShareGPT: objects with ``conversations`` or ``items``, of ``from`` and ``value`` or ``role`` and ``content``."""
    return [
        _chat(_name(node, number), [_shared(item) for item in _shared_list(node).elements()])
        for number, node in enumerate(_nodes(path), 1)
    ]


def _shared_list(node: JsonNode) -> JsonNode:
    for name in _SHAREGPT_LISTS:
        if _has(node, name):
            return node.get(name)
    raise node.error(f"expected object with {' or '.join(_SHAREGPT_LISTS)}, found {_found(node)}")


def _shared(item: JsonNode) -> tuple[str, str, str]:
    if _has(item, "from", "value"):
        who, text = item.get("from").text(), item.get("value").text()
    elif _has(item, "role", "content"):
        who, text, _ = _message(item)
    else:
        raise item.error(f"expected object with from and value, or with role and content, found {_found(item)}")
    return _SHAREGPT.get(who, who), text, ""


def _locomo(path: Path) -> list[Sample]:
    return read_locomo(path)[0]


def _longmemeval(path: Path) -> list[Sample]:
    """LongMemEval, as its own loader reads it: sessions by date, ids and kinds of its own, evidence of both levels."""
    return [read_sample(node, Counter()) for node in _nodes(path)]


#: Formats by name.
FORMATS: Mapping[str, Format] = {
    "openai": Format(
        _openai,
        "objects with messages of role and content, or arrays of such messages, as a JSON array or JSON Lines",
    ),
    "chatgpt": Format(_chatgpt, "conversations.json of an export, an array of objects with mapping and current_node"),
    "sharegpt": Format(
        _sharegpt,
        "objects with conversations (or items) of from and value (or role and content), as a JSON array or JSON Lines",
    ),
    "locomo": Format(_locomo, "an array of conversations as in locomo10.json"),
    "longmemeval": Format(_longmemeval, "an array of questions with haystack_sessions, or such objects as JSON Lines"),
}
