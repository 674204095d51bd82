"""A backbone for any memory system: it fills in each role's schema, the same way for the same request."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from memsys.llm.contract import Reply, Role
from memsys.seeding import generator
from memsys.vocabulary import Completion, TokenLogprob

#: Values that a schema does not list, by property, so that replies lead somewhere.
CHOICES: Mapping[str, Sequence[Any]] = {
    "actions": ("strengthen", "update_neighbor"),
    "id": ("0", "1", "9"),
    "indices": (1, 2, 5, 9, 14),
    "target": ("e0", "e1", "e2", "e3"),
}

#: Replies of roles without a schema; each ``%s`` becomes a word, each ``%d`` a number of the prompt.
TEXTS: Mapping[str, Sequence[str]] = {
    "analyse_sections": ("KEYWORDS: %s, %s\nCONTEXT: %s %s\nTAGS: %s, %s", "CONTEXT: %s %s"),
    "focus_keywords": ("%s, %s",),
    "keywords": ("%s, %s",),
    "decide": ("DECISION: STRENGTHEN_AND_UPDATE", "DECISION: STRENGTHEN", "DECISION: NO_EVOLUTION"),
    "lookup": ("I read again [%d, 1].", "I read %s again."),
    "lookup_next": ("Page 1", "STOP", "%s"),
    "strengthen": ("CONNECTIONS: %d, %d\nTAGS: %s",),
    "subquery": ("What of %s %s?", "None"),
    "update_neighbours": ("NEIGHBOR 0:\nCONTEXT: %s %s\nTAGS: %s\nNEIGHBOR 1:\nTAGS: %s",),
}


class SchemaModel:
    """Replies with an object that validates, made of the prompt's own words and numbers, or with garbage.

    Args:
        garbage: reply with text that is not an object, whatever the role.
    """

    context_length = 8192

    def __init__(self, *, garbage: bool = False) -> None:
        self._garbage = garbage
        self.calls: list[tuple[str, str]] = []

    async def ask(self, role: Role, values: Mapping[str, str], *, key: str) -> Reply:
        """Answer a role; the reply depends on role, values and key alone."""
        self.calls.append((role.name, key))
        prompt = role.prompt.render(values)
        shown = " ".join(values[name] for name in sorted(values))
        made = _Made(shown, generator(role.name, prompt, key))
        value = None if self._garbage or role.schema is None else made.value(role.schema)
        text = json.dumps(value) if value is not None else made.text(TEXTS.get(role.name, ("%s %s %s",)))
        text = "}{ no such object" if self._garbage else text
        logprobs = made.logprobs(text) if role.top_logprobs else ()
        completion = Completion(
            text=text, prompt_tokens=1, completion_tokens=1, seconds=0.0, finish_reason="stop", logprobs=logprobs
        )
        return Reply(value, text, completion, malformed=value is None and role.schema is not None)

    async def count_tokens(self, text: str) -> int:
        """Count words."""
        return len(text.split())


def reply_text(role: str, schema: Mapping[str, Any] | None, prompt: str, seed: object) -> str:
    """What the model says to a whole prompt; for servers, which see no values."""
    made = _Made(prompt, generator(role, prompt, str(seed)))
    return made.text(TEXTS.get(role, ("%s %s %s",))) if schema is None else json.dumps(made.value(schema))


class _Made:
    def __init__(self, shown: str, rng: Any) -> None:
        self._words = re.findall(r"[a-z]\w+", shown) or ["word"]
        self._numbers = [int(number) for number in re.findall(r"memory index: (\d+)", shown)] or [0]
        self._rng = rng

    def text(self, patterns: Sequence[str]) -> str:
        pattern = self._pick(patterns)
        made = (self._pick(self._numbers if kind == "%d" else self._words) for kind in re.findall("%[sd]", pattern))
        return str(pattern % tuple(made))

    def logprobs(self, text: str) -> tuple[TokenLogprob, ...]:
        return tuple(TokenLogprob(word, -float(self._rng.random())) for word in text.split())

    def value(self, schema: Mapping[str, Any], name: str = "") -> Any:
        if "enum" in schema or (name in CHOICES and schema["type"] in ("string", "integer")):
            return self._pick(schema.get("enum", CHOICES.get(name)))
        kind = schema["type"]
        if kind == "object":
            return {key: self.value(inner, key) for key, inner in schema["properties"].items()}
        if kind == "array":
            return [self.value(schema["items"], name) for _ in range(min(2, schema.get("maxItems", 2)))]
        if kind == "string":
            return self.text(("%s %s %s",))
        if kind == "boolean":
            return bool(self._rng.integers(4))
        if kind == "number":
            return round(float(self._rng.random()), 2)
        number = self._pick(self._numbers)
        return min(max(number, schema.get("minimum", number)), schema.get("maximum", number))

    def _pick(self, choices: Any) -> Any:
        return choices[int(self._rng.integers(len(choices)))]
