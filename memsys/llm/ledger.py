"""A row of the call ledger: one request to the backbone."""

from dataclasses import dataclass


@dataclass(slots=True)  # not frozen, which takes four times as long to make
class CallRecord:
    """One request to the backbone. ``seconds`` is service time; ``queue_seconds`` waiting for a slot in the client.

    ``malformed``: this attempt's reply did not validate. ``repaired``: it did only after repair. ``attempt`` counts
    from 0 over malformed retries, and over the equal requests that another program makes in one step;
    ``transport_retries`` counts resent requests. ``cache_hit``: the reply came from the cache, and ``seconds`` is what
    it took when it was made. ``cached_tokens``: tokens at the prompt's beginning that the server had computed for an
    earlier request; ``None`` where it does not say, or where no request was made. ``outcome``: see
    :mod:`memsys.llm.outcomes`; empty in rows of older versions. ``thought``: name of the rule by which a thought was
    cut from the reply (:mod:`memsys.llm.thoughts`); empty where it holds none. ``estimated``: the server reported no
    tokens, and they were counted here. ``shortened``: the server read fewer tokens than the prompt has words.
    ``batched``: it was sent with others as a batch, whose price is lower and of whose ``seconds`` nothing is known.
    """

    conversation_id: str
    phase: str
    role: str
    key: str
    item: str
    attempt: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    queue_seconds: float
    finish_reason: str
    cache_hit: bool
    malformed: bool
    repaired: bool
    transport_retries: int
    request_hash: str
    endpoint: str
    cached_tokens: int | None = None
    outcome: str = ""
    thought: str = ""
    estimated: bool = False
    shortened: bool = False
    batched: bool = False
