"""Every choice of ``conf/backbone``, file or variant, makes a backbone."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from eval.config.presets import preset_names
from memsys.llm.backbone import BackboneConfig
from memsys.llm.engines.openai import OpenAIEngineConfig
from memsys.llm.engines.vllm import VllmEngineConfig

CONF = Path(__file__).resolve().parents[4] / "conf"
NAMES = preset_names(CONF / "backbone")

#: What a choice leaves to whoever makes it.
LEFT_OPEN = {
    "endpoint": ("backbone.model=served", "backbone.engine.base_urls=[http://127.0.0.1:8000/v1]"),
    "litellm": ("backbone.model=openai/served",),
}

#: Backbones of the papers' tables.
CLAG = {"qwen3_06b", "llama32_1b", "deepseek_r1_15b", "qwen3_8b"}
XMEMORY = {"qwen3_8b", "llama31_8b", "gpt5_nano", "gpt41_mini"}
MEMFLY = {"gpt4o", "gpt4o_mini", "qwen3_8b", "qwen3_14b"}
SAGE = {"deepseek_r1_15b", "deepseek_r1_7b", "llama32_1b", "llama32_3b", "qwen25_15b", "qwen25_3b", "qwen25_7b"}


def composed(name: str, *overrides: str) -> dict[str, Any]:
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    with initialize_config_dir(str(CONF), version_base=None):
        config = compose("config", overrides=[f"backbone={name}", *LEFT_OPEN.get(name, ()), *overrides])
        container = OmegaConf.to_container(config.backbone, resolve=True, throw_on_missing=True)
    assert isinstance(container, dict)
    return {str(key): value for key, value in container.items()}


def backbone(name: str, *overrides: str) -> BackboneConfig:
    from hydra.utils import instantiate

    config: BackboneConfig = instantiate(composed(name, *overrides), _convert_="all")
    return config


@pytest.mark.parametrize("name", NAMES)
def test_every_choice_makes_a_backbone_and_sets_every_field(name: str) -> None:
    config = backbone(name)
    assert config.name == name
    in_files = {field.name for field in fields(BackboneConfig)} - {"explicit"}  # the run adds what a command line gave
    assert set(composed(name)) - {"_target_"} == in_files
    assert config.engine.build().name in ("llamacpp", "vllm", "openai", "litellm")


def test_every_backbone_of_the_papers_is_there() -> None:
    assert set(NAMES) >= CLAG | XMEMORY | MEMFLY | SAGE | {"smollm2_135m", "smollm2_135m_vllm"}


@pytest.mark.parametrize("name", sorted((CLAG | XMEMORY | MEMFLY | SAGE) & set(NAMES)))
def test_no_backbone_thinks_where_it_can_be_told_not_to(name: str) -> None:
    config = backbone(name)
    assert config.thinking in ("off", "none")
    assert ("Qwen3" in config.model or "GPT-5" in config.model) == (config.thinking == "off")


@pytest.mark.parametrize("engine", ["vllm", "vllm_attached"])
def test_a_variant_is_its_file_with_its_own_settings_under_any_engine(engine: str) -> None:
    """``variants.yaml`` of a group without folders: what the variant does not set is the file's."""
    other = {"name": "qwen25_7b", "model": "Qwen2.5-7B-Instruct"}
    file, variant = (composed(name, f"backbone/engine={engine}") for name in ("qwen25_3b", "qwen25_7b"))
    assert len({made["engine"].pop("revision") for made in (file, variant)}) == 2
    assert [made["engine"].pop("model")[-11:-9] for made in (file, variant)] == ["3B", "7B"]
    assert variant == file | other
    assert variant["engine"]["mode"] == ("managed" if engine == "vllm" else "attached")


@pytest.mark.parametrize("name", NAMES)
def test_server_and_client_agree_on_the_context_length(name: str) -> None:
    config = backbone(name, "backbone.context_length=4096")
    if isinstance(config.engine, VllmEngineConfig):
        assert config.engine.max_model_len == 4096
    assert config.context_length == 4096


def test_sampling_of_the_papers_reaches_the_request() -> None:
    assert backbone("qwen3_06b").sampling["top_p"] == 1.0
    assert backbone("qwen3_8b").sampling["top_k"] == 20
    assert backbone("qwen25_3b").sampling["top_p"] == 0.1
    assert backbone("qwen3_06b").prompt_mode == "completion"


def test_running_servers_take_the_place_of_our_own_with_one_override() -> None:
    urls = "backbone.engine.urls=[http://one:8000,http://two:8000]"
    engine = backbone("qwen3_06b", "backbone/engine=vllm_attached", urls).engine
    assert isinstance(engine, VllmEngineConfig)
    assert (engine.mode, list(engine.urls), engine.model) == (
        "attached",
        ["http://one:8000", "http://two:8000"],
        "Qwen/Qwen3-0.6B",
    )


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("gpt")])
def test_hosted_models_take_the_key_from_the_environment(name: str) -> None:
    engine = backbone(name).engine
    assert isinstance(engine, OpenAIEngineConfig)
    assert engine.api_key_env == "OPENAI_API_KEY"


@pytest.mark.parametrize("arguments", ["[--load-format,dummy]", "['--load-format=dummy']", "[--load_format,dummy]"])
def test_random_weights_are_recorded_however_they_are_asked_for(arguments: str) -> None:
    engine = backbone("qwen3_06b", f"backbone.engine.extra_args={arguments}").engine
    assert isinstance(engine, VllmEngineConfig)
    assert engine.declared()["random_weights"] is True


def test_an_engine_with_random_weights_serves_the_papers_architectures() -> None:
    engine, plain = backbone("qwen3_8b", "backbone/engine=vllm_dummy").engine, backbone("qwen3_8b").engine
    assert isinstance(engine, VllmEngineConfig)
    assert isinstance(plain, VllmEngineConfig)
    assert (engine.model, engine.random_weights) == ("Qwen/Qwen3-8B", True)
    assert "random_weights" not in plain.declared()  # what fingerprints of kept runs have
