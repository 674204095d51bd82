"""A language model with scripted replies: for tests of memory systems and readers."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from memsys.llm.contract import Reply, Role
from memsys.llm.structured import Parsed, parse_object
from memsys.llm.thoughts import strip_thinking
from memsys.vocabulary import Completion

#: What is said: an object (written as JSON) or raw text.
Saying = Mapping[str, Any] | str
#: (role name, prompt values, key) -> what is said.
Script = Callable[[str, Mapping[str, str], str], Saying]


class ScriptEndedError(AssertionError):
    """The model was asked more often than the script has sayings."""


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """One attempt, as it was asked."""

    role: str
    key: str
    values: Mapping[str, str]
    prompt: str


class ScriptedModel:
    """A :class:`memsys.llm.contract.LanguageModel` that follows a script, through the same parser as a real one.

    Args:
        script: sayings in order, one per attempt (a malformed one is followed by its retry), or a function.
        context_length: of the model.
        json_repair: as in :class:`memsys.llm.config.BackboneConfig`.

    Attributes:
        calls: every attempt so far.
    """

    def __init__(
        self, script: Iterable[Saying] | Script, *, context_length: int = 8192, json_repair: bool = True
    ) -> None:
        self._function: Script | None = script if callable(script) else None
        self._sayings = iter(()) if callable(script) else iter(script)
        self._context_length, self._json_repair = context_length, json_repair
        self.calls: list[ScriptedCall] = []

    @property
    def context_length(self) -> int:
        """Tokens of prompt and reply together."""
        return self._context_length

    async def count_tokens(self, text: str) -> int:
        """Count words."""
        return len(text.split())

    async def ask(self, role: Role, values: Mapping[str, str], *, key: str) -> Reply:
        """Say the next thing, again while it is malformed and the role has retries left.

        Raises:
            ScriptEndedError: nothing is left to say.
        """
        prompt, role = role.prompt.render(values), role.with_system(values)
        for left in range(role.retries_at(role.temperature), -1, -1):
            self.calls.append(ScriptedCall(role.name, key, dict(values), prompt))
            said = self._next(role.name, values, key)
            raw = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
            text = strip_thinking(raw)
            completion = Completion(raw, len(prompt.split()), len(raw.split()), 0.0, "stop")
            if role.schema is None:
                return Reply(None, text, completion)
            reading, schema = role.reading, role.accepts or role.schema
            parsed = parse_object(text, schema, repair=reading.repair and self._json_repair, cut=reading.cut)
            if parsed.value is not None or left == 0:
                return _reply(parsed, text, completion)
        raise AssertionError("a role has at least one attempt")

    def _next(self, role: str, values: Mapping[str, str], key: str) -> Saying:
        if self._function is not None:
            return self._function(role, values, key)
        for saying in self._sayings:
            return saying
        raise ScriptEndedError(f"role {role}, {key}: the script ended after {len(self.calls) - 1} calls")


def _reply(parsed: Parsed, text: str, completion: Completion) -> Reply:
    return Reply(parsed.value, text, completion, malformed=parsed.value is None, repaired=parsed.repaired)
