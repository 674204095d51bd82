"""Roles: which a preset describes, and bounds of their schemas."""

from pathlib import Path
from typing import Any

import pytest

from eval.config.compose import choice_settings
from eval.config.presets import MEMORY, preset_names
from memsys.errors import ConfigError
from memsys.llm.roles import RoleSettings, bounded, check_role_names, roles_by_schema

SCHEMA = {
    "type": "object",
    "properties": {
        "facts": {"type": "array", "items": {"type": "string"}},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "few": {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
        "name": {"type": ["string", "null"]},
    },
}


def test_without_bounds_a_schema_stays() -> None:
    assert bounded(SCHEMA, RoleSettings(0.0, 10)) == SCHEMA


def test_lists_and_free_strings_are_bounded_and_own_bounds_stay() -> None:
    properties = bounded(SCHEMA, RoleSettings(0.0, 10, min_items=1, max_items=4, max_chars=9))["properties"]
    assert properties == {
        "facts": {"type": "array", "items": {"type": "string", "maxLength": 9}, "minItems": 1, "maxItems": 4},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "few": {"type": "array", "items": {"type": "integer"}, "maxItems": 2, "minItems": 1},
        "name": {"type": ["string", "null"], "maxLength": 9},
    }
    # The order of a schema is part of a request, and so of the cache's key.
    assert list(properties["facts"]) == ["type", "items", "minItems", "maxItems"]


@pytest.mark.parametrize(
    ("given", "message"),
    [({}, "none were given"), ({"a": {}}, "a were given"), ({"a": {}, "b": {}, "c": {}}, "a, b, c were given")],
)
def test_a_preset_describes_exactly_the_roles_that_are_asked(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=rf"memory\.roles: {message}; exactly these are needed: a, b"):
        roles_by_schema(given, {"a": None, "b": None}, Path())
    check_role_names({"b": {}, "a": {}}, ("a", "b"))


@pytest.mark.parametrize("name", preset_names(MEMORY))
def test_a_retry_that_a_preset_names_has_an_effect(name: str) -> None:
    """At temperature 0 without a correction the same prompt would only have the same reply."""
    roles = choice_settings("memory", name).get("roles") or {}
    without_effect = [
        role
        for role, settings in roles.items()
        if settings.get("malformed_retries") and not settings["temperature"] and not settings.get("correction")
    ]
    assert not without_effect
