"""The staged calls of A-Mem's "robust" path: free text, several small questions, heuristics for unusable replies.

Source: WujiangXu/A-mem, March 2026. Differences kept out: transport errors never become empty notes here.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from baselines.amem.heuristics import HeuristicRules, first_sentence, salient_words
from baselines.amem.sections import (
    Analysis,
    UnreadableReplyError,
    analysis,
    connections,
    decision,
    items,
    neighbour_blocks,
)
from memsys.llm.contract import LanguageModel, Role
from memsys.notes.analyse import Analysed
from memsys.notes.evolve import Evolution, Evolver, neighbour_line
from memsys.notes.note import TEXTS as NOTE_TEXTS
from memsys.notes.note import Note, unit_content, unit_timestamp
from memsys.notes.store import NoteStore
from memsys.turns import TurnFormat
from memsys.vocabulary import Unit


async def analyse_staged(
    llm: LanguageModel, roles: Mapping[str, Role], unit: Unit, turn_format: TurnFormat, rules: HeuristicRules
) -> Analysed:
    """Make the note of a unit: sections, heuristics for what they lack, a second call where these find no keyword."""
    content = unit_content(unit, turn_format)
    reply = await llm.ask(roles["analyse_sections"], {"content": content}, key=unit.unit_id)
    given = _read_analysis(reply.text)
    keywords = given.keywords or salient_words(content, rules)
    if not keywords:
        focused = await llm.ask(roles["focus_keywords"], {"content": content}, key=unit.unit_id)
        keywords = items(focused.text)
    note = Note(
        note_id=unit.unit_id,
        content=content,
        timestamp=unit_timestamp(unit),
        keywords=keywords,
        context=given.context or first_sentence(content, rules) or NOTE_TEXTS("no_context"),
        tags=given.tags or keywords[: rules.tags],
        turn_ids=tuple(turn.turn_id for turn in unit.turns),
    )
    return Analysed(note, fallback=not (given.keywords and given.context and given.tags))


def _read_analysis(text: str) -> Analysis:
    try:
        return analysis(text)
    except UnreadableReplyError:
        return Analysis([], "", [])


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
        """Ask the model and change ``note`` and ``neighbours`` in place; see :class:`memsys.notes.evolve.Evolver`.

        A reply that cannot be used ends the evolution; what an earlier call of it changed stays.
        """
        outcome: dict[str, Any] = {"should_evolve": True, "actions": []}
        try:
            actions = decision(await self._text("decide", note, neighbours))
            if actions is None:
                return Evolution(evolved=False, counts=Counter({"evolution.no": 1}))
            await self._fill(outcome, actions, note, neighbours)
        except UnreadableReplyError:
            counts = self.evolver.apply(outcome, note, neighbours).counts - Counter({"evolution.yes": 1})
            return Evolution(evolved=False, counts=counts + Counter({"fallback.evolve": 1}))
        return self.evolver.apply(outcome, note, neighbours)

    async def _fill(
        self, outcome: dict[str, Any], actions: Sequence[str], note: Note, neighbours: Sequence[Note]
    ) -> None:
        """Ask for the details of each action; an action counts once its details are read."""
        if "strengthen" in actions:
            links, tags = connections(await self._text("strengthen", note, neighbours))
            outcome |= {"suggested_connections": links, "tags_to_update": tags}
            outcome["actions"].append("strengthen")
        if "update_neighbor" in actions:
            pairs = neighbour_blocks(await self._text("update_neighbours", note, neighbours), len(neighbours))
            outcome["new_context_neighborhood"] = [context for context, _ in pairs]
            outcome["new_tags_neighborhood"] = [tags for _, tags in pairs]
            outcome["actions"].append("update_neighbor")

    async def _text(self, role: str, note: Note, neighbours: Sequence[Note]) -> str:
        labels = self.evolver.rules.labels
        lines = "\n".join(neighbour_line(neighbour, self.store, labels) for neighbour in neighbours)
        values = {
            "context": note.context,
            "content": note.content,
            "keywords": str(note.keywords),
            "neighbours": lines or labels.none,
            "neighbour_count": str(len(neighbours)),
            "last_neighbour": str(len(neighbours) - 1),
        }
        return (await self.llm.ask(self.roles[role], values, key=note.note_id)).text
