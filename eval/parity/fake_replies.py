"""Inputs of the deterministic backbone's replies: role and facts of a prompt."""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass

from eval.parity.facts import Facts


@dataclass(frozen=True, slots=True)
class Topics:
    """Words of the replies (``backbone.yaml``): common tags, and actions that no system knows."""

    tags: Sequence[str]
    unknown_action: str
    unknown_cluster: str


@dataclass(slots=True)
class Draw:
    """Draws what a reply says; seeded by role and facts. The prompt tells the layout that is asked for, and no more."""

    facts: Facts
    words: Sequence[str]
    topics: Topics
    random: random.Random
    marks: int = 0
    seed: str = ""
    prompt: str = ""

    def mark(self) -> str:
        """Return a new mark."""
        self.marks += 1
        return f"zq{hashlib.sha256(f'{self.seed}/{self.marks}'.encode()).hexdigest()[:6]}"

    def some(self, count: int) -> list[str]:
        """Return this many words of the texts that the prompt shows."""
        return [self.random.choice(self.words) for _ in range(count)]

    def text(self, count: int) -> str:
        """Return a text of this many words and a mark."""
        return " ".join([*self.some(count), self.mark()])

    def tags(self) -> list[str]:
        """Return common tags and one of its own."""
        return [*self.random.sample(list(self.topics.tags), self.random.randint(1, 3)), self.mark()]

    def chance(self, one_in: int) -> bool:
        """Return true once in N draws."""
        return self.random.randrange(one_in) == 0
