"""Checked settings of a package's worker."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memsys.proxy.server import ProxySettings
from memsys.vocabulary import Json
from memsys.workers.session import WorkerLimits


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Settings of :class:`memsys.workers.memory.PackageMemory`.

    Attributes:
        name: of the preset, in messages.
        interpreter: Python of the package's environment.
        worker: file with the class ``Worker``.
        package_settings: handed to the worker as they are.
        turns_per_write: turns of one session per write.
        k: memories asked for per question.
        line: of a memory in the reader's context, with ``{date}`` and ``{text}``.
        line_undated: of one without a date, with ``{text}``.
        restarts: of a worker that ended within one step.
        limits: of time.
        proxy: of the server that the package calls.
    """

    name: str
    interpreter: Path
    worker: Path
    package_settings: Mapping[str, Json]
    turns_per_write: int
    k: int
    line: str
    line_undated: str
    restarts: int
    limits: WorkerLimits
    proxy: ProxySettings

    def render(self, date: str, text: str) -> str:
        """Write a memory as the reader sees it."""
        return self.line.format(date=date, text=text) if date else self.line_undated.format(text=text)
