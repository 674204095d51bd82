"""Token limits of contexts that systems write line by line."""

from collections.abc import Sequence

from memsys.errors import ConfigError
from memsys.llm.contract import LanguageModel


def room_for_context(llm: LanguageModel, max_tokens: int | None, reserve_tokens: int) -> int:
    """Return how many tokens a context may have: what the window leaves, or less.

    Args:
        llm: the backbone.
        max_tokens: the preset's own limit; ``None`` for none.
        reserve_tokens: of the window, for instructions, question and reply.

    Raises:
        ConfigError: the backbone's window leaves no room.
    """
    left = llm.context_length - reserve_tokens
    if left <= 0:
        raise ConfigError(
            f"memory.context.reserve_tokens={reserve_tokens} leaves no room in the backbone's context of "
            f"{llm.context_length} tokens; lower it, or raise the backbone's context length"
        )
    return left if max_tokens is None else min(left, max_tokens)


async def count_within(llm: LanguageModel, blocks: Sequence[str], limit: int) -> int:
    """Count the blocks, in order, up to the first that does not fit.

    Tokens are counted only where the limit is near: a token has at least one byte, so that blocks with fewer bytes
    than the limit fit.
    """
    if sum(len(block.encode()) + 1 for block in blocks) <= limit:
        return len(blocks)
    for kept, block in enumerate(blocks):
        limit -= await llm.count_tokens(f"{block}\n")
        if limit < 0:
            return kept
    return len(blocks)


async def cut_to_tokens(llm: LanguageModel, text: str, limit: int) -> str:
    """Cut a text from its end until it has at most ``limit`` tokens."""
    if len(text.encode()) <= limit:
        return text
    cost = await llm.count_tokens(text)
    while cost > limit and text:
        text = text[: min(len(text) * max(limit, 0) // cost, len(text) - 1)].rstrip()
        cost = await llm.count_tokens(text)
    return text
