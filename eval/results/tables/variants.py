"""Settings in which a run differs from the YAML it names: an overridden memory is another method, with its own row."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from eval.config.answer_prompts import AUTHORS, OWN_ROLES, asks_with_ours, prompts_of
from eval.config.preset_settings import flat, overrides
from eval.config.prompt_choice import settings_with_prompts
from eval.runs.machine_paths import PLACE
from memsys.prompt_packs.local import is_reference

#: Settings named in a row's label; the others are counted.
_SHOWN = 3


def run_variant(record: Mapping[str, Any]) -> str:
    """Return how a run's memory differs from its preset, and whose prompts it was asked with; empty for neither.

    Authors' answer prompts alone, behind a memory that asked with ours, are not what a paper did.

    Args:
        record: ``run.json``.
    """
    own_roles = OWN_ROLES if asks_with_ours(record) else ""
    return ", ".join(filter(None, (prompts_of(record), own_roles, variant_label(changed_settings(record)))))


def changed_settings(record: Mapping[str, Any], preset: str | None = None) -> dict[str, Any]:
    """Return the settings in which a run's memory differs from a preset, flat, apart from those of prompts.

    Args:
        record: ``run.json``.
        preset: name of another preset than the run's own.
    """
    memory = record["config"].get("memory") or {}
    return without_prompts(overrides(memory if preset is None else {**memory, "name": preset}), memory, record)


def without_prompts(changed: Mapping[str, Any], part: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what the authors' prompts bring, where a run was asked with them: they are what the paper did.

    Args:
        changed: settings that differ from a preset, flat.
        part: all settings of the memory or the reader.
        record: ``run.json``.
    """
    if prompts_of(record) != AUTHORS:
        return dict(changed)
    brought = flat(settings_with_prompts(part))
    return {key: value for key, value in changed.items() if not _of_prompts(key, value, brought)}


def label_of(memory: str, record: Mapping[str, Any]) -> str:
    """Return the memory with how it differs from its preset: ``clag [n_init=7]``, ``http [localhost:8000]``.

    Args:
        memory: its name.
        record: ``run.json``.
    """
    variant = run_variant(record)
    address = urlsplit(str((record["config"].get("memory") or {}).get("url") or "")).netloc.rpartition("@")[2]
    if address:  # which an exported run does not name
        variant = variant.replace(f"url={PLACE}", address)
    return f"{memory} [{variant}]" if variant else memory


def _of_prompts(key: str, value: Any, brought: Mapping[str, Any]) -> bool:
    return (isinstance(value, str) and is_reference(value)) or (key in brought and brought[key] == value)


def variant_label(changed: Mapping[str, Any]) -> str:
    """Return the short text on what was overridden; empty when nothing was."""
    shown = [f"{key}={value}" for key, value in list(changed.items())[:_SHOWN]]
    more = len(changed) - _SHOWN
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
