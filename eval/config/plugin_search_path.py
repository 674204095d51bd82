"""The folders of configuration that plug-ins bring; see :mod:`eval.commands.plugins`."""

from hydra.core.config_search_path import ConfigSearchPath
from hydra.plugins.search_path_plugin import SearchPathPlugin


class MemsysSearchPath(SearchPathPlugin):
    """Adds them behind memsys's own, so that no plug-in replaces a choice of the same name."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Add the folders."""
        from eval.commands.plugins import plugin_folders

        for folder in plugin_folders():
            search_path.append("memsys-plugin", f"file://{folder.resolve()}")
