"""Facts of FactConsolidation by subject and relation: what holds last, what it overrules, and which chain answers.

The data set gives answers without evidence. Its facts are sentences of few fixed forms
(``factconsolidation_relations.yaml``), so that subject and relation can be read off; of two facts with the same subject
and relation the one with the higher number holds.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from memsys.yaml_files import read_yaml

#: Facts of the longest chain that a question asks for.
LONGEST_CHAIN = 4
_TEXTS = Path(__file__).with_suffix("").with_name("factconsolidation_relations.yaml")


@dataclass(frozen=True, slots=True)
class Fact:
    """One numbered fact; ``relation`` is empty where its sentence has no known form."""

    number: int
    relation: str
    subject: str
    value: str


@dataclass(frozen=True, slots=True)
class Derived:
    """Answer and evidence of a question, derived from the facts.

    Attributes:
        newest: facts that hold last and lead to the answer, in the order of the chain.
        overruled: older facts of the same subjects and relations.
        outcome: ``found``; ``gold_overruled``: the gold answer follows from overruled facts alone; ``ambiguous``:
            several chains lead to it; ``unknown``: none does.
    """

    newest: tuple[Fact, ...]
    overruled: tuple[Fact, ...]
    outcome: str


@cache
def _forms() -> tuple[tuple[str, re.Pattern[str], re.Pattern[str]], ...]:
    """Return each relation with the patterns of its facts and of its question."""
    texts: Mapping[str, Mapping[str, str]] = read_yaml(_TEXTS, "it comes with memsys")
    return tuple((name, _pattern(forms["fact"]), _pattern(forms["question"])) for name, forms in texts.items())


def _pattern(form: str) -> re.Pattern[str]:
    escaped = re.escape(form)
    return re.compile(re.sub(r"\bY\b", "(?P<value>.+)", re.sub(r"\bX\b", "(?P<subject>.+)", escaped, count=1)))


def read_fact(number: int, sentence: str) -> Fact:
    """Read subject, relation and value off a sentence without its full stop."""
    return Fact(number, *_read(sentence))


@lru_cache(maxsize=1 << 16)
def _read(sentence: str) -> tuple[str, str, str]:
    """Parse a fact into relation, subject and value; cached, since contexts share their facts."""
    for relation, fact, _ in _forms():
        match = fact.fullmatch(sentence)
        if match:
            return relation, match["subject"], match["value"]
    return "", "", ""


class FactBase:
    """The facts of one context.

    Args:
        facts: in the order of their numbers.
    """

    def __init__(self, facts: Sequence[Fact]) -> None:
        self._of: dict[tuple[str, str], list[Fact]] = {}
        self._about: dict[str, list[str]] = {}
        for fact in facts:
            if fact.relation:
                group = self._of.setdefault((fact.subject, fact.relation), [])
                if not group:
                    self._about.setdefault(fact.subject, []).append(fact.relation)
                group.append(fact)

    @property
    def updates(self) -> tuple[tuple[Fact, ...], ...]:
        """Facts of one subject and relation, where there are several: the last holds and overrules the others."""
        return tuple(tuple(group) for group in self._of.values() if len(group) > 1)

    def single(self, question: str, answers: Sequence[str]) -> Derived:
        """Derive a single-hop question: its form names subject and relation."""
        for relation, _, form in _forms():
            match = form.fullmatch(question)
            group = self._of.get((match["subject"], relation), []) if match else []
            if group:
                newest = group[-1]
                if newest.value in answers:
                    return Derived((newest,), tuple(group[:-1]), "found")
                if any(fact.value in answers for fact in group):
                    return Derived((newest,), tuple(group[:-1]), "gold_overruled")
                return _NOTHING
        return _NOTHING

    def chain(self, question: str, answers: Sequence[str]) -> Derived:
        """Derive a multi-hop question: the only chain of two to four newest facts from a name in it to the answer."""
        starts = self._named(question)
        chains = [chain for start in starts for chain in self._chains(start, answers, newest=True)]
        if len(chains) == 1:
            older = (fact for step in chains[0] for fact in self._of[step.subject, step.relation][:-1])
            return Derived(chains[0], tuple(older), "found")
        if chains:
            return Derived((), (), "ambiguous")
        old = any(chain for start in starts for chain in self._chains(start, answers, newest=False))
        return Derived((), (), "gold_overruled") if old else _NOTHING

    def _named(self, question: str) -> list[str]:
        """Return the subjects named in a question, without those that are part of another's name."""
        found = [
            name for name in self._about if name in question and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", question)
        ]
        return [name for name in found if not any(name != other and name in other for other in found)]

    def _chains(self, start: str, answers: Sequence[str], *, newest: bool) -> Iterator[tuple[Fact, ...]]:
        """Yield the chains from a subject to the answer that use no relation twice."""
        waiting: list[tuple[str, tuple[Fact, ...]]] = [(start, ())]
        while waiting:
            place, chain = waiting.pop()
            if len(chain) > 1 and place in answers:
                yield chain
            if len(chain) < LONGEST_CHAIN:
                taken = {fact.relation for fact in chain}
                for relation in self._about.get(place, ()):
                    group = self._of[place, relation]
                    steps = group[-1:] if newest else group
                    waiting += [(fact.value, (*chain, fact)) for fact in steps if relation not in taken]


_NOTHING = Derived((), (), "unknown")
