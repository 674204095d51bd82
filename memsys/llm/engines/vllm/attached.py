"""vLLM servers that run elsewhere."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from memsys.errors import BackboneError
from memsys.llm.engines.contract import Endpoint
from memsys.llm.engines.servers import check_alike, is_healthy, server_root, still_healthy
from memsys.llm.engines.vllm.config import VllmSettings
from memsys.llm.engines.vllm.server import served_models, server_version
from memsys.vocabulary import Json


class AttachedVllm:
    """Running servers not started by memsys."""

    name = "vllm"

    def __init__(self, config: VllmSettings) -> None:
        self._config = config
        self._endpoints: tuple[Endpoint, ...] = ()
        self._said: list[tuple[str, Mapping[str, Json]]] = []  # by the servers that the run began with

    def start(self, log_dir: Path) -> Sequence[Endpoint]:
        """Check that every server is healthy and serves the model, all with one version.

        Raises:
            BackboneError: one does not.
        """
        if not self._endpoints:
            for root in map(server_root, self._config.urls):
                if not is_healthy(root):
                    raise BackboneError(
                        f"no healthy vLLM server answers at {root}/health; is it running and reachable?"
                    )
            self._endpoints = self._attach(self._config.urls)
        return self._endpoints

    def _attach(self, urls: Sequence[str]) -> tuple[Endpoint, ...]:
        """Ask servers what they serve, which must be what all have served so far."""
        said = [(root, self._ask(root)) for root in map(server_root, urls)]
        check_alike("vLLM", [*self._said, *said])
        self._said = self._said or said
        key = self._config.api_key_env
        return tuple(Endpoint(f"{root}/v1", str(told["model"]), key, "backbone.engine.urls") for root, told in said)

    def _ask(self, root: str) -> Mapping[str, Json]:
        version = server_version(root)
        served = served_models(root, self._config.api_key_env)
        wanted = self._config.model or (served[0] if len(served) == 1 else None)
        if wanted is None or wanted not in served:
            raise BackboneError(f"vLLM server {root} serves {', '.join(served)}; backbone.engine.model is {wanted!r}")
        return {"version": version, "model": wanted}

    def recover(self, log_dir: Path) -> Sequence[Endpoint]:
        """Go on with the servers that live; each is asked again what it serves.

        Raises:
            BackboneError: none does, or one serves something else now.
        """
        return self._attach(still_healthy([endpoint.base_url for endpoint in self._endpoints], "vLLM"))

    def stop(self) -> None:
        """Do nothing: no server was started."""

    def fingerprint(self) -> Mapping[str, Json]:
        """Say what was served, as far as the servers tell; the rest, which they do not, as the config declares it.

        What is declared counts: a server with other weights or another dtype under the same name would otherwise be
        given replies that its twin left in the cache.
        """
        said = self._said[0][1] if self._said else {"version": "", "model": self._config.model}
        known = {"engine": self.name, "mode": "attached", **said}
        return {**known, "declared": {"revision": self._config.revision, **self._config.declared()}}
