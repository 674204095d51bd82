"""Role ``extract``: the facts of a batch of messages, from the batch alone (Mem0's fact extraction, user side)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from memsys.facts.batches import TEXTS
from memsys.llm.contract import LanguageModel, Reply, Role
from memsys.llm.reading import TOLERANT, ReplyReading, fenced_block
from memsys.llm.roles import make_role
from memsys.llm.structured import parse_bare_list, parse_object
from memsys.notes.roles import object_schema
from memsys.turns import TurnFormat
from memsys.vocabulary import Completion, Json, Unit

PROMPTS = Path(__file__).parent / "prompts"

#: Which shipped prompt lists the facts of a scope's owner. ``user`` says that the conversation took place on the date
#: it is given and asks for dates in the facts; ``user_today`` says that this date is today's, and asks for none (the
#: released code of Mem0 1.0 and SAGE).
UserPrompt = Literal["user", "user_today"]

#: ``recovered``: facts were found in a reply of another shape. ``lost``: none were.
ExtractFallback = Literal["recovered", "lost"]

_FENCED = re.compile(r"```[a-zA-Z0-9]*\n(.*?)\n```", re.DOTALL)
_THINKING = re.compile(r"<think>.*?</think>", re.DOTALL)

_FACTS = object_schema(facts={"type": "array", "items": {"type": "string"}})
_ANY_FACTS: dict[str, Json] = {"type": "object", "required": ["facts"]}


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of one reply, none empty.

    Attributes:
        texts: in the reply's order.
        over_limit: facts beyond the limit, which are left out.
        fallback: what became of a malformed reply.
    """

    texts: tuple[str, ...]
    over_limit: int = 0
    fallback: ExtractFallback | None = None


@dataclass(frozen=True, slots=True)
class ExtractCall:
    """One call.

    Attributes:
        owner: whose facts; ``None`` for everybody's.
        date: that the prompt names.
        limit: of facts; ``None`` for all.
        key: see :meth:`memsys.llm.contract.LanguageModel.ask`.
        further: what else the prompt shows.
    """

    owner: str | None
    date: str
    limit: int | None
    key: str
    further: Mapping[str, str] = field(default_factory=dict)


def extract_role(settings: Mapping[str, Json], prompt: UserPrompt = "user") -> Role:
    """Make the role from its YAML settings.

    Args:
        settings: of the role; a prompt file named there wins.
        prompt: which shipped prompt it has otherwise.

    Raises:
        ConfigError: an unknown or missing setting, or a prompt file that does not exist.
    """
    shipped = PROMPTS / ("extract.txt" if prompt == "user" else "extract_user_today.txt")
    return make_role("extract", {**settings, "prompt": settings.get("prompt") or str(shipped)}, PROMPTS, _FACTS)


async def extract(
    llm: LanguageModel, role: Role, unit: Unit, turn_format: TurnFormat, call: ExtractCall
) -> tuple[Facts, Completion]:
    """List the facts of a batch with one call."""
    values = {
        "owner": call.owner or TEXTS("everybody"),
        "date": call.date or TEXTS("unknown_date"),
        "messages": messages(unit, turn_format, call.owner),
        **call.further,
    }
    reply = await llm.ask(role, values, key=call.key)
    return facts_from_reply(reply, call.limit, role.reading), reply.completion


def messages(unit: Unit, turn_format: TurnFormat, owner: str | None) -> str:
    """Write a batch, one message per line: the owner's are marked ``user``, all others ``assistant``."""
    rendered = ((turn, turn_format.render(turn)) for turn in unit.turns)
    return "\n".join(
        TEXTS("owner_line", line=line) if owner in (None, turn.speaker) else TEXTS("other_line", line=line)
        for turn, line in rendered
    )


def facts_from_reply(reply: Reply, limit: int | None, reading: ReplyReading = TOLERANT) -> Facts:
    """Clean a reply; of a malformed one take what can be read.

    A malformed reply may still be an object whose ``facts`` are objects with ``fact`` or ``text``, nested lists or one
    string, or a bare list, where the reading takes one. Anything else counts as no facts. Where the reading takes any
    items, they become texts as in the released code of Mem0 and SAGE (``normalize_facts``).
    """
    given = reply.value["facts"] if reply.value is not None else _salvaged(reply.text, reading)
    texts = [text for text in reading.texts(_written(given) if reading.items == "any" else _flat(given)) if text]
    fallback: ExtractFallback | None = None
    if reply.value is None:
        fallback = "recovered" if texts else "lost"
    kept = texts[:limit]
    return Facts(tuple(kept), len(texts) - len(kept), fallback)


def unfenced(text: str) -> str:
    """Return a plain-text reply without the code block around all of it, and without a model's thinking.

    As the official code of Mem0 and SAGE reads replies; a block that is only a part of the reply stays.
    """
    block = _FENCED.fullmatch(text.strip())
    return _THINKING.sub("", block[1] if block else text).strip()


def _salvaged(text: str, reading: ReplyReading) -> Json:
    block = None if reading.cut else fenced_block(text)
    found = parse_object(text if block is None else block, _ANY_FACTS, repair=False, cut=reading.cut).value
    if found is None and reading.bare_lists:
        start, end = text.find("["), text.rfind("]") + 1
        found = parse_bare_list(text[start:end], "facts", _ANY_FACTS) if 0 <= start < end else None
    return found["facts"] if found is not None else []


def _written(given: Json) -> list[str]:
    """Return the items of a list as texts, converted by ``str``; of a text, its characters."""
    return [_written_item(item) for item in given] if isinstance(given, list | str | dict) else []


def _written_item(item: Json) -> str:
    if isinstance(item, dict):
        item = item.get("fact") or item.get("text") or ""
    return item if isinstance(item, str) else str(item)


def _flat(node: Json) -> list[str]:
    if isinstance(node, str):
        return [node]
    if isinstance(node, dict):
        return _flat(node.get("fact") or node.get("text"))
    return [text for part in node for text in _flat(part)] if isinstance(node, list) else []
