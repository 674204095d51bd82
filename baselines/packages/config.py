"""Settings of a package as a memory system."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from memsys.errors import AssetError, ConfigError
from memsys.proxy.server import ProxySettings
from memsys.settings import check_minimum, check_template, from_settings, refuse_gold
from memsys.system_config import SystemConfig
from memsys.vocabulary import Json
from memsys.workers.environments import interpreter_of, is_installed

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class CallCounts:
    """Expected calls of a package, for plans.

    Attributes:
        per_write: calls.
        per_question: calls while it searches.
        template_tokens: of a prompt without the turns.
        reply_tokens: of a reply.
    """

    per_write: float
    per_question: float
    template_tokens: float
    reply_tokens: float

    def __post_init__(self) -> None:
        check_minimum(self, "memory.calls", per_write=0, per_question=0, template_tokens=0, reply_tokens=0)


@dataclass(frozen=True)
class PackageConfig(SystemConfig):
    """Settings of a package's worker.

    Attributes:
        name: of the preset.
        uses_gold: always false.
        package: folder of ``baselines/packages`` with ``worker.py`` and ``requirements.lock``; its environment is
            ``.venv-packages/PACKAGE``.
        interpreter: another Python that has the package; ``None`` for the environment's.
        worker: another worker file; ``None`` for the folder's.
        settings: handed to the worker as they are; its file says what they mean.
        turns_per_write: turns of one session that are added at once.
        k: memories asked for per question.
        line: of a memory in the reader's context, with ``{date}`` and ``{text}``.
        line_undated: of a memory without a date, with ``{text}``.
        restarts: times a worker that ends within one step is started again.
        start_timeout_s: seconds until the worker is open.
        quiet_timeout_s: seconds a request may take without a call of the backbone.
        proxy: fields of :class:`memsys.proxy.server.ProxySettings` but the port.
        calls: fields of :class:`CallCounts`; ``None`` where the package's calls cannot be foretold.
    """

    name: str
    uses_gold: bool
    package: str
    interpreter: str | None
    worker: str | None
    settings: Mapping[str, Json]
    turns_per_write: int
    k: int
    line: str
    line_undated: str
    restarts: int
    start_timeout_s: float
    quiet_timeout_s: float
    proxy: Mapping[str, Json]
    calls: Mapping[str, Json] | None

    def __post_init__(self) -> None:
        refuse_gold(self, "a package")
        check_minimum(self, "memory", turns_per_write=1, k=1, restarts=0, start_timeout_s=0.1, quiet_timeout_s=0.1)
        check_template("memory.line", self.line, "date", "text")
        check_template("memory.line_undated", self.line_undated, "text")
        _ = self.proxy_settings, self.call_counts
        if not self.worker_file.is_file():
            raise ConfigError(f"memory={self.name}: there is no worker {self.worker_file}; set memory.worker")

    @cached_property
    def proxy_settings(self) -> ProxySettings:
        """Settings of the server that the package calls, on any free port."""
        return from_settings(ProxySettings, {"port": 0, **self.proxy}, "memory.proxy")

    @property
    def call_counts(self) -> CallCounts | None:
        """Calls of the package, where they are known."""
        return None if self.calls is None else from_settings(CallCounts, self.calls, "memory.calls")

    @property
    def worker_file(self) -> Path:
        """The file with the class ``Worker``."""
        return Path(self.worker) if self.worker else _FOLDER / self.package / "worker.py"

    @property
    def requirements(self) -> Path:
        """The locked versions of the package's environment."""
        return _FOLDER / self.package / "requirements.lock"

    @property
    def installed(self) -> bool:
        """Whether the package can be run here."""
        if self.interpreter is not None:
            return Path(self.interpreter).is_file()
        return self.requirements.is_file() and is_installed(self.package, self.requirements)

    def interpreter_file(self) -> Path:
        """Return the Python interpreter that has the package.

        Raises:
            AssetError: it is not there; says how to get it.
        """
        if self.interpreter is None:
            return interpreter_of(self.package, self.requirements)
        if not self.installed:
            raise AssetError(f"memory={self.name}: there is no interpreter {self.interpreter}; set memory.interpreter")
        return Path(self.interpreter)

    def check_assets(self) -> None:
        """See :class:`memsys.protocol.NeedsAssets`."""
        self.interpreter_file()
