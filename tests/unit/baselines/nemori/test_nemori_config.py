"""Nemori's presets and settings."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import pytest

from baselines.nemori.config import NemoriConfig
from baselines.nemori.roles import SCHEMAS, make_roles
from baselines.nemori.rules import GROUPS
from memsys.errors import ConfigError
from tests.support import xmemory
from tests.support.composing import PRESETS, composed
from tests.support.nemori import preset

OURS = [name for name in PRESETS if name.startswith("nemori")]


@pytest.mark.parametrize("name", OURS)
def test_every_group_spells_out_every_setting(name: str) -> None:
    settings = composed(name)
    assert set(settings) - {"_target_"} == {field.name for field in fields(NemoriConfig)}
    for group, kind in GROUPS.items():
        assert set(settings[group]) == {field.name for field in fields(kind)}


@pytest.mark.parametrize("name", ["nemori", "nemori_code", "nemori_batch", "nemori_current"])
def test_the_settings_that_all_generations_share(name: str) -> None:
    config = preset(name)
    search, facts = config.search_rules, config.fact_rules
    assert (search.method, search.episodes, search.facts, search.rrf_k) == ("vector", 10, 20, 60)
    assert (facts.mode, facts.dedup_cos, config.context_rules.raw_first) == ("predict_calibrate", 1.0, 2)
    assert (config.merge_rules.candidates, config.merge_rules.min_cos, config.merge_rules.shown_chars) == (5, -1.0, 200)
    assert (config.boundary_rules.hide_last_after, config.episode_rules.vector) == (10, "title_content")


def test_where_the_generations_differ() -> None:
    first, batch, current = preset("nemori_code"), preset("nemori_batch"), preset("nemori_current")
    assert [each.segmentation for each in (first, batch, current)] == ["online", "batch", "batch"]
    assert [each.merge_rules.scope for each in (first, batch, current)] == ["never", "first", "every"]
    assert (batch.batch_rules.size, batch.batch_rules.clip_chars, batch.merge_rules.query_chars) == (20, 200, 500)
    assert (current.batch_rules.size, current.batch_rules.least, current.merge_rules.query_chars) == (80, 20, None)
    known = [(each.fact_rules.max_known, each.fact_rules.min_cos) for each in (first, batch, current)]
    assert known == [(10, 0.85), (10, 0.85), (20, -1.0)]
    assert [each.fact_rules.dated for each in (first, batch, current)] == [True, True, False]
    assert [each.context_rules.titles for each in (first, batch, current)] == [True, True, False]
    temperatures = {role: settings["temperature"] for role, settings in first.roles.items()}
    assert temperatures == {"boundary": 0.1, "segment": 0.2, "episode": 0.3, "decide_merge": 0.3, "merge": 0.7,
                            "extract": 0.2, "predict": 0.3, "calibrate": 0.2}  # fmt: skip
    asked_again = {settings["malformed_retries"] for role, settings in current.roles.items() if role != "boundary"}
    assert asked_again == {0}, "the code of 2026 asks again where the server fails, never for a malformed reply"
    later = {role for role, settings in current.roles.items() if settings["temperature"] == 0.7}
    assert later == {"episode", "decide_merge", "merge", "extract", "predict", "calibrate"}


@pytest.mark.parametrize(("ours", "theirs"), [("nemori", "xmemory"), ("nemori_code", "xmemory_code"),
                                              ("nemori_small", "xmemory_small")])  # fmt: skip
def test_boundaries_and_stories_are_the_calls_of_the_fork(ours: str, theirs: str) -> None:
    nemori, fork = preset(ours), xmemory.preset(theirs)
    assert nemori.boundary_rules == fork.boundary_rules
    assert nemori.episode_rules.slack_days == fork.episode_rules.slack_days
    shared = ["boundary", "episode", "extract", "predict"]
    if ours != "nemori_small":  # its fork never calibrates, and leaves that list unbounded from below
        shared.append("calibrate")
    assert {role: nemori.roles[role] for role in shared} == {role: fork.roles[role] for role in shared}


def test_the_small_preset_bounds_lengths_and_leaves_the_method() -> None:
    small, full = preset("nemori_small"), preset("nemori")
    for group in set(GROUPS) - {"boundary", "context", "context_texts"}:
        assert getattr(small, group) == getattr(full, group)
    assert replace(small.boundary_rules, max_messages=25, session_cut=False) == full.boundary_rules
    assert replace(small.context_rules, max_tokens=None) == full.context_rules
    assert {**small.context_texts, "dated_entry": "- [{time}] {text}"} == full.context_texts
    for role, settings in small.roles.items():
        assert settings["temperature"] == full.roles[role]["temperature"]
        assert settings["max_tokens"] < full.roles[role]["max_tokens"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"segmentation": "offline"}, r"memory\.segmentation='offline'.*online, batch"),
        ({"batch": {"size": 0}}, r"memory\.batch\.size"),
        ({"batch": {"size": 2.5}}, r"memory\.batch\.size=2\.5 must be a whole number"),
        ({"batch": {"clip_chars": 0}}, r"memory\.batch\.clip_chars"),
        ({"batch": {"session_cut": 1}}, r"memory\.batch\.session_cut=1 must be true or false"),
        ({"merge": {"scope": "always"}}, r"never, first, every"),
        ({"merge": {"min_cos": 2}}, r"memory\.merge\.min_cos"),
        ({"merge": {"query_chars": 0}}, r"memory\.merge\.query_chars"),
        ({"facts": {"mode": "predict"}}, r"none, direct, predict_calibrate"),
        ({"facts": {"max_known": 0}}, r"memory\.facts\.max_known"),
        ({"facts": {"dedup_cos": 1.5}}, r"memory\.facts\.dedup_cos"),
        ({"search": {"method": "text"}}, r"vector, bm25, hybrid"),
        ({"search": {"episodes": 0, "facts": 0}}, r"find nothing"),
        ({"search": {"speed": 1}}, r"unknown are speed"),
        ({"context": {"max_tokens": 0}}, r"memory\.context\.max_tokens"),
        ({"boundary": {"max_messages": 0}}, r"memory\.boundary\.max_messages"),
        ({"unit_turns": 0}, r"memory\.unit_turns"),
        ({"uses_gold": True}, r"never sees gold"),
        ({"roles": {}}, r"none were given; exactly these are needed"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(changes: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        preset("nemori", **changes)


def test_every_role_has_a_prompt_that_holds_no_stray_placeholder() -> None:
    roles = make_roles(preset().roles)
    values = {
        "boundary": ("history", "message"), "episode": ("messages", "reason"), "extract": ("title", "content", "date"),
        "predict": ("title", "facts"), "calibrate": ("messages", "prediction"), "segment": ("messages", "count"),
        "decide_merge": ("episode", "candidates"), "merge": ("stored", "new"),
    }  # fmt: skip
    assert set(values) == set(SCHEMAS)
    for name, keys in values.items():
        text = getattr(roles, name).prompt.render({key: f"<{key}>" for key in keys})
        assert all(f"<{key}>" in text for key in keys)
