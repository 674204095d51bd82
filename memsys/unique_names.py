"""Names of files that one process writes into a folder that several processes share."""

import os
import time
import uuid


def segment_name(suffix: str) -> str:
    """Name a new file of this process; names sort by the time they were made.

    Args:
        suffix: what the name ends with, dot included.
    """
    return f"{time.time_ns():020d}-{os.getpid()}-{uuid.uuid4().hex[:8]}{suffix}"
