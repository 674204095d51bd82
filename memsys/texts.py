"""Short texts that a model sees in prompts, contexts and memories: a ``texts.yaml`` next to the code of each system.

Those that a preset may vary are in ``conf/memory`` instead (``context_texts``, ``note_labels`` and the like).
"""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from memsys.errors import ConfigError
from memsys.yaml_files import read_yaml

#: Next to the modules of a system that asks for its texts.
FILE = "texts.yaml"


class ShownTexts:
    """The texts of a file, by name, with places in braces; the file is read when the first of them is wanted.

    Args:
        path: YAML file: name -> text.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def by_name(self) -> Mapping[str, str]:
        """All texts, their places not filled.

        Raises:
            ConfigError: the file is missing, is not YAML, or holds something else than texts by name.
        """
        found = read_yaml(self.path, "it is part of the package: restore it")
        if not isinstance(found, Mapping) or not all(isinstance(text, str) for text in found.values()):
            raise ConfigError(f"{self.path} must map names to texts; put each text in quotation marks")
        return found

    def __call__(self, name: str, /, **places: object) -> str:
        """Return a text with its places filled.

        Raises:
            ConfigError: the file lacks the text, or the text has another place.
        """
        try:
            return self.by_name[name].format(**places)
        except (KeyError, IndexError, ValueError) as error:
            known = ", ".join(f"{{{place}}}" for place in places) or "none"
            raise ConfigError(f"{self.path}: the text {name} must be there, and its places be {known}") from error
