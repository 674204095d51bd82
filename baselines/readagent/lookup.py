"""Choosing the pages that are read again for a question."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from baselines.readagent.pages import GistPage, mix, tagged
from baselines.readagent.roles import STOP, TEXTS, lookup_for, lookup_next_for
from baselines.readagent.rules import LookupRules
from memsys.llm.contract import LanguageModel, Reply, Role
from memsys.llm.values import whole_number
from memsys.seeding import question_key

_LIST = re.compile(r"\[([^\]]*)\]")
_STEP = re.compile(rf"\b{STOP}\b|\d{{1,9}}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LookupRequest:
    """Pages to read again, in the order of request; calls made; names of fallbacks taken."""

    pages: tuple[int, ...] = ()
    calls: int = 0
    fallbacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lookup:
    """Asks the backbone which pages a question needs.

    Attributes:
        llm: the backbone.
        roles: ``lookup`` and ``lookup_next``.
        rules: mode and limits.
        limit: tokens of gists in one call.
    """

    llm: LanguageModel
    roles: Mapping[str, Role]
    rules: LookupRules
    limit: int

    async def request(self, pages: Sequence[GistPage], question: str) -> LookupRequest:
        """Choose pages; none of an empty memory, without a call."""
        if not pages:
            return LookupRequest()
        key = question_key(question)
        ask = self._parallel if self.rules.mode == "parallel" else self._sequential
        return await ask(pages, question, key)

    async def _parallel(self, pages: Sequence[GistPage], question: str, key: str) -> LookupRequest:
        """Ask once about all gists that fit one call; of several calls, the first pages named by each come first."""
        batches = gist_batches(pages, self.limit)
        calls = [self._named(pages, batch, question, f"{key}:{number}") for number, batch in enumerate(batches)]
        named = await asyncio.gather(*calls)
        ranked = (number for rank in zip_longest(*(each or [] for each in named)) for number in rank)
        requested = tuple(number for number in ranked if number is not None)
        return LookupRequest(requested, len(batches), ("lookup:no_pages",) * sum(each is None for each in named))

    async def _named(
        self, pages: Sequence[GistPage], batch: Sequence[int], question: str, key: str
    ) -> list[int] | None:
        """Return the pages of a batch that a call names; ``None`` when it names none."""
        most = min(self.rules.parallel_pages, len(batch))
        gists = "".join(tagged(number, pages[number].short) for number in batch)
        values = {"gists": gists, "question": question, "limit": str(most)}
        reply = await self.llm.ask(lookup_for(self.roles["lookup"], batch, most), values, key=key)
        return named_pages(reply, batch)[:most] or None

    async def _sequential(self, pages: Sequence[GistPage], question: str, key: str) -> LookupRequest:
        """Open a page per call until the backbone stops; what names no further page is a stop, and counted."""
        opened: list[int] = []
        for calls in range(self.rules.sequential_pages):
            mixed = mix(pages, opened, self.limit)
            # A page that was opened but does not fit in full is not offered again.
            offered = [number for number in mixed.gists if number not in opened]
            if not offered:
                return LookupRequest(tuple(opened), calls)
            named = ", ".join(map(str, opened)) or TEXTS("no_page")
            values = {"gists": mixed.text, "opened": named, "question": question}
            reply = await self.llm.ask(
                lookup_next_for(self.roles["lookup_next"], offered), values, key=f"{key}:{calls}"
            )
            step = next_step(reply)
            if not isinstance(step, int) or step not in offered:
                fallbacks = () if step == STOP else ("lookup_next:stop",)
                return LookupRequest(tuple(opened), calls + 1, fallbacks)
            opened.append(step)
        return LookupRequest(tuple(opened), self.rules.sequential_pages)


def gist_batches(pages: Sequence[GistPage], limit: int) -> list[list[int]]:
    """Split page numbers, in order, so that the gists of each batch fit; a larger gist is a batch of its own."""
    batches: list[list[int]] = []
    spent = 0
    for number, page in enumerate(pages):
        spent += page.gist_tokens
        if not batches or spent > limit:
            batches.append([])
            spent = page.gist_tokens
        batches[-1].append(number)
    return batches


def named_pages(reply: Reply, shown: Sequence[int]) -> list[int]:
    """Read the pages that a reply names, each once, in its order; those that were not shown are dropped.

    In free text they are the numbers inside the first square brackets.
    """
    if reply.value is not None:
        named = [int(number) for number in reply.value["pages"]]
    else:
        match = None if reply.malformed else _LIST.search(reply.text)
        parts = match.group(1).split(",") if match else []
        named = [number for part in parts if (number := whole_number(part.strip())) is not None]
    return [number for number in dict.fromkeys(named) if number in shown]


def next_step(reply: Reply) -> int | str | None:
    """Read a page number or ``STOP``; ``None`` when the reply says neither."""
    text = str(reply.value["page"]) if reply.value is not None else "" if reply.malformed else reply.text
    match = _STEP.search(text)
    if match is None:
        return None
    return int(match.group()) if match.group().isdigit() else STOP
