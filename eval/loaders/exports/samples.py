"""Chats of an export as memories: each a conversation of its own, or all of them the sessions of one."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import count

from eval.loaders.checks import check_samples
from eval.loaders.exports.chats import WITHOUT_TEXT, Chat, Message, Session
from memsys.dates import parse_date
from memsys.vocabulary import Conversation, Sample, Turn


def said_only(chats: Iterable[Chat], left_out: Counter[str]) -> list[Chat]:
    """Leave out messages without text, and sessions and chats that have no message then; all are counted."""
    found = []
    for chat in chats:
        sessions = [Session(one.title, _with_text(one.messages, left_out)) for one in chat.sessions]
        sessions = [one for one in sessions if one.messages]
        left_out["chats without a message"] += not sessions
        found += [replace(chat, sessions=sessions)] if sessions else []
    return found


def _with_text(messages: Sequence[Message], left_out: Counter[str]) -> list[Message]:
    kept = [message for message in messages if message.text.strip()]
    left_out[WITHOUT_TEXT] += len(messages) - len(kept)
    return kept


def as_conversations(chats: Iterable[Chat]) -> list[Sample]:
    """Make each chat a memory of its own."""
    return [_sample(chat.name, chat.sessions) for chat in chats]


def as_one_memory(chats: Sequence[Chat], name: str) -> tuple[list[Sample], bool]:
    """Make all chats the sessions of one memory, in the order of time.

    Returns:
        The memory, and whether its sessions are in the order of time; they stay in that of the file where one of them
        has no date that can be read.
    """
    sessions = [Session(_title(chat, session), session.messages) for chat in chats for session in chat.sessions]
    dated = [(moment, session) for session in sessions if (moment := _begins(session))]
    if whole := len(dated) == len(sessions):
        sessions = [session for _, session in sorted(dated, key=lambda pair: pair[0])]
    return [_sample(name, sessions)], whole


def _title(chat: Chat, session: Session) -> str:
    """Return a session's title among those of other chats: its own, or the chat's with its own."""
    return f"{chat.name} {session.title}".strip() if chat.titled else session.title or chat.name


def _begins(session: Session) -> datetime | None:
    return next((moment for message in session.messages if (moment := parse_date(message.date))), None)


def _sample(name: str, sessions: Sequence[Session]) -> Sample:
    titles = _different([session.title or str(number) for number, session in enumerate(sessions, 1)])
    said = [(title, message) for title, session in zip(titles, sessions, strict=True) for message in session.messages]
    turns = (
        Turn(str(number), title, message.speaker, message.text.strip("\n"), date_time=message.date)
        for number, (title, message) in enumerate(said, 1)
    )
    return Sample(Conversation(name, tuple(turns)), (), {})


def _different(names: Sequence[str]) -> list[str]:
    """Give names that occur again a number: the second becomes ``NAME#2``, unless there is such a name."""
    taken, seen, found = set(names), set[str](), []
    for name in names:
        if name in seen:
            name = next(free for number in count(2) if (free := f"{name}#{number}") not in taken)
            taken.add(name)
        seen.add(name)
        found.append(name)
    return found


def distinct(samples: Sequence[Sample]) -> tuple[list[Sample], list[str]]:
    """Give chats of one id different ones.

    Returns:
        The conversations, and the new ids.

    Raises:
        DataError: conversations with questions have one id, or questions have; which of the two is meant is ambiguous.
            Or a file's evidence names no turn.
    """
    before = [sample.conversation.conversation_id for sample in samples]
    after = before if any(sample.questions for sample in samples) else _different(before)
    named = zip(samples, after, strict=True)
    found = [replace(one, conversation=replace(one.conversation, conversation_id=name)) for one, name in named]
    check_samples(found)
    return found, [name for old, name in zip(before, after, strict=True) if old != name]
