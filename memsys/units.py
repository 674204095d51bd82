"""Units of conversation for systems that write more than one turn at a time."""

from memsys.turns import sessions_of
from memsys.vocabulary import Conversation, Unit


def session_units(conversation: Conversation) -> list[Unit]:
    """Return one unit per session, named after its first and its last turn."""
    sessions = sessions_of(conversation.turns)
    return [Unit(f"{session[0].turn_id}..{session[-1].turn_id}", session, conversation) for session in sessions]


def conversation_of(unit: Unit) -> Conversation:
    """Return the conversation that a unit was cut from.

    Raises:
        ValueError: the unit does not say which one that is.
    """
    if unit.conversation is None:
        raise ValueError(f"unit {unit.unit_id!r} names no conversation: take it from units(), which sets it")
    return unit.conversation
