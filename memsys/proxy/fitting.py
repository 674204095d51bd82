"""Limits of new tokens that fit: a program may ask for more than the backbone's context can hold."""

import json
from dataclasses import replace

from memsys.llm.passthrough import CompletesCalls
from memsys.proxy.requests import CompletionRequest

#: Tokens that a template may add to what is counted: a system prompt of its own and the beginning of the reply, the
#: head and the end of a message, and what it says about tools before and after their list.
_SPARE_TOKENS, _OF_A_MESSAGE, _OF_TOOLS = 64, 8, 200


async def fitted(request: CompletionRequest, model: CompletesCalls) -> CompletionRequest:
    """Return a request whose limit of new tokens, with its prompt, fits into the context.

    One that fits as it is stays as it is, and so does one whose prompt alone is too long: its error says so. The key
    stays in any case, so that the seed does.

    Raises:
        BackboneError: the server that counts the prompt's tokens cannot be reached.
    """
    prompt, limit = _prompt(request), request.call.max_tokens
    room = model.context_length - _template_tokens(request)
    if len(prompt.encode("utf-8", "surrogatepass")) + limit <= room:  # no token is shorter than a byte
        return request
    left = room - await model.count_tokens(prompt)
    if limit <= left or left < 1:
        return request
    return replace(request, call=replace(request.call, max_tokens=left))


def _template_tokens(request: CompletionRequest) -> int:
    """Return the expected maximum of the template's tokens."""
    body = request.call.body
    if not request.chat:
        return _SPARE_TOKENS
    return _SPARE_TOKENS + _OF_A_MESSAGE * len(body["messages"]) + (_OF_TOOLS if body.get("tools") else 0)


def _prompt(request: CompletionRequest) -> str:
    """Return what the model reads, without what the template writes around it.

    The texts are as they are: in JSON each quote and line break would count twice, and a prompt full of them would lose
    its reply.
    """
    body = request.call.body
    if not request.chat:
        return str(body["prompt"])
    parts = []
    for message in body["messages"]:
        parts += [str(message["role"]), str(message.get("content") or "")]
        parts += [json.dumps(message["tool_calls"], ensure_ascii=False)] if message.get("tool_calls") else []
    parts += [json.dumps(tool, ensure_ascii=False) for tool in body.get("tools") or ()]
    return "\n".join(parts)
