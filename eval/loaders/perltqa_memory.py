"""PerLTQA's memory file: one character's profile, relationships, events and dialogues, made into a conversation.

Order: the profile, one turn a field; the relationships; then events and dialogues by time. A dialogue is one session
per time stamp, a turn per line. What has no readable date is put where its nearest dated sibling is.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import unescape
from typing import Literal

from eval.loaders.jsonfile import JsonNode, literal
from eval.loaders.perltqa_time import Moment, parse_fuzzy
from memsys.counting import repeated
from memsys.vocabulary import Conversation, Json, Turn

#: Parts of a character's memory that can be ingested.
Source = Literal["profile", "profile_description", "relationships", "events", "dialogues"]
NARRATOR = "narrator"
_BEGINNING: Moment = (0, 0, 0, 0, 0)
_LONGEST_NAME = 40
#: Between speaker and text: a colon and a blank or, adjacent to a character that is not ASCII, a colon alone.
_SPEAKER_END = re.compile(r": |：|(?<=[^\x00-\x7f]):|:(?=[^\x00-\x7f])")
#: Marks that no name has.
_SENTENCE = re.compile("[?!？！。，]")


@dataclass(frozen=True, slots=True)
class CharacterMemory:
    """One memory of a character: what a question's reference names. Its turns lie in one or more sessions."""

    item_id: str
    kind: Source
    moment: Moment | None
    sessions: tuple[tuple[Turn, ...], ...]


@dataclass(frozen=True, slots=True)
class Character:
    """A character's whole memory: the conversation, and which turns hold which item."""

    name: str
    conversation: Conversation
    turns_of: Mapping[str, tuple[str, ...]]
    texts: Mapping[str, str] = field(default_factory=dict)


def clean(text: str) -> str:
    """Undo HTML entities, which the translation left in."""
    try:
        return unescape(text).strip()
    except ValueError:  # a character's number of more digits than Python reads
        return text.strip()


def records(top: JsonNode) -> Iterator[tuple[str, JsonNode]]:
    """Yield (name, record) of a memory file; it is an object by name, or an array whose records name themselves."""
    if isinstance(top.value, list):
        for node in top.elements():
            yield clean(node.get("profile").get("Protagonist").text()), node
        return
    for name, node in top.members().items():
        yield clean(name), node


def read_character(name: str, node: JsonNode, sources: Sequence[Source], quirks: Counter[str]) -> Character:
    """Read one record of the memory file and lay its items out in time."""
    readers = {
        "profile": _profile,
        "profile_description": _description,
        "relationships": _relationships,
        "events": _events,
        "dialogues": _dialogues,
    }
    items = [item for source in readers if source in sources for item in readers[source](name, node, quirks)]
    sessions = [session for item in _in_order(items) for session in item]
    turns = tuple(turn for session in sessions for turn in session)
    if not turns:
        raise node.error("no memory to ingest")
    for ids in ((item.item_id for item in items), (turn.turn_id for turn in turns)):
        if duplicates := repeated(ids):
            raise node.error(f"duplicate ids {duplicates[:3]!r}")
    turns_of = {item.item_id: tuple(turn.turn_id for session in item.sessions for turn in session) for item in items}
    texts = {item.item_id: " ".join(turn.text for session in item.sessions for turn in session) for item in items}
    return Character(name, Conversation(name, turns, speakers=(name,)), turns_of, texts)


def entries(node: JsonNode | None) -> Iterator[tuple[str, JsonNode]]:
    """Yield (id, value) of a section, which is an object by id or an array of objects with one id each."""
    if node is None:
        return
    if isinstance(node.value, list):
        for element in node.elements():
            yield from element.members().items()
        return
    yield from node.members().items()


def _turn(turn_id: str, session: str, speaker: str, text: str, date_time: str, item: str) -> Turn:
    extra: dict[str, Json] = {"item": item} if date_time else {"item": item, "undated": True}
    return Turn(turn_id, session, speaker, clean(text), date_time, extra=extra)


def _single(item_id: str, kind: Source, session: str, speaker: str, text: str) -> CharacterMemory:
    """Make an item of one turn that shares its session. Only the profile's fields belong together beyond that."""
    turn = _turn(item_id, session, speaker, text, "", item_id)
    if kind != "profile":
        turn = replace(turn, extra={**turn.extra, "record": item_id})
    return CharacterMemory(item_id, kind, None, ((turn,),))


def _profile(name: str, node: JsonNode, quirks: Counter[str]) -> Iterator[CharacterMemory]:
    for key, value in node.get("profile").members().items():
        text = value.text_or_number().strip()
        quirks["empty_profile_fields"] += not text
        if text:
            yield _single(f"profile:{key}", "profile", "profile", name, f"{key}: {text}")


def _description(name: str, node: JsonNode, quirks: Counter[str]) -> Iterator[CharacterMemory]:
    text = node.find("profile_description")
    if text and text.text().strip():
        yield _single("profile_description", "profile_description", "profile", NARRATOR, text.text())


def _relationships(name: str, node: JsonNode, quirks: Counter[str]) -> Iterator[CharacterMemory]:
    for item_id, person in _numbered(_section(node.find("social_relationship"), quirks)):
        who, what, how = (person.get(k).text() for k in ("Supporting Characters", "Relationship", "Description"))
        yield _single(item_id, "relationships", "relationships", NARRATOR, f"{who} ({what}): {how}")


def _numbered(node: JsonNode | None) -> Iterator[tuple[str, JsonNode]]:
    """Yield (id, person); the original version's arrays hold bare persons, who get their position as id."""
    if node is not None and isinstance(node.value, list):
        for position, element in enumerate(node.elements()):
            if element.find("Relationship"):
                yield f"relationship:{position}", element
            else:
                yield from element.members().items()
        return
    yield from entries(node)


def _section(node: JsonNode | None, quirks: Counter[str]) -> JsonNode | None:
    """Read a section that some records hold as the text of a Python dict."""
    if node is None or not isinstance(node.value, str):
        return node
    value = literal(node.value)
    if value is not None:
        quirks["sections_from_text"] += 1
        return JsonNode(value, node.path, node.file)
    quirks["sections_unreadable"] += 1
    return None


def _events(name: str, node: JsonNode, quirks: Counter[str]) -> Iterator[CharacterMemory]:
    for item_id, event in entries(node.find("events")):
        written = clean(event.get("Creation Time").text_or_number())
        moment = parse_fuzzy(written)
        quirks["undated_events"] += moment is None
        summary, content = clean(event.get("summary").text()).rstrip("."), event.get("content").text()
        ended = summary if summary.endswith(("。", "！", "？")) else f"{summary}. "
        text = f"{ended}{content}" if summary else content
        theme = event.find("Theme")
        text += f" Theme: {theme.text()}." if theme and theme.text() else ""
        text += f" Time: {written}." if written and moment is None else ""
        turn = _turn(item_id, item_id, NARRATOR, text, written if moment else "", item_id)
        yield CharacterMemory(item_id, "events", moment, ((turn,),))


def _dialogues(name: str, node: JsonNode, quirks: Counter[str]) -> Iterator[CharacterMemory]:
    for item_id, dialogue in entries(node.find("dialogues")):
        sessions: list[tuple[Turn, ...]] = []
        first: Moment | None = None
        position = 0
        for block, (written, lines) in enumerate(entries(dialogue.get("contents"))):
            moment = parse_fuzzy(written)
            quirks["undated_dialogue_blocks"] += moment is None
            first = first or moment
            session: list[Turn] = []
            for speaker, text in said(_lines(lines), quirks):
                date_time = written if moment else ""
                session.append(_turn(f"{item_id}:{position}", f"{item_id}/{block}", speaker, text, date_time, item_id))
                position += 1
            sessions.append(tuple(session))
        yield CharacterMemory(item_id, "dialogues", first, tuple(sessions))


def _lines(node: JsonNode) -> list[str]:
    """Read the lines of a dialogue; some blocks of the Chinese files are arrays in an array, or one text."""
    if isinstance(node.value, list):
        return [line for element in node.elements() for line in _lines(element)]
    return node.text().splitlines()


def said(lines: Sequence[str], quirks: Counter[str]) -> list[tuple[str, str]]:
    """Split lines at their first colon into speaker and text; a line without speaker continues the one before."""
    out: list[tuple[str, str]] = []
    for line in lines:
        found = _SPEAKER_END.search(clean(line))
        speaker = found.string[: found.start()] if found else ""
        if found and len(speaker) <= _LONGEST_NAME and not _SENTENCE.search(speaker):
            out.append((speaker, found.string[found.end() :].lstrip()))
            continue
        quirks["lines_without_speaker"] += 1
        if out:
            out[-1] = (out[-1][0], f"{out[-1][1]} {clean(line)}")
        else:
            out.append((NARRATOR, clean(line)))
    return out


def _in_order(items: Sequence[CharacterMemory]) -> list[tuple[tuple[Turn, ...], ...]]:
    """Sort sessions by time; each block of a dialogue goes to its own time."""
    dated = {item.item_id: item.moment for item in items if item.kind == "events" and item.moment}
    keyed = []
    for position, item in enumerate(items):
        timeless = item.kind not in ("events", "dialogues")
        moment = _BEGINNING if timeless else item.moment or _sibling_moment(item.item_id, dated)
        for block, session in enumerate(item.sessions):
            own = parse_fuzzy(session[0].date_time) if session and session[0].date_time else None
            order = (not timeless, own or moment, _natural(item.item_id) if not timeless else (), position, block)
            keyed.append((order, session))
    return [(session,) for _, session in sorted(keyed, key=lambda pair: pair[0])]


def _sibling_moment(item_id: str, dated: Mapping[str, Moment]) -> Moment:
    """Return the time of the nearest dated event of the same relationship; of a dialogue that of its event."""
    event = item_id.partition("#")[0]
    relationship, _, number = event.rpartition("_")
    own = _natural(number)
    siblings = [other for other in dated if other.rpartition("_")[0] == relationship and _natural(other)]
    if not siblings or not own:
        return _BEGINNING
    nearest = min(siblings, key=lambda other: (abs(_natural(other)[-1] - own[-1]), _natural(other)))
    return dated[nearest]


def _natural(item_id: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"[0-9]{1,18}", item_id))
