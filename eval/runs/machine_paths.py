"""Paths and addresses of a machine: they are in no table and in nothing that is committed."""

import re
from collections.abc import Mapping
from typing import Any

PLACE = "<place>"
_PLACE = re.compile(r"^(/|~|[A-Za-z]:\\|\\\\|[a-z][a-z0-9+.-]*://)")


def without_places(value: Any) -> Any:
    """Replace paths and URLs by ``<place>``, throughout a tree."""
    if isinstance(value, Mapping):
        return {key: without_places(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_places(item) for item in value]
    return PLACE if isinstance(value, str) and _PLACE.match(value) else value
