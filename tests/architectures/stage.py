"""Write folders of the papers' backbones without weights: config.json, a tokenizer of the family, a chat template.

Usage: .venv-serve/bin/python tests/architectures/stage.py MODELS

MODELS is laid out as the hub is (owner/name) and links to all that models/ holds, so that it can stand for it
(MEMSYS_MODELS). The tokenizer is the fetched Qwen2.5's: with the marks that Qwen3 adds for Qwen and DeepSeek's
distillates; for Llama, whose own is given out on request only, its first 128,000 tokens with Llama 3's marks, so that
ids and vocabulary are as large as Llama's.
"""

import json
import sys
from collections.abc import Sequence
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
#: Plain tokens of Llama 3, and the marks after them by their place; the other 248 are reserved.
_LLAMA_PLAIN, _LLAMA_ADDED = 128_000, 256
_LLAMA_MARKS = {
    0: "<|begin_of_text|>",
    1: "<|end_of_text|>",
    4: "<|finetune_right_pad_id|>",
    6: "<|start_header_id|>",
    7: "<|end_header_id|>",
    8: "<|eom_id|>",
    9: "<|eot_id|>",
    10: "<|python_tag|>",
}
_QWEN_ENDS = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
_LLAMA_ENDS = {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>", "pad_token": "<|finetune_right_pad_id|>"}


def qwen_tokenizer(gguf: Path) -> Tokenizer:
    """Return the tokenizer that a GGUF file holds, without what fills its vocabulary up, with Qwen3's marks."""
    fields = GGUFReader(gguf).fields
    words, kinds = fields["tokenizer.ggml.tokens"].contents(), fields["tokenizer.ggml.token_type"].contents()
    plain = [word for number, word in enumerate(words) if kinds[number] == TokenType.NORMAL]
    marks = [(word, kinds[number] == TokenType.CONTROL) for number, word in enumerate(words) if number >= len(plain)]
    kept = [(word, special) for word, special in marks if not word.startswith("[PAD")]
    return _tokenizer(gguf, plain, [*kept, *((word, False) for word in _QWEN3_MARKS)])


def llama_tokenizer(gguf: Path) -> Tokenizer:
    """Return a tokenizer with Llama 3's ids: the first 128,000 plain tokens of a GGUF file, and Llama's marks."""
    plain = GGUFReader(gguf).fields["tokenizer.ggml.tokens"].contents()[:_LLAMA_PLAIN]
    marks = (_LLAMA_MARKS.get(place, f"<|reserved_special_token_{place}|>") for place in range(_LLAMA_ADDED))
    return _tokenizer(gguf, plain, [(word, True) for word in marks])


def _tokenizer(gguf: Path, plain: Sequence[str], marks: Sequence[tuple[str, bool]]) -> Tokenizer:
    """Return the byte-level BPE of a GGUF file over some of its tokens, with marks (text, whether special) after."""
    ids = {word: number for number, word in enumerate(plain)}
    merges = [tuple(merge.split(" ")) for merge in GGUFReader(gguf).fields["tokenizer.ggml.merges"].contents()]
    made = [merge for merge in merges if "".join(merge) in ids]
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=made))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizer(gguf)
    tokenizer.decoder = decoders.ByteLevel()
    for word, special in marks:
        tokenizer.add_tokens([AddedToken(word, special=special, normalized=False)])
    return tokenizer


def stage(out: Path) -> None:
    """Write all folders, and links to what ``models/`` holds."""
    out.mkdir(parents=True, exist_ok=True)
    for path in models_dir().resolve().iterdir():
        if not (out / path.name).exists():
            (out / path.name).symlink_to(path.resolve())
    gguf = asset_path("qwen25_coder_05b")
    qwen, llama = qwen_tokenizer(gguf), llama_tokenizer(gguf)
    configs: dict[str, dict[str, Any]] = yaml.safe_load((HERE / "architectures.yaml").read_text())["models"]
    for name, config in configs.items():
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(config, indent=1))
        is_llama = config["model_type"] == "llama"
        (llama if is_llama else qwen).save(str(folder / "tokenizer.json"))
        ends = _LLAMA_ENDS if is_llama else _QWEN_ENDS
        settings = {"tokenizer_class": "PreTrainedTokenizerFast", **ends}
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        template = (HERE / "chat_template.jinja").read_text()
        always = "{%- set always_thinks = true -%}\n" if name.startswith("deepseek-ai/") else ""
        (folder / "chat_template.jinja").write_text(always + template)


if __name__ == "__main__":
    stage(Path(sys.argv[1]))
