"""vLLM servers that run elsewhere."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from memsys.errors import BackboneError
from memsys.llm.engines.contract import Endpoint
from memsys.llm.engines.servers import is_healthy, server_root, still_healthy
from memsys.llm.engines.vllm.config import VllmEngineConfig
from memsys.llm.engines.vllm.server import served_models, server_version
from memsys.vocabulary import Json


class AttachedVllm:
    """Running servers that belong to somebody else."""

    name = "vllm"

    def __init__(self, config: VllmEngineConfig) -> None:
        self._config = config
        self._endpoints: tuple[Endpoint, ...] = ()
        self._version = ""

    def start(self, log_dir: Path) -> Sequence[Endpoint]:
        """Check that every server is healthy and serves the model.

        Raises:
            BackboneError: one does not.
        """
        if not self._endpoints:
            self._endpoints = tuple(self._attach(url) for url in self._config.urls)
        return self._endpoints

    def _attach(self, url: str) -> Endpoint:
        root = server_root(url)
        if not is_healthy(root):
            raise BackboneError(f"no healthy vLLM server answers at {root}/health; is it running and reachable?")
        self._version = server_version(root)
        served = served_models(root, self._config.api_key_env)
        wanted = self._config.model or (served[0] if len(served) == 1 else None)
        if wanted is None or wanted not in served:
            raise BackboneError(f"vLLM server {root} serves {', '.join(served)}; backbone.engine.model is {wanted!r}")
        return Endpoint(base_url=f"{root}/v1", model=wanted, api_key_env=self._config.api_key_env)

    def recover(self, log_dir: Path) -> Sequence[Endpoint]:
        """Go on with the servers that live.

        Raises:
            BackboneError: none does.
        """
        healthy = still_healthy([endpoint.base_url for endpoint in self._endpoints], "vLLM")
        return tuple(endpoint for endpoint in self._endpoints if endpoint.base_url in healthy)

    def stop(self) -> None:
        """Nothing was started."""

    def fingerprint(self) -> Mapping[str, Json]:
        """Say what was served, as far as the servers tell; the rest, which they do not, as the config declares it.

        What is declared counts: a server with other weights or another dtype under the same name would otherwise be
        given replies that its twin left in the cache.
        """
        model = self._endpoints[0].model if self._endpoints else self._config.model
        said = {"engine": self.name, "version": self._version, "mode": "attached", "model": model}
        return {**said, "declared": {"revision": self._config.revision, **self._config.declared()}}
