"""Every memory system states its deviations from paper and release, and what a statement names is there."""

import pytest

from eval.config.preset_settings import default_settings
from eval.config.presets import MEMORY, read_settings
from eval.results.papers.deviations import checked, load_deviations, systems
from memsys.deviations import ALL, read_deviations

SYSTEMS = systems()


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_system_states_its_deviations(system: str) -> None:
    place, presets = SYSTEMS[system]
    for deviation in checked(read_deviations(place), presets, place):
        assert deviation.what.rstrip().endswith(".")
        assert deviation.why.rstrip().endswith(".")


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_system_with_prompts_says_that_their_wording_is_ours(system: str) -> None:
    place, presets = SYSTEMS[system]
    asking = [preset for preset in presets if _roles(preset)]
    for preset in asking:
        found = {deviation.id: deviation for deviation in read_deviations(place)}
        assert found[f"{system}_own_prompt_wording"].applies_to(preset)


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_switch_that_is_a_deviation_stands_alike_in_all_presets_it_names(system: str) -> None:
    """A preset that turns it the other way does what paper or release does."""
    place, presets = SYSTEMS[system]
    for deviation in read_deviations(place):
        key = (deviation.option or "").removeprefix("memory.")
        named = [preset for preset in presets if deviation.applies_to(preset)]
        values = [(default_settings(preset, MEMORY) or {}).get(key) for preset in named]
        assert len({value for value in values if isinstance(value, bool)}) < 2, deviation.id


#: Presets that do as a release does, under another name than ``code``.
AS_RELEASED = ("rag_clag", "rag_keywords", "nemori_current")


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_variation_shares_deviations_with_the_preset_that_it_varies(system: str) -> None:
    """A list that forgets an ablation says that it does as paper and release do, which only ``code`` presets do."""
    place, names = SYSTEMS[system]
    lists = [deviation.presets for deviation in read_deviations(place) if ALL not in deviation.presets]
    for name in (name for name in names if name not in {f"{system}_code", *AS_RELEASED}):
        varied = next(iter(read_settings(MEMORY / f"{name}.yaml").get("defaults", ())), "")
        of_varied = [named for named in lists if varied in named]
        assert not of_varied or any(name in named for named in of_varied), name


def _roles(preset: str) -> bool:
    return any(key.startswith("roles.") for key in default_settings(preset, MEMORY) or {})


def test_ids_are_unique_among_all_systems() -> None:
    assert {one.system for one in load_deviations()} <= set(SYSTEMS)
