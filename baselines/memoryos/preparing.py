"""What is asked about a page before it is stored: does it go on, what chain is it in, what is it about."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from baselines.memoryos.pages import DialoguePage, PageTopic, QueuedPage
from baselines.memoryos.roles import MOST_TOPICS, TEXTS
from baselines.memoryos.rules import MidTermRules
from memsys.llm.contract import LanguageModel, Role
from memsys.protocol import Parts


class PagePreparation:
    """Calls about pages alone. Those of a session need to know the page before it, and nothing that is stored.

    Args:
        parts: backbone and embedder.
        roles: by name.
        rules: what is summarised, and what stands in for a summary.
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
        embedded = self._parts.embedder.embed([page.dated for page in pages])
        goes_on = asyncio.gather(*(self._continues(before[n], page) for n, page in enumerate(leaving)))
        found = asyncio.gather(*(self._topics(page) for page in leaving))
        vectors, continued, topics = await asyncio.gather(embedded, goes_on, found)
        made = [
            QueuedPage(page, vector, continues, None, about)
            for page, vector, continues, about in zip(leaving, vectors, continued, topics, strict=False)
        ]
        rest = [QueuedPage(page, vector) for page, vector in zip(pages[flushed:], vectors[flushed:], strict=True)]
        return [*(await self._chains(made)), *rest]

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
            summary = await chain_summary(self._parts.llm, self._roles["chain"], summary, page.page, self.counts)
            made.append(replace(page, chain=summary))
        return made

    async def _continues(self, previous: DialoguePage | None, page: DialoguePage) -> bool:
        if previous is None:
            return False
        values = {"previous": previous.dated, "page": page.dated}
        reply = await self._parts.llm.ask(self._roles["continues"], values, key=page.page_id)
        said = reply.text.strip().lower()
        self.counts["fallback.continues"] += "true" not in said and "false" not in said
        return "true" in said

    async def _topics(self, page: DialoguePage) -> list[PageTopic]:
        """Name the topics of a page; where the reply names none, its beginning is its topic, or it has none."""
        shown = page.text if self._rules.topics_of == "both" else page.user or page.text
        reply = await self._parts.llm.ask(self._roles["topics"], {"page": shown}, key=page.page_id)
        given = reply.value["topics"][:MOST_TOPICS] if reply.value is not None else ()
        found = [(text, self._keywords(topic["keywords"])) for topic in given if (text := topic["content"].strip())]
        if not found:
            self.counts["fallback.topics"] += 1
            if self._rules.unread_topics == "drop":
                return []
            found = [(page.text[: self._rules.fallback_chars], ())]
        vectors = await self._parts.embedder.embed([text for text, _ in found])
        return [PageTopic(text, words, vector) for (text, words), vector in zip(found, vectors, strict=True)]

    def _keywords(self, given: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(word for each in given if (word := cased(each, self._rules))))


async def chain_summary(llm: LanguageModel, role: Role, known: str, page: DialoguePage, counts: Counter[str]) -> str:
    """Bring a chain's summary up to date with one call; an empty reply keeps what is known."""
    reply = await llm.ask(role, {"known": known or TEXTS("no_chain"), "page": page.dated}, key=page.page_id)
    text = reply.text.strip()
    counts["fallback.chain"] += not text
    return text or known


def cased(keyword: str, rules: MidTermRules) -> str:
    """Return a keyword as it is compared."""
    return keyword.strip().lower() if rules.keyword_case == "lower" else keyword.strip()
