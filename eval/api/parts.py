"""Parts of a memory by their names in ``conf/``, or as objects."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from eval.configs.compose import compose, config_loader
from eval.configs.overrides import Checker
from eval.running.composed import make_part, with_host
from eval.running.reader import ReaderConfig
from memsys.embedding.contract import Embedder
from memsys.errors import ConfigError
from memsys.llm.config import BackboneConfig
from memsys.llm.contract import LanguageModel
from memsys.protocol import MemoryConfig

#: The preset whose request settings any server of the protocol understands.
_HOSTED = "gpt4o_mini"


@dataclass(frozen=True, slots=True)
class MemoryParts:
    """What a memory is made of.

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
    named: dict[str, Any] = {"memory": memory, "backbone": backbone, "embedder": embedder, "reader": reader}
    config = _composed([f"{part}={name}" for part, name in named.items() if isinstance(name, str)], overrides)
    made = {part: make_part(config, part) if isinstance(given, str) else given for part, given in named.items()}
    if made["memory"].uses_gold:
        raise ConfigError(f"memory={made['memory'].name} reads gold evidence, which a conversation of one's own lacks")
    if isinstance(embedder, str):
        made["embedder"] = made["embedder"].build()
    return MemoryParts(**made)


def endpoint(url: str, model: str, *, api_key_env: str | None = None, context_length: int = 8192) -> BackboneConfig:
    """Settings of a model behind any server that speaks the OpenAI protocol.

    Args:
        url: of the server, up to and including ``/v1``.
        model: the name the server knows it by.
        api_key_env: environment variable that holds the key; ``None`` for a server without.
        context_length: tokens of prompt and reply together that the model takes.

    Raises:
        ConfigError: the address or the variable's name cannot be one.
    """
    from memsys.llm.engines.openai import OpenAIEngineConfig

    config = make_part(_composed([f"backbone={_HOSTED}"], ()), "backbone")
    engine = OpenAIEngineConfig(base_urls=[url], model=model, api_key_env=api_key_env)
    hosted: BackboneConfig = replace(config, name=model, model=model, engine=engine, context_length=context_length)
    return hosted


def _composed(choices: Sequence[str], overrides: Sequence[str]) -> Any:
    """The configuration of these choices and settings."""
    wanted = [*choices, *overrides]
    checker = Checker()
    parsed = checker.parse(wanted)
    checker.check_choices(parsed)
    checker.check_keys(parsed, multirun=False)
    return with_host(compose(config_loader(), wanted))
