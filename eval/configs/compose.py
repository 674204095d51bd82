"""Hydra's loader of ``conf/`` outside of ``hydra.main``: what the command line's checks and sweeps compose with."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.configs.presets import CONF

if TYPE_CHECKING:
    from omegaconf import DictConfig

#: Version of Hydra whose defaults are used.
VERSION_BASE = "1.3"

# Hydra looks for ``hydra_plugins`` on the module search path, on which a script in another folder does not have it.
if str(CONF.parent) not in sys.path:
    sys.path.append(str(CONF.parent))


def config_loader(folder: Path | None = None) -> Any:
    """Make a loader, which needs and changes no state of Hydra's but its list of plug-ins and resolvers.

    Args:
        folder: a further folder of configuration, as Hydra's ``--config-dir`` names one.

    Returns:
        ``hydra._internal.config_loader_impl.ConfigLoaderImpl``.
    """
    from hydra._internal.config_loader_impl import ConfigLoaderImpl
    from hydra._internal.utils import create_config_search_path
    from hydra.core.utils import setup_globals

    setup_globals()
    path = create_config_search_path(str(CONF))
    if folder is not None:
        path.append("command-line", f"file://{folder.resolve()}")
    return ConfigLoaderImpl(config_search_path=path)


def compose_run(overrides: Sequence[str]) -> "DictConfig | None":
    """Compose the configuration of one run, Hydra's own part included.

    ``hydra.main`` composes twice: first only to see whether it is a sweep.

    Args:
        overrides: as on the command line.

    Returns:
        ``None`` where ``hydra.main`` is needed: for a sweep, for settings of Hydra's own, and for the message of what
        cannot be composed.
    """
    from hydra import version
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    if any(override.lstrip("+~").startswith(("hydra.", "hydra/")) for override in overrides):
        return None
    version.setbase(VERSION_BASE)
    try:
        config = compose(config_loader(), overrides)
    except (HydraException, OmegaConfBaseException):
        return None
    return None if str(config.hydra.mode).rpartition(".")[2] == "MULTIRUN" else config


def without_hydra(config: "DictConfig") -> "DictConfig":
    """Take Hydra's own part out of a composed configuration, which becomes as a run sees it."""
    from omegaconf import OmegaConf, open_dict

    OmegaConf.set_readonly(config, False)
    with open_dict(config):
        del config["hydra"]
    return config


def compose(loader: Any, overrides: Sequence[str], *, sweep: bool = False, name: str = "config") -> "DictConfig":
    """Compose one configuration, Hydra's own part included.

    Args:
        loader: of :func:`config_loader`.
        overrides: as on the command line.
        sweep: compose what stands above the cells of a sweep; overrides with several values are left out.
        name: file of ``conf/`` to start from.

    Raises:
        HydraException: an override does not fit.
    """
    from hydra.types import RunMode

    mode = RunMode.MULTIRUN if sweep else RunMode.RUN
    config: DictConfig = loader.load_configuration(name, list(overrides), mode, from_shell=False)
    return config
