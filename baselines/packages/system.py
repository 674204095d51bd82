"""Packages: the memory of their config, and the calls that they are expected to make."""

from baselines.packages.calls import context_tokens, expected_calls
from baselines.packages.config import PackageConfig
from memsys.protocol import Parts
from memsys.workers.memory import PackageMemory
from memsys.workers.session import WorkerLimits
from memsys.workers.settings import WorkerSettings

__all__ = ["build", "context_tokens", "expected_calls"]


def build(config: PackageConfig, parts: Parts) -> PackageMemory:
    """Make the empty memory of one conversation; its worker starts with the first write or question."""
    settings = WorkerSettings(
        name=config.name,
        interpreter=config.interpreter_file(),
        worker=config.worker_file,
        package_settings=config.settings,
        turns_per_write=config.turns_per_write,
        k=config.k,
        line=config.line,
        line_undated=config.line_undated,
        restarts=config.restarts,
        limits=WorkerLimits(config.start_timeout_s, config.quiet_timeout_s),
        proxy=config.proxy_settings,
    )
    return PackageMemory(settings, parts)
