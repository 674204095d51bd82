"""Batches of messages, and whose memories they go to (Mem0's message protocol for conversations of two people)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from memsys.texts import FILE, ShownTexts
from memsys.turns import sessions_of
from memsys.units import conversation_of
from memsys.vocabulary import Conversation, Turn, Unit

TEXTS = ShownTexts(Path(__file__).with_name(FILE))

Scopes = Literal["speakers", "conversation"]

#: Owner of the only scope of ``scopes: conversation``.
EVERYBODY = "conversation"


def scope_owners(scopes: Scopes, conversation: Conversation) -> list[str]:
    """Return the name of each scope of a conversation."""
    return owners(conversation) if scopes == "speakers" else [EVERYBODY]


def owners(conversation: Conversation) -> list[str]:
    """Return whose memories are kept: the conversation's speakers who speak; if it names none, all who speak."""
    speaking = conversation.speaking
    return [name for name in conversation.speakers if name in speaking] or list(speaking)


def owners_of_unit(scopes: Scopes, unit: Unit) -> list[str]:
    """Return the name of each scope of the conversation that a unit was cut from.

    Raises:
        ValueError: the unit does not say which conversation that is.
    """
    return scope_owners(scopes, conversation_of(unit))


def subject(owner: str) -> str:
    """Return whose memories a scope holds, as prompts say it."""
    return TEXTS("everybody") if owner == EVERYBODY else owner


def session_batches(conversation: Conversation, size: int) -> list[Unit]:
    """Cut each session into batches of ``size`` messages; none reaches over a session's end."""
    sessions = sessions_of(conversation.turns)
    batches = [turns[at : at + size] for turns in sessions for at in range(0, len(turns), size)]
    return [Unit(unit_id=_batch_id(batch), turns=batch, conversation=conversation) for batch in batches]


def batch_date(unit: Unit) -> str:
    """Return the date of a batch: that of its session."""
    return unit.turns[0].date_time


def batch_turn_ids(unit: Unit) -> tuple[str, ...]:
    """Return the ids of a batch's turns: the lineage of what was written from it, no finer than the batch."""
    return tuple(turn.turn_id for turn in unit.turns)


def _batch_id(turns: Sequence[Turn]) -> str:
    return turns[0].turn_id if len(turns) == 1 else f"{turns[0].turn_id}..{turns[-1].turn_id}"
