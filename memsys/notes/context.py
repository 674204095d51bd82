"""The text that the reader sees: one line per hit, each followed by the notes it links to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from memsys.llm.contract import LanguageModel
from memsys.notes.note import Note
from memsys.notes.store import NoteStore
from memsys.settings import check_choices, check_minimum, check_texts, from_settings
from memsys.vocabulary import Json

LinkCap = Literal["per_hit", "per_hit_plus_one", "shared_counter"]


@dataclass(frozen=True, slots=True)
class NoteLabels:
    """Labels of a note's fields in prompts (``memory.note_labels``).

    Attributes:
        index: its number among all notes, in evolution alone.
        time: its time.
        content: its text.
        context: its context.
        keywords: its keywords.
        tags: its tags.
        none: text of an empty list of notes.
    """

    index: str
    time: str
    content: str
    context: str
    keywords: str
    tags: str
    none: str

    def __post_init__(self) -> None:
        check_texts(self, "memory.note_labels")

    def fields(self, note: Note) -> list[str]:
        """Return time, content, context, keywords and tags, each after its label."""
        return [
            f"{self.time}{note.timestamp}",
            f"{self.content}{note.content}",
            f"{self.context}{note.context}",
            f"{self.keywords}{note.keywords}",
            f"{self.tags}{note.tags}",
        ]


def note_labels(settings: Mapping[str, Json]) -> NoteLabels:
    """Make the labels from their YAML mapping.

    Raises:
        ConfigError: a label is unknown, missing or no text.
    """
    return from_settings(NoteLabels, settings, "memory.note_labels")


@dataclass(frozen=True, slots=True)
class NoteContextRules:
    """Settings of hits and their links as text.

    Attributes:
        separator: between the fields of a line (CLAG: a tab; A-Mem: nothing).
        link_cap: ``per_hit`` shows at most ``max_links`` links of each hit (CLAG); ``per_hit_plus_one`` one more
            (A-Mem since December 2025); ``shared_counter`` counts over all hits, so that the first hits take nearly all
            and each later one shows at most one (A-Mem before).
        max_links: see ``link_cap``; 0 shows no links. In YAML null stands for the number of hits asked for, as in the
            released codes.
        drop_repeats: a note is shown once, as a hit rather than as a link; a dropped line does not use up the cap.
        max_tokens: limit of the context, counted with the backbone's tokenizer, hits first; ``None`` for no limit.
        labels: precede the fields; from ``memory.note_labels``.
    """

    separator: str
    link_cap: LinkCap
    max_links: int
    drop_repeats: bool
    max_tokens: int | None
    labels: NoteLabels

    def __post_init__(self) -> None:
        check_choices(self, "context", link_cap=LinkCap)
        check_minimum(self, "context", max_links=0)
        if self.max_tokens is not None:
            check_minimum(self, "context", max_tokens=1)


def context_rules(settings: Mapping[str, Json], hits: int, labels: NoteLabels) -> NoteContextRules:
    """Make the rules from their YAML mapping.

    Args:
        settings: the fields of :class:`NoteContextRules` but the labels; ``max_links: null`` is ``hits``.
        hits: how many hits a retrieval asks for.
        labels: precede the fields of a note.

    Raises:
        ConfigError: a setting is unknown, missing or wrong.
    """
    given: dict[str, Any] = {**settings, "labels": labels}
    if "max_links" in given and given["max_links"] is None:
        given["max_links"] = hits
    return from_settings(NoteContextRules, given, "memory.context")


@dataclass(frozen=True, slots=True)
class NoteContext:
    """The context and what went into it.

    The trace names the linked notes (``linked_ids``) and counts lines that the token limit cut (``dropped_lines``);
    ``shown`` are the places of the hits that have a line, ``linked`` the notes that have one besides them, each once.
    """

    text: str
    trace: Mapping[str, Json] = field(default_factory=dict)
    shown: tuple[int, ...] = ()
    linked: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class _Line:
    note: Note
    is_hit: bool


async def format_context(
    llm: LanguageModel, rules: NoteContextRules, hits: Sequence[Note], store: NoteStore
) -> NoteContext:
    """Write hits, best first, and their linked notes. Calls the backbone's tokenizer only where a limit is set."""
    lines = _lines(rules, hits, store)
    texts = [note_line(line.note, rules) for line in lines]
    kept = list(range(len(lines)))
    if rules.max_tokens is not None:
        costs = [await llm.count_tokens(text) for text in texts]
        kept = _within_limit(lines, costs, rules.max_tokens)
    linked = [lines[row].note.note_id for row in kept if not lines[row].is_hit]
    trace: dict[str, Json] = {"linked_ids": linked, "dropped_lines": len(lines) - len(kept)}
    # The limit keeps hits in their order, before any link: those that are shown are the first ones.
    shown = tuple(range(sum(lines[row].is_hit for row in kept)))
    found = {hits[place].note_id for place in shown}
    besides = tuple(store[name] for name in dict.fromkeys(linked) if name not in found)
    return NoteContext("".join(texts[row] for row in kept), trace, shown, besides)


def note_line(note: Note, rules: NoteContextRules) -> str:
    """Write a note as one line of the context, newline included."""
    return rules.separator.join(rules.labels.fields(note)) + "\n"


def _lines(rules: NoteContextRules, hits: Sequence[Note], store: NoteStore) -> list[_Line]:
    shown = {note.note_id for note in hits}
    lines: list[_Line] = []
    counter = 0
    for note in hits:
        lines.append(_Line(note, is_hit=True))
        links = [link for link in note.links if link in store]
        if rules.drop_repeats:
            links = [link for link in dict.fromkeys(links) if link not in shown]
        room = _room(rules, counter) if links else 0
        counter = min(counter + len(links[:room]), rules.max_links)
        shown.update(links[:room])
        lines.extend(_Line(store[link], is_hit=False) for link in links[:room])
    return lines


def _room(rules: NoteContextRules, counter: int) -> int:
    if rules.max_links == 0 or rules.link_cap == "per_hit":
        return rules.max_links
    # The official loops append first and test the counter afterwards, hence one more than the limit.
    return rules.max_links + 1 - (counter if rules.link_cap == "shared_counter" else 0)


def _within_limit(lines: Sequence[_Line], costs: Sequence[int], limit: int) -> list[int]:
    """Choose rows within the limit: all hits in order, then links in order; stop at the first that does not fit."""
    kept: list[int] = []
    spent = 0
    for row in sorted(range(len(lines)), key=lambda row: (not lines[row].is_hit, row)):
        spent += costs[row]
        if spent > limit:
            break
        kept.append(row)
    return sorted(kept)
