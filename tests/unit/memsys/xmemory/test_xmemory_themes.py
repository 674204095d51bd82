"""Attach, split and merge on facts at hand-made places."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsys.embedding.contract import Vectors
from memsys.xmemory.space import part_of
from memsys.xmemory.themes import Themes
from tests.support.xmemory import theme_rules, themes_of, unit_rows


def at(*degrees: float) -> Vectors:
    return unit_rows(*[[math.cos(math.radians(angle)), math.sin(math.radians(angle))] for angle in degrees])


def groups(themes: object) -> list[list[str]]:
    return list(themes.members.values())  # type: ignore[attr-defined,no-any-return]


def facts(*numbers: int) -> list[str]:
    return [f"s{number}" for number in numbers]


def test_a_fact_joins_the_nearest_theme_above_the_threshold_or_founds_one() -> None:
    rules = theme_rules(attach=0.62, lenient=None)
    themes = themes_of(rules, at(0, 120, 50, 20))  # cos 50 = .643 > .62, cos 70 is less
    assert groups(themes) == [facts(0, 2, 3), facts(1)]
    assert [path[0][2] for path in themes.paths.values()] == ["new", "new", "attach", "attach"]


def test_between_the_two_thresholds_only_a_theme_with_room_takes_a_fact() -> None:
    near = at(0, 0, 56)  # cos 56 = .559
    assert groups(themes_of(theme_rules("xmemory_code", cap=3), near)) == [facts(0, 1, 2)]
    assert groups(themes_of(theme_rules("xmemory_code", cap=2), near)) == [facts(0, 1), facts(2)]
    assert groups(themes_of(theme_rules("xmemory", cap=3), near)) == [facts(0, 1), facts(2)]


def test_the_centroid_is_the_running_mean_of_the_members() -> None:
    rows = at(0, 30, 10, 45)
    themes = themes_of(theme_rules(attach=0.5), rows)
    mean = rows[0].astype(np.float64)
    for n, row in enumerate(rows[1:].astype(np.float64), start=2):
        mean = (mean * (n - 1) + row) / n
    found = themes.space.nearest(np.asarray(mean / np.linalg.norm(mean), dtype=np.float32))
    assert found is not None and found[1] == pytest.approx(1.0, abs=1e-6)


def test_the_thirteenth_fact_splits_a_theme_and_the_first_part_keeps_the_id() -> None:
    rows = at(*[0] * 6, *[50] * 7)  # cos 50 = .643: attached, but below the edge of .66
    themes = themes_of(theme_rules("xmemory_code", attach=0.62), rows)
    assert themes.members == {"t0": facts(0, 5, 4, 3, 2, 1), "t1": facts(6, 12, 11, 10, 9, 8, 7)}
    assert themes.counts["splits.online"] == 1
    assert themes.paths["s12"] == [["t0", 13, "attach"], ["t1", 13, "split"]]
    assert len(themes_of(theme_rules("xmemory_code", split=False), rows).members) == 1


def test_a_scored_split_takes_the_cutting_of_highest_f() -> None:
    rows = at(*[0] * 6, *[50] * 7, 180)
    rules = theme_rules("xmemory", edge=0.2)  # components see one blob and would cut runs of twelve
    themes = themes_of(rules, rows)
    assert groups(themes)[0] == facts(*range(6)) and facts(*range(6, 13)) in groups(themes)
    unscored = themes_of(theme_rules("xmemory", edge=0.2, online_split="components"), rows)
    assert facts(0, *range(12, 1, -1)) in groups(unscored) and facts(1) in groups(unscored)


@pytest.mark.parametrize("cap", [8, 10, 12, 14])
def test_no_theme_outgrows_the_cap(cap: int) -> None:
    rng = np.random.default_rng(cap)
    rows = unit_rows(*(rng.standard_normal((90, 8)) + 1.0))
    for name in ("xmemory", "xmemory_code"):
        themes = themes_of(theme_rules(name, cap=cap), rows)
        themes.revise()
        assert max(map(len, groups(themes))) <= cap
        assert sorted(name for group in groups(themes) for name in group) == sorted(facts(*range(90)))


def test_a_full_loose_theme_is_revised_at_the_end_and_even_kept_whole_gets_a_new_id() -> None:
    rules = theme_rules("xmemory_code", cap=4, whole_below=1, attach=0.3, lenient=None, min_intra=0.9)
    themes = themes_of(rules, at(0, 0, 60, 60))
    themes.split_full()
    assert sorted(themes.members) == ["t1", "t2"] and themes.counts["splits.batch"] == 1
    same = themes_of(replace(rules, whole_below=8), at(0, 30, 60, 40))
    same.split_full()
    assert list(same.members) == ["t1"] and same.counts["kept_whole"] == 1
    assert [entry[2] for entry in same.paths["s0"]] == ["new", "kept"]
    tight = themes_of(rules, at(0, 1, 2, 3))
    tight.split_full()
    assert list(tight.members) == ["t0"], "a full theme that hangs together stays"


def test_the_parts_of_a_revised_theme_stand_where_it_stood() -> None:
    rules = theme_rules("xmemory_code", cap=4, whole_below=1, attach=0.3, lenient=None, min_intra=0.9)
    themes = themes_of(rules, at(180, 0, 0, 60, 60, 270))  # t0, then a full loose theme t1, then t2
    assert list(themes.members) == ["t0", "t1", "t2"]
    themes.split_full()
    assert list(themes.members) == ["t0", "t3", "t4", "t2"]
    assert themes.space.similar("t0", -1.0, None) and list(themes.members.values())[1] == facts(1, 2)
    copy = themes_of(rules, at(180, 0, 0, 60, 60, 270))
    copy.load_state(themes.state())
    assert list(copy.members) == list(themes.members)


def test_every_naming_of_the_code_is_noted_where_the_preset_asks_for_all() -> None:
    rules = theme_rules("xmemory_code", cap=4, whole_below=1, attach=0.3, lenient=None, min_intra=0.9)
    themes = themes_of(rules, at(180, 0, 0, 60, 60, 270))
    assert themes.namings == [("t0", ("s0",)), ("t1", ("s1",)), ("t2", ("s5",))], "joining a theme asks for no name"
    themes.split_full()
    split = [("t3", ("s1", "s2")), ("t4", ("s3", "s4"))]
    assert themes.namings[3:] == [("t0", ("s0",)), *split, ("t2", ("s5",))], "each theme is named again"
    once = themes_of(replace(rules, naming="once"), at(0, 120))
    assert once.namings == []


def test_a_tiny_theme_merges_into_the_neighbour_that_gains_most() -> None:
    rules = theme_rules("xmemory_code", attach=0.9, lenient=None, pair_merges=0, tiny_min=0.5)
    themes = themes_of(rules, at(0, 0, 120, 120, 59))
    assert groups(themes) == [facts(0, 1), facts(2, 3), facts(4)]
    into_first = themes._gain("t2", "t0")
    themes.merge_tiny()
    assert into_first > 0
    assert groups(themes) == [facts(0, 1, 4), facts(2, 3)], "120 - 59 = 61 degrees lie below the least cosine"
    assert themes.paths["s4"][-1][2] == "tiny_merge"


def test_a_gain_is_the_difference_of_f_worked_out_by_hand() -> None:
    rules = theme_rules("xmemory", attach=0.9)
    themes = themes_of(rules, at(0, 0, 60))
    merged = part_of(at(0, 0, 60)).cohesion
    before = 9 / (2 * 5) + 1.0  # sizes 2, 1; both cohesions 1, both similarities equal
    assert themes.objective() == pytest.approx(before)
    assert themes._gain("t0", "t1") == pytest.approx(1.0 + merged - before, abs=1e-6)


def test_merges_that_lose_are_not_made_and_the_switch_forbids_all() -> None:
    rows = at(0, 0, 59)
    merging = themes_of(theme_rules("xmemory", attach=0.9), rows)
    assert merging._gain("t1", "t0") < 0.06
    off = themes_of(theme_rules("xmemory", attach=0.9, merge=False), rows)
    off.revise()
    assert groups(off) == [facts(0, 1), facts(2)]
    far = themes_of(theme_rules("xmemory", attach=0.9, tiny_min=0.9), rows)
    far.revise()
    assert groups(far) == [facts(0, 1), facts(2)]


def test_at_most_so_many_pairs_are_merged_and_the_older_keeps_its_id() -> None:
    rows = at(0, 0, 25, 25, 50, 50, 180)
    rules = theme_rules("xmemory_code", attach=0.95, lenient=None, tiny_size=0)
    themes = themes_of(rules, rows)
    assert len(themes.members) == 4
    themes.merge_pairs()
    assert themes.counts["merges.pair"] <= 2
    assert set(themes.members) <= {"t0", "t1", "t2", "t3"} and "t0" in themes.members
    none = themes_of(theme_rules("xmemory_code", attach=0.95, lenient=None, tiny_size=0, pair_merges=0), rows)
    none.revise()
    assert len(none.members) == 4


@pytest.mark.parametrize("seed", [22, 23, 40])  # where a merge elsewhere makes another one worth while
def test_at_the_end_no_tiny_theme_is_left_that_would_gain_by_merging(seed: int) -> None:
    rows = unit_rows(*(np.random.default_rng(seed).standard_normal((60, 5)) + 0.5))
    themes = themes_of(theme_rules("xmemory_code"), rows)
    themes.revise()
    assert themes.counts["merges.tiny"] > 0
    assert not [name for name in themes.members if themes._is_tiny(name) and themes._best_target(name)]


@pytest.mark.parametrize("name", ["xmemory", "xmemory_code"])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 999), count=st.integers(1, 45))
def test_themes_that_remember_gains_are_those_that_compute_each(name: str, seed: int, count: int) -> None:
    rows = unit_rows(*(np.random.default_rng(seed).standard_normal((count, 5)) + 0.7))
    rules = theme_rules(name, cap=5, whole_below=2)

    def grown() -> Themes:
        themes = themes_of(rules, rows[: count // 2])
        for number in range(count // 2, count):
            themes._facts.add([f"s{number}"], rows[number : number + 1])
            themes.attach(f"s{number}")
            themes.revise()
        return themes

    remembering = grown()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Themes, "_gain", Themes._computed_gain)
        plain = grown()
    assert remembering.state() == plain.state()
    assert remembering.objective() == plain.objective()


def test_the_gain_of_two_single_facts_is_the_same_either_way_and_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    themes = themes_of(theme_rules(attach=0.99), at(0, 40, 95, 100, 180))
    assert themes._computed_gain("t0", "t1") == themes._computed_gain("t1", "t0")
    gain = themes._gain("t0", "t1")
    with monkeypatch.context() as patch:
        patch.setattr(Themes, "_computed_gain", lambda *_: pytest.fail("computed again"))
        assert themes._gain("t1", "t0") == gain
    themes._merge("t2", "t3", "tiny_merge")
    assert themes._gain("t1", "t0") == themes._computed_gain("t0", "t1") != gain


@pytest.mark.parametrize("name", ["xmemory", "xmemory_code"])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 999), count=st.integers(1, 45), cut=st.integers(0, 45))
def test_facts_are_never_lost_and_a_snapshot_goes_on_alike(name: str, seed: int, count: int, cut: int) -> None:
    rng = np.random.default_rng(seed)
    rows = unit_rows(*(rng.standard_normal((count, 5)) + 0.7))
    rules = theme_rules(name, cap=5, whole_below=2)
    straight = themes_of(rules, rows)
    straight.revise()
    first = themes_of(rules, rows[: min(cut, count)])
    index = first._facts
    resumed = type(first)(rules, index, 5)
    resumed.load_state(first.state())
    for number in range(min(cut, count), count):
        index.add([f"s{number}"], rows[number : number + 1])
        resumed.attach(f"s{number}")
    resumed.revise()
    assert resumed.state() == straight.state()
    assert resumed.objective() == straight.objective()
    assert sorted(fact for group in groups(straight) for fact in group) == sorted(facts(*range(count)))
    assert {fact: theme for theme, group in straight.members.items() for fact in group} == straight.home
    assert all(path[-1][0] == straight.home[fact] for fact, path in straight.paths.items())


def test_a_merge_never_lowers_f_of_the_whole_partition() -> None:
    rng = np.random.default_rng(5)
    themes = themes_of(theme_rules("xmemory", split=False), unit_rows(*(rng.standard_normal((40, 6)) + 0.5)))
    before = themes.objective()
    themes.merge_tiny()
    merged = themes.counts["merges.tiny"]
    after = themes.objective()
    assert merged > 0
    assert after - before >= merged * 0.5e-6, "each merge gained at least what rounding keeps"
