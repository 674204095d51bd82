"""Protocol of engines: they serve a model under one or more OpenAI-compatible base URLs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from memsys.errors import BackboneError
from memsys.vocabulary import Json


class OtherServerError(BackboneError):
    """A server serves something else than the run began with; its replies do not belong to the run."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One server.

    Attributes:
        base_url: up to and including ``/v1``.
        model: the name the server knows the model by.
        api_key_env: environment variable that holds the key; the key itself is never stored.
        setting: of the configuration that holds its address; empty where none does.
    """

    base_url: str
    model: str
    api_key_env: str | None = None
    setting: str = ""


#: Names of engines whose servers are others', so that a refused field is learnt.
OF_OTHERS = frozenset({"openai", "litellm"})


class Answered(NamedTuple):
    """A reply as it came.

    Attributes:
        status: of HTTP.
        headers: names in lower case.
        body: JSON.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


@runtime_checkable
class AnswersItself(Protocol):
    """An engine that gets replies by itself, not from an address over HTTP."""

    async def answer(self, path: str, body: Mapping[str, Json], timeout: float) -> Answered:
        """Get a reply, once.

        Args:
            path: ``/chat/completions`` or ``/completions``.
            body: of the request.
            timeout: seconds that it may take.
        """


#: Requests of a batch, as OpenAI limits them.
MOST_REQUESTS = 50_000


@dataclass(frozen=True, slots=True)
class BatchTimes:
    """Times of batches.

    Attributes:
        quiet_s: seconds without a further request after which a batch is sent.
        poll_s: seconds between two questions whether it is done.
    """

    quiet_s: float
    poll_s: float


@runtime_checkable
class SendsBatches(Protocol):
    """An engine, or its settings, whose server takes batches (:mod:`memsys.llm.batches`)."""

    @property
    def batch_times(self) -> BatchTimes:
        """When a batch is sent, and how often it is asked for."""


class Engine(Protocol):
    """A running (or startable) backbone server. Lives in one process; several event loops may use it in turn."""

    @property
    def name(self) -> str:
        """``llamacpp``, ``vllm``, ``openai`` or ``litellm``."""

    def start(self, log_dir: Path) -> Sequence[Endpoint]:
        """Start the server if it is ours to start, wait until it is healthy, return its endpoints.

        Calling it again while the server lives returns the same endpoints. Server output goes to
        ``log_dir/<engine>.log``.

        Raises:
            BackboneError: it did not come up; the message quotes the end of its log.
        """

    def recover(self, log_dir: Path) -> Sequence[Endpoint]:
        """Restart a dead server after a transport error and wait for its health; does nothing if the server is alive.

        Raises:
            BackboneError: the server is not ours to restart, or did not come back.
            OtherServerError: what came back is another one; the request must not be sent to it.
        """

    def stop(self) -> None:
        """Stop what was started; safe to call twice."""

    def fingerprint(self) -> Mapping[str, Json]:
        """Say what was served: engine and version, model, file sha256, flags. No paths of the machine, no keys."""


class EngineConfig(Protocol):
    """The ``engine:`` node of a choice of ``conf/backbone`` instantiates to one of these."""

    def build(self) -> Engine:
        """Make the engine without starting it."""


@runtime_checkable
class ChecksStart(Protocol):
    """An engine's settings that can tell, before anything is loaded, that the engine could not start."""

    def check_start(self) -> None:
        """Look for what a start needs here.

        Raises:
            AssetError: the model's file is missing.
            ConfigError: the key's environment variable is not set, or holds what is not a key.
        """


@runtime_checkable
class ServedByOthers(Protocol):
    """An engine's settings that name external servers, with unknown capabilities."""

    def served(self) -> tuple[str, str]:
        """Return the address of the first server, and its name of the model."""


@runtime_checkable
class LoadsModelFile(Protocol):
    """An engine's settings that name the file of the model, so that the model's name can be compared with it."""

    def check_backbone(self, model: str, context_length: int) -> None:
        """Refuse a backbone that this engine would not serve as it is recorded.

        Args:
            model: the backbone's ``model``.
            context_length: the backbone's ``context_length``, tokens.

        Raises:
            ConfigError: the file is of another model, or the window is another.
        """
