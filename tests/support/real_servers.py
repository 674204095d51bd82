"""Real servers of others, each with SmolLM2-135M-Instruct: how they are started, and why one cannot be."""

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from memsys.assets.catalog import asset_path
from memsys.assets.paths import models_dir
from memsys.errors import AssetError
from memsys.llm.engines.process import GuardedProcess
from memsys.llm.engines.servers import responds

ROOT = Path(__file__).resolve().parents[2]
#: Environments that `make serve-env` and `make test-servers` make.
SERVE, SERVERS = ROOT / ".venv-serve" / "bin", ROOT / ".venv-servers" / "bin"
_HF = "SmolLM2-135M-Instruct-hf"
_WINDOW = 4096
_START_SECONDS = 900.0


class UnavailableError(Exception):
    """A server cannot be started here; the message says why."""


@dataclass(frozen=True)
class RealServer:
    """A server of others.

    Attributes:
        name: as its makers write it.
        package: that holds it.
        python: interpreter that has the package.
        command: of the port, and of a folder for its files.
        model: what it calls the model, once it runs.
        page: below its root; answered once it can serve.
        behind: the server that it passes requests on to.
        environment: added to ours.
        key_variable: in which it looks for the key that requests must show; empty where it takes none.
    """

    name: str
    package: str
    python: Path
    command: Callable[[int, Path, str], list[str]]
    model: Callable[[], str]
    page: str
    behind: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    key_variable: str = ""

    def version(self) -> str:
        """Return the version of its package.

        Raises:
            UnavailableError: the environment or the package is missing.
        """
        if not self.python.exists():
            raise UnavailableError(f"{self.name}: there is no {self.python.parent.parent.name}")
        code = f"from importlib.metadata import version; print(version({self.package!r}))"
        said = subprocess.run([self.python, "-c", code], capture_output=True, text=True, check=False)
        if said.returncode:
            raise UnavailableError(f"{self.name}: {self.package} is not installed in {self.python.parent.parent.name}")
        return said.stdout.strip()


@dataclass(frozen=True)
class Running:
    """A server that runs: its address with ``/v1``, the name it knows the model by, and the key it wants, if any."""

    url: str
    model: str
    key: str = ""


def _gguf() -> str:
    try:
        return os.fspath(asset_path("smollm2_135m_gguf"))
    except AssetError as error:
        raise UnavailableError(str(error)) from error


def _folder() -> str:
    folder = models_dir() / _HF
    if not (folder / "config.json").is_file():
        raise UnavailableError(f"{folder} is missing: make serve-env")
    return os.fspath(folder.resolve())


def _llama_cpp(port: int, _logs: Path, _behind: str) -> list[str]:
    code = (
        "import sys, time, xllamacpp as x; p = x.CommonParams(); p.model.path = sys.argv[1]; p.port = int(sys.argv[2]);"
        "p.hostnames = ['127.0.0.1']; p.ui = False; p.n_parallel = 4; p.n_ctx = 4 * int(sys.argv[3]);"
        "p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1; p.verbosity = 1;"
        "server = x.Server(p); time.sleep(10**6)"
    )
    return [sys.executable, "-c", code, _gguf(), str(port), str(_WINDOW)]


def _llama_cpp_python(port: int, _logs: Path, _behind: str) -> list[str]:
    options = ["--model_alias", "smollm2", "--n_ctx", str(_WINDOW), "--n_threads", "1", "--n_threads_batch", "1"]
    return [str(SERVERS / "python"), "-m", "llama_cpp.server", "--model", _gguf(), *options, "--port", str(port)]


def _vllm(port: int, _logs: Path, _behind: str) -> list[str]:
    options = ["--dtype", "float32", "--max-model-len", str(_WINDOW), "--enforce-eager", "--max-num-seqs", "16"]
    # vLLM's CPU build stops when it splits the prompt of a seeded request.
    options += ["--no-enable-chunked-prefill", "--max-num-batched-tokens", str(_WINDOW)]
    program = [str(SERVE / "python"), "-m", "vllm.entrypoints.openai.api_server", "--model", _folder()]
    return [*program, "--served-model-name", "smollm2", *options, "--host", "127.0.0.1", "--port", str(port)]


def _transformers(port: int, _logs: Path, _behind: str) -> list[str]:
    return [
        str(SERVE / "transformers"),
        "serve",
        _folder(),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--device",
        "cpu",
    ]


def _litellm(port: int, logs: Path, behind: str) -> list[str]:
    config = logs / "litellm.yaml"
    config.write_text(
        "model_list:\n"
        "  - model_name: smollm2\n"
        f"    litellm_params: {{model: openai/smollm2, api_base: '{behind}', api_key: none}}\n",
        encoding="utf-8",
    )
    return [str(SERVERS / "litellm"), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]


#: One thread: several wait for each other at each layer, and stand still on cores that something else uses too.
_ONE_THREAD = {"OMP_NUM_THREADS": "1"}
_VLLM_ON_A_CPU = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "0", "VLLM_NO_USAGE_STATS": "1"}
_FIRST = "llama.cpp"
SERVERS_OF_OTHERS: Mapping[str, RealServer] = {
    one.name: one
    for one in (
        RealServer(_FIRST, "xllamacpp", Path(sys.executable), _llama_cpp, lambda: "smollm2", "/health",
                   environment=_ONE_THREAD),
        RealServer("llama-cpp-python", "llama-cpp-python", SERVERS / "python", _llama_cpp_python, lambda: "smollm2",
                   "/v1/models", environment=_ONE_THREAD),
        RealServer("vLLM", "vllm-cpu", SERVE / "python", _vllm, lambda: "smollm2", "/health",
                   environment=_VLLM_ON_A_CPU),
        RealServer("transformers serve", "transformers", SERVE / "python", _transformers, _folder, "/health",
                   environment=_ONE_THREAD),
        RealServer("LiteLLM proxy", "litellm", SERVERS / "python", _litellm, lambda: "smollm2",
                   "/health/liveliness", behind=_FIRST, environment={"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
                   key_variable="LITELLM_MASTER_KEY"),
    )
}  # fmt: skip


@contextmanager
def running(name: str, folder: Path) -> Iterator[Running]:
    """Run a server, and the one behind it, for the length of a ``with`` block.

    Args:
        name: of ``SERVERS_OF_OTHERS``.
        folder: for its log and files.

    Raises:
        UnavailableError: it is not installed, or its model is missing.
        RuntimeError: it did not come up.
    """
    server = SERVERS_OF_OTHERS[name]
    server.version()
    if server.behind:
        with running(server.behind, folder) as other:
            yield from _serve(server, folder, other.url)
    else:
        yield from _serve(server, folder, "")


def _serve(server: RealServer, folder: Path, behind: str) -> Iterator[Running]:
    port, log = _free_port(), folder / f"{server.name.replace(' ', '_')}.log"
    ours = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE"}  # without byte code a start is slow
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    environment |= {"HF_HUB_OFFLINE": "1", "NO_PROXY": "127.0.0.1", **server.environment}
    key = f"sk-{secrets.token_hex(32)}" if server.key_variable else ""
    environment |= {server.key_variable: key} if key else {}
    process = GuardedProcess(server.command(port, folder, behind), environment, log)
    try:
        until = time.monotonic() + _START_SECONDS
        while not responds(f"http://127.0.0.1:{port}{server.page}"):
            if process.exit_status is not None or time.monotonic() > until:
                raise RuntimeError(f"{server.name} did not come up: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.5)
        yield Running(f"http://127.0.0.1:{port}/v1", server.model(), key)
    finally:
        process.stop()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
