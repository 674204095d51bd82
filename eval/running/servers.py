"""Backbones at external servers: what those take is found out before the first call, and the settings follow."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eval.commands.terminal import announced, say
from eval.runs.load import find_record
from eval.runs.rundir import CALLS
from memsys.credentials import redacted
from memsys.errors import BackboneError, BackboneUnusableError
from memsys.llm.config import BackboneConfig
from memsys.llm.engines.contract import ServedByOthers
from memsys.llm.findings import ChosenSetting, Findings, FindingsStore, findings_of, with_choices, with_thoughts
from memsys.vocabulary import Json

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FittedBackbone:
    """A backbone's settings as its server takes them.

    Attributes:
        config: for all calls.
        found: about its server; ``None`` where it is ours, or could not be asked.
        chosen: settings that follow.
    """

    config: BackboneConfig
    found: Findings | None = None
    chosen: tuple[ChosenSetting, ...] = ()

    def record(self) -> dict[str, Json]:
        """Return what ``run.json`` says of it."""
        chosen = [asdict(one) for one in self.chosen]
        found = asdict(self.found) if self.found else None
        return {"backbone": self.config.name, "server": _server(self.config), "chosen": chosen, "found": found}


def _server(config: BackboneConfig) -> str:
    return redacted(config.engine.served()[0]) if isinstance(config.engine, ServedByOthers) else ""


def findings_folder(cache_dir: Path) -> Path:
    """Return the folder with what was found about servers."""
    return cache_dir / "servers"


def begun_with(run: Path) -> dict[str, Mapping[str, Any]] | None:
    """Return what a run knows of its servers since its first call, by backbone; ``None`` before it.

    Its later parts have the same settings, whatever was found out meanwhile: replies in the cache are found again, and
    one run's answers are made in one way.

    Args:
        run: its folder.
    """
    calls = run / CALLS
    if not calls.is_file() or not calls.stat().st_size:
        return None
    return {str(one["backbone"]): one for one in (find_record(run) or {}).get("servers") or ()}


async def fitted(
    config: BackboneConfig,
    cache_dir: Path,
    log_dir: Path,
    tell: Callable[[str], None] = say,
    begun: Mapping[str, Any] | None = None,
) -> FittedBackbone:
    """Find out what a backbone's server takes, if it is one of others, and choose the settings that follow.

    What is known of an address and a model is not asked again for a week.

    Args:
        config: as it was composed.
        cache_dir: of the replies, with a folder of what is known of servers.
        log_dir: for the engine's log.
        tell: gets lines on what is asked and which settings follow.
        begun: record of it in a resumed run, see :func:`begun_with`; ``None`` before a run's first call.

    Raises:
        ConfigError: the server does not accept a setting that the user gave.
    """
    if not isinstance(config.engine, ServedByOthers):
        return FittedBackbone(config)
    address, model = config.engine.served()
    if begun is not None and begun.get("server", "") not in ("", _server(config)):
        tell(
            f"backbone {config.name}: this run began at {begun['server']} and continues at {_server(config)}; replies "
            "of both are counted as one model, by its name"
        )
    store = FindingsStore(findings_folder(cache_dir))
    found = store.get(address, model) if begun is None else findings_of(begun.get("found"))
    if found is None and begun is None and (found := await _asked(config, log_dir, tell)) is not None:
        keep(store, config, found)
    if found is None:
        return FittedBackbone(config)
    changed, chosen = with_choices(config, found, f"the server of backbone {config.name}")
    for one in chosen:
        tell(f"backbone {config.name}: chosen for its server: {one}")
    _tell_assumed(changed, tell)
    return FittedBackbone(changed, found, tuple(chosen))


def as_known(config: BackboneConfig, cache_dir: Path) -> FittedBackbone:
    """Return how a backbone will think, as far as that is known of its server, which is not asked.

    Args:
        config: as it was composed.
        cache_dir: of the replies, with a folder of what is known of servers.
    """
    if not isinstance(config.engine, ServedByOthers):
        return FittedBackbone(config)
    found = FindingsStore(findings_folder(cache_dir)).get(*config.engine.served())
    return FittedBackbone(with_thoughts(config, found) if found else config, found)


def _tell_assumed(config: BackboneConfig, tell: Callable[[str], None]) -> None:
    if config.context_length is None:
        tell(
            f"backbone {config.name}: its server does not report its context length; assuming {config.window} tokens "
            "(set backbone.context_length=N to change it)"
        )


async def _asked(config: BackboneConfig, log_dir: Path, tell: Callable[[str], None]) -> Findings | None:
    """Ask a server; ``None`` where it does not answer, which may not matter to a run whose replies are all stored."""
    from memsys.llm.probing import probe

    try:
        with announced(f"probing the server of backbone {config.name}", tell):
            return await probe(config, log_dir, whole=False)
    except BackboneUnusableError:  # the run's first call reports it, and leaves a resumable run
        return None
    except BackboneError as error:
        assumed = "" if config.context_length is not None else f", assuming a context of {config.window} tokens"
        logger.warning("backbone %s: probing its server failed%s: %s", config.name, assumed, error)
        return None


def keep(store: FindingsStore, config: BackboneConfig, found: Findings) -> Path | None:
    """Store what was found; returns the file, ``None`` where the disk does not take it."""
    assert isinstance(config.engine, ServedByOthers)
    address, model = config.engine.served()
    found.refused = {name: redacted(words) for name, words in found.refused.items()}
    try:
        return store.put(address, model, found)
    except OSError as error:
        logger.warning("%s cannot be written (%s): the server will be asked again", store.folder, error.strerror)
        return None
