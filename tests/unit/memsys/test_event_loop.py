"""Running a coroutine with garbage looked for rarely."""

import gc

from memsys import event_loop


async def _thresholds() -> tuple[int, ...]:
    return gc.get_threshold()


def test_collections_are_rare_inside_and_as_before_afterwards() -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    assert event_loop.run(_thresholds())[0] > before[0]
    assert gc.get_threshold() == before and bool(gc.get_freeze_count()) == bool(frozen)
