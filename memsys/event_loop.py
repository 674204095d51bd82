"""Event loop of a run: garbage is looked for rarely, since each look visits the objects of all calls in flight."""

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

#: Objects between two looks at the young ones, young looks between two at those that survived one, and so on. Python's
#: own 700, 10, 10 took half of a call's processor time with 1,000 calls in flight.
_THRESHOLDS = (50_000, 20, 50)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine as ``asyncio.run`` does, with what exists before left out of the search for garbage."""
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    if not frozen:
        gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    try:
        return asyncio.run(main)
    finally:
        gc.set_threshold(*before)
        if not frozen:
            gc.unfreeze()
