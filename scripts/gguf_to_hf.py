"""Turn a quantised GGUF into a Hugging Face folder with the same (dequantised) weights, for vLLM.

Usage: .venv-serve/bin/python scripts/gguf_to_hf.py [smollm2_135m_gguf | qwen25_coder_05b | qwen25_coder_15b] [--force]
       .venv-serve/bin/python scripts/gguf_to_hf.py --gguf FILE --out FOLDER

Needs transformers, gguf and accelerate, which the serving environment has. The result holds exactly the weights that
the embedded llama.cpp engine runs, so that the two engines differ in arithmetic alone.
"""

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from memsys.assets.catalog import asset_path
from memsys.assets.paths import models_dir
from memsys.errors import AssetError

if TYPE_CHECKING:
    from tokenizers.pre_tokenizers import PreTokenizer

#: Qwen2's rule, from its tokenizer.json: contractions, words, single digits, signs, line ends, blanks.
_QWEN2_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
#: Folder under models/ that ``conf/backbone`` names for vLLM, by asset.
_FOLDERS = {
    "smollm2_135m_gguf": "SmolLM2-135M-Instruct-hf",
    "qwen25_coder_05b": "Qwen2.5-Coder-0.5B-Instruct-hf",
    "qwen25_coder_15b": "Qwen2.5-Coder-1.5B-Instruct-hf",
}
#: Written last into the folder; its presence says that the folder is whole.
_STAMP = "converted_from.json"


def convert(gguf: Path, out: Path) -> None:
    """Write the folder ``out``: bfloat16 would round the weights again, so they are stored as float32."""
    import torch
    import transformers

    library: Any = transformers  # its factories are untyped
    source = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    tokenizer = library.AutoTokenizer.from_pretrained(**source)
    if not tokenizer.chat_template:
        raise AssetError(f"{gguf.name} holds no chat template; without it a chat endpoint cannot serve the model")
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizer(gguf)
    dequantised = library.AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    config = library.AutoConfig.from_pretrained(**source)
    # transformers marks the config as GGUF-quantised; a server that reads it would look for a quantised file.
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    plain = library.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    plain.load_state_dict(dequantised.state_dict())
    plain.generation_config = library.GenerationConfig(
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    plain.save_pretrained(out)
    tokenizer.save_pretrained(out)


def pre_tokenizer(gguf: Path) -> "PreTokenizer":
    """Rule that cuts text before the merges. transformers does not carry it over from GGUF files."""
    from gguf import GGUFReader
    from tokenizers import Regex, pre_tokenizers

    name = GGUFReader(gguf).fields["tokenizer.ggml.pre"].contents()
    if name == "smollm":
        first = pre_tokenizers.Digits(individual_digits=True)
    elif name == "qwen2":
        first = pre_tokenizers.Split(Regex(_QWEN2_WORDS), "isolated")
    else:
        raise AssetError(f"{gguf.name} has the pre-tokenizer {name!r}; known here are smollm and qwen2, add its rule")
    return pre_tokenizers.Sequence(
        [first, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=name == "smollm")]
    )


def is_current(gguf: Path, out: Path) -> bool:
    """Whether ``out`` was made from this file."""
    try:
        stamp = json.loads((out / _STAMP).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    return bool(stamp == _origin(gguf))


def _origin(gguf: Path) -> dict[str, str]:
    with gguf.open("rb") as stream:
        return {"file": gguf.name, "sha256": hashlib.file_digest(stream, "sha256").hexdigest()}


def main() -> int:
    """Convert into a temporary folder and move it into place in one step."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("asset", nargs="?", default="smollm2_135m_gguf", choices=_FOLDERS, help="a fetched model")
    parser.add_argument("--gguf", type=Path, help="another GGUF file; then --out too")
    parser.add_argument("--out", type=Path, help="default: the folder under models/ that the presets name")
    parser.add_argument("--force", action="store_true", help="convert again even if the folder is there")
    arguments = parser.parse_args()
    out: Path = (arguments.out or models_dir() / _FOLDERS[arguments.asset]).resolve()
    try:
        gguf = (arguments.gguf or asset_path(arguments.asset)).resolve()
        if not arguments.force and is_current(gguf, out):
            print(f"in place at {out}")
            return 0
        os.environ["HF_HUB_OFFLINE"] = "1"
        with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as parent:
            folder = Path(parent) / out.name
            convert(gguf, folder)
            (folder / "model.safetensors").chmod(0o644)
            (folder / _STAMP).write_text(json.dumps(_origin(gguf)), encoding="utf-8")
            shutil.rmtree(out, ignore_errors=True)
            folder.rename(out)
    except AssetError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"converted {gguf.name} to {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
