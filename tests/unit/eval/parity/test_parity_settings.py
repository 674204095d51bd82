"""Settings of a release, read from its sources, and what a preset that has others is told."""

import json

import pytest

from eval.config.compose import choice_settings
from eval.config.presets import MEMORY, preset_names
from eval.parity.compare import Comparer
from eval.parity.config import counterparts, find_counterpart
from eval.parity.explain import explain
from eval.parity.facts import KnownTexts
from eval.parity.released_settings import ReleasedSetting, given_values, value_of
from memsys.deviations import Deviation, Match, system_of
from memsys.errors import ConfigError, DataError

CODE = '''
K1 = 0.9  # of BM25; not K1 = 7
class Memory:
    """text = 3"""
    def search(self, query, *, k: int = 5, kind="dense", deep=False):
        return query[:160]
    def add(self, k: int = 10): ...
'''
NOTEBOOK = json.dumps({"cells": [{"source": "!pip install x\n"}, {"source": ["def page(n=280):\n", "    pass\n"]}]})


def read(text: str, scope: str = "", **more: object) -> object:
    setting = ReleasedSetting(text=text, file="code", scope=scope, **more)  # type: ignore[arg-type]
    return setting.read(
        {"code": CODE, "notebook": NOTEBOOK, "settings": '{"top_k": 4, "on": true}', "run": "go --k 8 \\\n"}
    )


@pytest.mark.parametrize(
    ("text", "scope", "value"),
    [
        ("K1 = {}", "", 0.9),
        ("k: int={}", "Memory.search", 5),
        ("k: int={}", "Memory.add", 10),
        ("kind={}", "Memory.search", "dense"),
        ("deep={}", "Memory", False),
        ("query[:{}]", "Memory.search", 160),
    ],
)
def test_a_value_is_read_where_the_code_has_it(text: str, scope: str, value: object) -> None:
    assert read(text, scope) == value


def test_notebooks_json_and_shell_scripts_are_read_too() -> None:
    sources = {"notebook": NOTEBOOK, "settings": '{"top_k": 4, "on": true}', "run": "if go; then --k 8 \\\nfi"}
    assert ReleasedSetting("n={}", "notebook", "page", 1).read(sources) == 280
    assert ReleasedSetting("'top_k': {}", "settings").read(sources) == 4
    assert ReleasedSetting("--k {}", "run").read(sources) == 8


@pytest.mark.parametrize(("text", "found"), [("k: int={}", "2 values"), ("missing={}", "0 values")])
def test_a_value_that_is_missing_or_not_the_only_one_is_an_error(text: str, found: str) -> None:
    with pytest.raises(DataError, match=found):
        read(text)


def test_other_scales_and_values_of_libraries() -> None:
    assert read("K1 = {}", means={0.9: 0.45}) == 0.45
    assert ReleasedSetting(value=0.4, of="a library").read({}) == 0.4
    with pytest.raises(ConfigError, match="text with"):
        ReleasedSetting()


def test_both_sides_share_what_a_comparison_moves_and_nothing_else() -> None:
    memory = {"k": 3, "gate": {"tau": [0.1, 0.2]}}
    assert value_of(memory, "gate.tau.1") == 0.2
    assert given_values({"k": 5, "gate.tau.1": 0.5}, memory, {"k"}) == {"k": 3, "gate.tau.1": 0.5}
    with pytest.raises(ConfigError, match=r"the preset has no gate\.none"):
        value_of(memory, "gate.none")


def test_another_value_is_a_difference_until_a_deviation_says_so() -> None:
    comparer = Comparer(KnownTexts([]))
    comparer.compare_settings({"k": 3, "j": 1}, {"k": 5, "j": 1})
    found = comparer.result.differences
    assert [(one.kind, one.place, one.ours, one.theirs) for one in found] == [("setting", "k", 3, 5)]
    said = Deviation(
        "d", ("all",), "release", "a", "b", "c", None, ("setting",), (Match("setting", "content", place="k"),)
    )
    assert explain(found, [said], "p", "ours")[0].deviation is said
    assert explain(found, [], "p", "ours")[0].deviation is None


@pytest.mark.parametrize("name", counterparts())
def test_every_named_setting_is_one_of_the_systems_presets(name: str) -> None:
    counterpart = find_counterpart(name)
    settings = [choice_settings("memory", preset) for preset in preset_names(MEMORY)]
    own = [one for one in settings if system_of(str(one["_target_"]))[0] == counterpart.system]
    assert counterpart.released
    for setting in counterpart.released:
        assert any(_has(one, setting) for one in own), setting
    files = {one.file for one in counterpart.released.values() if one.file}
    assert files <= set(counterpart.files)


def _has(settings: object, name: str) -> bool:
    try:
        value_of(settings, name)  # type: ignore[arg-type]
    except ConfigError:
        return False
    return True
