"""The staged calls of A-Mem's "robust" path: free text, several small questions, heuristics where a reply is no use.

Source: WujiangXu/A-mem, March 2026. Differences kept out: transport errors never become empty notes here.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from baselines.amem.sections import decision, items, neighbour_blocks, numbers, section
from memsys.index.words import STOP_WORDS
from memsys.llm.contract import LanguageModel, Role
from memsys.notes.analyse import Analysed
from memsys.notes.evolve import Evolution, Evolver, neighbour_line
from memsys.notes.note import DEFAULT_CONTEXT, Note, unit_content, unit_timestamp
from memsys.notes.store import NoteStore
from memsys.turns import TurnFormat
from memsys.vocabulary import Unit

#: What the heuristics take of a content.
HEURISTIC_KEYWORDS = 5
HEURISTIC_TAGS = 3
#: Words of a keyword; a longer "keyword" of an unheaded reply is prose.
LONGEST_KEYWORD = 4


async def analyse_staged(
    llm: LanguageModel, roles: Mapping[str, Role], unit: Unit, turn_format: TurnFormat
) -> Analysed:
    """Make the note of a unit: sections; a second call for missing keywords; heuristics for what is still missing."""
    content = unit_content(unit, turn_format)
    reply = await llm.ask(roles["analyse_sections"], {"content": content}, key=unit.unit_id)
    keywords = items(section(reply.text, "KEYWORDS"))
    if not keywords:
        focused = await llm.ask(roles["focus_keywords"], {"content": content}, key=unit.unit_id)
        named = items(section(focused.text, "KEYWORDS") or focused.text)
        keywords = [keyword for keyword in named if len(keyword.split()) <= LONGEST_KEYWORD]
    context, tags = section(reply.text, "CONTEXT"), items(section(reply.text, "TAGS"))
    fallback = not (keywords and context and tags)
    keywords = keywords or salient_words(content)
    note = Note(
        note_id=unit.unit_id,
        content=content,
        timestamp=unit_timestamp(unit),
        keywords=keywords,
        context=" ".join(context.split()) or first_sentence(content) or DEFAULT_CONTEXT,
        tags=tags or keywords[:HEURISTIC_TAGS],
        turn_ids=tuple(turn.turn_id for turn in unit.turns),
    )
    return Analysed(note, fallback)


def salient_words(content: str) -> list[str]:
    """Return distinct content words, capitalised ones first."""
    found = dict.fromkeys(word for word in re.findall(r"\w+", content) if word.lower() not in STOP_WORDS)
    return sorted(found, key=lambda word: not word[0].isupper())[:HEURISTIC_KEYWORDS]


def first_sentence(content: str) -> str:
    """Return a content up to its first full stop, question or exclamation mark."""
    return re.split(r"(?<=[.!?])\s", content.strip(), maxsplit=1)[0]


@dataclass(frozen=True, slots=True)
class StagedEvolver:
    """Decides, then links, then rewrites, with one call each.

    Attributes:
        llm: the backbone.
        roles: ``decide``, ``strengthen`` and ``update_neighbours``.
        evolver: applies the outcome; its own role is not asked.
        store: the stored notes.
    """

    llm: LanguageModel
    roles: Mapping[str, Role]
    evolver: Evolver
    store: NoteStore

    async def evolve(self, note: Note, neighbours: Sequence[Note]) -> Evolution:
        """Ask the model and change ``note`` and ``neighbours`` in place; see :class:`memsys.notes.evolve.Evolver`."""
        values = self._values(note, neighbours)
        actions = decision(await self._text("decide", values, note))
        if not actions:
            return Evolution(evolved=False, counts=Counter({"evolution.no": 1}))
        outcome = {"should_evolve": True, "actions": list(actions), "suggested_connections": [], "tags_to_update": []}
        pairs: list[tuple[str, list[str]]] = []
        if "strengthen" in actions:
            text = await self._text("strengthen", values, note)
            outcome["suggested_connections"] = numbers(section(text, "CONNECTIONS"))
            outcome["tags_to_update"] = items(section(text, "TAGS"))
        if "update_neighbor" in actions:
            pairs = neighbour_blocks(await self._text("update_neighbours", values, note), len(neighbours))
        outcome["new_context_neighborhood"] = [context for context, _ in pairs]
        outcome["new_tags_neighborhood"] = [tags for _, tags in pairs]
        return self.evolver.apply(outcome, note, neighbours)

    async def _text(self, role: str, values: Mapping[str, str], note: Note) -> str:
        return (await self.llm.ask(self.roles[role], values, key=note.note_id)).text

    def _values(self, note: Note, neighbours: Sequence[Note]) -> dict[str, str]:
        lines = "\n".join(neighbour_line(neighbour, self.store) for neighbour in neighbours)
        return {
            "context": note.context,
            "content": note.content,
            "keywords": str(note.keywords),
            "neighbours": lines or "(none)",
            "neighbour_count": str(len(neighbours)),
        }
