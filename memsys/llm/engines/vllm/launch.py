"""Launch of a vLLM server: interpreter, command line, environment, and the log of a failed start."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from memsys.assets.hints import in_checkout
from memsys.assets.paths import models_dir, workplace
from memsys.errors import BackboneError
from memsys.llm.engines.vllm.config import VllmSettings

INTERPRETER_VARIABLE = "MEMSYS_VLLM_PYTHON"

#: How to get an interpreter that has vLLM.
_SERVE_ENV = in_checkout("run `make serve-env`", "install `memsys[serve]` (vLLM) into an environment of its own")
#: What to do about failures that users meet, by what the log says.
_HINTS: tuple[tuple[str, str], ...] = (
    (
        "CPU Generator does not use offset",
        "vLLM's CPU build fails when it splits the prompt of a seeded request over two steps; set"
        " backbone.engine.chunked_prefill=false and backbone.engine.max_num_batched_tokens to the context length",
    ),
    (
        r"out of memory|Free memory on device|No available memory for the cache blocks",
        "the GPU has too little free memory: end what else runs on it, or lower backbone.engine.gpu_memory_utilization"
        " or backbone.context_length",
    ),
    (
        r"KV cache .*(is larger|needed|than the available)|maximum number of tokens that can be stored in KV cache",
        "the key-value cache cannot hold one full context: lower backbone.context_length, or give it more room"
        " (backbone.engine.gpu_memory_utilization; on a CPU backbone.engine.cpu_kvcache_space_gb)",
    ),
    (
        r"is not a valid model identifier|couldn't connect to|offline mode|OfflineModeIsEnabled|LocalEntryNotFoundError"
        "|outgoing traffic has been disabled|in the cached files|Repository Not Found|gated repo",
        "the model is neither local nor available from the hub: download it first (HF_HUB_OFFLINE=1, which the Makefile"
        " sets by default, keeps the server from it), or set backbone.engine.model to a local folder (a gated model"
        " needs HF_TOKEN in the environment)",
    ),
    (
        "No module named '?flashinfer",
        "this vLLM samples with FlashInfer where it is not told otherwise: install FlashInfer, or set"
        " VLLM_USE_FLASHINFER_SAMPLER=0 in the environment",
    ),
    (r"No module named '?vllm", f"the interpreter has no vLLM: {_SERVE_ENV}"),
)
#: On a CPU each step allocates its tensors. By default glibc returns their memory to the system and has it page by
#: page again: some 50,000 page faults a second, a tenth of the processor time. So the process keeps what it has had.
_KEEP_MEMORY = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),  # the largest that glibc takes
    "MALLOC_TRIM_THRESHOLD_": str(16 << 30),
}
#: Where vLLM's CPU build brings Intel's OpenMP, below the environment. With it in place of PyTorch's own, calls that
#: wait for each other take a tenth less time, with the same replies to a chain of 17 (docs/results.md, "Speed of the
#: two engines").
_INTEL_OPENMP = Path("lib", "libiomp5.so")
_NOISE = re.compile(r"nanobind|^ - (leaked|\.\.\.)|resource_tracker|warnings\.warn\(|UserWarning|FutureWarning")
#: A line of the log below the level of errors, which may quote one that has not happened.
_NO_ERROR = re.compile(r"^(\(.*?\) *)?(WARNING|INFO|DEBUG)\b")
_ERROR = re.compile(r"\b\w*(Error|Exception|OfflineModeIsEnabled)\b: ")


def interpreter(config: VllmSettings) -> str:
    """Return the Python interpreter with vLLM: the config's, else ``$MEMSYS_VLLM_PYTHON``, else ``.venv-serve``.

    Raises:
        BackboneError: it does not exist.
    """
    path = _interpreter_path(config)
    if not path.is_file():
        raise BackboneError(
            f"no serving environment: {path} does not exist; {_SERVE_ENV}, or name a Python that has vLLM in"
            f" backbone.engine.interpreter or {INTERPRETER_VARIABLE}"
        )
    return os.fspath(path)


def _interpreter_path(config: VllmSettings) -> Path:
    chosen = config.interpreter or os.environ.get(INTERPRETER_VARIABLE) or workplace(".venv-serve", "bin", "python")
    return workplace() / chosen  # not resolved: a virtual environment's interpreter is a link that must be kept


def local_model(model: str) -> Path | None:
    """Return the folder of a model that lies here; ``None`` for a hub id.

    Raises:
        BackboneError: it is neither a folder nor of the form ``owner/name``.
    """
    for folder in (Path(model).expanduser(), models_dir() / model):
        if (folder / "config.json").is_file():
            return folder.resolve()
    if re.fullmatch(r"[\w.-]+/[\w.-]+", model) and not model.startswith("."):
        return None
    raise BackboneError(
        f"backbone.engine.model {model!r} is not a folder with a config.json, as a path or under {models_dir()},"
        f" and no hub id (owner/name){in_checkout('; `make serve-env` makes SmolLM2-135M-Instruct-hf', '')}"
    )


def command(config: VllmSettings, model: str, port: int) -> list[str]:
    """Return the command line of a server for ``model`` (hub id or local folder)."""
    folder = local_model(model)
    options: dict[str, object] = {
        "model": folder or model,
        "served-model-name": served_name(model),
        "revision": None if folder else config.revision,
        "host": config.host,
        "port": port,
        "dtype": config.dtype,
        "max-model-len": config.max_model_len,
        "tensor-parallel-size": config.tensor_parallel_size,
        "data-parallel-size": config.data_parallel_size if config.data_parallel_size > 1 else None,
        "gpu-memory-utilization": config.gpu_memory_utilization,
        "max-num-seqs": config.max_num_seqs,
        "max-num-batched-tokens": config.max_num_batched_tokens,
        "seed": config.seed,
        # Sampling is what requests say; a model's own generation_config.json must not fill in the rest.
        "generation-config": "vllm",
    }
    switches = {
        # A reply's usage then says how much of its prompt was in the cache of prefixes.
        "enable-prompt-tokens-details": True,
        "enforce-eager": config.enforce_eager,
        "enable-prefix-caching": config.prefix_caching,
        "enable-chunked-prefill": config.chunked_prefill,
    }
    line = [interpreter(config), "-m", "vllm.entrypoints.openai.api_server", "--disable-uvicorn-access-log"]
    for name, value in options.items():
        line += [] if value is None else [f"--{name}", str(value)]
    for name, switch in switches.items():
        line += [] if switch is None else [f"--{name}" if switch else f"--no-{name}"]
    return [*line, *config.extra_args]


def served_name(model: str) -> str:
    """Name the server knows the model by: no folder of the machine appears in it."""
    folder = local_model(model)
    return folder.name if folder else model


def hub_commit(model: str, revision: str) -> str | None:
    """Return the commit of a hub model's branch or tag when it was downloaded here; ``None`` if it was not."""
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    folder = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=model, repo_type="model")
    try:
        return (folder / "refs" / revision).read_text(encoding="utf-8").strip()
    except OSError:
        return None


def environment(config: VllmSettings, model: str) -> Mapping[str, str]:
    """Return the environment of the server: ours without what belongs to our own interpreter.

    A server that only this machine reaches takes no key: ``VLLM_API_KEY`` is one for a server elsewhere, and our own
    would refuse every call that does not show it.
    """
    ours = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    if config.host == "127.0.0.1":
        ours.add("VLLM_API_KEY")
    variables = {name: value for name, value in os.environ.items() if name not in ours}
    variables |= {"PYTHONUNBUFFERED": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    if local_model(model):
        variables |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    if config.batch_invariant:
        variables["VLLM_BATCH_INVARIANT"] = "1"
    if config.cpu_kvcache_space_gb is not None:
        variables["VLLM_CPU_KVCACHE_SPACE"] = str(config.cpu_kvcache_space_gb)
        variables = {**_KEEP_MEMORY, **_preloaded(config), **variables}
    if config.cpu_reserved_cores is not None:
        variables["VLLM_CPU_NUM_OF_RESERVED_CPU"] = str(config.cpu_reserved_cores)
    return variables


def _preloaded(config: VllmSettings) -> Mapping[str, str]:
    """Return the paths to preload: Intel's OpenMP, where the environment has it.

    The loader splits ``LD_PRELOAD`` at blanks and colons, so it finds no file whose path has one; vLLM would then take
    an OpenMP for preloaded and leave out PyTorch's.
    """
    path = _interpreter_path(config).parent.parent / _INTEL_OPENMP
    return {"LD_PRELOAD": os.fspath(path)} if path.is_file() and not re.search(r"[\s:]", os.fspath(path)) else {}


def explain(log: Path, start: int) -> str:
    """Return what a failed server's log says: the hint that fits, the first error, and the last lines without noise.

    Args:
        log: the file.
        start: offset in bytes where the server's lines begin; a log holds earlier starts too.
    """
    lines = [line for line in _read(log, start).splitlines() if line.strip() and not _NOISE.search(line)]
    if not lines:
        return f"{log.name} is empty"
    text = "\n".join(lines)
    hint = next((f"hint: {hint}\n" for pattern, hint in _HINTS if re.search(pattern, text, re.IGNORECASE)), "")
    first = next((f"first error: {line.strip()[:300]}\n" for line in lines if _is_error(line)), "")
    tail = "\n".join(f"  | {line[:300]}" for line in lines[-12:])
    return f"{hint}{first}end of {log.name}:\n{tail}"


def _is_error(line: str) -> bool:
    return _ERROR.search(line) is not None and _NO_ERROR.search(line) is None


def port_was_taken(log: Path, start: int) -> bool:
    """Return whether a server ended because it could not listen on its port."""
    return "address already in use" in _read(log, start).lower()


def _read(log: Path, start: int) -> str:
    try:
        with log.open("rb") as stream:
            stream.seek(start)
            return stream.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
