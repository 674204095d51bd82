"""The choice ``prompts``: our prompts, or the authors' own prompts where their release has one for the role."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.config.memory_parts import memory_parts, with_changed_parts
from memsys.errors import ConfigError
from memsys.prompt_packs.catalogue import PARTS, Absence, Pack, PackPrompt, pack_of
from memsys.prompt_packs.local import how_to_fetch, is_present, is_reference, prompts_dir
from memsys.vocabulary import Json

SOURCES = ("ours", "authors")

_NO_PACK = Pack("", {}, (), (), otherwise="no pack is catalogued for this system")


class MissingPromptsError(ConfigError):
    """Authors' prompts that a run asks for have not been fetched."""


@dataclass(frozen=True, slots=True)
class RoleGroup:
    """A part of the configuration that has roles.

    Attributes:
        name: as run.json names its prompts: the memory's name, or ``reader``.
        settings: of the part.
        pack: of its system; one without prompts where it has none.
    """

    name: str
    settings: Mapping[str, Any]
    pack: Pack

    def entries(self) -> Iterator[tuple[str, PackPrompt | Absence]]:
        """Yield each role and what the pack has for it."""
        for role in self.settings.get("roles") or ():
            yield role, self.pack.find(role, self.settings)


def wants_authors(settings: Mapping[str, Any]) -> bool:
    """Return whether a run asks for the authors' prompts; settings from before the choice existed do not.

    Raises:
        ConfigError: the source is not one of the choices.
    """
    source = (settings.get("prompts") or {}).get("source", "ours")
    if source not in SOURCES:
        raise ConfigError(f"prompts.source={source!r} is unknown; choose one of {', '.join(SOURCES)}")
    return bool(source == "authors")


def with_authors_prompts(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a memory or a reader with its authors' prompts; those of a gate's host get theirs.

    A role whose ``prompt`` names a file keeps it.

    Raises:
        MissingPromptsError: a prompt has not been fetched.
        ConfigError: the pack is broken.
    """
    return with_changed_parts(part, _with_own_authors_prompts)


def _with_own_authors_prompts(part: Mapping[str, Any]) -> dict[str, Any]:
    changed = deepcopy(dict(part))
    group = _group("", changed)
    _check_present(group)
    found = [(role, entry) for role, entry in group.entries() if isinstance(entry, PackPrompt)]
    for role, entry in found:
        settings = changed["roles"][role]
        if not settings.get("prompt"):
            changed["roles"][role] = {**settings, **_references(group.pack, entry), **entry.settings}
    return {**changed, **group.pack.settings} if found else changed


def settings_with_prompts(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a memory or reader that the authors' prompts need, such as how replies are read."""
    group = _group("", part)
    found = {role: dict(entry.settings) for role, entry in group.entries() if isinstance(entry, PackPrompt)}
    return {**group.pack.settings, "roles": found} if found else {}


def prompt_rows(settings: Mapping[str, Any]) -> list[dict[str, Json]] | None:
    """Return what a run's record says of the source of each role's prompt; ``None`` where all prompts are ours.

    Args:
        settings: of the run, authors' prompts in place.

    Returns:
        One row per role. ``prompt_sha256`` is the checksum of the template that is used; ``cut_sha256`` that of the
        text as it is in the authors' file, ``file_sha256`` the file's.

    Raises:
        ConfigError: a pack is broken.
    """
    if not wants_authors(settings):
        return None
    memory = settings["memory"]
    groups = [_group(memory["name"], part) for _, part in memory_parts(memory)]
    groups.append(_group("reader", settings["reader"]))
    return [_row(group, role, entry) for group in groups for role, entry in group.entries()]


def _group(name: str, part: Mapping[str, Any]) -> RoleGroup:
    return RoleGroup(name, part, pack_of(str(part.get("_target_", ""))) or _NO_PACK)


def _references(pack: Pack, prompt: PackPrompt) -> dict[str, str]:
    references = {part: pack.reference(prompt, part) for part in PARTS}
    return {part: str(reference) for part, reference in references.items() if reference is not None}


def _check_present(group: RoleGroup) -> None:
    wanted = [(entry, part) for _, entry in group.entries() if isinstance(entry, PackPrompt) for part in PARTS]
    references = [group.pack.reference(entry, part) for entry, part in wanted]
    missing = [reference for reference in references if reference is not None and not is_present(reference)]
    if missing:
        raise MissingPromptsError(
            f"prompts=authors: {len(missing)} texts of {group.pack.name} are missing under {prompts_dir()}, or are not "
            f"those of the catalogue: {', '.join(one.name for one in missing)}; {how_to_fetch()}, or set prompts=ours"
        )


def _row(group: RoleGroup, role: str, entry: PackPrompt | Absence) -> dict[str, Json]:
    name, used = f"{group.name}.{role}", group.settings["roles"][role].get("prompt")
    if isinstance(entry, Absence):
        return {"role": name, "source": "ours", "why": entry.why}
    if not is_reference(used):
        return {"role": name, "source": "file", "why": f"its prompt is set to {Path(str(used)).name}"}
    files = {part.source: group.pack.sources[part.source] for part in entry.cuts()}
    return {
        "role": name,
        "source": "authors",
        "files": [str(file) for file in files.values()],
        "file_sha256": [file.sha256 for file in files.values()],
        "cut_sha256": entry.sha256,
        "prompt_sha256": entry.prompt_sha256,
        "system_sha256": entry.system_sha256,
        "note": entry.note,
    }
