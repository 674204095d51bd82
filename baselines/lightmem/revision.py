"""The update in "sleep": once the conversation has ended, later facts may rewrite or delete earlier ones."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from baselines.lightmem.entries import DatedFact, dated
from baselines.lightmem.rules import RevisionRules
from memsys.index.vector import VectorIndex
from memsys.llm.contract import LanguageModel, Reply, Role


@dataclass(frozen=True, slots=True)
class Revision:
    """Result of a revision of the facts.

    Attributes:
        rewritten: facts with new texts, oldest first.
        deleted: ids.
        counts: of actions and fallbacks.
    """

    rewritten: Sequence[DatedFact]
    deleted: Sequence[str]
    counts: Counter[str]


def queues(index: VectorIndex, rules: RevisionRules, moments: Sequence[str] | None = None) -> Mapping[str, list[str]]:
    """Find, for each fact, the later facts that may change it.

    Each fact names its ``keep`` nearest among all earlier ones, of which those with at least ``theta`` count.

    Args:
        index: facts, oldest first.
        rules: ``keep`` and ``theta``.
        moments: time stamp of each fact, where every other fact with one that is not later counts as earlier;
            ``None`` where those before it do.

    Returns:
        Id of the earlier fact -> ids of the later ones, oldest first; facts that nothing may change are left out.
    """
    sources: dict[str, list[str]] = {}
    vectors = index.vectors(index.ids)
    for place, fact_id in enumerate(index.ids):
        among = np.arange(place, dtype=np.int64) if moments is None else _not_later(moments, place)
        earlier = index.search(vectors[place], rules.keep, among=among)
        for target, score in earlier:
            if score >= rules.theta:
                sources.setdefault(target, []).append(fact_id)
    return sources


def _not_later(moments: Sequence[str], place: int) -> NDArray[np.int64]:
    """Return the places of the other facts whose time stamps are not later than that of the fact at ``place``."""
    found = [other for other, moment in enumerate(moments) if other != place and moment <= moments[place]]
    return np.asarray(found, dtype=np.int64)


async def revise(
    llm: LanguageModel, role: Role, facts: Mapping[str, DatedFact], sources: Mapping[str, Sequence[str]]
) -> Revision:
    """Ask for each fact what its later neighbours make of it, one call each.

    Every call shows facts as they were extracted, and so none waits for another. Where only newer facts may change a
    fact, that is the outcome of going through them from the oldest to the newest.
    """
    targets = [fact for fact_id, fact in facts.items() if fact_id in sources]
    later = [[facts[source] for source in sources[target.fact_id]] for target in targets]
    asked = (_ask(llm, role, target, each) for target, each in zip(targets, later, strict=True))
    rewritten, deleted, counts = [], [], Counter[str]()
    for target, others, reply in zip(targets, later, await asyncio.gather(*asked), strict=True):
        action, text = _decision(reply)
        counts[f"update.{action}"] += 1
        counts["fallback.update"] += reply.value is None
        if action == "delete":
            deleted.append(target.fact_id)
        elif action == "update":
            turn_ids = dict.fromkeys((*target.turn_ids, *(turn for each in others for turn in each.turn_ids)))
            rewritten.append(replace(target, text=text, turn_ids=tuple(turn_ids)))
    return Revision(rewritten, deleted, counts)


async def _ask(llm: LanguageModel, role: Role, target: DatedFact, sources: Sequence[DatedFact]) -> Reply:
    lines = "\n".join(f"- {_line(source)}" for source in sources)
    return await llm.ask(role, {"target": _line(target), "sources": lines}, key=target.fact_id)


def _line(fact: DatedFact) -> str:
    date = dated(fact.date)
    return f"[{date}] {fact.text}" if date else fact.text


def _decision(reply: Reply) -> tuple[str, str]:
    """Read action and text; an update to no text, and a reply that cannot be read, change nothing."""
    if reply.value is None:
        return "ignore", ""
    action, text = str(reply.value["action"]), reply.value.get("new_memory")
    if action == "update" and not (isinstance(text, str) and text.strip()):
        return "ignore", ""
    return action, str(text or "").strip()
