"""Research: plan, search, integrate and check, round by round."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from baselines.gam.rules import GamContextRules, GamTexts, ResearchRules
from baselines.gam.searching import FoundPage, PageStore, read_plan, search_pages
from baselines.limits import count_within, cut_to_tokens
from memsys.llm.contract import Reply, Role
from memsys.llm.structured import parse_object
from memsys.llm.values import whole_number
from memsys.protocol import Parts
from memsys.seeding import question_key

_ANY_CHECK = {"type": "object", "required": ["enough"]}


@dataclass(slots=True)
class Findings:
    """Findings of the research of one question.

    Attributes:
        text: the integrated text.
        sources: numbers of pages that the last integration names.
        pages: found in any round, in the order in which they appeared.
        rounds: begun.
        enough: whether the check ended it.
        cut: pages that did not fit into a prompt.
        abstracts_cut: abstracts that did not fit into a plan's prompt, over all rounds.
        merged: pages that an integration read in full and whose reply is part of the text.
        tools: how many pages each tool found.
        fallbacks: roles whose replies were replaced, ``role:by what``.
    """

    text: str = ""
    sources: tuple[int, ...] = ()
    pages: dict[int, FoundPage] = field(default_factory=dict)
    rounds: int = 0
    enough: bool = False
    cut: int = 0
    abstracts_cut: int = 0
    merged: set[int] = field(default_factory=set)
    tools: Counter[str] = field(default_factory=Counter)
    fallbacks: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Researcher:
    """Researches questions over a store that does not change meanwhile.

    Attributes:
        parts: backbone and embedder.
        roles: by name.
        rules: of research.
        context: what a prompt may take of the window.
        texts: words of prompts.
        store: pages.
    """

    parts: Parts
    roles: Mapping[str, Role]
    rules: ResearchRules
    context: GamContextRules
    texts: GamTexts
    store: PageStore

    async def research(self, question: str) -> Findings:
        """Go through the rounds until enough is found; an empty store is not asked about."""
        found, request = Findings(), question
        if not self.store.pages:
            return found
        key = question_key(question)
        for number in range(self.rules.max_rounds):
            found.rounds += 1
            await self._search(found, question, request, f"{key}:{number}")
            enough = await self._enough(found, question, f"{key}:{number}")
            found.enough = bool(enough)
            last = number + 1 == self.rules.max_rounds
            if found.enough or (last and not self.rules.last_requests):
                break
            asks = enough is not None or self.rules.checks == "careful"
            request = await self._requests(found, question, f"{key}:{number}") if asks else question
        return found

    async def _search(self, found: Findings, question: str, request: str, key: str) -> None:
        values = {"question": request, "abstracts": await self._abstracts(found, request)}
        reply = await self.parts.llm.ask(self.roles["plan"], values, key=key)
        plan, replaced = read_plan(reply, question, self.rules, self.roles["plan"].reading)
        found.fallbacks += [f"plan:{self.rules.plan_fallback}"] if replaced else []
        hits, counts = await search_pages(self.store, self.parts.embedder, plan, self.rules)
        found.tools.update(counts)
        for hit in hits:
            found.pages.setdefault(hit.number, hit)
        if hits and self.context.shown != "pages":
            await self._integrate(found, question, hits, key)

    async def _integrate(self, found: Findings, question: str, hits: Sequence[FoundPage], key: str) -> None:
        """Merge pages into the text; the question is the original one whatever was searched for."""
        values = {"question": question, "findings": found.text or self.texts.no_findings}
        evidence, read = await self._evidence(found, hits, values)
        reply = await self.parts.llm.ask(self.roles["integrate"], {**values, "evidence": evidence}, key=key)
        if reply.value is None:
            found.fallbacks.append("integrate:kept")
            return
        text = self.roles["integrate"].reading.text(str(reply.value.get("content", "")))
        if not text:
            found.fallbacks.append("integrate:empty")
        if text or not self.rules.keep_on_empty:
            found.text, found.sources = text, _numbers(reply.value.get("sources"), len(self.store.pages))
            found.merged = found.merged.union(read) if text else set()

    async def _enough(self, found: Findings, question: str, key: str) -> bool | None:
        """Ask whether enough is found; ``None`` where the reply does not say."""
        reply = await self.parts.llm.ask(self.roles["check"], self._values(found, question), key=key)
        said = _checked(reply, self.rules)
        found.fallbacks += ["check:false"] if said is None else []
        return said

    async def _requests(self, found: Findings, question: str, key: str) -> str:
        """Ask what to search for next: all new questions together, or the original one where there is none."""
        reply = await self.parts.llm.ask(self.roles["requests"], self._values(found, question), key=key)
        found.fallbacks += ["requests:question"] if reply.value is None else []
        given = reply.value.get("new_requests", [])[: self.rules.max_requests] if reply.value is not None else []
        return " ".join(self.roles["requests"].reading.texts(given)) or question

    def _values(self, found: Findings, question: str) -> dict[str, str]:
        return {"question": question, "findings": found.text or self.texts.no_findings}

    async def _abstracts(self, found: Findings, request: str) -> str:
        """Write the abstracts that a plan is shown; the first ones are left out where the prompt would not fit."""
        lines = self.store.abstracts.lines if self.rules.abstracts_shown else []
        room = await self._room("plan", {"question": request, "abstracts": ""})
        latest = await last_within(self.parts, lines, room)
        found.abstracts_cut += len(lines) - len(latest)
        return "\n".join(latest) or self.texts.nothing

    async def _room(self, role: str, values: Mapping[str, str]) -> int:
        """Return the tokens that a prompt with these values, its reply and the spare leave of the window."""
        asked, llm = self.roles[role], self.parts.llm
        frame = await llm.count_tokens(asked.prompt.render(values))
        return max(llm.context_length - asked.max_tokens - self.context.spare_tokens - frame, 1)

    async def _evidence(
        self, found: Findings, hits: Sequence[FoundPage], values: Mapping[str, str]
    ) -> tuple[str, list[int]]:
        """Write the pages, best first; the last ones are left out where the prompt would not fit.

        Returns:
            The text, and the pages that are in it in full.
        """
        llm, room = self.parts.llm, await self._room("integrate", {**values, "evidence": ""})
        blocks = [
            f"{place}. [{hit.source}]({hit.number}) {self.store.pages[hit.number].text}"
            for place, hit in enumerate(hits, start=1)
        ]
        kept = await count_within(llm, blocks, room)
        found.cut += len(blocks) - kept
        text = "\n".join(blocks[:kept]) or await cut_to_tokens(llm, blocks[0], room)
        return text, [hit.number for hit in hits[:kept]]


def half_a_window(parts: Parts, role: Role, context: GamContextRules) -> int:
    """Return half of the tokens that a reply and the spare leave of the window."""
    return max((parts.llm.context_length - role.max_tokens - context.spare_tokens) // 2, 1)


async def last_within(parts: Parts, lines: Sequence[str], room: int) -> list[str]:
    """Return the last lines that have no more than ``room`` tokens together."""
    latest = list(lines[-room:])[::-1]  # a line has a token at least
    return latest[: await count_within(parts.llm, latest, room)][::-1]


def _numbers(given: object, pages: int) -> tuple[int, ...]:
    """Read the pages that an integration names; what is not a number of a page is left out."""
    listed = given if isinstance(given, list) else []
    named = (whole_number(str(each).strip(" ()[]#")) for each in listed)
    return tuple(dict.fromkeys(number for number in named if number is not None and number < pages))


def _checked(reply: Reply, rules: ResearchRules) -> bool | None:
    """Read a check; ``None`` where it says nothing."""
    if rules.checks == "released":
        return None if reply.value is None else bool(reply.value.get("enough", False))
    return _salvaged_check(reply) if reply.value is None else bool(reply.value.get("enough", False))


def _salvaged_check(reply: Reply) -> bool | None:
    """Read a yes in words; ``None`` where the reply says nothing."""
    found = parse_object(reply.text, _ANY_CHECK, repair=False).value
    return None if found is None else str(found["enough"]).strip().lower() in ("true", "yes")
