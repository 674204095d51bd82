"""A prompt: a text with ``$name`` placeholders, where it comes from, and its checksum."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

from memsys.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt file: ``$name`` placeholders of :class:`string.Template`. ``sha256`` goes into ``run.json``."""

    text: str
    source: str
    sha256: str

    @classmethod
    def load(cls, path: Path) -> "Prompt":
        """Read a prompt file.

        Raises:
            ConfigError: the file does not exist, or is not text.
        """
        try:
            text = path.read_text(encoding="utf-8").strip()
        except FileNotFoundError as error:
            raise ConfigError(
                f"prompt file {path} does not exist; name an existing file or leave the key null"
            ) from error
        except (OSError, ValueError) as error:
            cause = "is not UTF-8" if isinstance(error, ValueError) else f"cannot be read ({error.strerror})"
            raise ConfigError(f"prompt file {path} {cause}; name a text file or leave the key null") from error
        return cls.of(text, path.name)

    @classmethod
    def of(cls, text: str, source: str) -> "Prompt":
        """Make the prompt of a text, white space at its ends included."""
        return cls(text=text, source=source, sha256=hashlib.sha256(text.encode()).hexdigest())

    def render(self, values: Mapping[str, str]) -> str:
        """Fill the placeholders.

        Raises:
            ConfigError: a placeholder has no value.
        """
        try:
            return Template(self.text).substitute(values)
        except (KeyError, ValueError) as error:
            known = ", ".join(sorted(values))
            raise ConfigError(
                f"prompt {self.source}: placeholder {error} cannot be filled; known are {known}"
            ) from error
