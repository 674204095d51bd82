"""Telling a block as an episode: role ``episode`` (paper, appendix C)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from memsys.dates import iso, parse_date
from memsys.episodes.nodes import MessageBlock, joined
from memsys.episodes.recovery import loose_object, text_of
from memsys.episodes.rules import EpisodeRules
from memsys.llm.contract import LanguageModel, Role

#: How a reply that does not validate ended. ``recovered``: it tells the block nevertheless. ``template``: the block is
#: described by its length and its first and last message.
EpisodeFallback = Literal["recovered", "template"]

_QUOTED_CHARS = 100


@dataclass(frozen=True, slots=True)
class Story:
    """What became of a block, before it is stored. ``time``: see :class:`memsys.episodes.nodes.Episode`."""

    block: MessageBlock
    title: str
    content: str
    time: str
    fallback: EpisodeFallback | None


async def narrate(llm: LanguageModel, role: Role, block: MessageBlock, rules: EpisodeRules) -> Story:
    """Tell a block with one call; depends on the block alone."""
    values = {"messages": joined(block.messages, dated=True), "reason": block.reason or "the conversation ends here"}
    reply = await llm.ask(role, values, key=block.key)
    found = loose_object(reply, role.reading)
    title, content = text_of(found, "title"), text_of(found, "content")
    time = resolve_timestamp(block, text_of(found, "timestamp"), rules.slack_days)
    if content:
        fallback: EpisodeFallback | None = None if reply.value is not None else "recovered"
        return Story(block, title or template_title(block), content, time, fallback)
    return Story(block, title or template_title(block), template_content(block), time, "template")


def template_title(block: MessageBlock) -> str:
    """Title of a block without a description."""
    count = len(block.messages)
    return f"Conversation of {count} message{'' if count == 1 else 's'}"


def template_content(block: MessageBlock) -> str:
    """Text of a block without a description."""
    first, last = block.messages[0], block.messages[-1]
    when = f"On {first.time}: " if first.time else ""
    lines = dict.fromkeys((first.line[:_QUOTED_CHARS], last.line[:_QUOTED_CHARS]))
    return f"{when}{len(block.messages)} messages, from {' to '.join(repr(line) for line in lines)}"


def resolve_timestamp(block: MessageBlock, claimed: str, slack_days: int | None) -> str:
    """Return when a block happened.

    Args:
        block: the messages.
        claimed: the model's timestamp.
        slack_days: see :class:`memsys.episodes.rules.EpisodeRules`.

    Returns:
        The claim where it can be read and is believed, else the earliest of the messages' times, else the first
        message's time as the data set writes it.
    """
    known = [moment for message in block.messages if (moment := parse_date(message.time)) is not None]
    claim = parse_date(claimed)
    if claim is not None and (slack_days is None or _within(claim, known, timedelta(days=slack_days))):
        return iso(claim)
    return iso(min(known)) if known else block.messages[0].time


def _within(claim: datetime, known: list[datetime], slack: timedelta) -> bool:
    return bool(known) and min(known) - slack <= claim <= max(known) + slack
