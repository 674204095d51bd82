"""The real all-MiniLM-L6-v2, where its files are there."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsys.assets.paths import models_dir
from memsys.embedding import sentence_transformer
from memsys.embedding.bert import BertEncoder, is_mean_pooled_bert
from memsys.embedding.sentence_transformer import SentenceTransformerConfig, _LocalModel
from memsys.errors import AssetError, ConfigError

MINILM = SentenceTransformerConfig(
    name="all-MiniLM-L6-v2",
    model="all-MiniLM-L6-v2",
    dimension=384,
    device="cpu",
    max_batch=8,
    max_word_pieces=256,
    pad_to_multiple_of=16,
    cache_entries=1000,
    threads=None,
)
TEXTS = [" ".join(["word", "another", "thing", "seven"][: 1 + n % 4] * (1 + n // 4)) + f" {n}" for n in range(24)]

needs_model = pytest.mark.skipif(
    not (models_dir() / MINILM.model / "config.json").is_file(),
    reason="all-MiniLM-L6-v2 is not in the models folder: run `memsys models`",
)


@needs_model
@pytest.mark.real_model
def test_vectors_do_not_depend_on_the_batch() -> None:
    async def alone() -> list[np.ndarray]:
        embedder = MINILM.build()
        return [(await embedder.embed([text]))[0] for text in TEXTS]

    together = asyncio.run(MINILM.build().embed(TEXTS))
    assert np.array_equal(together, np.stack(asyncio.run(alone())))
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)


@needs_model
@pytest.mark.real_model
def test_kept_vectors_are_read_to_the_bit_without_the_model(tmp_path: Path) -> None:
    first, later, shorter = MINILM.build(), MINILM.build(), replace(MINILM, max_word_pieces=128).build()
    first.keep(tmp_path)
    computed = asyncio.run(first.embed(TEXTS))
    for embedder in (later, shorter):
        embedder.keep(tmp_path)
    assert np.array_equal(asyncio.run(later.embed(TEXTS)), computed)
    assert later.statistics()["kept"] == len(TEXTS) and later.statistics()["batches"] == 0
    assert not shorter.has_kept()  # it may give long texts other vectors
    latency = MINILM.build()
    latency.keep(None)
    assert not latency.has_kept() and not latency.knows(TEXTS[:1])


@needs_model
@pytest.mark.real_model
def test_vectors_are_those_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of one length and of several, of cut texts, an empty one, and characters without a word piece."""
    odd = ["", "\x00 \u200b", "é 中文 🙂 naïve", "River, river; RIVER!", "w" * 300, "long text " * 200]
    batches = [TEXTS[:1], TEXTS[:8], ["same length"] * 4, TEXTS[16:], odd]
    plain = _LocalModel(MINILM)
    ours = [plain.encode(batch) for batch in batches]
    monkeypatch.setattr(sentence_transformer, "is_mean_pooled_bert", lambda folder: False)
    library = _LocalModel(MINILM)
    for batch, vectors in zip(batches, ours, strict=True):
        assert np.abs(vectors - library.encode(batch)).max() < 1e-6
    assert library.truncated == plain.truncated == 1


@needs_model
@pytest.mark.real_model
def test_vectors_do_not_depend_on_the_number_of_threads() -> None:
    one, three = (_LocalModel(replace(MINILM, threads=number)) for number in (1, 3))
    assert np.array_equal(one.encode(TEXTS), three.encode(TEXTS))


@needs_model
@pytest.mark.real_model
def test_the_default_embedder_imports_neither_torch_nor_transformers() -> None:
    code = (
        "import asyncio, sys; from tests.unit.memsys.embedding.test_embedding_model import MINILM; "
        "asyncio.run(MINILM.build().embed(['river'])); "
        "sys.exit(', '.join(sorted({'torch', 'transformers', 'sentence_transformers'} & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@needs_model
def test_weights_that_do_not_fit_are_one_message(tmp_path: Path) -> None:
    source = models_dir() / MINILM.model
    for name in ("tokenizer.json", "model.safetensors"):
        (tmp_path / name).symlink_to(source / name)
    config = json.loads((source / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 7}))
    with pytest.raises(AssetError, match=r"model\.safetensors does not fit .*encoder\.layer\.6"):
        BertEncoder(tmp_path, 1)
    (tmp_path / "config.json").write_text(json.dumps({**config, "hidden_size": 512}))
    with pytest.raises(AssetError, match=r"model\.safetensors does not fit .*fetch it again"):
        BertEncoder(tmp_path, 1)
    whole = (source / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(AssetError, match=r"model\.safetensors does not fit .*fetch it again"):
        BertEncoder(tmp_path, 1)


@needs_model
def test_other_architectures_are_left_to_the_library(tmp_path: Path) -> None:
    source = models_dir() / MINILM.model
    changes: dict[str, Callable[[Any], Any]] = {
        "config.json": lambda config: {**config, "model_type": "mpnet"},
        "modules.json": lambda modules: modules[:2],
        "1_Pooling/config.json": lambda pooling: {**pooling, "pooling_mode_cls_token": True},
    }
    for name, change in {"": lambda plain: plain, **changes}.items():
        folder = tmp_path / (name.replace("/", "_") or "same")
        (folder / "1_Pooling").mkdir(parents=True)
        for other in (*changes, "model.safetensors", "tokenizer.json"):
            (folder / other).symlink_to(source / other)
        if name:
            (folder / name).unlink()
            (folder / name).write_text(json.dumps(change(json.loads((source / name).read_text()))))
        assert is_mean_pooled_bert(folder) is (name == ""), name
    assert not is_mean_pooled_bert(tmp_path)


@needs_model
@pytest.mark.real_model
def test_long_texts_are_cut_and_counted() -> None:
    embedder = MINILM.build()
    long = "river " * 300
    vectors = asyncio.run(embedder.embed([long, long + "mountain", "short"]))
    assert embedder.statistics()["truncated"] == 2
    assert np.array_equal(vectors[0], vectors[1])


@needs_model
@pytest.mark.real_model
def test_kept_vectors_of_another_dimension_are_not_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first, wrong = MINILM.build(), replace(MINILM, dimension=512).build()
    first.keep(tmp_path)
    asyncio.run(first.embed(TEXTS))
    wrong.keep(tmp_path)
    with pytest.raises(ConfigError, match=r"embedder\.dimension=512, but all-MiniLM-L6-v2 has 384"):
        asyncio.run(wrong.embed(TEXTS))
    assert not caplog.records  # its rows are longer: those of the right length were read as altered ones


@needs_model
@pytest.mark.real_model
def test_another_dimension_is_refused() -> None:
    with pytest.raises(ConfigError, match="has 384"):
        asyncio.run(replace(MINILM, dimension=100).build().embed(["x"]))


def test_a_missing_model_names_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSYS_MODELS", str(tmp_path))
    with pytest.raises(AssetError, match="memsys models"):
        asyncio.run(MINILM.build().embed(["x"]))


@pytest.mark.parametrize(
    ("variable", "configured", "threads"),
    [("", None, 4), ("3", None, 3), ("3,1", None, 3), ("16", None, 4), ("0", None, 4), ("all", None, 4), ("1", 6, 6)],
)
def test_a_cell_of_a_sweep_embeds_with_its_share_of_the_cores(
    variable: str, configured: int | None, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", variable)
    monkeypatch.setattr("memsys.embedding.sentence_transformer.usable_cores", lambda: 8)
    assert _LocalModel(replace(MINILM, threads=configured))._threads() == threads


@pytest.mark.parametrize(("key", "value"), [("device", "tpu"), ("max_batch", 0), ("threads", 0)])
def test_bad_settings_are_refused(key: str, value: object) -> None:
    with pytest.raises(ConfigError, match=key):
        replace(MINILM, **{key: value})
