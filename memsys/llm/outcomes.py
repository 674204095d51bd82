"""Outcome of a call, decided in this one place for live, cached, recorded and passed-through replies.

``answered``   the model said something that its role can use
``empty``      nothing is left of the reply once its thinking is removed
``malformed``  the role asks for an object, and the reply holds none
``withheld``   a filter of the server, or the model itself, declined to answer
``failed``     there is no reply: the server reported an error, however often it was asked
"""

from typing import Literal

from memsys.vocabulary import Completion

Outcome = Literal["answered", "empty", "malformed", "withheld", "failed"]

#: Reasons for which a reply ended, in lower case: OpenAI's and Azure's, Anthropic's, Gemini's, Bedrock's, Zhipu's.
_WITHHELD = frozenset({
    "content_filter", "content_filtered", "content-filter", "refusal", "safety", "recitation", "prohibited_content",
    "blocklist", "spii", "image_safety", "image_prohibited_content", "image_recitation", "model_armor",
    "guardrail_intervened", "guardrails", "sensitive", "blocked",
})  # fmt: skip
#: Reasons of a server that broke off: vLLM's and SGLang's, OpenRouter's, DeepSeek's, Zhipu's.
_FAILED = frozenset({
    "error", "abort", "aborted", "cancelled", "canceled", "network_error", "server_error",
    "insufficient_system_resource",
})  # fmt: skip
#: Names for the end at the limit of new tokens.
_CUT = frozenset({"length", "max_tokens", "max_output_tokens", "max_completion_tokens", "model_length"})

#: Characters of a reply that is stored; ten times what is parsed of one.
_LONGEST_KEPT = 500_000


def is_withheld(finish_reason: str) -> bool:
    """Return whether a reply that ended for this reason was withheld."""
    return finish_reason.lower() in _WITHHELD


def is_failed(finish_reason: str) -> bool:
    """Return whether a reply that ended for this reason is the remainder of one that the server broke off."""
    return finish_reason.lower() in _FAILED


def is_cut(finish_reason: str) -> bool:
    """Return whether a reply that ended for this reason met its limit of new tokens."""
    return finish_reason.lower() in _CUT


def outcome_of(text: str, finish_reason: str = "", *, malformed: bool = False, called_tools: bool = False) -> Outcome:
    """Return what became of a call that has a reply.

    Args:
        text: of the reply, without thinking.
        finish_reason: why it ended, as the server says; empty if it does not say.
        malformed: it was asked for an object and holds none.
        called_tools: it asks for calls of tools, and then needs no text.
    """
    if is_failed(finish_reason):
        return "failed"
    if is_withheld(finish_reason):
        return "withheld"
    if not text.strip() and not called_tools:
        return "empty"
    return "malformed" if malformed else "answered"


def reason_of(outcome: Outcome, completion: Completion) -> str:
    """Return in a few words why a call was not answered; empty where it was.

    Args:
        outcome: of the call.
        completion: its last reply.
    """
    if outcome == "answered":
        return ""
    ended = completion.finish_reason or "not stated"
    if is_cut(ended):
        return f"cut at its limit of tokens (finish_reason {ended}) after {completion.completion_tokens}"
    return f"finish_reason {ended}" + (f": {completion.refusal}" if completion.refusal else "")


def is_kept(completion: Completion) -> bool:
    """Return whether a reply may be stored for later calls; one that is withheld, failed or blank is asked for again.

    A reply of thinking alone is stored: the model came to its end, or to its limit, and would do so again. One that is
    far longer than replies are is not: it would fill the disk, and memory.
    """
    if len(completion.text) > _LONGEST_KEPT:
        return False
    tools = bool(completion.tool_calls)
    return outcome_of(completion.text, completion.finish_reason, called_tools=tools) == "answered"
