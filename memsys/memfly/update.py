"""Role ``update``: judge a new note against its candidates by one call (paper, 3.3.2)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memsys.llm.bounded import salvaged
from memsys.llm.contract import LanguageModel, Reply, Role
from memsys.llm.values import finite
from memsys.memfly.gating import Judgement
from memsys.memfly.ingest import Denoised
from memsys.memfly.keywords import KeywordLayer
from memsys.memfly.note import MemFlyNote, raw_text
from memsys.memfly.roles import LOOSE_UPDATE, RELATIONS, TEXTS
from memsys.memfly.store import Candidate, NoteLayer


@dataclass(frozen=True, slots=True)
class DuplicateJudgement:
    """Result of a call of the role: usable judgements in candidate order, and counts for the statistics."""

    judgements: tuple[Judgement, ...]
    counts: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class DuplicateJudge:
    """Asks the role.

    Attributes:
        llm: the backbone.
        roles: the role ``update`` for one candidate, for two, and so on.
        notes: stored notes.
        keywords: names of their keywords.
        shown_chars: characters of a candidate's context that the prompt shows.
    """

    llm: LanguageModel
    roles: Sequence[Role]
    notes: NoteLayer
    keywords: KeywordLayer
    shown_chars: int

    async def judge(self, unit_id: str, new: Denoised, candidates: Sequence[Candidate]) -> DuplicateJudgement:
        """Judge a new note against its candidates, which the prompt numbers from 1.

        A malformed reply is read entry by entry; entries that cannot be used are dropped, so that in the worst case
        there is no judgement and the note is appended.
        """
        lines = (self._line(rank, self.notes[one.position]) for rank, one in enumerate(candidates, start=1))
        values = {
            "candidates": "\n".join(lines),
            "content": raw_text(new.raw),
            "context": new.context,
            "keywords": ", ".join(new.keywords),
        }
        reply = await self.llm.ask(self.roles[len(candidates) - 1], values, key=unit_id)
        return read_judgements(reply, [one.position for one in candidates])

    def _line(self, rank: int, note: MemFlyNote) -> str:
        names = ", ".join(self.keywords.surface(number) for number in note.keywords)
        shown = {"context": note.context[: self.shown_chars], "keywords": names[: self.shown_chars]}
        return TEXTS("candidate", rank=rank, **shown)


def read_judgements(reply: Reply, positions: Sequence[int]) -> DuplicateJudgement:
    """Read a reply: the first usable entry of each candidate, in candidate order.

    Args:
        reply: of the role ``update``.
        positions: the candidates' positions among all notes, in the prompt's order.
    """
    counts: Counter[str] = Counter()
    value = reply.value
    if value is None:
        counts["fallback.update"] = 1
        value = salvaged(reply.text, LOOSE_UPDATE) or {"relations": []}
    found: dict[int, Judgement] = {}
    for entry in value["relations"]:
        judgement = _judgement(entry, positions, counts)
        if judgement is None:
            counts["update.entry_dropped"] += 1
        elif judgement.candidate in found:
            counts["update.entry_repeated"] += 1
        else:
            found[judgement.candidate] = judgement
    counts["update.entry_missing"] = len(positions) - len(found)
    if reply.value is None and found:
        counts["update.recovered"] = 1
    ordered = tuple(found[position] for position in positions if position in found)
    return DuplicateJudgement(ordered, +counts)


def _judgement(entry: Any, positions: Sequence[int], counts: Counter[str]) -> Judgement | None:
    """Read one entry; ``None`` where candidate, relation or strength cannot be used."""
    if not isinstance(entry, Mapping):
        return None
    number, strength = _number(entry.get("candidate_id")), _number(entry.get("connection_strength"))
    relation = entry.get("relation_type")
    if number is None or strength is None or relation not in RELATIONS:
        return None
    if number != int(number) or not 1 <= number <= len(positions):
        return None
    clipped = min(max(strength, 0.0), 1.0)
    counts["update.strength_clipped"] += clipped != strength
    operation, context = entry.get("operation"), entry.get("updated_context")
    return Judgement(
        candidate=positions[int(number) - 1],
        relation=relation,
        strength=clipped,
        operation=operation if isinstance(operation, str) else "",
        updated_context=context if isinstance(context, str) else "",
    )


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return finite(value)
    except ValueError:
        return None
