"""Expected calls of MemGPT."""

from math import ceil

from baselines.memgpt.config import MemGptConfig
from memsys.call_model import (
    ENVELOPE_TOKENS,
    DataShape,
    ExpectedCalls,
    reply_tokens,
    settings_key,
    template_tokens,
)

#: Calls for an event and for a question, assumptions: between one and what is allowed.
STEPS, QUESTION_STEPS = 3.0, 3.0
#: Tokens of a call, of a summary, and of a function's description.
CALL_TOKENS, SUMMARY_TOKENS, FUNCTION_TOKENS = 120, 130, 30
#: Tokens of a block of core memory that was written into.
BLOCK_TOKENS = 120
#: Turns of an event in mode ``turn``.
PAIR = 2


def expected_calls(config: MemGptConfig, shape: DataShape) -> list[ExpectedCalls]:
    """Return some calls for each event and each question, and a summary for each eviction."""
    found = []
    key = settings_key(config, "context", "context_texts")
    if config.ingest["mode"] != "insert":
        calls = _events(config, shape) * min(STEPS, config.agent["ingest_steps"])
        reply = reply_tokens(config.roles["agent"], CALL_TOKENS)
        prompt = _frame(config, "agent", "ingest_functions") + _queue(config, shape)
        found.append(ExpectedCalls("write", "agent", calls, prompt, reply, key))
    evictions = sum(_evictions(config, shape, turns) for turns in shape.turns)
    evicted = template_tokens("baselines/memgpt/prompts/summarise.txt") + _evicted(config)
    summary = reply_tokens(config.roles["summarise"], SUMMARY_TOKENS)
    found.append(ExpectedCalls("write", "summarise", evictions, evicted, summary, key))
    steps = shape.asked * min(QUESTION_STEPS, config.agent["question_steps"])
    prompt = _frame(config, "search", "question_functions") + _queue(config, shape) + shape.question_tokens
    prompt += (min(QUESTION_STEPS, config.agent["question_steps"]) - 1) / 2 * _page(config, shape)
    # A search has a thought and a query, both short, whatever bounds each of its texts.
    reply = min(float(config.roles["search"]["max_tokens"]), CALL_TOKENS / 2)
    found.append(ExpectedCalls("retrieve", "search", steps, prompt, reply))
    return found


def context_tokens(config: MemGptConfig, shape: DataShape) -> float:
    """Return the tokens of core memory, summary, queue and found passages."""
    queue, limit = _queue(config, shape), config.context["recent_tokens"]
    whole = _core(config) + reply_tokens(config.roles["summarise"], SUMMARY_TOKENS)
    whole += min(queue, queue if limit is None else limit)
    whole += min(QUESTION_STEPS, max(config.agent["question_steps"], 2)) * _page(config, shape)
    return float(min(whole, config.context["max_tokens"] or whole))


def _events(config: MemGptConfig, shape: DataShape) -> float:
    if config.ingest["mode"] == "turn":
        return float(sum(ceil(turns / PAIR) for turns in shape.sessions))
    return float(sum(ceil(turns * shape.turn_tokens / config.ingest["event_tokens"]) for turns in shape.sessions))


def _queued(config: MemGptConfig, shape: DataShape, turns: float) -> float:
    """Return the tokens that a conversation of so many turns puts into the queue: its turns, calls and results."""
    asked = 0.0
    if config.ingest["mode"] != "insert":
        calls = min(STEPS, config.agent["ingest_steps"]) * (CALL_TOKENS + 2 * ENVELOPE_TOKENS)
        asked = _events(config, shape) / max(sum(shape.turns), 1) * calls
    return turns * (shape.turn_tokens + asked)


def _room(config: MemGptConfig) -> float:
    """Return the tokens of messages above which some are evicted."""
    role, functions = ("search", "question_functions") if config.ingest["mode"] == "insert" else _ASKED
    window = float(config.main_context["flush_share"] * config.main_context["window"])
    return max(window - _frame(config, role, functions), 1.0)


_ASKED = ("agent", "ingest_functions")


def _evicted(config: MemGptConfig) -> float:
    return float(config.main_context["evict_share"] * _room(config))


def _evictions(config: MemGptConfig, shape: DataShape, turns: float) -> float:
    """Return the evictions of a conversation; the summary that each leaves takes some of the room."""
    over = _queued(config, shape, turns) - _room(config)
    return float(ceil(over / max(_evicted(config) - SUMMARY_TOKENS, 1))) if over > 0 else 0.0


def _queue(config: MemGptConfig, shape: DataShape) -> float:
    """Return the mean tokens of the queue when a call is made: between what an eviction leaves and the limit."""
    mean = _queued(config, shape, sum(shape.turns) / max(len(shape.turns), 1))
    room = _room(config)
    return mean if mean < room else (room + room - _evicted(config)) / 2


def _frame(config: MemGptConfig, role: str, functions: str) -> float:
    listed = FUNCTION_TOKENS * len(config.agent[functions])
    return template_tokens(f"baselines/memgpt/prompts/{role}.txt") + listed + _core(config)


def _core(config: MemGptConfig) -> float:
    return 40.0 if config.ingest["mode"] == "insert" else 2.0 * BLOCK_TOKENS


def _page(config: MemGptConfig, shape: DataShape) -> float:
    """Return the tokens of a page of results."""
    return float(config.search["page_size"] * (shape.turn_tokens + ENVELOPE_TOKENS))
