"""The step of the run in which a call of the backbone is made, passed from the runner to the client."""

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

#: ``warm_up``: a question that is asked before latency is measured; neither its reply nor its time is kept.
Phase = Literal["prepare", "write", "consolidate", "retrieve", "answer", "judge", "warm_up"]


@dataclass(frozen=True, slots=True)
class CallScope:
    """Origin of a call within the run; set by the runner, read by the client for ledger and priority."""

    phase: Phase
    item: str = ""  # unit id or question id
    #: Neither read nor write the reply cache: latency is being measured.
    fresh: bool = False


#: Set by the runner around each step of a conversation. Calls outside a scope are an error.
call_scope: ContextVar[CallScope] = ContextVar("call_scope")
