"""The settings that identify a run: their hash, and in which of them two runs differ."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from memsys.credentials import without_secrets
from memsys.vocabulary import Json

#: Settings that cannot change an answer or a retrieval: where files lie, how work is spread, what is done afterwards.
NOT_IDENTITY = (
    "experiment", "run_dir", "runs_dir", "cache_dir", "use_cache", "cache_shared", "serving", "budget", "unanswered",
    "progress", "score", "show_answers", "scoring", "protocol", "schedule", "chat_roles",
)  # fmt: skip
#: Differences that an error lists, and characters of each.
_LISTED, _LINE_CHARS = 6, 100


def identity_hash(identity: Mapping[str, Json]) -> str:
    """Return eight hex digits that differ when a result-changing setting differs."""
    return identity_digest(identity)[:8]


def identity_digest(identity: Mapping[str, Json]) -> str:
    """Return the full sha256 of an identity, in hex digits."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def without_name(part: Any) -> Any:
    """Copy a part's settings without the name it is shown by, and of a gate without that of its host."""
    if not isinstance(part, Mapping):
        return part
    return {key: without_name(value) if key == "host" else value for key, value in part.items() if key != "name"}


def without(node: Mapping[str, Any], dotted: Sequence[str]) -> dict[str, Any]:
    """Copy a tree without some of its keys; ``engine.port`` names a key of a child."""
    copy = {key: dict(value) if isinstance(value, Mapping) else value for key, value in node.items()}
    for name in dotted:
        parent, _, child = name.rpartition(".")
        target = copy.get(parent) if parent else copy
        if isinstance(target, dict):
            target.pop(child, None)
    return copy


def as_written(parts: Mapping[str, Json]) -> dict[str, Json]:
    """Return an identity as files store it: without secrets.

    A setting may only be named like a key, as ``stop_token``: a part of which something is left out has its hash in
    ``left_out``, so that two values of such a setting are two runs.

    Args:
        parts: settings by part; without anything to leave out, they are the identity.
    """
    plain: dict[str, Json] = json.loads(json.dumps(parts))
    written: dict[str, Json] = without_secrets(plain)
    left_out = {key: identity_hash({key: value}) for key, value in plain.items() if written[key] != value}
    return {**written, "left_out": left_out} if left_out else written


def differences(old: Any, new: Any, path: str = "") -> list[str]:
    """Name the settings in which two trees differ, as ``path: old -> new``."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        lines: list[str] = []
        for key in sorted({*old, *new}):
            lines += differences(old.get(key), new.get(key), f"{path}.{key}" if path else str(key))
        return lines
    return [] if old == new else [f"{path}: {json.dumps(old)} -> {json.dumps(new)}"]


def listed(changed: list[str]) -> str:
    """Return a line for each of the first differences, long values shortened."""
    lines = [f"  {one if len(one) <= _LINE_CHARS else f'{one[:_LINE_CHARS]} ...'}" for one in changed[:_LISTED]]
    more = len(changed) - _LISTED
    return "\n".join([*lines, f"  and {more} more"] if more > 0 else lines)
