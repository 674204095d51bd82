"""Role ``evolve``: link a new note to its neighbours and rewrite theirs, by one joint call (CLAG eq. 3 and 4)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from memsys.llm.contract import LanguageModel, Role
from memsys.notes.context import NoteLabels
from memsys.notes.note import Note
from memsys.notes.store import NoteStore
from memsys.settings import check_choices

#: What the model may ask for.
ACTIONS = ("strengthen", "update_neighbor")

LinkTargets = Literal["shown", "any"]
LinkReading = Literal["index", "rank"]


@dataclass(frozen=True, slots=True)
class EvolutionRules:
    """Settings of applying a reply of the role.

    Attributes:
        link_targets: ``shown`` accepts links to the notes of this prompt alone; ``any`` to every stored note, as the
            official code does (which also keeps numbers that name no note yet; here they are dropped).
        link_reading: ``index`` reads a number as the memory index shown; ``rank`` as the line's rank, from 0.
        unique_links: a note is linked once, however often it is named.
        actions_once: a repeated action is applied once.
        ignore_empty: an empty tag list or context leaves the present one; otherwise it replaces it.
        labels: precede the fields of the neighbours shown; from ``memory.note_labels``.
    """

    link_targets: LinkTargets
    link_reading: LinkReading
    unique_links: bool
    actions_once: bool
    ignore_empty: bool
    labels: NoteLabels

    def __post_init__(self) -> None:
        check_choices(self, "evolution_rules", link_targets=LinkTargets, link_reading=LinkReading)


@dataclass(frozen=True, slots=True)
class Evolution:
    """Result of an evolution.

    Attributes:
        evolved: the model said ``true``, even if nothing could be applied. Another value that Python takes for true,
            where a reading lets one pass, is applied and not counted, as in the released codes.
        rewritten: ids of the neighbours whose context or tags changed, in neighbour order.
        counts: for the system's statistics: evolutions, links created and dropped, fallbacks, length mismatches.
    """

    evolved: bool
    rewritten: tuple[str, ...] = ()
    counts: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Evolver:
    """Asks the role and applies its reply.

    Attributes:
        llm: the backbone.
        role: the role ``evolve``.
        rules: how a reply is applied.
        store: the stored notes; gives memory indices.
    """

    llm: LanguageModel
    role: Role
    rules: EvolutionRules
    store: NoteStore

    async def evolve(self, note: Note, neighbours: Sequence[Note]) -> Evolution:
        """Ask the model (also with no neighbours) and change ``note`` and ``neighbours`` in place.

        Args:
            note: the new note, not stored yet.
            neighbours: stored notes, most similar first.
        """
        lines = "\n".join(neighbour_line(neighbour, self.store, self.rules.labels) for neighbour in neighbours)
        values = {
            "context": note.context,
            "content": note.content,
            "keywords": str(note.keywords),
            "neighbours": lines or self.rules.labels.none,
            "neighbour_count": str(len(neighbours)),
        }
        reply = await self.llm.ask(self.role, values, key=note.note_id)
        if reply.value is None:
            return Evolution(evolved=False, counts=Counter({"fallback.evolve": 1}))
        return self.apply(reply.value, note, neighbours)

    def apply(self, value: Mapping[str, Any], note: Note, neighbours: Sequence[Note]) -> Evolution:
        """Apply a valid reply; actions of other names are ignored and counted."""
        if not value["should_evolve"]:
            return Evolution(evolved=False, counts=Counter({"evolution.no": 1}))
        actions = [action for action in value["actions"] if action in ACTIONS]
        counts: Counter[str] = Counter({"evolution.yes": 1})
        counts["evolution.unknown_action"] = len(value["actions"]) - len(actions)
        rewritten: dict[str, None] = {}
        for action in dict.fromkeys(actions) if self.rules.actions_once else actions:
            counts[f"evolution.{action}"] += 1
            if action == "strengthen":
                counts += self._strengthen(value, note, neighbours)
            else:
                changed, more = self._update_neighbours(value, note, neighbours)
                rewritten |= dict.fromkeys(changed)
                counts += more
        return Evolution(value["should_evolve"] is True, tuple(rewritten), +counts)

    def _strengthen(self, value: Mapping[str, Any], note: Note, neighbours: Sequence[Note]) -> Counter[str]:
        counts: Counter[str] = Counter()
        for number in value["suggested_connections"]:
            target = self._link_target(number, neighbours)
            if target is None:
                counts["links.dropped"] += 1
            elif self.rules.unique_links and target in note.links:
                counts["links.repeated"] += 1
            else:
                note.links.append(target)
                counts["links.created"] += 1
        tags = self.role.reading.texts(value["tags_to_update"])
        if tags or not self.rules.ignore_empty:
            note.rewrite(note.note_id, context=note.context, tags=tags)
        return counts

    def _link_target(self, given: Any, neighbours: Sequence[Note]) -> str | None:
        number = _whole_number(given)
        if number is None:
            return None
        if self.rules.link_reading == "rank":
            return neighbours[number].note_id if 0 <= number < len(neighbours) else None
        if not 0 <= number < len(self.store):
            return None
        target = self.store.at(number).note_id
        shown = self.rules.link_targets == "any" or any(target == neighbour.note_id for neighbour in neighbours)
        return target if shown else None

    def _update_neighbours(
        self, value: Mapping[str, Any], note: Note, neighbours: Sequence[Note]
    ) -> tuple[list[str], Counter[str]]:
        new_tags, new_contexts = value["new_tags_neighborhood"], value["new_context_neighborhood"]
        counts, reading = Counter[str](), self.role.reading
        if not len(new_tags) == len(new_contexts) == len(neighbours):
            counts["evolution.length_mismatch"] = 1
        rewritten = []
        # A shorter list of tags leaves the remaining neighbours as they are; surplus contexts are ignored.
        for rank, (neighbour, given) in enumerate(zip(neighbours, new_tags, strict=False)):
            tags, context = reading.texts(given), neighbour.context
            if rank < len(new_contexts):
                context = reading.text(new_contexts[rank])
            if self.rules.ignore_empty:
                tags, context = tags or neighbour.tags, context or neighbour.context
            if neighbour.rewrite(note.note_id, context=context, tags=tags):
                rewritten.append(neighbour.note_id)
        counts["evolution.rewritten"] = len(rewritten)
        return rewritten, counts


def _whole_number(given: Any) -> int | None:
    """Read a link's number as CLAG's code does, which also takes ``2.0`` and ``"2"``."""
    try:
        return int(given)
    except (TypeError, ValueError, OverflowError):
        return None


def neighbour_line(note: Note, store: NoteStore, labels: NoteLabels) -> str:
    """Write a neighbour as the prompt shows it: memory index, then the labelled fields, tab-separated."""
    return "\t".join([f"{labels.index}{store.position(note.note_id)}", *labels.fields(note)])
