"""Expected calls of plain retrieval."""

from baselines.rag.config import RagConfig
from memsys.call_model import DataShape, ExpectedCalls
from memsys.notes.calls import keyword_calls

#: Tokens of a passage's date and speaker, and how full a chunk of whole turns is.
HEADER_TOKENS, CHUNK_FILL = 15, 0.9


def expected_calls(config: RagConfig, shape: DataShape) -> list[ExpectedCalls]:
    """Return one keyword call for each question at most."""
    return [] if config.query == "question" else [keyword_calls(config, shape, prompt_of="rag")]


def context_tokens(config: RagConfig, shape: DataShape) -> float:
    """Return the tokens of the retrieved passages."""
    if config.budget_tokens:
        return float(config.budget_tokens)
    passage = shape.turn_tokens if config.unit == "turn" else config.chunk_tokens * CHUNK_FILL
    return float((config.k or 0) * (passage + HEADER_TOKENS))
