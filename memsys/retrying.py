"""When a request to a server over HTTP is sent again, whoever sends it: of a backbone or of an embedder."""

#: Statuses of a server that is busy or has failed on the way; the same request may be taken the next time.
RETRIED_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
#: Seconds; no pause grows beyond.
LONGEST_PAUSE = 30.0


def pause_before(retry: int, backoff_s: float) -> float:
    """Return the seconds to wait before a retry, counted from 0; they double with each."""
    return min(backoff_s * 2.0**retry, LONGEST_PAUSE)
