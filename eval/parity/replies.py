"""The deterministic backbone: its reply is a function of the request alone, and follows the request's schema.

A reply depends on the role (known by the schema's fields, or by a phrase of its prompt) and on the facts of the prompt
(:mod:`eval.parity.facts`).
Its texts hold marks, so that a difference between two sides is seen in every later prompt that shows it. Replies are
varied: some decline, choose what is not a candidate, repeat an action or give lists of another length.
"""

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eval.parity.agent_replies import AGENT_ROLES
from eval.parity.corrupt_replies import KeptTypes, spoil
from eval.parity.facts import MARK, KnownTexts
from eval.parity.fake_replies import Draw, Topics
from eval.parity.page_replies import PAGE_ROLES
from eval.parity.reading_replies import READING_ROLES
from eval.parity.research_replies import RESEARCH_ROLES
from eval.parity.section_replies import SECTION_ROLES
from eval.parity.sourced_replies import SOURCED_ROLES
from memsys.vocabulary import Json

_WORD = re.compile(r"[a-z]{4,}")
#: Ids of the memories that Mem0's decision is shown, and the facts that it is about; its examples have other blanks.
_LISTED_ID = re.compile(r"""["']id["']: ["'](\d+)["']""")
_LISTED_FACT = re.compile(r"""(?<!["']text["']: )["']([^"'\n]*zq[0-9a-f]{6}[^"'\n]*)["']""")
_TOKEN = re.compile(r"\s*\S+")


#: Role -> texts of which each of its prompts holds one.
Phrases = Mapping[str, Sequence[str]]


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
    if draw.chance(4):  # a note that the prompt does not show
        links.append(rand.randrange(4))
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


def _text(draw: Draw) -> str:
    return draw.text(draw.random.randint(1, 8))


def _sentence(draw: Draw) -> str:
    """Return a sentence: MemoryBank's release joins such texts without a separator."""
    text = _text(draw)
    return f"{text[:1].upper()}{text[1:]}."


def _merge(draw: Draw) -> str:
    """Return one text of two; now and then none, a fenced one, or one after reasoning."""
    text = draw.text(draw.random.randint(3, 8))
    shapes = (f"```\n{text}\n```", f"<think>{draw.text(3)}</think>\n{text}", f" {text}\n", "")
    return draw.random.choice(shapes) if draw.chance(6) else text


def _often(draw: Draw) -> str:
    topics = draw.topics.tags[:4]
    one, other = draw.random.choice(topics), draw.random.choice(topics)
    return f"Often {one} and {other} with the whole family on Sundays in the summer"


def _told(draw: Draw) -> str:
    """Return a fact, some nearly repeated."""
    return f"{_often(draw)} {draw.mark()}" if draw.chance(2) else draw.text(6)


def _fact(draw: Draw) -> Json:
    """Return a fact in one of the shapes that small models give; some are repeated."""
    text = _often(draw) if draw.chance(3) else _told(draw)
    if not draw.chance(8):
        return text
    shapes: tuple[Json, ...] = (
        {"fact": text}, {"text": text}, f" {text} ", "", 7, [text], {"other": text}, None,
    )  # fmt: skip
    return draw.random.choice(shapes)


def _extract(draw: Draw) -> dict[str, Json]:
    return {"facts": [_fact(draw) for _ in range(draw.random.choice((0, 1, 2, 3, 4, 5)))]}


def _extract_texts(draw: Draw) -> dict[str, Json]:
    """Return facts that are texts, for a release that stops at others."""
    return {"facts": [draw.text(1) if draw.chance(8) else _told(draw) for _ in range(draw.random.randrange(6))]}


def _route(draw: Draw) -> dict[str, Json]:
    """Return the events on the memories that the prompt lists, and additions: new texts and facts as they were found.

    Ids and events are now and then of another type or spelling, or of no memory.
    """
    listed, facts = _LISTED_ID.findall(draw.prompt), _LISTED_FACT.findall(draw.prompt)
    events: list[Json] = [_event(draw, name, draw.text(4)) for name in listed if draw.chance(2)]
    events += [_event(draw, str(len(listed) + place), fact, "ADD") for place, fact in enumerate(facts)]
    if draw.chance(6):
        events.append(draw.random.choice(("none", None, {"text": "", "id": "0", "event": "DELETE"}, {"event": "ADD"})))
    return {"memory": events}


def _event(draw: Draw, name: str, text: str, event: str = "") -> Json:
    event = event or draw.random.choice(("UPDATE", "UPDATE", "DELETE", "NONE"))
    if draw.chance(8):
        event = draw.random.choice((event.lower(), f" {event}", event.title(), "NOOP", ""))
    shown: Json = draw.random.choice((int(name), f" {name}", "99", None)) if draw.chance(8) else name
    told: Json = draw.random.choice((f" {text} ", 7, [text])) if draw.chance(12) else text
    return {"id": shown, "text": told, "event": event, "old_memory": draw.text(1)}


def _boundary(draw: Draw) -> dict[str, Json]:
    """Return whether an episode ends; now and then in another type, whose text Python takes for true."""
    ends: Json = draw.chance(5)
    if draw.chance(8):
        ends = draw.random.choice(("false", "true", "", 0, 1, None))
    return {"should_end": ends, "reason": draw.text(4), "confidence": 0.5, "topic_summary": draw.text(2)}


def _episode(draw: Draw) -> dict[str, Json]:
    """Return a story, whose time is now and then the model's own, or missing."""
    title: Json = draw.random.choice((7, [draw.mark()])) if draw.chance(12) else draw.text(5)
    told: dict[str, Json] = {"title": title, "content": draw.text(12)}
    if not draw.chance(4):
        told["timestamp"] = draw.random.choice(("2023-05-08T13:56:00", "2024-01-31T08:00:00", "some day", ""))
    return told


def _statements(draw: Draw) -> dict[str, Json]:
    """Return facts without repetitions: the order of equally near ones depends on the last digit."""
    return {"statements": [_told(draw) for _ in range(draw.random.choice((0, 1, 2, 3, 4, 5)))]}


#: What a role says; a text where its reply is none of JSON.
Speaker = Callable[[Draw], dict[str, Json] | str]

#: Role by the fields of its schema, and what is said.
ROLES: Mapping[frozenset[str], tuple[str, Speaker]] = {
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

#: Roles that are known by a phrase of their prompts, and what is said.
PHRASE_ROLES: Mapping[str, Speaker] = {
    "boundary": _boundary,
    "day_personality": _sentence,
    "day_summary": _sentence,
    "overall_history": _sentence,
    "overall_personality": _sentence,
    "calibrate": _statements,
    "episode": _episode,
    "extract": _extract,
    "extract_texts": _extract_texts,
    "merge": _merge,
    "predict": _text,
    "probe": _text,
    "reply": _text,
    "route": _route,
    "statements": _statements,
    "theme": _text,
    **RESEARCH_ROLES,
    **PAGE_ROLES,
    **READING_ROLES,
    **SECTION_ROLES,
    **SOURCED_ROLES,
    **AGENT_ROLES,
}


@dataclass(frozen=True, slots=True)
class Request:
    """A request for a chat completion, as either side writes it.

    Attributes:
        system: the system message; empty for none.
        prompt: the user's message, or the system message where there is no other.
        schema: JSON schema of the reply; empty for free text.
        sampling: temperature, limit of new tokens and nucleus.
        named: role by a phrase of the prompt; empty where none was found.
        exchange: messages after the prompt, where the model is told what was wrong with a reply.
    """

    system: str
    prompt: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    sampling: Mapping[str, Json] = field(default_factory=dict)
    named: str = ""
    exchange: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The model's input: the prompt, the messages after it, and the system message's marks.

        Its other words are the release's own, which may quote a text of the data set as an example.
        """
        return "\n".join((" ".join(MARK.findall(self.system)), self.prompt, *self.exchange))

    @property
    def role(self) -> str:
        """Purpose of the call, by a phrase of its prompt or the fields of its schema."""
        return self._found[0]

    @property
    def speaker(self) -> Speaker:
        """The function that replies to it."""
        return self._found[1]

    @property
    def _found(self) -> tuple[str, Speaker]:
        if self.named:
            return self.named, PHRASE_ROLES[self.named]
        return ROLES.get(frozenset(self.schema.get("properties", {})), (UNKNOWN_ROLE, _answer))


def read_request(body: Mapping[str, Any], phrases: Phrases | None = None) -> Request:
    """Read the body of a request for a completion, of messages or of a plain text."""
    messages = [(message["role"], str(message["content"])) for message in body.get("messages", ())]
    system = next((text for role, text in messages if role == "system"), "")
    told = [text for role, text in messages if role != "system"]
    if system and not told:
        system, told = "", [system]
    prompt, *exchange = told or [str(body.get("prompt", ""))]
    form = body.get("response_format") or {}
    schema = (form.get("json_schema") or {}).get("schema") or {}
    sampling = {name: body.get(name) for name in ("temperature", "max_tokens", "top_p")}
    named = _role_of(f"{system}\n{prompt}", phrases or {})
    return Request(system, prompt, schema, sampling, named, tuple(exchange))


def _role_of(text: str, phrases: Phrases) -> str:
    """Return the first role with a phrase in a text; empty for none."""
    return next((role for role, known in phrases.items() if any(phrase in text for phrase in known)), "")


@dataclass(frozen=True, slots=True)
class DeterministicBackbone:
    """Replies to requests.

    Attributes:
        known: texts of the conversation.
        topics: words of the replies.
        spoiled_one_in: one reply in N is cut, fenced or padded (chosen by its facts); 0 for none.
        phrases: of roles that no schema tells.
        kept: role -> types that values of its replies do not become when they are spoiled.
    """

    known: KnownTexts
    topics: Topics
    spoiled_one_in: int = 0
    phrases: Phrases = field(default_factory=dict)
    kept: Mapping[str, KeptTypes] = field(default_factory=dict)

    def reply(self, request: Request) -> str:
        """Return the reply to a request, fixed by role and facts and, in a dialogue, by temperature."""
        facts = self.known.facts(request.shown)
        seed = f"{request.role}/{facts.key}"
        if request.exchange:
            seed += f"/{len(request.exchange)}/{request.sampling.get('temperature')}"
        words = sorted({word for number in facts.texts for word in _WORD.findall(self.known.text(number).lower())})
        draw = Draw(
            facts, words or self.topics.tags, self.topics, random.Random(seed), seed=seed, prompt=request.prompt
        )
        said = request.speaker(draw)
        text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
        chosen = random.Random(f"spoil/{seed}")
        if self.spoiled_one_in and chosen.randrange(self.spoiled_one_in) == 0:
            return spoil(text, chosen, self.kept.get(request.role))
        return text

    def logprobs(self, request: Request, text: str) -> list[tuple[str, float]]:
        """Return a reply's tokens and their log-probabilities, which follow from role and facts."""
        sure = random.Random(f"sure/{request.role}/{self.known.facts(request.prompt).key}").uniform(0.1, 0.9)
        return [(token, -round(sure, 6)) for token in _TOKEN.findall(text)]
