"""Expected calls of Mem0 and Mem0g."""

from dataclasses import replace

from baselines.mem0.config import Mem0Config
from memsys.call_model import SHORT_TOKENS, DataShape, ExpectedCalls, reply_tokens
from memsys.facts.calls import extraction_calls, scope_count

#: Facts of an extraction, and share of extractions that give one (Mem0 on GPT-4o-mini as SAGE released it: 5,675
#: events of 1,696 writes, 203 without any).
FACTS, WITH_FACTS = 3.3, 0.9
#: Tokens of the context, the paper's figure.
CONTEXT_TOKENS = 1800.0


def expected_calls(config: Mem0Config, shape: DataShape) -> list[ExpectedCalls]:
    """Return an extraction for each batch and scope, then a decision on its facts; three more where a graph is kept."""
    extraction = extraction_calls(config, shape)
    found = [extraction]
    if config.extract_context == "history":  # shown what came before, so that it cannot run ahead
        ended = len(shape.sessions) - len(shape.turns)
        length = sum(shape.turns) / max(len(shape.sessions), 1) * shape.turn_tokens
        prompt = extraction.prompt + 200 + config.history_messages * shape.turn_tokens
        found = [
            replace(extraction, phase="write", prompt=prompt, shared=""),
            ExpectedCalls("write", "summary", ended, 300 + length, 200),
        ]
    listed = 30 * config.similar
    if config.decisions == "batched":
        reply = reply_tokens(config.roles["route"], FACTS * (listed + 40))
        found.append(ExpectedCalls("write", "route", WITH_FACTS * extraction.calls, 300 + FACTS * (listed + 20), reply))
    if config.decisions == "per_fact":
        found.append(ExpectedCalls("write", "decide", FACTS * extraction.calls, 220 + listed, 40))
    return [*found, *_graph_calls(config, shape, extraction)]


def _graph_calls(config: Mem0Config, shape: DataShape, extraction: ExpectedCalls) -> list[ExpectedCalls]:
    if config.graph["use"] == "none":
        return []
    batch = 150 + config.batch_size * shape.turn_tokens
    found = [
        ExpectedCalls("prepare", "entities", extraction.calls, batch, 120),
        ExpectedCalls("prepare", "relations", extraction.calls, batch + 50, 150),
        ExpectedCalls("write", "delete", extraction.calls, batch + 400, 40),
    ]
    if config.graph["use"] == "read":
        asked = scope_count(config) * shape.asked
        found.append(ExpectedCalls("retrieve", "entities", asked, 150 + shape.question_tokens, SHORT_TOKENS))
    return found


def context_tokens(config: Mem0Config, shape: DataShape) -> float:
    """Return the context size that the paper reports."""
    return CONTEXT_TOKENS
