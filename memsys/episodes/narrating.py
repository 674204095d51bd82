"""Describing a block as an episode: role ``episode`` (paper, appendix C)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from memsys.dates import iso, parse_date
from memsys.episodes.nodes import MessageBlock, joined
from memsys.episodes.recovery import loose_object, text_of
from memsys.episodes.roles import TEXTS
from memsys.episodes.rules import EpisodeRules
from memsys.llm.contract import LanguageModel, Role

#: How a reply that does not validate ended. ``recovered``: it describes the block nevertheless. ``template``: the block
#: is described by its length and its first and last message.
EpisodeFallback = Literal["recovered", "template"]


#: Fields that describe a block.
_DESCRIBING = frozenset(("title", "content"))


@dataclass(frozen=True, slots=True)
class Story:
    """Description of a block before it is stored. ``time``: see :class:`memsys.episodes.nodes.Episode`."""

    block: MessageBlock
    title: str
    content: str
    time: str
    fallback: EpisodeFallback | None


async def narrate(llm: LanguageModel, role: Role, block: MessageBlock, rules: EpisodeRules) -> Story:
    """Describe a block with one call; depends on the block alone."""
    values = {"messages": joined(block.messages, dated=True), "reason": block.reason or TEXTS("conversation_ends")}
    reply = await llm.ask(role, values, key=block.key)
    found = loose_object(reply, role.reading)
    if role.reading.check == "any" and not found.keys() >= _DESCRIBING:
        found = {}  # as in the released code of both systems
    title, content, told = (text_of(found, name, role.reading) for name in ("title", "content", "timestamp"))
    time = resolve_timestamp(block, told, rules.slack_days)
    if content:
        fallback: EpisodeFallback | None = None if reply.value is not None else "recovered"
        return Story(block, title or template_title(block), content, time, fallback)
    return Story(block, title or template_title(block), template_content(block, rules.quoted_chars), time, "template")


def template_title(block: MessageBlock) -> str:
    """Return the title of a block without a description."""
    count = len(block.messages)
    return TEXTS("title_of_one", count=count) if count == 1 else TEXTS("title", count=count)


def template_content(block: MessageBlock, quoted_chars: int) -> str:
    """Return the text of a block without a description: the beginnings of its first and last message."""
    count, time = len(block.messages), block.messages[0].time
    first, last = (message.line[:quoted_chars] for message in (block.messages[0], block.messages[-1]))
    content = TEXTS("first_and_last", count=count, first=first, last=last)
    if first == last:
        content = TEXTS("one_line", count=count, line=first)
    return TEXTS("dated_content", time=time, content=content) if time else content


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
