"""The tokens of a request: what the server says, what is counted where it says nothing, and what contradicts it."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from memsys.errors import BackboneError
from memsys.scripts import estimated_tokens
from memsys.vocabulary import Completion, Json

_MOST_TOKENS = 2**53
#: Tokens that a server may add to a prompt, for templates, instructions and tools of its own; each other token has a
#: byte of the request at least.
_ADDED = 10_000
#: Tokens of a reply with its thoughts, more than any model writes.
_MOST_REPLY = 1_000_000
_CACHED = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")
#: What Anthropic counts apart from a prompt's other tokens.
_APART = ("cache_read_input_tokens", "cache_creation_input_tokens")
#: Han, Kana and Hangul, which no white space separates; a token holds three of them at most.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_UNSPACED_PER_TOKEN = 3
#: White space of ASCII other than spaces and line breaks.
_RARE_SPACES = "\t\r\x0b\x0c\x1c\x1d\x1e\x1f"
#: Share of the least number of tokens below which a prompt counts as shortened.
_SHORTENED = 0.9


def read_count(value: Any) -> int | None:
    """Read a number of tokens; ``None`` if it is not one: missing, a text, negative, a fraction, infinite or beyond."""
    if type(value) is int:
        return value if 0 <= value < _MOST_TOKENS else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST_TOKENS:
        return None
    return int(value) if value == int(value) else None


def read_usage(usage: Any, *, says_something: bool) -> tuple[int, int, int | None, bool]:
    """Read a reply's ``usage``.

    Args:
        usage: as the server wrote it.
        says_something: the reply holds text, thoughts or calls of tools, which take tokens.

    Returns:
        Tokens of prompt and reply (0 where they are not known), tokens of the prompt that the server took from its
        cache of prefixes (``None`` where it does not say), and whether prompt or reply has to be counted here.
    """
    said = usage if isinstance(usage, dict) else {}
    prompt, reply = read_count(said.get("prompt_tokens")), read_count(said.get("completion_tokens"))
    cached = _cached(said)
    if prompt is None and (read := read_count(said.get("input_tokens"))) is not None:
        prompt = read + sum(read_count(said.get(name)) or 0 for name in _APART)
    elif prompt is not None and (cached or 0) > prompt:  # a gateway that hands on Anthropic's count
        prompt += cached or 0
    reply = read_count(said.get("output_tokens")) if reply is None else reply
    unknown = not prompt or reply is None or (reply == 0 and says_something)
    return prompt or 0, reply or 0, cached, unknown


def _cached(usage: Mapping[str, Any]) -> int | None:
    """Return the tokens that the server took from its cache, as OpenAI, DeepSeek, Moonshot and Anthropic name them."""
    for place in (usage.get("prompt_tokens_details"), usage.get("input_tokens_details"), usage):
        if isinstance(place, dict):
            for name in _CACHED:
                if name in place and (count := read_count(place[name])) is not None:
                    return count
    return None


def believed(payload: Any, request_bytes: int) -> tuple[Any, str]:
    """Take numbers of tokens out of a reply that cannot be, so that they are counted here.

    Args:
        payload: JSON of the reply.
        request_bytes: size of the body of its request.

    Returns:
        The payload, and the usage as the server stated it where something was taken out; else an empty text.
    """
    usage = payload.get("usage") if isinstance(payload, dict) else None
    if not isinstance(usage, dict):
        return payload, ""
    prompt, reply, cached, _ = read_usage(usage, says_something=False)
    most = request_bytes + _ADDED
    wrong = set[str]()
    if max(prompt, cached or 0) > most:
        wrong = {*_CACHED, *_APART, "prompt_tokens_details", "input_tokens_details"}
        wrong |= {name for name in ("prompt_tokens", "input_tokens") if (read_count(usage.get(name)) or 0) > most}
    if reply > _MOST_REPLY:
        wrong |= {"completion_tokens", "output_tokens"}
    if not wrong:
        return payload, ""
    kept = {name: value for name, value in usage.items() if name not in wrong}
    return {**payload, "usage": kept}, str(usage)


async def with_counted_tokens(
    completion: Completion, prompt: str, generated: str, count: Callable[[str], Awaitable[int]]
) -> Completion:
    """Fill in the tokens that a server did not report.

    Args:
        completion: as read, marked as estimated.
        prompt: text of the request.
        generated: text of the reply, with the thoughts that the server put into a field of their own.
        count: counts tokens as ``backbone.token_counter`` says; where it fails, they are estimated.
    """
    prompt_tokens = completion.prompt_tokens or await _counted(prompt, count)
    completion_tokens = completion.completion_tokens or await _counted(generated, count)
    return replace(completion, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)


async def _counted(text: str, count: Callable[[str], Awaitable[int]]) -> int:
    try:
        return await count(text)
    except BackboneError:
        return estimated_tokens(text)


def prompt_text(body: Mapping[str, Json]) -> str:
    """Return the text of a request's prompt or of its messages."""
    said = "\n".join(str(message.get("content")) for message in body.get("messages", ()))
    return str(body.get("prompt") or said)


def is_shortened(completion: Completion, prompt: str) -> bool:
    """Return whether the server read so little that it cannot have read the whole prompt.

    No tokenizer joins words that white space separates, so that a prompt has at least as many tokens as words. A server
    with a smaller window than it is asked to fill (Ollama's ``num_ctx``) leaves out the rest without a word.
    """
    if completion.estimated or not completion.prompt_tokens:
        return False
    read, plain = completion.prompt_tokens + (completion.cached_tokens or 0), prompt.isascii()
    if plain and not any(map(prompt.__contains__, _RARE_SPACES)):  # counting is faster than splitting
        most_words = prompt.count(" ") + prompt.count("\n") + 1
        if read >= _SHORTENED * most_words:
            return False
    unspaced = 0 if plain else len(_UNSPACED.findall(prompt))
    return read < _SHORTENED * (len(prompt.split()) + unspaced // _UNSPACED_PER_TOKEN)
