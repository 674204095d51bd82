"""Compose configurations of ``conf/`` with Hydra outside of ``hydra.main``; the one module that uses its internals."""

import os
import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy, deepcopy
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.commands.plugins import VARIABLE
from eval.config.presets import CONF, unknown_preset
from memsys.errors import ConfigError

if TYPE_CHECKING:
    from omegaconf import DictConfig

#: Version of Hydra whose defaults are used.
VERSION_BASE = "1.3"
#: Hydra's name for the source of what ``--config-dir`` names.
OWN_PROVIDER = "command-line"


def register_search_path() -> None:
    """Let Hydra find the choices of plug-ins, whose packages are not below ``hydra_plugins``."""
    from hydra.core.plugins import Plugins

    from eval.config.plugin_search_path import MemsysSearchPath

    Plugins.instance().register(MemsysSearchPath)


def config_loader(folder: Path | None = None, conf: Path = CONF) -> Any:
    """Make a loader, which needs and changes no state of Hydra's but its list of plug-ins and resolvers.

    Args:
        folder: a further folder of configuration, as Hydra's ``--config-dir`` names one.
        conf: folder of the configuration.

    Returns:
        ``hydra._internal.config_loader_impl.ConfigLoaderImpl``.
    """
    from hydra._internal.config_loader_impl import ConfigLoaderImpl
    from hydra._internal.utils import create_config_search_path
    from hydra.core.config_search_path import SearchPathQuery
    from hydra.core.utils import setup_globals

    setup_globals()
    register_search_path()
    path = create_config_search_path(str(conf))
    if folder is not None:
        path.prepend(OWN_PROVIDER, f"file://{folder.resolve()}", anchor=SearchPathQuery(provider="schema"))
    loader = ConfigLoaderImpl(config_search_path=path)
    loader.repository = _read_once(loader.repository)
    return loader


def _read_once(repository: Any) -> Any:
    """Return the files behind a loader, each of which all its compositions read once: a sweep composes every cell.

    Hydra merges into what it reads, so each composition gets a copy, unpickled, which takes a fifth of a deep copy's
    time; one that moves where files are looked for reads them again.
    """
    from hydra._internal.config_repository import CachingConfigRepository

    class ReadOnce(CachingConfigRepository):
        def __init__(self, delegate: Any) -> None:
            super().__init__(delegate)
            self.files: dict[str, bytes] = {}

        def __deepcopy__(self, memo: dict[int, Any]) -> "ReadOnce":
            return copy(self)

        def load_config(self, config_path: str) -> Any:
            if config_path not in self.files:
                self.files[config_path] = pickle.dumps(self.delegate.load_config(config_path))
            return pickle.loads(self.files[config_path])

        def initialize_sources(self, config_search_path: Any) -> None:
            self.delegate, self.files = deepcopy(self.delegate), {}
            self.delegate.initialize_sources(config_search_path)

    return ReadOnce(repository)


#: Characters of the longest name of a choice: longer ones are no names of files.
LONGEST_NAME = 200


def choice_settings(group: str, name: str, conf: Path = CONF) -> dict[str, Any]:
    """Compose the settings of one choice of a group; interpolations are not resolved.

    Raises:
        ConfigError: there is no such choice, or a file of it is no YAML.
    """
    found = find_settings(group, name, conf)
    if found is None:
        raise unknown_preset(name, conf / group, group)
    return found


def resolved_choice(group: str, name: str) -> dict[str, Any]:
    """Compose the settings of one choice of a group and resolve its interpolations, which may not leave it.

    Raises:
        ConfigError: there is no such choice, or a file of it is no YAML.
    """
    from omegaconf import OmegaConf

    container: Any = OmegaConf.to_container(OmegaConf.create({group: choice_settings(group, name)}), resolve=True)
    settings: dict[str, Any] = container[group]
    return settings


def find_settings(group: str, name: str, conf: Path = CONF) -> dict[str, Any] | None:
    """Compose the settings of one choice of a group as :func:`choice_settings`; ``None`` if there is no such choice.

    Choices of plug-ins are found as well.
    """
    if len(name) > LONGEST_NAME:
        return None
    return deepcopy(_composed_choice(group, name, conf, os.environ.get(VARIABLE, "")))


@lru_cache(maxsize=1024)
def _composed_choice(group: str, name: str, conf: Path, plugins: str) -> dict[str, Any] | None:
    from hydra._internal.defaults_list import create_defaults_list
    from omegaconf import OmegaConf

    loader, path = _choice_loader(conf, plugins), f"{group}/{name}"
    files = loader.repository
    if not files.config_exists(path):
        return None
    with _readable_files(loader):
        defaults = create_defaults_list(files, path, [], prepend_hydra=False, skip_missing=False).defaults
        composed: Any = OmegaConf.to_container(loader._compose_config_from_defaults_list(defaults, files))
    settings: dict[str, Any] = composed[group]
    return settings


@lru_cache(maxsize=16)
def _choice_loader(conf: Path, _plugins: str) -> Any:
    """Return the loader of a folder's choices."""
    return config_loader(conf=conf)


def hydra_options() -> Mapping[str, Any]:
    """Return the options of Hydra's command line: each spelling and its ``argparse.Action``."""
    from hydra._internal.utils import get_args_parser

    return dict(get_args_parser()._option_string_actions)


def cells_of(parsed: Sequence[Any]) -> list[list[str]]:
    """Return the overrides of each cell of a sweep over parsed overrides, as Hydra's own sweeper makes them."""
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper

    (cells,) = BasicSweeper.split_arguments(list(parsed), None)
    return [list(cell) for cell in cells]


def locate(target: str) -> Any:
    """Import what ``_target_`` names; unlike ``hydra.utils.get_object``, logs nothing.

    Raises:
        ImportError: it cannot be imported.
        ValueError: it is not a dotted name.
    """
    from hydra._internal.utils import _locate

    return _locate(target)


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
    return None if is_sweep(config) else config


def is_sweep(config: "DictConfig") -> bool:
    """Return whether the choices themselves ask for a sweep, as those of ``conf/sweep`` do."""
    return str(config.hydra.mode).rpartition(".")[2] == "MULTIRUN"


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
        sweep: compose what is above the cells of a sweep; overrides with several values are left out.
        name: file of ``conf/`` to start from.

    Raises:
        HydraException: an override does not fit.
        ConfigError: a file cannot be read.
    """
    from hydra.types import RunMode

    mode = RunMode.MULTIRUN if sweep else RunMode.RUN
    with _readable_files(loader):
        config: DictConfig = loader.load_configuration(name, list(overrides), mode, from_shell=False)
    return config


def own_folder() -> Path | None:
    """Return the folder that ``--config-dir`` names for the Hydra that runs; ``None`` for none."""
    from hydra.core.global_hydra import GlobalHydra

    hydra = GlobalHydra.instance()
    path = hydra.config_loader().get_search_path().get_path() if hydra.is_initialized() else ()
    return next((Path(one.path.removeprefix("file://")) for one in path if one.provider == OWN_PROVIDER), None)


def own_settings(folder: Path, part: str, overrides: Sequence[str]) -> frozenset[str]:
    """Return the names of a part's settings that the files of a further folder of configuration give a run.

    Args:
        folder: of that configuration.
        part: of a run, e.g. ``backbone``.
        overrides: of the run; they choose the files.
    """
    from hydra.types import RunMode

    loader = config_loader(folder)
    files = loader.repository
    chosen = loader.compute_defaults_list("config", list(overrides), RunMode.RUN).defaults
    own = [each for each in chosen if files.load_config(each.config_path).provider == OWN_PROVIDER]
    return frozenset(map(str, loader._compose_config_from_defaults_list(own, files).get(part) or ()))


@contextmanager
def _readable_files(loader: Any) -> Iterator[None]:
    """Turn what a file of configuration that is not YAML or not UTF-8 raises into a message that names the file.

    Raises:
        ConfigError: names file, line and what is wrong.
    """
    from yaml import YAMLError

    try:
        yield
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{mark.name}, line {mark.line + 1}" if mark else "a file of configuration"
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise ConfigError(f"{place}: is not YAML ({problem}); correct it") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{_file_with(error.object, loader)} is not UTF-8; save it as UTF-8") from error


def _file_with(part: bytes, loader: Any) -> str:
    """Name the file that a part belongs to: an error of decoding knows only the part that was being read."""
    folders = [Path(source.path) for source in loader.repository.get_sources()]
    for path in (path for folder in folders if folder.is_absolute() for path in sorted(folder.rglob("*.yaml"))):
        content = path.read_bytes()
        if part in content:
            begins = content[:60].decode("latin-1").partition("\n")[0]
            return f"{path}: the file that begins {begins!r}"
    return "a file of configuration"
