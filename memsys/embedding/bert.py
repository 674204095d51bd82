"""BERT encoders with mean pooling, such as all-MiniLM-L6-v2, on ONNX Runtime.

The graph is made from ``config.json``; its weights stay in ``model.safetensors``, which ONNX Runtime reads in place.
Vectors equal those of sentence-transformers to about 2e-7 (``test_embedding_model.py``), without torch, which takes
gigabytes on disk and seconds to import. Other architectures are left to sentence-transformers.

Each text is computed alone, by one thread: its vector depends neither on the batch nor on the number of threads, and
no padding is computed.

Source: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding" (NAACL 2019),
and Reimers and Gurevych, "Sentence-BERT" (EMNLP 2019) for the pooling.
"""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsys.embedding.contract import Vectors
from memsys.errors import AssetError, ConfigError

#: What a model's files must say to be computed here.
_ARCHITECTURE = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
_MODULES = ("Transformer", "Pooling", "Normalize")
_POOLING = {"pooling_mode_mean_tokens"}
_WEIGHTS = "model.safetensors"
#: Of ONNX: the first operator set with Gelu, and the version of the file format that goes with it.
_OPSET, _IR_VERSION = 20, 9
#: ONNX Runtime's level for messages: errors alone.
_ERRORS = 3


@dataclass(frozen=True, slots=True)
class TokenizedTexts:
    """Texts as the model takes them.

    Attributes:
        ids: word pieces of each text, shape (length,).
        cut: number of texts that were longer than the limit.
    """

    ids: Sequence[NDArray[np.int64]]
    cut: int


def is_mean_pooled_bert(folder: Path) -> bool:
    """Return whether the model of a folder is computed here: BERT, the mean of all tokens, then length one."""
    try:
        config = _read(folder / "config.json")
        modules = tuple(str(module["type"]).rpartition(".")[2] for module in _read(folder / "modules.json"))
        pooling = _read(folder / "1_Pooling" / "config.json")
        kinds = {entry["dtype"] for entry in _tensors(folder / _WEIGHTS).values()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False  # sentence-transformers says what is wrong with it
    modes = {key for key, value in pooling.items() if key.startswith("pooling_mode_") and value}
    same = all(config.get(key, value) == value for key, value in _ARCHITECTURE.items())
    words = (folder / "tokenizer.json").is_file()
    return words and same and modules == _MODULES and modes == _POOLING and kinds <= {"F32", "I64"}


class BertTokenizer:
    """Word pieces of a model's ``tokenizer.json``.

    Args:
        folder: of the model.
        max_length: word pieces of a text, with the two that begin and end it; what is more is cut.

    Raises:
        ConfigError: the model reads fewer.
    """

    def __init__(self, folder: Path, max_length: int) -> None:
        from tokenizers import Tokenizer

        positions = _read(folder / "config.json").get("max_position_embeddings")
        if positions is not None and max_length > int(positions):
            raise ConfigError(f"embedder.max_word_pieces={max_length}, but {folder.name} reads {positions} at most")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(max_length)
        self._tokenizer.no_padding()

    def __call__(self, texts: Sequence[str]) -> TokenizedTexts:
        """Tokenize texts."""
        encoded = self._tokenizer.encode_batch(list(texts))
        ids = [np.array(each.ids, np.int64) for each in encoded]
        return TokenizedTexts(ids, sum(1 for each in encoded if each.overflowing))


class BertEncoder:
    """The network.

    Args:
        folder: of the model.
        threads: texts that are computed at the same time.

    Raises:
        AssetError: the weights are not those that ``config.json`` describes.
    """

    def __init__(self, folder: Path, threads: int) -> None:
        import onnxruntime
        from onnxruntime.capi import onnxruntime_pybind11_state as errors

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = _ERRORS
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder.resolve()))
        self.dimension = int(_read(folder / "config.json")["hidden_size"])
        try:
            graph = _Graph(folder).serialized()
            self._session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        except (KeyError, errors.Fail, errors.InvalidArgument, errors.InvalidGraph) as error:
            reason = " ".join(str(error).split())
            raise AssetError(
                f"{folder / _WEIGHTS} does not fit {folder / 'config.json'} ({reason}); fetch it again"
            ) from error
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="bert")

    def __call__(self, texts: TokenizedTexts) -> Vectors:
        """Compute vectors of length one, shape (texts, dimension)."""
        rows = list(self._pool.map(self._vector, texts.ids))
        return np.stack(rows) if rows else np.zeros((0, self.dimension), np.float32)

    def _vector(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self._session.run(None, {"ids": ids})[0]
        return vector


class _Graph:
    """The ONNX graph of one text: word pieces of shape (length,) to a vector of shape (dimension,)."""

    def __init__(self, folder: Path) -> None:
        self._config = _read(folder / "config.json")
        self._tensors = _tensors(folder / _WEIGHTS)
        self._nodes: list[Any] = []
        self._initializers: dict[str, Any] = {}

    def serialized(self) -> bytes:
        """Build the model.

        Returns:
            An ONNX model; the weights are named by their place in ``model.safetensors``.

        Raises:
            KeyError: a weight is missing.
        """
        from onnx import TensorProto, helper

        states = self._embedded()
        for layer in range(int(self._config["num_hidden_layers"])):
            states = self._layer(f"encoder.layer.{layer}", states)
        pooled = self._node("ReduceMean", states, self._constant("first axis", [0]), keepdims=0)
        self._node("LpNormalization", pooled, output="vector", axis=0, p=2)
        ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["length"])
        vector = helper.make_tensor_value_info("vector", TensorProto.FLOAT, [int(self._config["hidden_size"])])
        graph = helper.make_graph(self._nodes, "bert", [ids], [vector], list(self._initializers.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)
        return bytes(model.SerializeToString())

    def _embedded(self) -> str:
        """Return the sum of the vectors of word piece, segment (always the first) and position, normalised."""
        zero, one = self._constant("zero", [0]), self._constant("one", [1])
        words = self._node("Gather", self._weight("embeddings.word_embeddings.weight"), "ids", axis=0)
        segment = self._node("Slice", self._weight("embeddings.token_type_embeddings.weight"), zero, one)
        length = self._node("Shape", "ids")
        positions = self._node("Slice", self._weight("embeddings.position_embeddings.weight"), zero, length)
        return self._normalised("embeddings", self._node("Add", self._node("Add", words, segment), positions))

    def _layer(self, name: str, states: str) -> str:
        """Return one layer of attention and feed-forward network."""
        attended = self._linear(f"{name}.attention.output.dense", self._attention(f"{name}.attention.self", states))
        states = self._normalised(f"{name}.attention.output", self._node("Add", attended, states))
        inner = self._node("Gelu", self._linear(f"{name}.intermediate.dense", states))
        outer = self._linear(f"{name}.output.dense", inner)
        return self._normalised(f"{name}.output", self._node("Add", outer, states))

    def _attention(self, name: str, states: str) -> str:
        """Return the scaled dot products of every head; queries, keys and values of shape (heads, length, size)."""
        heads, width = int(self._config["num_attention_heads"]), int(self._config["hidden_size"])
        by_head = self._constant("by head", [0, heads, width // heads])
        parts = {"query": [1, 0, 2], "key": [1, 2, 0], "value": [1, 0, 2]}
        query, key, value = (
            self._node("Transpose", self._node("Reshape", self._linear(f"{name}.{part}", states), by_head), perm=order)
            for part, order in parts.items()
        )
        scale = self._constant("scale", np.float32((width // heads) ** -0.5))
        weights = self._node("Softmax", self._node("Mul", self._node("MatMul", query, key), scale), axis=-1)
        found = self._node("Transpose", self._node("MatMul", weights, value), perm=[1, 0, 2])
        return self._node("Reshape", found, self._constant("all heads", [0, width]))

    def _linear(self, name: str, states: str) -> str:
        return self._node("Gemm", states, self._weight(f"{name}.weight"), self._weight(f"{name}.bias"), transB=1)

    def _normalised(self, name: str, states: str) -> str:
        scale, bias = (self._weight(f"{name}.LayerNorm.{part}") for part in ("weight", "bias"))
        epsilon = float(self._config["layer_norm_eps"])
        return self._node("LayerNormalization", states, scale, bias, axis=-1, epsilon=epsilon)

    def _node(self, kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add an operation; returns the name of its output."""
        from onnx import helper

        name = output or f"{kind}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def _constant(self, name: str, value: Any) -> str:
        from onnx import numpy_helper

        self._initializers[name] = numpy_helper.from_array(np.asarray(value), name)
        return name

    def _weight(self, name: str) -> str:
        """Name a weight by its place in the file of weights."""
        from onnx import TensorProto

        entry = self._tensors[name]
        tensor = TensorProto(
            name=name, data_type=TensorProto.FLOAT, dims=entry["shape"], data_location=TensorProto.EXTERNAL
        )
        begin, end = entry["data_offsets"]
        for key, value in {"location": _WEIGHTS, "offset": begin, "length": end - begin}.items():
            tensor.external_data.add(key=key, value=str(value))
        self._initializers[name] = tensor
        return name


def _tensors(file: Path) -> dict[str, Any]:
    """Read the header of a safetensors file: dtype, shape and place in the file, in bytes, of each tensor by name."""
    with file.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        header = json.loads(stream.read(min(size, file.stat().st_size)))
    header.pop("__metadata__", None)
    start = 8 + size
    return {
        name.removeprefix("bert."): {**entry, "data_offsets": [start + offset for offset in entry["data_offsets"]]}
        for name, entry in header.items()
    }


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
