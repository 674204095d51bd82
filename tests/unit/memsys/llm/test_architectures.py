"""The architectures of `make test-architectures` are those of the papers' open backbones."""

from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[4]
CONFIGS: dict[str, dict[str, Any]] = yaml.safe_load(
    (ROOT / "tests/architectures/architectures.yaml").read_text(encoding="utf-8")
)["models"]
#: Billions of parameters as the models' pages state them; Qwen3-0.6B's is its name.
PUBLISHED = {
    "Qwen/Qwen3-0.6B": 0.6,
    "Qwen/Qwen3-8B": 8.2,
    "Qwen/Qwen3-14B": 14.8,
    "Qwen/Qwen2.5-1.5B-Instruct": 1.54,
    "Qwen/Qwen2.5-3B-Instruct": 3.09,
    "Qwen/Qwen2.5-7B-Instruct": 7.62,
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B": 1.78,
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B": 7.62,
    "meta-llama/Llama-3.2-1B-Instruct": 1.24,
    "meta-llama/Llama-3.2-3B-Instruct": 3.21,
    "meta-llama/Llama-3.1-8B-Instruct": 8.03,
}


@pytest.mark.parametrize("name", CONFIGS)
def test_an_architecture_has_as_many_parameters_as_published(name: str) -> None:
    import torch
    import transformers

    library: Any = transformers  # its factories are untyped
    config = dict(CONFIGS[name])
    made = library.AutoConfig.for_model(config.pop("model_type"), **config)
    with torch.device("meta"):
        model = library.AutoModelForCausalLM.from_config(made)
    decimals = len(str(PUBLISHED[name]).partition(".")[2])
    assert round(sum(part.numel() for part in model.parameters()) / 1e9, decimals) == PUBLISHED[name]


def test_every_backbone_that_vllm_serves_from_the_hub_has_one() -> None:
    presets = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in (ROOT / "conf/backbone").glob("*.yaml")]
    named = {(preset.get("engine") or {}).get("model") or "" for preset in presets}
    owners = {name.partition("/")[0] for name in CONFIGS}
    assert {name for name in named if name.partition("/")[0] in owners} == set(CONFIGS) == set(PUBLISHED)
