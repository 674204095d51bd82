"""Expected calls of SAGE."""

from memsys.call_model import DataShape, ExpectedCalls
from memsys.facts.calls import extraction_calls
from memsys.sage.config import SageConfig

#: Tokens of the context, the paper's figure.
CONTEXT_TOKENS = 1800.0


def expected_calls(config: SageConfig, shape: DataShape) -> list[ExpectedCalls]:
    """An extraction for each batch of a session's messages and each scope; a merge for a few facts of the band."""
    extraction = extraction_calls(config, shape)
    return [extraction, ExpectedCalls("write", "merge", 0.15 * extraction.calls, 250, 40)]


def context_tokens(config: SageConfig, shape: DataShape) -> float:
    """The paper's figure."""
    return CONTEXT_TOKENS
