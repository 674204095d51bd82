"""Fetched prompts on this machine: written by ``make prompts``, never committed, checked whenever they are read."""

import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from memsys.assets.hints import in_checkout
from memsys.assets.paths import models_dir
from memsys.errors import ConfigError

#: Begins a role's ``prompt`` or ``system`` that names a fetched prompt: ``authors:clag/router@1f2e3d4c5b6a``.
SCHEME = "authors:"
#: Hex digits of the checksum in a reference.
DIGITS = 12


@dataclass(frozen=True, slots=True)
class PackReference:
    """Names a fetched text: pack, file without suffix, and the first digits of its sha256."""

    pack: str
    name: str
    digest: str

    def __str__(self) -> str:
        return f"{SCHEME}{self.pack}/{self.name}@{self.digest}"


def prompts_dir() -> Path:
    """Return the folder of the fetched prompts: ``$MEMSYS_PROMPTS``, else ``prompts`` next to the models."""
    override = os.environ.get("MEMSYS_PROMPTS")
    return Path(override).expanduser().resolve() if override else models_dir() / "prompts"


def how_to_fetch() -> str:
    """Say what fetches the authors' prompts, which the source cuts out of their releases."""
    return in_checkout(
        "run `make prompts`, which fetches the authors' prompts",
        f"lay the authors' prompts into {prompts_dir()}, as scripts/fetch_prompts.py of memsys's source writes them",
    )


def is_reference(setting: str | None) -> bool:
    """Return whether a setting names a fetched text rather than a file or the text itself."""
    return setting is not None and setting.startswith(SCHEME)


def parse_reference(setting: str) -> PackReference:
    """Read a reference.

    Raises:
        ConfigError: it has another form.
    """
    place, _, digest = setting.removeprefix(SCHEME).partition("@")
    pack, _, name = place.partition("/")
    if not (pack and name and len(digest) == DIGITS):
        raise ConfigError(f"{setting!r} is not a fetched prompt; it has the form {SCHEME}PACK/NAME@{'0' * DIGITS}")
    return PackReference(pack, name, digest)


def text_path(reference: PackReference) -> Path:
    """Return the path of a fetched text."""
    return prompts_dir() / reference.pack / f"{reference.name}.txt"


def write_text(pack: str, name: str, text: str) -> PackReference:
    """Write a fetched text; returns its reference."""
    reference = PackReference(pack, name, sha256(text.encode()).hexdigest()[:DIGITS])
    path = text_path(reference)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return reference


def is_present(reference: PackReference) -> bool:
    """Return whether the text is there and has the checksum."""
    try:
        content = text_path(reference).read_bytes()
    except OSError:
        return False
    return sha256(content).hexdigest().startswith(reference.digest)


def read_text(setting: str) -> str:
    """Return a fetched text exactly, white space at its ends included.

    Raises:
        ConfigError: it is missing or has another checksum.
    """
    reference = parse_reference(setting)
    if not is_present(reference):
        raise ConfigError(
            f"{text_path(reference)} is missing or not the text of the catalogue; {how_to_fetch()}, or set prompts=ours"
        )
    return text_path(reference).read_bytes().decode()
