"""Parts of a memory by their names in ``conf/``, or as objects."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from eval.config.checker import Checker
from eval.config.compose import compose, config_loader
from eval.running.composed import given_settings, make_part
from eval.running.reader import ReaderConfig
from memsys.embedding.contract import Embedder
from memsys.errors import ConfigError
from memsys.field_types import type_problem
from memsys.llm.config import BackboneConfig
from memsys.llm.contract import LanguageModel
from memsys.protocol import MemoryConfig

#: The preset whose request settings any server of the protocol understands.
_HOSTED = "gpt4o_mini"
#: What :func:`endpoint` itself sets of it.
_OF_ENDPOINT = frozenset({"name", "model", "engine", "context_length", "explicit"})
#: What an object that is given as a part must have.
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "memory": ("name", "uses_gold", "build"),
    "embedder": ("name", "dimension", "embed"),
    "backbone": ("ask", "count_tokens", "context_length"),
    "reader": ("build",),
}


@dataclass(frozen=True, slots=True)
class MemoryParts:
    """Choices and settings that a memory is made of.

    Attributes:
        memory: makes the memory.
        embedder: shared by all it stores.
        backbone: settings of a model that has to be opened, an open model, or ``None`` for none.
        reader: asks the backbone for answers.
    """

    memory: MemoryConfig
    embedder: Embedder
    backbone: BackboneConfig | LanguageModel | None
    reader: ReaderConfig


def choose(
    memory: str | MemoryConfig,
    backbone: str | BackboneConfig | LanguageModel | None,
    embedder: str | Embedder,
    reader: str | ReaderConfig,
    overrides: Sequence[str] = (),
) -> MemoryParts:
    """Make the parts of a memory; see :func:`eval.api.memory.open_async_memory`.

    Raises:
        ConfigError: a name or a setting does not exist, or the memory is one that sees gold answers.
    """
    _check_settings(overrides)
    if isinstance(backbone, str) and "://" in backbone:
        raise ConfigError(f"backbone={backbone!r} is an address; write backbone=memsys.endpoint({backbone!r}, MODEL)")
    named: dict[str, Any] = {"memory": memory, "backbone": backbone, "embedder": embedder, "reader": reader}
    for part, given in named.items():
        if not isinstance(given, str):
            _check_object(part, given)
    _refuse_settings_of_objects(overrides, [part for part, given in named.items() if not isinstance(given, str)])
    config = composed([*(f"{part}={name}" for part, name in named.items() if isinstance(name, str)), *overrides])
    _refuse_settings_of_runs(overrides)
    made = {part: make_part(config, part) if isinstance(given, str) else given for part, given in named.items()}
    if isinstance(backbone, str):
        made["backbone"] = replace(made["backbone"], explicit=given_settings("backbone", overrides))
    elif isinstance(backbone, BackboneConfig):
        given_later = {*_changed(backbone), *(["context_length"] if backbone.context_length is not None else [])}
        made["backbone"] = replace(backbone, explicit=backbone.explicit | given_later)
    if made["memory"].uses_gold:
        raise ConfigError(
            f"memory={made['memory'].name} reads gold evidence, which your own conversation does not have"
        )
    if isinstance(embedder, str):
        made["embedder"] = made["embedder"].build()
    return MemoryParts(**made)


def endpoint(
    url: str, model: str, *, api_key_env: str | None = None, context_length: int | None = None
) -> BackboneConfig:
    """Return the settings of a model behind any server that speaks the OpenAI protocol.

    Settings that ``dataclasses.replace`` changes are kept whatever the server takes, or are an error.

    Args:
        url: of the server, up to and including ``/v1``.
        model: the name the server knows it by.
        api_key_env: environment variable that holds the key; ``None`` for a server without.
        context_length: tokens of prompt and reply together that the model takes; ``None``: as the server says, 8192
            where it says nothing.

    Raises:
        ConfigError: the address or the variable's name cannot be one, or the length is not a whole number.
    """
    from memsys.llm.engines.openai import OpenAIEngineConfig

    if problem := type_problem(int | None, context_length):
        raise ConfigError(f"context_length={context_length!r} {problem}")
    config = make_part(composed([f"backbone={_HOSTED}"]), "backbone")
    engine = OpenAIEngineConfig(base_urls=[url], model=model, api_key_env=api_key_env)
    given = frozenset() if context_length is None else frozenset({"context_length"})
    hosted: BackboneConfig = replace(
        config, name=model, model=model, engine=engine, context_length=context_length, explicit=given
    )
    return hosted


def given_backbone(config: BackboneConfig) -> list[str]:
    """Return the overrides of a run that describe what :func:`endpoint` made, as it was changed since.

    Raises:
        ConfigError: it is an engine that a run has to be told of by a preset.
    """
    from memsys.llm.engines.openai import OpenAIEngineConfig

    engine = config.engine
    if not isinstance(engine, OpenAIEngineConfig):
        raise ConfigError(f"backbone={config.name}: name a preset of conf/backbone, or use memsys.endpoint(URL, MODEL)")
    described = {
        "name": config.name,
        "model": config.model,
        "context_length": config.context_length,
        "engine.base_urls": list(engine.base_urls),
        "engine.model": engine.model,
        "engine.api_key_env": engine.api_key_env,
        **_changed(config),
    }
    return [f"backbone={_HOSTED}", *(_override(f"backbone.{key}", value) for key, value in described.items())]


def _changed(config: BackboneConfig) -> dict[str, Any]:
    """Return the settings that are others than :func:`endpoint` leaves them, without those that it sets."""
    usual = make_part(composed([f"backbone={_HOSTED}"]), "backbone")
    values = {one.name: getattr(config, one.name) for one in fields(config) if one.name not in _OF_ENDPOINT}
    return {name: value for name, value in values.items() if value != getattr(usual, name)}


def _override(key: str, value: Any) -> str:
    """Return an override; a mapping may have names that the preset's lacks."""
    return f"{'++' if isinstance(value, Mapping) else ''}{key}={_written(value)}"


def _written(value: Any) -> str:
    """Return a value as Hydra reads it: the names of a mapping are in no quotation marks."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_written(each)}' for name, each in value.items())}}}"
    return json.dumps(value)


def _check_settings(overrides: Sequence[str]) -> None:
    """Refuse settings that are no list of texts."""
    if isinstance(overrides, str) or not all(isinstance(each, str) for each in overrides):
        raise ConfigError(f"settings={overrides!r} must be a list of texts, such as ['memory.k=5']")
    if isinstance(overrides, Mapping):
        raise ConfigError(f"settings={overrides!r} must be a list of texts, such as {_as_settings(overrides)}")


def _refuse_settings_of_runs(overrides: Sequence[str]) -> None:
    """Refuse settings of those parts of a run that a memory of one's own conversation does not have."""
    for text in overrides:
        root = re.split(r"[.=/@]", text.lstrip("+~"), maxsplit=1)[0]
        if root not in (*_NEEDED, "seed"):
            raise ConfigError(f"{text} changes nothing here; settings are those of {', '.join(_NEEDED)} and seed")


def _refuse_settings_of_objects(overrides: Sequence[str], objects: Sequence[str]) -> None:
    """Refuse settings of a part that is given as an object, which would change nothing."""
    for text in overrides:
        part = re.split(r"[.=/@]", text.lstrip("+~"), maxsplit=1)[0]
        if part in objects:
            raise ConfigError(f"{text} changes nothing: the {part} is an object or None; name a preset of conf/{part}")


def _as_settings(settings: Mapping[str, Any]) -> list[str]:
    return [f"{key}={value}" for key, value in settings.items()]


def _check_object(part: str, given: object) -> None:
    """Refuse an object that cannot be the part."""
    if part == "backbone" and (given is None or isinstance(given, BackboneConfig)):
        return
    lacking = [name for name in _NEEDED[part] if not hasattr(given, name)]
    if lacking or isinstance(given, type):
        problem = f"lacks {', '.join(lacking)}" if lacking else "is a class"
        raise ConfigError(f"{part}={given!r} {problem}; give the name of a preset of conf/{part}, or an object")


def composed(wanted: Sequence[str]) -> Any:
    """Return the configuration of some overrides, which are checked as those of a command line are."""
    checker = Checker()
    parsed = checker.parse(wanted)
    checker.check_choices(parsed)
    checker.check_keys(parsed, multirun=False)
    return compose(config_loader(), wanted)
