"""Write folders of the papers' backbones without weights: config.json, a tokenizer of the family, a chat template.

Usage: .venv-serve/bin/python tests/architectures/stage.py MODELS

MODELS is laid out as the hub is (owner/name) and links to all that models/ holds, so that it can stand for it
(MEMSYS_MODELS). The tokenizers are those of the fetched models: Qwen2.5's, with the marks that Qwen3 adds, for Qwen and
DeepSeek's distillates; SmolLM2's for Llama, whose own is given out on request only.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import yaml
from gguf import GGUFReader, TokenType
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers

HERE, ROOT = Path(__file__).resolve().parent, Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from gguf_to_hf import pre_tokenizer  # noqa: E402

from memsys.assets.catalog import asset_path  # noqa: E402
from memsys.assets.paths import models_dir  # noqa: E402

#: Ids 151665 to 151668, which Qwen3 adds to Qwen2.5's.
_QWEN3_MARKS = ("<tool_response>", "</tool_response>", "<think>", "</think>")
_SMOLLM2 = "SmolLM2-135M-Instruct-hf"


def qwen_tokenizer(gguf: Path) -> Tokenizer:
    """Return the tokenizer that a GGUF file holds, without what fills its vocabulary up, with Qwen3's marks."""
    fields = GGUFReader(gguf).fields
    words, kinds = fields["tokenizer.ggml.tokens"].contents(), fields["tokenizer.ggml.token_type"].contents()
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"].contents()]
    plain = {word: number for number, word in enumerate(words) if kinds[number] == TokenType.NORMAL}
    tokenizer = Tokenizer(models.BPE(vocab=plain, merges=merges))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizer(gguf)
    tokenizer.decoder = decoders.ByteLevel()
    marks = [(word, kinds[number]) for number, word in enumerate(words) if number >= len(plain)]
    for word, kind in [*((w, k) for w, k in marks if not w.startswith("[PAD")), *((w, 0) for w in _QWEN3_MARKS)]:
        tokenizer.add_tokens([AddedToken(word, special=kind == TokenType.CONTROL, normalized=False)])
    return tokenizer


def stage(out: Path) -> None:
    """Write all folders, and links to what ``models/`` holds."""
    out.mkdir(parents=True, exist_ok=True)
    for path in models_dir().resolve().iterdir():
        if not (out / path.name).exists():
            (out / path.name).symlink_to(path.resolve())
    qwen = qwen_tokenizer(asset_path("qwen25_coder_05b"))
    configs: dict[str, dict[str, Any]] = yaml.safe_load((HERE / "architectures.yaml").read_text())["models"]
    for name, config in configs.items():
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(config, indent=1))
        if config["model_type"] == "llama":
            for file in ("tokenizer.json", "tokenizer_config.json"):
                shutil.copy(models_dir() / _SMOLLM2 / file, folder)
        else:
            qwen.save(str(folder / "tokenizer.json"))
            ends = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
            (folder / "tokenizer_config.json").write_text(
                json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **ends})
            )
        template = (HERE / "chat_template.jinja").read_text()
        always = "{%- set always_thinks = true -%}\n" if name.startswith("deepseek-ai/") else ""
        (folder / "chat_template.jinja").write_text(always + template)


if __name__ == "__main__":
    stage(Path(sys.argv[1]))
