"""Request fields that a server accepts: a refused one is replaced, once for a backbone, and recorded.

Servers that speak OpenAI's protocol differ in the fields that they take. A server that refuses one says so before it
computes anything, so that asking costs nothing: the first refusal of a field decides how all further requests are
written. What the user set is not changed: there the refusal is one error, found with a single small request before
the first of a run.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memsys.errors import BackboneUnusableError
from memsys.llm.config import BackboneConfig
from memsys.llm.contract import Role
from memsys.llm.prompt import Prompt
from memsys.llm.sampling import SAMPLING_FIELDS
from memsys.vocabulary import Json

logger = logging.getLogger(__name__)

#: Words with which servers refuse a field, rather than the length or the form of its value.
_REFUSES = re.compile(
    r"unsupported|not (?:yet )?support|n.t support|unavailable|not available|unknown|unrecogni[sz]ed|unexpected|"
    r"not permitted|not allowed|only .{0,40}(?:allowed|supported)|extra (?:inputs|fields)|additional propert|"
    r"deprecated|not implemented|not enabled|cannot be used|not compatible|incompatible|invalid schema|"
    r"must contain the word|removed|missing field|input should be '|must be 'json_schema'|"
    r"use '?max_(?:completion_)?tokens",
    re.IGNORECASE,
)
#: Further names for a field in the words of servers.
_ALIASES = {
    "response_format": ("json_schema", "json_object", "structured output", "structured_output", "guided decoding"),
    "top_logprobs": ("logprobs",),
}
#: What is tried in place of a form of replies that is refused.
_NEXT_STRUCTURED = {"json_schema": "json_object", "json_object": "off"}
_OTHER_MAX_TOKENS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_LOGPROBS = ("logprobs", "top_logprobs")
#: Settings that add a field to requests, and the values with which they add none.
_ADDS: Mapping[str, tuple[Json, ...]] = {
    "structured": ("off",), "max_tokens_field": (), "send_temperature": (False,), "temperature": (None,),
    "send_seed": (False,), "sampling": ({},), "thinking": ("none",), "thinking_switch": ({},),
}  # fmt: skip
#: Tokens of the small request: some servers refuse fewer.
_PROBE_TOKENS = 16
_PROBE_SCHEMA: Mapping[str, Json] = {
    "type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"],
    "additionalProperties": False,
}  # fmt: skip
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Adaptation:
    """A setting that was chosen in place of the preset's, since the server refused a field.

    Attributes:
        field: of the request.
        setting: that writes it; empty where none does.
        given: its value in the preset.
        chosen: its value since then.
        said: the server's words.
    """

    field: str
    setting: str
    given: Json
    chosen: Json
    said: str

    def __str__(self) -> str:
        made = f"{self.setting}={written(self.chosen)}" if self.setting else "requests go without it"
        return f"the server refuses {self.field} ({self.said}); chosen: {made}"


@dataclass(frozen=True, slots=True)
class _Choice:
    """Remedy for a refused field: another configuration, or requests without the field."""

    setting: str
    given: Json
    chosen: Json
    config: BackboneConfig


class AcceptedFields:
    """Format of an open backbone's requests, given what its server refused.

    Args:
        config: as it was composed; ``config.explicit`` names what the user set.
        quiet: choices are not logged.

    Attributes:
        config: of the next request.
        adaptations: what was chosen so far, in order.
        on_adapted: called with each of them.
        probing: held while the small request is made.
        probed: whether it was, or need not be.
    """

    def __init__(self, config: BackboneConfig, *, quiet: bool = False) -> None:
        self.config, self._quiet = config, quiet
        self.adaptations: list[Adaptation] = []
        self.on_adapted: Callable[[Adaptation], None] = lambda adaptation: None
        self._left_out: set[str] = set()
        self.probing = asyncio.Lock()
        self.probed = False

    def body(self, body: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return a request without the fields that no setting writes and the server refuses."""
        return {name: value for name, value in body.items() if name not in self._left_out} if self._left_out else body

    def adapt(self, config: BackboneConfig, body: Mapping[str, Json], refusal: str) -> bool:
        """Choose again after a refusal.

        Args:
            config: with which the request was written.
            body: of the request.
            refusal: the server's words.

        Returns:
            Whether the request, written again, is another one now; ``False`` where the refusal speaks of no field.

        Raises:
            BackboneUnusableError: it speaks of a field that the user set.
        """
        if config is not self.config or not self._left_out.isdisjoint(body):
            return True  # chosen since the request was written
        field = refused_field(refusal, body)
        choice = None if field is None else self._choice(field)
        if field is None or choice is None:
            return False
        said = " ".join(refusal.split())[:_SHOWN]
        if is_given(choice.setting.removeprefix("backbone."), config):
            name = choice.setting.removeprefix("backbone.")
            raise BackboneUnusableError(
                f"the server refuses {field} ({said}), which {as_given(name, choice.given, config)} asks for; leave "
                f"that setting out, or set {choice.setting}={written(choice.chosen)}"
            )
        self.config = choice.config
        if choice.config is config:
            self._left_out |= {field, *(_LOGPROBS if field in _LOGPROBS else ())}
        self._note(Adaptation(field, choice.setting, choice.given, choice.chosen, said))
        return True

    def _note(self, adaptation: Adaptation) -> None:
        self.adaptations.append(adaptation)
        if not self._quiet:
            logger.warning("backbone %s: %s", self.config.name, adaptation)
        self.on_adapted(adaptation)

    def _choice(self, field: str) -> _Choice | None:
        config = self.config
        if field in _OTHER_MAX_TOKENS:
            return (
                self._with("max_tokens_field", _OTHER_MAX_TOKENS[field]) if self._is_new("max_tokens_field") else None
            )
        if field == "response_format":
            following = _NEXT_STRUCTURED.get(config.structured)
            return self._with("structured", following) if following else None
        if field in ("temperature", "seed"):
            return self._with(f"send_{field}", False)
        if field in SAMPLING_FIELDS:
            changed = replace(config, sampling={**config.sampling, field: None})
            return _Choice(f"backbone.sampling.{field}", config.sampling[field], None, changed)
        if field in config.thinking_switch:
            changed = replace(config, thinking="none", thinking_switch={})
            return _Choice("backbone.thinking", config.thinking, "none", changed)
        return _Choice("", None, None, config) if field in _LOGPROBS else None

    def _with(self, name: str, value: Json) -> _Choice:
        changes: dict[str, Any] = {name: value}
        return _Choice(f"backbone.{name}", getattr(self.config, name), value, replace(self.config, **changes))

    def _is_new(self, name: str) -> bool:
        """Return whether a setting was not tried before: two refused alternatives leave no valid one."""
        return all(one.setting != f"backbone.{name}" for one in self.adaptations)


def probe_role(config: BackboneConfig) -> Role | None:
    """Return the role of a small request with all fields; ``None`` where the user set none that a server might refuse.

    Raises:
        ConfigError: the prompt's file is not there.
    """
    if all(getattr(config, name) in _ADDS[name] for name in _ADDS if name in config.explicit):
        return None
    prompt = Prompt.load(Path(__file__).with_name("prompts") / "probe.txt")
    return Role("probe", prompt, temperature=0.0, max_tokens=_PROBE_TOKENS, schema=_PROBE_SCHEMA)


def is_given(name: str, config: BackboneConfig) -> bool:
    """Return whether the user gave a setting; a temperature that was given is to be sent.

    Args:
        name: below ``backbone``, e.g. ``send_seed`` or ``sampling.top_p``.
        config: ``config.explicit`` names what the user gave.
    """
    top = name.partition(".")[0]
    return top in config.explicit or (top == "send_temperature" and _has_temperature(config))


def as_given(name: str, value: Json, config: BackboneConfig) -> str:
    """Return a setting as the user gave it: that a temperature is sent, by its value."""
    if name == "send_temperature" and _has_temperature(config):
        name, value = "temperature", config.temperature
    return f"backbone.{name}={written(value)}"


def _has_temperature(config: BackboneConfig) -> bool:
    return "temperature" in config.explicit and config.temperature is not None


def refused_field(refusal: str, body: Mapping[str, Json]) -> str | None:
    """Return the field of a request that a server refuses; ``None`` where its words are of something else.

    Args:
        refusal: the server's words.
        body: of the request.
    """
    if not _REFUSES.search(refusal):
        return None
    places = {field: min(_places(refusal, field), default=-1) for field in body}
    found = {field: place for field, place in places.items() if place >= 0}
    return min(found, key=lambda field: found[field]) if found else None


def _places(refusal: str, field: str) -> Iterator[int]:
    for name in (field, *_ALIASES.get(field, ())):
        match = re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", refusal, re.IGNORECASE)
        if match:
            yield match.start()


def written(value: Json) -> str:
    """Return a setting's value as it is given on a command line."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
