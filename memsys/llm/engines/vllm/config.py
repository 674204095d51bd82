"""Settings of a backbone that vLLM serves, and their checks."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from memsys.credentials import check_arguments, check_url, check_variable, without_secrets
from memsys.errors import ConfigError
from memsys.vocabulary import Json

#: Types of numbers that vLLM computes with; the last two are other names of float16 and float32.
_DTYPES = ("auto", "bfloat16", "float16", "float32", "half", "float")
#: The argument with which vLLM loads nothing, in either way of writing it.
_DUMMY = re.compile(r"--load[-_]format[ =]dummy\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmSettings:
    """Settings of serving the backbone by vLLM. ``None`` leaves vLLM's own default.

    Attributes:
        mode: ``managed`` starts a server here and watches it; ``attached`` uses running servers.
        urls: of running servers (attached), with or without ``/v1``; requests are spread over them.
        api_key_env: environment variable with the servers' key (attached).
        model: hub id, folder, or name of a folder under ``models/``. Attached: the name the servers know it by;
            ``None`` takes the only one they serve.
        revision: hub revision (managed).
        interpreter: Python that has vLLM; ``None``: ``$MEMSYS_VLLM_PYTHON``, else ``.venv-serve/bin/python``.
        max_model_len: context length in tokens.
        dtype: ``auto``, ``bfloat16``, ``float16`` or ``float32``.
        tensor_parallel_size: GPUs one copy of the model is spread over.
        data_parallel_size: copies of the model behind the one address.
        replicas: servers that a sweep starts for this backbone, each on GPUs of its own (``eval.serve`` starts one).
        gpu_memory_utilization: share of the GPU's memory for weights and key-value cache.
        max_num_seqs: sequences decoded together.
        max_num_batched_tokens: tokens processed in one step.
        chunked_prefill: whether a prompt may be split over steps. Must be ``False`` on a CPU: the CPU build (0.32)
            stops with an error when it splits the prompt of a seeded request.
        prefix_caching: whether equal beginnings of prompts are computed once.
        enforce_eager: no graph capture; starts faster, decodes slower on a GPU.
        batch_invariant: kernels whose result does not depend on the batch (``VLLM_BATCH_INVARIANT``); GPU only.
        seed: the server's own seed; requests carry theirs.
        cpu_kvcache_space_gb: key-value cache on a CPU, in GiB.
        cpu_reserved_cores: cores of a CPU that the model leaves to the server's other threads; vLLM's own default, 1,
            is half of a machine with two.
        extra_args: further arguments of the server's command line.
        host: address to listen on; anything but the loopback is for servers that other machines use (``eval.serve``).
        port: to listen on; 0 takes a free one.
        start_timeout_s: seconds until the server must be healthy, download of the model included.
        max_restarts: how often a server that died is started again in one run.
    """

    #: Fields that cannot change a reply.
    RUNTIME_FIELDS: ClassVar[frozenset[str]] = frozenset(
        {
            "mode",
            "urls",
            "api_key_env",
            "interpreter",
            "data_parallel_size",
            "replicas",
            "gpu_memory_utilization",
            "max_num_seqs",
            "cpu_kvcache_space_gb",
            "cpu_reserved_cores",
            "host",
            "port",
            "start_timeout_s",
            "max_restarts",
        }
    )

    #: Fields that say how a reply is computed, and so belong to the model's fingerprint.
    FINGERPRINT_FIELDS: ClassVar[tuple[str, ...]] = (
        "max_model_len",
        "dtype",
        "tensor_parallel_size",
        "max_num_batched_tokens",
        "chunked_prefill",
        "prefix_caching",
        "enforce_eager",
        "batch_invariant",
        "seed",
    )

    mode: str
    urls: Sequence[str]
    api_key_env: str | None
    model: str | None
    revision: str | None
    interpreter: str | None
    max_model_len: int
    dtype: str
    tensor_parallel_size: int
    data_parallel_size: int
    replicas: int
    gpu_memory_utilization: float | None
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    chunked_prefill: bool | None
    prefix_caching: bool | None
    enforce_eager: bool
    batch_invariant: bool
    seed: int
    cpu_kvcache_space_gb: int | None
    cpu_reserved_cores: int | None
    extra_args: Sequence[str]
    host: str
    port: int
    start_timeout_s: float
    max_restarts: int

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigError: names key, value and choices.
        """
        _require(self.mode in ("managed", "attached"), "mode", self.mode, "managed or attached")
        check_variable("backbone.engine.api_key_env", self.api_key_env)
        instead = "export VLLM_API_KEY (or HF_TOKEN) for the server and name it in backbone.engine.api_key_env"
        check_arguments("backbone.engine.extra_args", self.extra_args, instead)
        if self.mode == "attached":
            listed = not isinstance(self.urls, str) and bool(self.urls)
            _require(listed, "urls", self.urls, "a list of at least one server, e.g. [http://host:8000]")
            for url in self.urls:
                check_url("backbone.engine.urls", url, "http://host:8000")
        else:
            _require(not self.urls, "urls", list(self.urls), "empty for a managed server (or set mode=attached)")
            _require(bool(self.model), "model", self.model, "a hub id or a folder")
        for key in ("max_model_len", "tensor_parallel_size", "data_parallel_size", "replicas", "start_timeout_s"):
            _require(getattr(self, key) > 0, key, getattr(self, key), "above 0")
        _require(self.dtype in _DTYPES, "dtype", self.dtype, f"one of {', '.join(_DTYPES)}")
        cores = self.cpu_reserved_cores
        _require(cores is None or cores >= 0, "cpu_reserved_cores", cores, "0 or more")
        share = self.gpu_memory_utilization
        _require(share is None or 0 < share <= 1, "gpu_memory_utilization", share, "above 0 and at most 1")
        _require(0 <= self.port < 65536, "port", self.port, "0 (any) to 65535")

    def declared(self) -> Mapping[str, Json]:
        """Return how replies are computed, by the config: true of a managed server, believed of an attached one."""
        return {
            **{field: getattr(self, field) for field in self.FINGERPRINT_FIELDS},
            "extra_args": list(self.extra_args),
            **({"random_weights": True} if self.random_weights else {}),
        }

    @property
    def random_weights(self) -> bool:
        """Whether the server has random weights in place of the model's (vLLM's load format ``dummy``)."""
        return bool(_DUMMY.search(" ".join(map(str, self.extra_args))))


def _require(holds: bool, key: str, value: object, expected: str) -> None:
    if not holds:
        raise ConfigError(f"backbone.engine.{key} is {without_secrets(value)!r}; it must be {expected}")
