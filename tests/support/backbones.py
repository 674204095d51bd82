"""Backbones against a stub server, for the client's tests."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memsys.errors import BackboneError
from memsys.llm.backbone import Backbone
from memsys.llm.config import BackboneConfig
from memsys.llm.contract import Role
from memsys.llm.engines.contract import Endpoint
from memsys.llm.prompt import Prompt
from memsys.llm.sampling import SAMPLING_FIELDS
from memsys.llm.scope import CallScope, Phase, call_scope
from memsys.vocabulary import Json

NOTE: dict[str, Json] = {
    "type": "object",
    "properties": {
        "keywords": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "context": {"type": "string"},
    },
    "required": ["keywords", "context"],
    "additionalProperties": False,
}


class StubEngine:
    """An engine over servers that are there already; counts its recoveries, and may do something in them."""

    def __init__(self, urls: Sequence[str], name: str = "vllm", api_key_env: str | None = None) -> None:
        self.name = name
        self.endpoints = [Endpoint(url, "stub", api_key_env, "backbone.engine.base_urls") for url in urls]
        self.recoveries = 0
        self.on_recover: Any = None
        self.recover_error = ""
        self.model: dict[str, Json] = {"engine": name, "sha256": "0" * 64}

    def start(self, log_dir: Path) -> Sequence[Endpoint]:
        return self.endpoints

    def recover(self, log_dir: Path) -> Sequence[Endpoint]:
        self.recoveries += 1
        if self.recover_error:
            raise BackboneError(self.recover_error)
        if self.on_recover is not None:
            self.on_recover()
        return self.endpoints

    def stop(self) -> None:
        """Nothing to stop."""

    def fingerprint(self) -> dict[str, Json]:
        return self.model


class StubEngineConfig:
    """For configs whose engine is made elsewhere."""

    def build(self) -> StubEngine:
        raise AssertionError("the test makes the engine")


def backbone_config(**changes: Any) -> BackboneConfig:
    settings: dict[str, Any] = {
        "name": "stub",
        "model": "Stub-1B",
        "engine": StubEngineConfig(),
        "context_length": 4096,
        "prompt_mode": "chat",
        "thinking": "none",
        "thinking_switch": {},
        "sampling": dict.fromkeys(SAMPLING_FIELDS),
        "temperature": None,
        "structured": "json_schema",
        "json_repair": True,
        "token_counter": "server",
        "send_temperature": True,
        "send_seed": True,
        "max_tokens_field": "max_tokens",
        "max_in_flight": 8,
        "timeout_s": 5.0,
        "transport_retries": 2,
        "backoff_s": 0.01,
        "max_reply_chars": 50_000,
        "max_parse_s": 2.0,
    }
    return BackboneConfig(**{**settings, **changes})


def role(**changes: Any) -> Role:
    settings: dict[str, Any] = {
        "name": "analyse",
        "prompt": Prompt("Describe: $text", "analyse.txt", "0" * 64),
        "temperature": 0.7,
        "max_tokens": 50,
        "schema": NOTE,
    }
    return Role(**{**settings, **changes})


def open_backbone(engine: StubEngine, folder: Path, *, config: BackboneConfig | None = None, **more: Any) -> Backbone:
    return Backbone(config or backbone_config(), engine, **{"log_dir": folder, "run_seed": 0, **more})


def enter(phase: Phase = "prepare", *, item: str = "u1", fresh: bool = False) -> None:
    call_scope.set(CallScope(phase, item, fresh))
