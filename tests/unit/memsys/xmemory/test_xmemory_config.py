"""xMemory's presets and settings."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import pytest

from memsys.errors import ConfigError
from memsys.xmemory.config import XMemoryConfig
from memsys.xmemory.roles import SCHEMAS, make_roles
from memsys.xmemory.rules import GROUPS
from tests.support.composing import PRESETS, composed
from tests.support.xmemory import preset

OURS = [name for name in PRESETS if name.startswith("xmemory")]

#: What each ablation changes against ``xmemory``.
ABLATIONS: dict[str, dict[str, dict[str, Any]]] = {
    "xmemory_memory_only": {
        "episode": {"vector": "title_content"},
        "retrieval": {"representatives": False, "facts": 10, "linked_episodes": False},
        "gate": {"mode": "off"},
        "context": {"raw_first": 10},
    },
    "xmemory_repsel": {"gate": {"mode": "off"}, "context": {"raw_first": 10}},
    "xmemory_uncsion": {"retrieval": {"representatives": False}},
    "xmemory_no_split": {"theme": {"split": False}},
    "xmemory_no_merge": {"theme": {"merge": False}},
    "xmemory_no_merge_split": {"theme": {"split": False, "merge": False}},
    **{f"xmemory_cap_{cap:02}": {"theme": {"cap": cap}} for cap in (8, 10, 14)},
}


@pytest.mark.parametrize("name", OURS)
def test_every_group_spells_out_every_setting(name: str) -> None:
    settings = composed(name)
    assert set(settings) - {"_target_"} == {field.name for field in fields(XMemoryConfig)}
    for group, kind in GROUPS.items():
        assert set(settings[group]) == {field.name for field in fields(kind)}


@pytest.mark.parametrize("name", sorted(ABLATIONS))
def test_an_ablation_changes_what_its_table_says(name: str) -> None:
    assert preset(name) == replace(preset("xmemory", **ABLATIONS[name]), name=name)


def test_the_values_that_paper_and_code_share() -> None:
    for name in ("xmemory", "xmemory_code"):
        config = preset(name)
        theme, retrieval, gate = config.theme_rules, config.retrieval_rules, config.gate_rules
        assert (theme.cap, theme.attach, theme.edge, theme.whole_below, theme.min_intra) == (12, 0.62, 0.66, 8, 0.72)
        assert (theme.tiny_min, theme.tiny_size, theme.eps, theme.sigma_floor) == (0.50, 1, 1e-8, 0.0)
        assert (retrieval.pool, retrieval.alpha, retrieval.coverage) == (40, 0.7, 1.0)
        assert (retrieval.themes, retrieval.facts, retrieval.vector_episodes) == (5, 20, 10)
        assert (retrieval.episodes, retrieval.support, gate.probes) == (10, 0.5, 10)
        assert [list(rule) for rule in gate.early] == [[3, 1], [10, 2]]
        assert (config.graph_rules.facts, config.graph_rules.themes) == (10, 10)
        temperatures = {role: settings["temperature"] for role, settings in config.roles.items()}
        assert temperatures == {"boundary": 0.1, "episode": 0.3, "extract": 0.2, "predict": 0.3, "calibrate": 0.2,
                                "theme": 0.0, "probe": 0.0}  # fmt: skip


def test_where_the_code_differs_from_the_paper() -> None:
    paper, code = preset("xmemory"), preset("xmemory_code")
    assert (paper.semantic_rules.mode, code.semantic_rules.mode) == ("direct", "predict_calibrate")
    assert (paper.theme_rules.scope, code.theme_rules.scope) == ("global", "local")
    assert (paper.theme_rules.schedule, code.theme_rules.schedule) == ("arrival", "end")
    assert (paper.theme_rules.online_split, code.theme_rules.online_split) == ("scored", "components")
    assert (paper.theme_rules.lenient, code.theme_rules.lenient) == (None, 0.52)
    assert (paper.theme_rules.naming, code.theme_rules.naming) == ("once", "every_change")
    assert (paper.theme_rules.summaries, code.theme_rules.summaries) == ("one_line", "as_written")
    assert (paper.gate_rules.silent, code.gate_rules.silent) == (None, 5.0)
    assert (paper.theme_rules.pair_merges, code.theme_rules.pair_merges, code.theme_rules.pair_min) == (0, 2, 0.78)
    assert (paper.gate_rules.mode, code.gate_rules.mode) == ("strict", "official")
    gate = code.gate_rules
    assert (gate.tau_stop, gate.tau_admit, gate.tau_expand) == (-0.40, -0.45, 0.25)
    assert (paper.retrieval_rules.normaliser, code.retrieval_rules.normaliser) == ("max_gain", "total")
    assert (paper.graph_rules.rebuild, code.graph_rules.rebuild) == (True, False)
    assert (code.boundary_rules.show_times, code.boundary_rules.max_messages) == (False, None)


def test_the_small_preset_bounds_lengths_and_leaves_the_method() -> None:
    small, paper = preset("xmemory_small"), preset("xmemory")
    for group in set(GROUPS) - {"boundary", "context", "context_texts"}:
        assert getattr(small, group) == getattr(paper, group)
    assert replace(small.boundary_rules, max_messages=25, session_cut=False) == paper.boundary_rules
    assert replace(small.context_rules, max_tokens=None) == paper.context_rules
    assert {**small.context_texts, "dated_entry": "- [{time}] {text}"} == paper.context_texts
    for role, settings in small.roles.items():
        assert settings["temperature"] == paper.roles[role]["temperature"]
        assert settings["max_tokens"] <= paper.roles[role]["max_tokens"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"theme": {"cap": 1}}, r"memory\.theme\.cap"),
        ({"theme": {"lenient": 0.7}}, r"lenient=0\.7 must not exceed"),
        ({"theme": {"naming": "every_change"}}, r"naming=every_change needs memory\.theme\.schedule=end"),
        ({"theme": {"attach": 1.2}}, r"memory\.theme\.attach"),
        ({"theme": {"eps": 0}}, r"memory\.theme\.eps"),
        ({"theme": {"scope": "all"}}, r"global, local"),
        ({"retrieval": {"pool": 40.5}}, r"memory\.retrieval\.pool=40\.5 must be a whole number"),
        ({"theme": {"split": "yes"}}, r"true or false"),
        ({"theme": {"speed": 3}}, r"unknown are speed"),
        ({"boundary": {"max_messages": 0}}, r"memory\.boundary\.max_messages"),
        ({"semantic": {"mode": "magic"}}, r"direct, predict_calibrate"),
        ({"semantic": {"min_cos": 2}}, r"memory\.semantic\.min_cos"),
        ({"retrieval": {"alpha": 1.5}}, r"memory\.retrieval\.alpha"),
        ({"retrieval": {"normaliser": "none"}}, r"total, max_gain"),
        ({"gate": {"tau_admit": -1}}, r"strict"),
        ({"context": {"max_tokens": 0}}, r"memory\.context\.max_tokens"),
        ({"unit_turns": 0}, r"memory\.unit_turns"),
        ({"uses_gold": True}, r"never sees gold"),
        ({"roles": {}}, r"exactly these are needed"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(changes: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        preset("xmemory", **changes)


def test_every_role_has_a_prompt_that_holds_no_stray_placeholder() -> None:
    config = preset()
    roles = make_roles(config.roles, "entropy", "direct")
    values = {
        "boundary": ("history", "message"), "episode": ("messages", "reason"), "extract": ("title", "content", "date"),
        "predict": ("title", "facts"), "calibrate": ("messages", "prediction"), "theme": ("facts",),
        "probe": ("themes", "facts", "episodes", "question"),
    }  # fmt: skip
    assert set(values) == set(SCHEMAS)
    for name, keys in values.items():
        text = getattr(roles, name).prompt.render({key: f"<{key}>" for key in keys})
        assert all(f"<{key}>" in text for key in keys)
    assert roles.probe.top_logprobs == 20 and make_roles(config.roles, "nll", "direct").probe.top_logprobs == 1


def test_settings_are_read_once() -> None:
    config = preset()
    assert config.semantic_rules is config.semantic_rules
    assert replace(config, semantic={**config.semantic, "max_known": 3}).semantic_rules.max_known == 3


def test_facts_that_are_asked_for_directly_keep_their_dates() -> None:
    """Appendix C has dates in its examples; the first facts of a prediction are Nemori's, which have none."""
    roles = preset().roles
    direct, predicted = (make_roles(roles, "nll", mode).extract.prompt.text for mode in ("direct", "predict_calibrate"))
    assert "without dates" in predicted and "without dates" not in direct and "with the date" in direct
