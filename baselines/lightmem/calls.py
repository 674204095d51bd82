"""Expected calls of LightMem."""

from math import ceil

from baselines.lightmem.config import LightMemConfig
from memsys.call_model import DataShape, ExpectedCalls, reply_tokens, settings_key, template_tokens

#: Share of the short-term buffer that is full when it is emptied, updates per turn, and tokens of a fact as the reader
#: sees it: from what the project's README prints for LoCoMo at 512 tokens and a keep rate of 0.7 (415 calls for ten
#: conversations, 4,008 thousand tokens for 1,540 questions with 60 facts each).
FILLED, UPDATES_PER_TURN, FACT_TOKENS = 0.85, 0.03, 43
#: Tokens of a message's number, date and speaker, and of a fact in a reply.
LINE_TOKENS, REPLY_FACT_TOKENS = 20, 30


def expected_calls(config: LightMemConfig, shape: DataShape) -> list[ExpectedCalls]:
    """Return an extraction for each batch, and revisions of a small share of the facts."""
    prompts, roles = "baselines/lightmem/prompts", config.roles
    rate = config.compressor["keep_rate"] if config.compress["mode"] != "off" else 1.0
    batches = sum(ceil(turns * shape.turn_tokens * rate / (config.stm_tokens * FILLED)) for turns in shape.turns)
    turns = sum(shape.turns) / max(batches, 1)
    prompt = template_tokens(f"{prompts}/extract.txt") + turns * (shape.turn_tokens * rate + LINE_TOKENS)
    reply = reply_tokens(roles["extract"], turns * REPLY_FACT_TOKENS)
    key = settings_key(config, "retrieve", "context", "context_texts", "update")
    last = min(batches, len(shape.turns))
    found = [
        ExpectedCalls("write", "extract", batches - last, prompt, reply, key),
        ExpectedCalls("consolidate", "extract", last, prompt, reply, key),
    ]
    if config.update["mode"] != "off":
        calls = UPDATES_PER_TURN * sum(shape.turns)
        prompt = template_tokens(f"{prompts}/update.txt") + 3 * FACT_TOKENS
        key = settings_key(config, "retrieve", "context", "context_texts")
        reply = reply_tokens(roles["update"], 2 * REPLY_FACT_TOKENS)
        found.append(ExpectedCalls("consolidate", "update", calls, prompt, reply, key))
    return found


def context_tokens(config: LightMemConfig, shape: DataShape) -> float:
    """Return the tokens of the dated facts, at most one per turn of a conversation."""
    facts = min(config.retrieve["k"], sum(shape.turns) / max(len(shape.turns), 1))
    speakers = 2 if config.retrieve["scope"] == "per_speaker" else 1
    whole = facts * speakers * FACT_TOKENS
    return float(min(whole, config.context["max_tokens"] or whole))
