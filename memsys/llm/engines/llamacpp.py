"""llama.cpp's server inside this process: the backbone that needs no GPU, no server and no hub."""

import contextlib
import importlib
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from memsys.assets.catalog import CATALOG, asset_path
from memsys.assets.checksums import remembered_sha256
from memsys.assets.paths import models_dir, workplace
from memsys.cores import usable_cores
from memsys.errors import AssetError, BackboneError, ConfigError
from memsys.llm.engines.contract import Endpoint, Engine
from memsys.llm.engines.servers import is_healthy, responds
from memsys.vocabulary import Json

#: The server's threads that hold connections; idle ones cost nothing.
_HTTP_THREADS = 128
#: llama.cpp rounds the window of a sequence up to a multiple of this many tokens.
_WINDOW_STEP = 256
#: Rounds an OpenMP thread spins at a barrier before it sleeps.
_SPINS = "3000"
#: What a failed start says must reach its log before the error stream is given back.
_LOG_PATIENCE_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaCppEngineConfig:
    """Settings of serving a GGUF file by llama.cpp.

    Attributes:
        model_file: an asset's name (:mod:`memsys.assets.catalog`), a file under ``models/``, or a path.
        context_length: tokens of one sequence, prompt and reply together.
        parallel: sequences decoded together; each has its own share of the key-value cache.
        batch_invariant: replies must not depend on what else is decoded at the same time. Chooses the arithmetic that
            makes it so on a CPU: no repacked weights, and a key-value cache in 8 bits, for which llama.cpp has but one
            attention kernel. Holds for weights without a kernel of their own for batches (Q4_1 and the K-quants; not
            Q4_0, Q5_0, Q8_0, F16, F32).
        threads: for decoding and prompts; ``None``: the cores this process may use.
        port: on 127.0.0.1; 0 takes a free one.
    """

    model_file: str
    context_length: int
    parallel: int
    batch_invariant: bool
    threads: int | None
    port: int

    @property
    def RUNTIME_FIELDS(self) -> frozenset[str]:  # noqa: N802 - a constant of the other engines
        """Fields that cannot change a reply; the number of sequences is one only if batches cannot."""
        return frozenset({"threads", "port"} | ({"parallel"} if self.batch_invariant else set()))

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigError: names key and value.
        """
        for key in ("context_length", "parallel", "threads"):
            value = getattr(self, key)
            if value is not None and value < 1:
                raise ConfigError(f"backbone.engine.{key} is {value!r}; it must be at least 1")
        if not 0 <= self.port < 65536:
            raise ConfigError(f"backbone.engine.port is {self.port!r}; it must be 0 (any) to 65535")
        below = self.context_length // _WINDOW_STEP * _WINDOW_STEP
        if self.context_length != below:
            near = " or ".join(str(length) for length in (below, below + _WINDOW_STEP) if length)
            raise ConfigError(
                f"backbone.context_length={self.context_length} cannot be kept: llama.cpp has windows of multiples of "
                f"{_WINDOW_STEP} tokens; take {near}"
            )

    def check_backbone(self, model: str, context_length: int) -> None:
        """See :class:`~memsys.llm.engines.contract.LoadsModelFile`.

        Raises:
            ConfigError: the model's name is not part of the file's, or the windows differ.
        """
        file = CATALOG[self.model_file].destination if self.model_file in CATALOG else self.model_file
        if _plain(model) not in _plain(Path(file).stem):
            raise ConfigError(
                f"backbone.model={model!r}, but this process would load {Path(file).name!r} "
                f"(backbone.engine.model_file={self.model_file}); set backbone.model to the name of the model in that "
                "file, as the file is called, or choose another backbone"
            )
        if context_length != self.context_length:
            raise ConfigError(
                f"backbone.context_length={context_length}, but backbone.engine.context_length={self.context_length}; "
                "set the first alone, the second follows it"
            )

    def check_start(self) -> None:
        """See :class:`~memsys.llm.engines.contract.ChecksStart`.

        Raises:
            AssetError: the model's file is missing.
        """
        self.model_path()

    def model_path(self) -> Path:
        """Return the model file.

        Raises:
            AssetError: it is missing.
        """
        name = self.model_file
        if name in CATALOG:
            return asset_path(name)
        for path in (Path(name).expanduser(), models_dir() / name, workplace(name)):
            if path.is_file():
                return path.resolve()
        raise AssetError(
            f"model file {name} (backbone.engine.model_file) is neither an asset ({', '.join(CATALOG)}) nor a file, "
            f"also not under {models_dir()}; fetch an asset with `memsys models NAME`, or name an existing GGUF file"
        )

    def build(self) -> Engine:
        """Make the engine without starting it."""
        return LlamaCppEngine(self)


def _plain(name: str) -> str:
    """Return the letters and digits of a name, in lower case."""
    return "".join(character for character in name.lower() if character.isalnum())


class LlamaCppEngine:
    """One server on 127.0.0.1, in threads of this process.

    The library is loaded with the object, before anything else of the run can load torch: both bring libgomp, of which
    a process has one, and that reads its settings when it is loaded (see :func:`_import_xllamacpp`).
    """

    name = "llamacpp"

    def __init__(self, config: LlamaCppEngineConfig) -> None:
        _import_xllamacpp()
        self._config = config
        self._lock = threading.Lock()
        self._server: Any = None
        self._sha256 = ""

    def start(self, log_dir: Path) -> Sequence[Endpoint]:
        """Load the model and listen; returns the same endpoint while the server lives.

        Raises:
            AssetError: the model file is missing.
            BackboneError: llama.cpp refused the file.
        """
        with self._lock:
            if self._server is None:
                self._launch(log_dir)
            return [Endpoint(base_url=f"{self._server.listening_address}/v1", model=self._config.model_path().stem)]

    def recover(self, log_dir: Path) -> Sequence[Endpoint]:
        """Start the server again unless it answers.

        Raises:
            BackboneError: it does not come back.
        """
        with self._lock:
            if self._server is not None and not is_healthy(self._server.listening_address):
                self._server = None
        return self.start(log_dir)

    def stop(self) -> None:
        """Free the model; safe to call twice."""
        with self._lock:
            if self._server is not None:
                # A server that is told to end before it works on its queue of tasks never ends. It says that it is
                # healthy a moment before that; the page of its slots is answered from the queue.
                responds(f"{self._server.listening_address}/slots")
            self._server = None

    def fingerprint(self) -> Mapping[str, Json]:
        """Say what was served."""
        config = self._config
        self._sha256 = self._sha256 or remembered_sha256(self._config.model_path())
        # What batches together can move a reply, unless the arithmetic is chosen so that it cannot.
        batch = {} if config.batch_invariant else {"parallel": config.parallel}
        return {
            "engine": self.name,
            "version": version("xllamacpp"),
            "file": self._config.model_path().name,
            "sha256": self._sha256,
            "context_length": config.context_length,
            "batch_invariant": config.batch_invariant,
            **batch,
        }

    def _launch(self, log_dir: Path) -> None:
        path = self._config.model_path()
        log_dir.mkdir(parents=True, exist_ok=True)
        log = log_dir / "llamacpp.log"
        xllamacpp = _import_xllamacpp()
        with _errors_to(log):
            try:
                self._server = xllamacpp.Server(_parameters(xllamacpp, self._config, path))
            except RuntimeError as error:
                _wait_for_content(log)
                raise BackboneError(
                    f"llama.cpp cannot serve {path.name} ({error}); is it a whole GGUF file? See {log.name}, "
                    "fetch it again with `memsys models`, or free memory"
                ) from error


def _import_xllamacpp() -> Any:
    """Import the package with OpenMP threads that spin for some microseconds and then sleep while they wait.

    They spin on by default. On cores that something else uses too, each of the hundreds of barriers of a token then
    costs a time slice: measured 2 tokens a second instead of 20 on two busy cores, at six times the CPU time. Sleeping
    at once costs a wake-up each: measured 0.68 calls a second instead of 0.89 on two free cores.
    """
    names = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    chosen = any(name in os.environ for name in names)
    if not chosen:
        os.environ["GOMP_SPINCOUNT"] = _SPINS  # read once, when the library loads
    try:
        return importlib.import_module("xllamacpp")
    finally:
        if not chosen:
            del os.environ["GOMP_SPINCOUNT"]


def _parameters(xllamacpp: Any, config: LlamaCppEngineConfig, path: Path) -> Any:
    """Return the parameters of the server."""
    parameters = xllamacpp.CommonParams()
    parameters.model.path = os.fspath(path)
    parameters.n_ctx = config.context_length * config.parallel
    parameters.n_parallel = config.parallel
    threads = config.threads or usable_cores()
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.hostnames, parameters.port, parameters.ui = ["127.0.0.1"], config.port, False
    parameters.n_threads_http = _HTTP_THREADS
    parameters.cache_ram_mib = 0  # prefixes are kept in the slots; a second copy in memory is not worth gigabytes
    parameters.ctx_shift = parameters.fit_params = False  # never drop the beginning of a prompt, never shrink
    parameters.verbosity = 1  # errors
    if config.batch_invariant:
        parameters.n_gpu_layers = 0
        parameters.no_extra_bufts = True
        parameters.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED
        parameters.cache_type_k = parameters.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_Q8_0
    return parameters


@contextlib.contextmanager
def _errors_to(log: Path) -> Iterator[None]:
    """Send what C++ writes to the error stream into a file while the model loads."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with log.open("ab") as stream:
            os.dup2(stream.fileno(), 2)
            yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _wait_for_content(log: Path) -> None:
    """Give llama.cpp's logging thread a moment to write why it failed; it runs behind the exception."""
    patience = time.monotonic() + _LOG_PATIENCE_SECONDS
    while not log.stat().st_size and time.monotonic() < patience:
        time.sleep(0.01)
