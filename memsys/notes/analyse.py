"""Role ``analyse``: metadata of a new note, from its content alone."""

from dataclasses import dataclass

from memsys.llm.contract import LanguageModel, Reply, Role
from memsys.llm.reading import ReplyReading
from memsys.notes.note import TEXTS, Note, unit_content, unit_timestamp
from memsys.turns import TurnFormat
from memsys.vocabulary import Unit


@dataclass(frozen=True, slots=True)
class Analysed:
    """A fresh note; ``fallback`` says that the analysis was malformed and the metadata are the defaults."""

    note: Note
    fallback: bool


def note_from_reply(unit: Unit, content: str, reply: Reply, reading: ReplyReading) -> Note:
    """Make the note of a unit; a malformed analysis gives empty lists and the default context."""
    value = reply.value or {"keywords": [], "context": "", "tags": []}
    context = reading.text(value["context"]) if isinstance(value["context"], str) else value["context"]
    context = context or TEXTS("no_context")
    return Note(
        note_id=unit.unit_id,
        content=content,
        timestamp=unit_timestamp(unit),
        keywords=reading.texts(value["keywords"] or []),
        context=" ".join(context) if isinstance(context, list) else context,
        tags=reading.texts(value["tags"] or []),
        turn_ids=tuple(turn.turn_id for turn in unit.turns),
    )


async def analyse(llm: LanguageModel, role: Role, unit: Unit, turn_format: TurnFormat) -> Analysed:
    """Make the note of a unit with one call. Depends on the unit alone, so it may run ahead of the writes."""
    content = unit_content(unit, turn_format)
    reply = await llm.ask(role, {"content": content}, key=unit.unit_id)
    return Analysed(note_from_reply(unit, content, reply, role.reading), fallback=reply.value is None)
