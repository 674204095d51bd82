"""The cores of this machine, and the part of them that this process should compute on."""

import os


def usable_cores() -> int:
    """Count the cores that this process may run on; all of the machine's where the system has no such limit."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_limit() -> int | None:
    """Return the number of threads that ``OMP_NUM_THREADS`` allows; ``None`` where it says nothing.

    joblib sets it in the cells of a local sweep to their share of the cores, and batch systems in the jobs they start.
    """
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()  # further ones are of nested regions
    return int(first) if first.isdecimal() and int(first) else None
