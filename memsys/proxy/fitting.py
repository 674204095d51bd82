"""Limits of new tokens that fit: a program may ask for more than the backbone's context can hold."""

import json
from dataclasses import replace

from memsys.llm.foreign import CompletesCalls
from memsys.proxy.requests import CompletionRequest

#: Tokens that a chat template may add to what is counted: a system prompt of its own, the beginning of the reply.
_SPARE_TOKENS = 64


async def fitted(request: CompletionRequest, model: CompletesCalls) -> CompletionRequest:
    """A request whose limit of new tokens, with its prompt, fits into the context.

    One that fits as it is stays as it is, and so does one whose prompt alone is too long: its error says so. The key
    stays in any case, so that the seed does.

    Raises:
        BackboneError: the server that counts the prompt's tokens cannot be reached.
    """
    prompt, limit = _prompt(request), request.call.max_tokens
    room = model.context_length - _SPARE_TOKENS
    if len(prompt.encode("utf-8", "surrogatepass")) + limit <= room:  # no token is shorter than a byte
        return request
    left = room - await model.count_tokens(prompt)
    if limit <= left or left < 1:
        return request
    return replace(request, call=replace(request.call, max_tokens=left))


def _prompt(request: CompletionRequest) -> str:
    """What the model reads; the JSON of messages stands for what a template writes around them."""
    body = request.call.body
    if not request.chat:
        return str(body["prompt"])
    return json.dumps([body["messages"], body.get("tools")], ensure_ascii=False)
