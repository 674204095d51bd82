"""The cores of this machine."""

import os


def usable_cores() -> int:
    """Count the cores that this process may run on; all of the machine's where the system has no such limit."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
