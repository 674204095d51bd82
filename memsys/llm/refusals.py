"""Errors of servers, reported by status or in a body of status 200, as errors of ours."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from memsys.errors import BackboneError, BackboneUnusableError
from memsys.retrying import RETRIED_STATUS

#: Statuses that speak of the request itself, not of a key, an address or a server that is busy.
_FAULT_OF_REQUEST = frozenset({400, 409, 413, 415, 422})
#: With these llama.cpp and llama-cpp-python say of a request that it is wrong, with the status of a server that is.
_FAULT_WORDS = re.compile(r"failed to parse (?:tools|messages)|\d+ validation errors?:")
_CONTEXT_WORDS = ("context length", "context size", "context window", "maximum model length", "max_model_len")
#: How servers state the size of their window: vLLM, OpenAI, llama.cpp, LM Studio.
_WINDOW = re.compile(
    r"(?:context (?:length|size|window)|max(?:imum)?[ _]model[ _]len(?:gth)?|n_ctx)[^0-9]{0,40}(\d[\d,]{0,11})"
    r"|(\d[\d,]{0,11})[ -]tokens?[ -]context",
    re.IGNORECASE,
)
#: Statuses of an address that has moved. A request with a key is not sent on to another server.
MOVED = frozenset({301, 302, 303, 307, 308})
#: Names of the settings in what to do, of a backbone.
SETTINGS = {
    "part": "backbone", "key": "backbone.engine.api_key_env", "model": "backbone.model",
    "address": "backbone.engine.base_urls",
}  # fmt: skip
#: What to do about an error that no other attempt and no other question would change.
_ADVICE = {
    401: "the key is not accepted: see the variable that {key} names",
    402: "no credit or quota is left: add credit, or choose another {part}",
    403: "the key may not use this model: ask its provider for access, or choose another {model}",
    404: "the server knows no such model or address: see {model} and {address}",
    **dict.fromkeys(MOVED, "set {address} to the address of the server itself"),
}
_NAMES_KEY = "{key}=VARIABLE names the environment variable that holds one"
#: The same of a request without a key.
_NO_KEY = {
    401: f"no key was sent: {_NAMES_KEY}",
    403: f"the server requires a key: {_NAMES_KEY}; or a firewall or proxy in between refuses requests to it",
}
#: The same where a key was looked for that no setting names.
_OWN_KEY = {401: f"the engine found no key, or one that is not accepted: {_NAMES_KEY}"}
#: The same of a server that was started here: no setting holds its address.
_STARTED = {
    404: "the server knows no such model: see {model}",
    **dict.fromkeys((401, 403, *MOVED), "another program seems to answer at the address of the server"),
}
#: Codes and types of errors whose status is not what the server sends with them (OpenAI: 429 for a spent quota).
_LASTING_CODES = {
    **dict.fromkeys(("invalid_api_key", "authentication_error", "invalid_authentication", "unauthenticated"), 401),
    **dict.fromkeys(
        (
            "insufficient_quota", "insufficient_credits", "insufficient_balance", "exceeded_current_quota_error",
            "billing_hard_limit_reached", "billing_not_active", "payment_required", "arrearage",
        ),
        402,
    ),
    **dict.fromkeys(("permission_error", "permission_denied", "account_deactivated", "access_denied"), 403),
    **dict.fromkeys(("model_not_found", "not_found_error", "deploymentnotfound", "invalid_model"), 404),
}  # fmt: skip
#: Codes and types of a status where the server sends 200.
_PASSING_CODES = {
    **dict.fromkeys(("rate_limit_exceeded", "rate_limit_error", "resource_exhausted", "too_many_requests"), 429),
    **dict.fromkeys(("overloaded_error", "overloaded", "engine_overloaded", "unavailable"), 503),
    **dict.fromkeys(("invalid_request_error", "invalid_argument", "bad_request", "context_length_exceeded"), 400),
}
#: Codes and types of a prompt, or a reply, that a filter withheld.
_FILTER_CODES = frozenset({
    "content_filter", "content_filtered", "content_policy_violation", "responsibleaipolicyviolation",
    "invalid_prompt", "data_inspection_failed", "datainspectionfailed", "moderation_blocked", "prompt_blocked",
})  # fmt: skip
#: The same in words: Azure's, OpenAI's, DeepSeek's, OpenRouter's.
_FILTER_WORDS = (
    "content management policy", "content filter", "content policy", "content exists risk", "usage policy",
    "safety system", "requires moderation", "was flagged",
)  # fmt: skip
#: Where a body has its message that has no ``error``.
_MESSAGES = ("message", "detail", "error_description", "title")
#: Fields of which one at least is in a body that states an error.
_STATE_ERRORS = frozenset({"error", "errors", "promptFeedback", "prompt_feedback", "prompt_filter_results"})
#: Statuses with which filters are reported.
_FILTER_STATUS = frozenset({400, 403, 422, 451})
_STATUS_OF_UNKNOWN = 500


class ContextLengthError(BackboneError):
    """The server says that prompt and reply do not fit into the model's context."""


class RequestRefusedError(BackboneError):
    """The server says that the request itself is wrong: no other attempt and no other server would take it."""


class PromptWithheldError(BackboneError):
    """A filter of the server withheld the prompt, or the reply to it."""


class RepeatedFailureError(BackboneError):
    """The server is there and does not answer this request, however often it is sent."""


class TransientServerError(Exception):
    """A failure on the way: the request is sent again. ``pause``: seconds the server asks to wait."""

    def __init__(self, what: str, pause: float = 0.0, *, busy: bool = False) -> None:
        super().__init__(what)
        self.pause, self.busy = pause, busy


@dataclass(frozen=True, slots=True)
class StatedError:
    """An error as a server states it.

    Attributes:
        message: its own words.
        status: that its body names; ``None`` where it names none.
        codes: its code, type and inner codes, in lower case.
        moderated: it has the findings of a moderation.
    """

    message: str
    status: int | None = None
    codes: tuple[str, ...] = ()
    moderated: bool = False

    @property
    def is_filter(self) -> bool:
        """Whether a filter withheld the prompt or the reply."""
        return self.moderated or not _FILTER_CODES.isdisjoint(self.codes)


def stated_window(message: str) -> int | None:
    """Return the tokens that a server says its window has; ``None`` where its words name no number."""
    found = _WINDOW.search(message)
    return int((found[1] or found[2]).replace(",", "")) if found else None


def stated_error(payload: Any) -> StatedError | None:
    """Read the error in the body of a reply, or of its first choice; ``None`` where it has none.

    Args:
        payload: the JSON of the body.
    """
    for part in _bodies(payload):
        if _STATE_ERRORS.isdisjoint(part):
            continue
        for error in (part.get("error"), part.get("errors")):
            if found := _read(error):
                return found
        if blocked := _blocked(part):
            return StatedError(f"the prompt was blocked: {blocked}", codes=("content_filter",))
    return None


def unstated_error(payload: Any, text: bytes) -> StatedError:
    """Return the error of a body that names none: its message, or all of it.

    Args:
        payload: the JSON of the body, or anything where it is none.
        text: the body.
    """
    if not isinstance(payload, dict):
        return StatedError(text.decode("utf-8", "replace"))
    return StatedError(str(next((payload[name] for name in _MESSAGES if payload.get(name)), payload)))


def refusal_words(error: BackboneError) -> str:
    """Return the server's own words in an error that was raised since it refused a request."""
    return str(error).partition("with status ")[2].partition(": ")[2] or str(error)


def advice(status: int, settings: Mapping[str, str], *, keyless: bool = False, finds_key: bool = False) -> str:
    """Return what to do about an error that no other attempt would change; empty where another one might.

    Args:
        status: of the error.
        settings: names of ``part``, ``key``, ``model`` and ``address`` in the configuration; the last one is empty of a
            server that was started here.
        keyless: the request had no key.
        finds_key: the engine looked for one by itself.
    """
    own = _STARTED if not settings["address"] else _OWN_KEY if finds_key else _NO_KEY if keyless else {}
    return {**_ADVICE, **own}.get(status, "").format(**settings)


def _blocked(body: Mapping[str, Any]) -> str:
    """Return why a body has no choices, as Gemini (``promptFeedback``) and Azure report it; else an empty text."""
    if body.get("choices"):
        return ""
    feedback = body.get("promptFeedback") or body.get("prompt_feedback")
    if isinstance(feedback, Mapping) and (reason := feedback.get("blockReason") or feedback.get("block_reason")):
        return str(reason)
    results = body.get("prompt_filter_results")
    return "prompt_filter_results" if isinstance(results, list) and "'filtered': True" in str(results) else ""


def _bodies(payload: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the body, and its first choice, where OpenRouter puts an error; Gemini wraps the body in a list."""
    body = payload[0] if isinstance(payload, list) and payload else payload
    if isinstance(body, Mapping):
        yield body
        choices = body.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
            yield choices[0]


def _read(error: Any) -> StatedError | None:
    if isinstance(error, list):
        return _read(error[0]) if error else None
    if not isinstance(error, Mapping):
        return StatedError(error) if isinstance(error, str) and error.strip() else None
    inner, details = (error.get(name) for name in ("innererror", "metadata"))
    sources = [error, *(one for one in (inner, details) if isinstance(one, Mapping))]
    codes = [str(one[key]).lower() for one in sources for key in ("code", "type", "status") if one.get(key)]
    moderated = any(one.get(key) for one in sources for key in ("content_filter_result", "flagged_input"))
    message = next((str(error[key]) for key in ("message", "detail", "msg") if error.get(key)), str(dict(error)))
    return StatedError(message, _status(error), tuple(codes), moderated) if error else None


def _status(error: Mapping[str, Any]) -> int | None:
    for name in ("code", "status"):
        text = str(error.get(name, ""))
        if len(text) == 3 and text.isascii() and text.isdigit() and text >= "400":
            return int(text)
    return None


def refusal(
    status: int,
    pause: float,
    error: StatedError,
    remedy: Callable[[int], str] = lambda status: advice(status, SETTINGS),
) -> Exception:
    """Make the error of a reply that states one.

    Args:
        status: of the reply.
        pause: seconds that the server asks to wait.
        error: what it states; of a status that is not 200 perhaps its words alone.
        remedy: gives what to do about an error of some status that would meet every request; else an empty text.
    """
    known = status_of(status, error)
    shown = known if status == 200 else status
    said, lowered = f"status {shown}: {error.message}", error.message.lower()
    if error.is_filter or (known in _FILTER_STATUS and any(word in lowered for word in _FILTER_WORDS)):
        return PromptWithheldError(error.message)
    at_fault = known in _FAULT_OF_REQUEST or (known == _STATUS_OF_UNKNOWN and _FAULT_WORDS.match(lowered) is not None)
    if not at_fault and (known in RETRIED_STATUS or known > _STATUS_OF_UNKNOWN):
        return TransientServerError(said, pause, busy=known in (429, 529))
    if known in (400, 413, 422) and any(word in lowered for word in _CONTEXT_WORDS):
        return ContextLengthError(error.message)
    said = f"the server refused the request with {said}"
    if known in _ADVICE:
        return BackboneUnusableError(f"{said}; {remedy(known)}")
    return RequestRefusedError(said) if at_fault else BackboneError(said)


def status_of(status: int, error: StatedError) -> int:
    """Return the status of an error, whatever it was sent with."""
    named = (*error.codes, error.message.strip(" .!").lower().replace(" ", "_"))  # Cloudflare's codes are numbers
    lasting = next((_LASTING_CODES[code] for code in named if code in _LASTING_CODES), None)
    if lasting is not None or status != 200:
        return lasting or status
    passing = next((_PASSING_CODES[code] for code in error.codes if code in _PASSING_CODES), None)
    return error.status or passing or _STATUS_OF_UNKNOWN
