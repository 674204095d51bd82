"""Expected calls of the extraction that SAGE and Mem0 share."""

from math import ceil
from typing import Any

from memsys.call_model import DataShape, ExpectedCalls, reply_tokens


def extraction_calls(config: Any, shape: DataShape) -> ExpectedCalls:
    """Return the extraction calls for each batch of messages and each scope, the same in SAGE and Mem0."""
    settings = config.roles["extract"]
    added = scope_count(config) * sum(ceil(turns / config.batch_size) for turns in shape.sessions)
    made_by = (
        config.batch_size,
        config.scopes,
        config.prompt_date,
        getattr(config, "extract_prompt", "user"),
    )
    prompt = 250 + config.batch_size * shape.turn_tokens
    shared = f"extract {made_by} {sorted(settings.items(), key=str)}"
    return ExpectedCalls("prepare", "extract", added, prompt, reply_tokens(settings, 150), shared)


def scope_count(config: Any) -> int:
    """Return the number of memories per conversation: one for each speaker, or one for both."""
    return 2 if config.scopes == "speakers" else 1
