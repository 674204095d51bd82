"""Questions about a page before it is stored: does it continue, which chain is it in, what is its topic."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from baselines.memoryos.pages import DialoguePage, PageTopic, QueuedPage
from baselines.memoryos.roles import MOST_TOPICS, TEXTS
from baselines.memoryos.rules import MidTermRules
from memsys.llm.contract import Role
from memsys.llm.structured import parse_bare_list
from memsys.protocol import Parts


class PagePreparation:
    """Calls about pages alone. Those of a session need to know the page before it, and nothing that is stored.

    Args:
        parts: backbone and embedder.
        roles: by name.
        rules: what is summarised, and what replaces a summary.
    """

    def __init__(self, parts: Parts, roles: Mapping[str, Role], rules: MidTermRules) -> None:
        self._parts, self._roles, self._rules = parts, roles, rules
        self.counts: Counter[str] = Counter()

    async def queued(
        self, pages: Sequence[DialoguePage], previous: DialoguePage | None, flushed: int
    ) -> list[QueuedPage]:
        """Prepare the pages of a session.

        Args:
            pages: of the session.
            previous: last page of the session before.
            flushed: so many of the pages, from the first, will leave the queue; nothing is asked about the others.
        """
        leaving = pages[:flushed]
        before = [previous, *pages]
        embedded = self._parts.embedder.embed([self._embedded(page) for page in pages])
        goes_on = asyncio.gather(*(self._continues(before[n], page) for n, page in enumerate(leaving)))
        found = asyncio.gather(*(self._topics(page) for page in leaving))
        vectors, continued, topics = await asyncio.gather(embedded, goes_on, found)
        made = [
            QueuedPage(page, vector, continues, None, about)
            for page, vector, continues, about in zip(leaving, vectors, continued, topics, strict=False)
        ]
        rest = [QueuedPage(page, vector) for page, vector in zip(pages[flushed:], vectors[flushed:], strict=True)]
        return [*(await self._chains(made)), *rest]

    def _embedded(self, page: DialoguePage) -> str:
        return page.dated if self._rules.page_vector == "dated" else page.run_on

    async def _chains(self, pages: Sequence[QueuedPage]) -> list[QueuedPage]:
        """Summarise the chains that begin in this session, each page after the one before it, chains at once."""
        starts = [n for n, page in enumerate(pages) if not page.continues]
        first = starts[0] if starts else len(pages)
        ends = [*starts[1:], len(pages)]
        done = await asyncio.gather(*(self._chain(pages[start:end]) for start, end in zip(starts, ends, strict=False)))
        return [*pages[:first], *(page for chain in done for page in chain)]

    async def _chain(self, pages: Sequence[QueuedPage]) -> list[QueuedPage]:
        summary, made = "", []
        for page in pages:
            summary = await self.chain_summary(summary, page.page)
            made.append(replace(page, chain=summary))
        return made

    async def _continues(self, previous: DialoguePage | None, page: DialoguePage) -> bool:
        if previous is None:
            return False
        values = {"previous": previous.dated, "page": page.dated, **previous.sides("previous"), **page.sides("page")}
        reply = await self._parts.llm.ask(self._roles["continues"], values, key=page.page_id)
        said = reply.text.strip().lower()
        self.counts["fallback.continues"] += "true" not in said and "false" not in said
        return said == "true" if self._rules.continues == "exact" else "true" in said

    async def _topics(self, page: DialoguePage) -> list[PageTopic]:
        """Name the topics of a page; where the reply names none, its beginning is its topic, or it has none."""
        shown = page.text if self._rules.topics_of == "both" else page.user or page.text
        reply = await self._parts.llm.ask(self._roles["topics"], {"page": shown}, key=page.page_id)
        value = reply.value if reply.value is not None else bare_list(self._roles["topics"], reply.text)
        given = value["topics"] if value is not None else ()
        found = self._as_they_came(given) if self._rules.unread_topics == "drop" else self._read(given[:MOST_TOPICS])
        if not found:
            self.counts["fallback.topics"] += 1
            if self._rules.unread_topics == "drop":
                return []
            found = [(page.text[: self._rules.fallback_chars], ())]
        vectors = await self._parts.embedder.embed([text for text, _ in found])
        return [PageTopic(text, words, vector) for (text, words), vector in zip(found, vectors, strict=True)]

    def _read(self, given: Sequence[Mapping[str, Any]]) -> list[tuple[str, tuple[str, ...]]]:
        """Return the summaries and keywords of topics, without blank ones."""
        return [
            (text, self._keywords(topic.get("keywords", ())))
            for topic in given
            if (text := topic.get("content", "").strip())
        ]

    def _as_they_came(self, given: Sequence[Mapping[str, Any]]) -> list[tuple[str, tuple[str, ...]]]:
        """Return the summaries and keywords of topics, including blank and missing ones."""
        return [(topic.get("content", ""), self._keywords(topic.get("keywords", ()))) for topic in given]

    def _keywords(self, given: Sequence[str]) -> tuple[str, ...]:
        if self._rules.keyword_case == "kept":
            return tuple(dict.fromkeys(given))
        return tuple(dict.fromkeys(word for each in given if (word := cased(each, self._rules))))

    async def chain_summary(self, known: str, page: DialoguePage) -> str:
        """Bring a chain's summary up to date with one call.

        An empty reply keeps what is known; with ``chain_shown=two_later`` it replaces it, as in the released code.
        """
        told = {"known": known or TEXTS("no_chain"), "known_or_none": known or TEXTS("none")}
        values = {**told, "page": page.dated, **page.sides("page")}
        reply = await self._parts.llm.ask(self._roles["chain"], values, key=page.page_id)
        text = reply.text.strip()
        self.counts["fallback.chain"] += not text
        return text or (known if self._rules.chain_shown == "latest" else "")


def cased(keyword: str, rules: MidTermRules) -> str:
    """Return a keyword as it is compared."""
    return keyword.strip().lower() if rules.keyword_case == "lower" else keyword.strip()


def bare_list(role: Role, text: str) -> Mapping[str, Any] | None:
    """Read a reply that is the list of topics alone, where the preset checks replies as a release does."""
    if not role.reading.bare_lists or role.reading.check == "exact" or role.schema is None:
        return None
    return parse_bare_list(text, "topics", role.accepts or role.schema)
