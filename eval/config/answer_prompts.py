"""Prompts of a reader: their texts, and whether a recorded run was asked with them."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from eval.config.prompt_choice import wants_authors
from memsys.errors import ConfigError
from memsys.llm.prompt import Prompt

PROMPTS = Path(__file__).parents[1] / "running" / "prompts"

AUTHORS = "authors' prompts"
OTHER = "other answer prompts"
#: What a run with authors' prompts is called too where all of its memory's prompts were ours.
OWN_ROLES = "the memory's prompts are ours"
_READER = "reader."


def prompt_folder(prompt_set: str) -> Path:
    """Find the folder of a reader's prompts, see :class:`eval.running.reader.ReaderConfig`.

    Raises:
        ConfigError: the package or the folder is not there.
    """
    package, colon, inside = prompt_set.partition(":")
    found = find_spec(package) if colon and package.isidentifier() else None
    places = [PROMPTS / prompt_set] if not colon else [Path(place) / inside for place in _places(found)]
    for folder in places:
        if folder.is_dir():
            return folder
    raise ConfigError(
        f"reader.prompt_set={prompt_set!r}: there is no such folder; name one of {PROMPTS}, or PACKAGE:FOLDER"
    )


def _places(found: ModuleSpec | None) -> Sequence[str]:
    return (found.submodule_search_locations or ()) if found is not None else ()


def prompts_of(record: Mapping[str, Any]) -> str:
    """Return the prompt set of a run, where it is not the one of this version written for this project.

    Answers to other prompts are not comparable, so such runs are rows and groups of their own.

    Args:
        record: ``run.json``.

    Returns:
        ``AUTHORS``; ``OTHER`` where the text of some answer prompt is not the one that its reader has now, because it
        was reworded since or set for the run; otherwise an empty text, also where the reader's texts are not here.
    """
    if wants_authors(record["config"]):
        return AUTHORS
    return OTHER if reworded_roles(record) else ""


def reworded_roles(record: Mapping[str, Any]) -> list[str]:
    """Return the reader's roles whose present prompt differs from the run's; none where the texts are gone.

    Args:
        record: ``run.json`` of a run that was not asked with authors' prompts.
    """
    shipped = _shipped(str((record["config"].get("reader") or {}).get("prompt_set", "")))
    return [role for role, digest in answer_prompts(record).items() if shipped and shipped.get(role) != digest]


def asks_with_ours(record: Mapping[str, Any]) -> bool:
    """Return whether a run with authors' prompts asked every role of its memory with ours, as no pack fits its preset.

    Args:
        record: ``run.json``.
    """
    return bool(sources := _memory_sources(record)) and set(sources.values()) == {"ours"}


def roles_in_ours(record: Mapping[str, Any]) -> list[str]:
    """Return the roles, sorted, that a run with authors' prompts asked with ours, as their pack has none that fits.

    Args:
        record: ``run.json``.
    """
    return sorted(role.partition(".")[2] for role, source in _memory_sources(record).items() if source == "ours")


def _memory_sources(record: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the prompt source of each role of the memory, by ``MEMORY.ROLE``; none in a run with our prompts."""
    if not wants_authors(record["config"]):
        return {}
    sources = {row["role"]: row["source"] for row in record.get("prompt_sources") or ()}
    return {role: sources.get(role) for role in record.get("prompts") or () if not role.startswith(_READER)}


def answer_prompts(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the sha256 of the answer prompt of each role of the reader that a run asked.

    Args:
        record: ``run.json``.
    """
    asked = (record.get("prompts") or {}).items()
    return {name.removeprefix(_READER): str(digest) for name, digest in asked if name.startswith(_READER)}


@cache
def _shipped(prompt_set: str) -> Mapping[str, str]:
    """Return the sha256 of the text of each role."""
    try:
        files = sorted(prompt_folder(prompt_set).glob("*.txt"))
    except ConfigError:  # a reader of a plug-in that is not installed here
        return {}
    return {file.stem: Prompt.load(file).sha256 for file in files}
