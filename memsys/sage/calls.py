"""Expected calls of SAGE."""

from memsys.call_model import DataShape, ExpectedCalls
from memsys.facts.calls import extraction_calls
from memsys.sage.config import SageConfig

#: Tokens of the context, the paper's figure.
CONTEXT_TOKENS = 1800.0


def expected_calls(config: SageConfig, shape: DataShape) -> list[ExpectedCalls]:
    """Return an extraction for each batch of messages and each scope, and merges for a share of the facts."""
    extraction = extraction_calls(config, shape)
    return [extraction, ExpectedCalls("write", "merge", 0.15 * extraction.calls, 250, 40)]


def context_tokens(config: SageConfig, shape: DataShape) -> float:
    """Return the context size that the paper reports."""
    return CONTEXT_TOKENS
