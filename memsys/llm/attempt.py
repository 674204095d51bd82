"""An attempt of a call that was completed."""

from dataclasses import dataclass

from memsys.vocabulary import Completion


@dataclass(frozen=True, slots=True)
class CompletedAttempt:
    """One attempt's completion and how it was got."""

    completion: Completion
    request_hash: str
    cache_hit: bool
    queue_seconds: float = 0.0
    transport_retries: int = 0
    endpoint: str = ""
    shortened: bool = False
    batched: bool = False
