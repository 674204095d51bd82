"""The deterministic backbone: its reply is a function of the request alone, and follows the request's schema.

A reply depends on the role (known by the schema's fields) and on the facts of the prompt (:mod:`eval.parity.facts`).
Its texts hold marks, so that a difference between two sides is seen in every later prompt that shows it. Replies are
varied: some decline, choose what is no candidate, repeat an action or give lists of another length.
"""

import hashlib
import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eval.parity.facts import Facts, KnownTexts
from eval.parity.spoiling import spoil
from memsys.vocabulary import Json

_WORD = re.compile(r"[a-z]{4,}")


@dataclass(frozen=True, slots=True)
class Topics:
    """Words of the replies (``backbone.yaml``): common tags, and actions that no system knows."""

    tags: Sequence[str]
    unknown_action: str
    unknown_cluster: str


@dataclass(slots=True)
class Draw:
    """Draws what a reply says; seeded by role and facts."""

    facts: Facts
    words: Sequence[str]
    topics: Topics
    random: random.Random
    marks: int = 0
    seed: str = ""

    def mark(self) -> str:
        """A new mark."""
        self.marks += 1
        return f"zq{hashlib.sha256(f'{self.seed}/{self.marks}'.encode()).hexdigest()[:6]}"

    def some(self, count: int) -> list[str]:
        """So many words of the texts that the prompt shows."""
        return [self.random.choice(self.words) for _ in range(count)]

    def text(self, count: int) -> str:
        """A text of so many words and a mark."""
        return " ".join([*self.some(count), self.mark()])

    def tags(self) -> list[str]:
        """Common tags and one of its own."""
        return [*self.random.sample(list(self.topics.tags), self.random.randint(1, 3)), self.mark()]

    def chance(self, one_in: int) -> bool:
        """True once in so many."""
        return self.random.randrange(one_in) == 0


def _analyse(draw: Draw) -> dict[str, Json]:
    keywords: list[Json] = [*draw.some(draw.random.randint(2, 4)), draw.mark()]
    return {"keywords": keywords, "context": draw.text(6), "tags": list(draw.tags())}


def _router(draw: Draw) -> dict[str, Json]:
    clusters = draw.facts.clusters
    if not clusters or draw.chance(12):
        return {"choice": draw.topics.unknown_cluster}
    choice = clusters[min(draw.random.randrange(2 * len(clusters)), len(clusters) - 1)]
    return {"choice": f" {choice} " if draw.chance(15) else choice}


def _evolve(draw: Draw) -> dict[str, Json]:
    neighbours, rand = draw.facts.notes, draw.random
    count = max(len(neighbours) + rand.choice((0, 0, 0, -1, 1)), 0)
    actions: list[Json] = [*rand.choice((("strengthen",), ("update_neighbor",), ("strengthen", "update_neighbor"), ()))]
    if draw.chance(10):
        actions.append(rand.choice((draw.topics.unknown_action, *map(str, actions))))
    links: list[Json] = [*rand.sample(neighbours, rand.randint(0, len(neighbours)))]
    return {
        "should_evolve": not draw.chance(3),
        "actions": actions,
        "suggested_connections": links,
        "tags_to_update": list(draw.tags()),
        "new_context_neighborhood": [draw.text(5) for _ in range(max(count - draw.random.randrange(2), 0))],
        "new_tags_neighborhood": [list(draw.tags()) for _ in range(count)],
    }


def _profile(draw: Draw) -> dict[str, Json]:
    tags: list[Json] = [*draw.tags(), f"{draw.mark()} {draw.mark()}", draw.topics.tags[0]]
    return {"summary": f" {draw.text(6)}. ", "tags": tags}


def _keywords(draw: Draw) -> dict[str, Json]:
    if draw.chance(25):
        return {"keywords": ""}
    return {"keywords": ", ".join([*draw.some(draw.random.randint(1, 4)), draw.mark()])}


def _selector(draw: Draw) -> dict[str, Json]:
    clusters, rand = list(draw.facts.clusters), draw.random
    chosen: list[Json] = [*rand.sample(clusters, rand.randint(0, min(3, len(clusters))))]
    if chosen and draw.chance(8):
        chosen.append(rand.choice((chosen[0], draw.topics.unknown_cluster)))
    return {"selected_clusters": chosen}


def _answer(draw: Draw) -> dict[str, Json]:
    return {"answer": draw.text(draw.random.randint(1, 4))}


#: Role by the fields of its schema, and what is said.
ROLES: Mapping[frozenset[str], tuple[str, Callable[[Draw], dict[str, Json]]]] = {
    frozenset({"keywords", "context", "tags"}): ("analyse", _analyse),
    frozenset({"choice"}): ("router", _router),
    frozenset(
        {"should_evolve", "actions", "suggested_connections", "tags_to_update", "new_context_neighborhood",
         "new_tags_neighborhood"}
    ): ("evolve", _evolve),
    frozenset({"summary", "tags"}): ("profile", _profile),
    frozenset({"keywords"}): ("keywords", _keywords),
    frozenset({"selected_clusters"}): ("selector", _selector),
    frozenset({"answer"}): ("answer", _answer),
}  # fmt: skip
UNKNOWN_ROLE = "unknown"


@dataclass(frozen=True, slots=True)
class Request:
    """A request for a chat completion, as either side writes it.

    Attributes:
        system: the system message; empty for none.
        prompt: the user's message.
        schema: JSON schema of the reply; empty for free text.
        sampling: temperature and limit of new tokens.
    """

    system: str
    prompt: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    sampling: Mapping[str, Json] = field(default_factory=dict)

    @property
    def role(self) -> str:
        """Purpose of the call, by the fields of its schema."""
        return ROLES.get(frozenset(self.schema.get("properties", {})), (UNKNOWN_ROLE, _answer))[0]


def read_request(body: Mapping[str, Any]) -> Request:
    """Read the body of a request for a chat completion."""
    said = {message["role"]: str(message["content"]) for message in body.get("messages", ())}
    form = body.get("response_format") or {}
    schema = (form.get("json_schema") or {}).get("schema") or {}
    sampling = {name: body.get(name) for name in ("temperature", "max_tokens")}
    return Request(said.get("system", ""), said.get("user", ""), schema, sampling)


@dataclass(frozen=True, slots=True)
class DeterministicBackbone:
    """Replies to requests.

    Attributes:
        known: texts of the conversation.
        topics: words of the replies.
        spoiled_one_in: one reply in so many is cut, fenced or padded (chosen by its facts); 0 for none.
    """

    known: KnownTexts
    topics: Topics
    spoiled_one_in: int = 0

    def reply(self, request: Request) -> str:
        """The reply to a request; the same for the same role and facts."""
        facts = self.known.facts(request.prompt)
        seed = f"{request.role}/{facts.key}"
        words = sorted({word for number in facts.texts for word in _WORD.findall(self.known.text(number).lower())})
        draw = Draw(facts, words or self.topics.tags, self.topics, random.Random(seed), seed=seed)
        say = ROLES.get(frozenset(request.schema.get("properties", {})), (UNKNOWN_ROLE, _answer))[1]
        text = json.dumps(say(draw), ensure_ascii=False)
        chosen = random.Random(f"spoil/{seed}")
        if self.spoiled_one_in and chosen.randrange(self.spoiled_one_in) == 0:
            return spoil(text, chosen)
        return text
