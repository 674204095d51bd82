"""Every memory system states its departures from paper and release, and what a statement names is there."""

import pytest

from eval.papers.departures import checked, load_departures, systems
from eval.tables.variants import MEMORY, default_settings
from memsys.departures import read_departures

SYSTEMS = systems()


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_system_states_its_departures(system: str) -> None:
    place, presets = SYSTEMS[system]
    for departure in checked(read_departures(place), presets, place):
        assert departure.what.rstrip().endswith(".")
        assert departure.why.rstrip().endswith(".")


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_system_with_prompts_says_that_their_wording_is_ours(system: str) -> None:
    place, presets = SYSTEMS[system]
    asking = [preset for preset in presets if _roles(preset)]
    for preset in asking:
        found = {departure.id: departure for departure in read_departures(place)}
        assert found[f"{system}_own_prompt_wording"].applies_to(preset)


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_switch_that_is_a_departure_stands_alike_in_all_presets_it_names(system: str) -> None:
    """A preset that turns it the other way does what paper or release does."""
    place, presets = SYSTEMS[system]
    for departure in read_departures(place):
        key = (departure.option or "").removeprefix("memory.")
        named = [preset for preset in presets if departure.applies_to(preset)]
        values = [(default_settings(preset, MEMORY) or {}).get(key) for preset in named]
        assert len({value for value in values if isinstance(value, bool)}) < 2, departure.id


def _roles(preset: str) -> bool:
    return any(key.startswith("roles.") for key in default_settings(preset, MEMORY) or {})


def test_ids_are_unique_among_all_systems() -> None:
    assert {one.system for one in load_departures()} <= set(SYSTEMS)
