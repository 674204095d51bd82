"""Findings about an external server: what it takes and gives, and the settings of a backbone that follow."""

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from memsys.errors import ConfigError
from memsys.files import replace_file
from memsys.llm.accepted import as_given, is_given, written
from memsys.llm.config import BackboneConfig
from memsys.vocabulary import Json

logger = logging.getLogger(__name__)

#: Of the files; one of another version is not read.
_VERSION = 2
#: Servers change: what was found is asked again after so long.
_VALID = timedelta(days=7)
#: Tokens added to each limit where thoughts cannot be switched off, and the largest share of the window they may take.
_THINKING_TOKENS, _WINDOW_SHARE = 4096, 4
#: Of the requests that find out; a server that refuses it may take another.
ASKED_TEMPERATURE = 0.0
_OTHER_FIELD = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}

Form = Literal["followed", "ignored", "refused", "not tried"]


@dataclass(slots=True)
class Findings:
    """Capabilities of a server and one of its models, as a few small requests show them.

    Attributes:
        refused: field of a request -> the server's words; ``temperature`` was ``ASKED_TEMPERATURE``.
        structured: the strictest form of replies that the server keeps: ``json_schema``, ``json_object`` or ``off``.
        forms: of ``json_schema`` and ``json_object``, what becomes of them.
        tools: what becomes of tools in a request.
        usage: whether replies say how many tokens they took.
        thoughts: where the model's thoughts are: ``none``, a field of the message, ``in the text (RULE)``, or
            ``hidden``, where they are only counted.
        thoughts_off: request fields that switch them off; ``None`` where none of those tried does.
        thought_tokens: of thoughts in a reply to a small question, where nothing switches them off; 0 where not known.
        completions: whether raw prompts are completed (POST ``/completions``); ``None``: not tried.
        window: tokens of prompt and reply together, where the server says so.
        window_said: the page that says it.
        repeatable: whether an equal request at temperature 0 had an equal reply; ``None``: not tried.
        prompt_cache: whether usage shows tokens taken from a cache of prompts; ``None``: not tried.
        in_flight: most requests at once that were all answered; ``None``: not tried.
        pushed_back: what the server said to more of them; empty where it took all, or refused for another reason.
        limits: requests and tokens, by the minute or the day, as headers state them.
        requests: that were made, refused ones included.
        prompt_tokens: of those that were answered.
        completion_tokens: likewise.
        asked: when, in UTC.
        whole: whether all of it was tried, as ``memsys probe`` does, or what a run needs.
        version: of this form.
    """

    refused: dict[str, str] = field(default_factory=dict)
    structured: str = "off"
    forms: dict[str, Form] = field(default_factory=dict)
    tools: str = "not tried"
    usage: bool = False
    thoughts: str = "none"
    thoughts_off: Mapping[str, Json] | None = None
    thought_tokens: int = 0
    completions: bool | None = None
    window: int | None = None
    window_said: str = ""
    repeatable: bool | None = None
    prompt_cache: bool | None = None
    in_flight: int | None = None
    pushed_back: str = ""
    limits: dict[str, float] = field(default_factory=dict)
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    asked: str = ""
    whole: bool = False
    version: int = _VERSION

    @property
    def thinks(self) -> bool:
        """Whether its replies have thoughts unless they are switched off."""
        return self.thoughts != "none"


@dataclass(frozen=True, slots=True)
class ChosenSetting:
    """A setting that follows from what was found.

    Attributes:
        name: below ``backbone``, e.g. ``structured`` or ``sampling.top_p``.
        given: its value until then.
        chosen: its value from then on.
        why: what was found.
    """

    name: str
    given: Json
    chosen: Json
    why: str

    def __str__(self) -> str:
        return f"backbone.{self.name}={written(self.chosen)} ({self.why})"


def choose(config: BackboneConfig, found: Findings) -> list[ChosenSetting]:
    """Return the settings that have to change for this server; those that the user gave are among them.

    Args:
        config: as it was composed.
        found: of its server and model.
    """
    return [
        *_fields(config, found),
        *_forms(config, found),
        *_thinking(config, found),
        *_sizes(config, found),
    ]


def with_choices(config: BackboneConfig, found: Findings, where: str) -> tuple[BackboneConfig, list[ChosenSetting]]:
    """Return a backbone's settings for a server, and which of them were chosen.

    Args:
        config: as it was composed; ``config.explicit`` names what the user gave.
        found: of its server and model.
        where: names them in a message.

    Raises:
        ConfigError: the server does not accept a setting that the user gave; only of ``max_in_flight``, of which the
            server may take more at another time, it is a warning.
    """
    chosen = []
    for one in choose(config, found):
        if one.given is None or not is_given(one.name, config):
            chosen.append(one)
            continue
        given = as_given(one.name, one.given, config)
        if one.name != "max_in_flight":
            raise ConfigError(
                f"{where} does not take {given}: {one.why}; leave that setting out, or set "
                f"backbone.{one.name}={written(one.chosen)}"
            )
        logger.warning("%s took %s requests at once, and %s; %s stays as given", where, one.chosen, one.why, given)
    changes: dict[str, Any] = {one.name: one.chosen for one in chosen if "." not in one.name}
    sampling = {one.name.partition(".")[2]: one.chosen for one in chosen if one.name.startswith("sampling.")}
    if sampling:
        changes["sampling"] = {**config.sampling, **sampling}
    return (replace(config, **changes) if changes else config), chosen


def with_thoughts(config: BackboneConfig, found: Findings) -> BackboneConfig:
    """Return a backbone's settings with those about thoughts as a run will choose them."""
    return replace(config, **{one.name: one.chosen for one in _thinking(config, found)})


def _fields(config: BackboneConfig, found: Findings) -> list[ChosenSetting]:
    """Return the choices for fields that the server refuses."""
    refused, limit = found.refused, config.max_tokens_field
    chosen = []
    if limit in refused and _OTHER_FIELD[limit] not in refused:
        chosen.append(ChosenSetting("max_tokens_field", limit, _OTHER_FIELD[limit], _said(refused[limit])))
    for name in ("temperature", "seed"):
        if name == "temperature" and config.temperature not in (None, ASKED_TEMPERATURE):
            continue  # nothing is known of another: the first request of a run tries it
        if name in refused and getattr(config, f"send_{name}"):
            chosen.append(ChosenSetting(f"send_{name}", True, False, _said(refused[name])))
    for name, value in config.sampling.items():
        if name in refused and value is not None:
            chosen.append(ChosenSetting(f"sampling.{name}", value, None, _said(refused[name])))
    return chosen


def _said(words: str) -> str:
    return f"the server says: {words}"


_ORDER = ("json_schema", "json_object", "off")


def _forms(config: BackboneConfig, found: Findings) -> list[ChosenSetting]:
    """Return the choice for the form of replies, where the one that is asked for is not kept."""
    asked = config.structured
    if asked not in _ORDER or not found.forms or _ORDER.index(asked) >= _ORDER.index(found.structured):
        return []
    said = found.refused.get(asked)
    why = _said(said) if said else f"the server accepts {asked} but does not enforce it"
    return [ChosenSetting("structured", asked, found.structured, why)]


def _thinking(config: BackboneConfig, found: Findings) -> list[ChosenSetting]:
    """Return the choices for a model that thinks: off where that can be had, else room for its thoughts."""
    if not found.thinks or config.prompt_mode == "completion" or not config.explicit.isdisjoint(_OF_THINKING):
        return []
    why = f"its thoughts are {found.thoughts}" if " " in found.thoughts else f"it thinks ({found.thoughts})"
    if config.thinking == "none" and found.thoughts_off:
        return [
            ChosenSetting("thinking", "none", "off", why),
            ChosenSetting("thinking_switch", {}, dict(found.thoughts_off), why),
        ]
    if config.thinking == "off" and found.thoughts_off:
        return []
    room = min(_THINKING_TOKENS, (found.window or config.window) // _WINDOW_SHARE)
    if config.thinking_tokens >= room:
        return []
    return [ChosenSetting("thinking_tokens", config.thinking_tokens, room, f"{why}, and thoughts count as tokens")]


_OF_THINKING = ("thinking", "thinking_switch", "thinking_tokens")


def _sizes(config: BackboneConfig, found: Findings) -> list[ChosenSetting]:
    """Return the choices for window, raw prompts and requests at once."""
    chosen = []
    if found.window is not None and (config.context_length is None or found.window < config.context_length):
        why = f"{found.window_said} says so"
        chosen.append(ChosenSetting("context_length", config.context_length, found.window, why))
    if found.completions is False and config.completions:
        chosen.append(ChosenSetting("completions", True, False, "the server has no endpoint /completions"))
    if found.pushed_back and found.in_flight and found.in_flight < config.max_in_flight:
        why = f"the server refuses more at once: {found.pushed_back}"
        chosen.append(ChosenSetting("max_in_flight", config.max_in_flight, found.in_flight, why))
    return chosen


def findings_of(stored: Mapping[str, Any] | None) -> Findings | None:
    """Read findings as a file has them; ``None`` for none.

    Raises:
        TypeError: there is no mapping.
    """
    if stored is None:
        return None
    known = {each.name for each in fields(Findings)}
    return Findings(**{name: value for name, value in dict(stored).items() if name in known})


class FindingsStore:
    """Findings about servers in a folder, by address and model.

    Args:
        folder: made when the first is stored.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, address: str, model: str) -> Path:
        """Return the file of a server and one of its models."""
        return self.folder / f"{sha256(f'{address} {model}'.encode()).hexdigest()[:16]}.json"

    def get(self, address: str, model: str) -> Findings | None:
        """Return what was found; ``None`` where nothing was, or too long ago, or the file cannot be read."""
        try:
            stored = json.loads(self.path(address, model).read_text(encoding="utf-8"))
            found = findings_of(stored["found"])
            if found is None:
                return None
            old = datetime.now(UTC) - datetime.fromisoformat(found.asked) > _VALID
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return None if old or found.version != _VERSION else found

    def put(self, address: str, model: str, found: Findings) -> Path:
        """Store what was found; returns the file.

        Raises:
            OSError: it cannot be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.path(address, model)
        replace_file(path, json.dumps({"model": model, "found": asdict(found)}, indent=1).encode())
        return path
