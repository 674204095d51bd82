"""Expected calls of MemoryBank."""

from math import ceil

from baselines.memorybank.config import MemoryBankConfig
from memsys.call_model import DataShape, ExpectedCalls, reply_tokens

#: Tokens of a summary or description.
SUMMARY_TOKENS = 150


def expected_calls(config: MemoryBankConfig, shape: DataShape) -> list[ExpectedCalls]:
    """Return a summary and a description for each session or part of one, and one of each over all."""
    rules, roles = config.summaries, config.roles
    parts = sum(ceil(turns * shape.turn_tokens / rules["part_tokens"]) for turns in shape.sessions)
    day = sum(shape.turns) * shape.turn_tokens / max(parts, 1)
    days = parts / max(len(shape.turns), 1)
    found = []
    for wanted, each, whole in (
        (rules["days"], "day_summary", "overall_history"),
        (rules["portrait"] != "off", "day_personality", "overall_personality"),
    ):
        if not wanted:
            continue
        reply, last = reply_tokens(roles[each], SUMMARY_TOKENS), reply_tokens(roles[whole], SUMMARY_TOKENS)
        key = f"{each} {sorted(rules.items(), key=str)} {sorted(roles[each].items(), key=str)}"
        found.append(ExpectedCalls("prepare", each, parts, 60 + day, reply, key))
        if whole == "overall_personality" or rules["overall_history"]:
            key = f"{whole} {key} {sorted(roles[whole].items(), key=str)}"
            found.append(ExpectedCalls("consolidate", whole, len(shape.turns), 60 + days * (reply + 15), last, key))
    return found


def context_tokens(config: MemoryBankConfig, shape: DataShape) -> float:
    """Return the tokens of portrait, digest, and pairs of turns with their dates."""
    rules, roles = config.summaries, config.roles
    whole = config.retrieve_k * ((2 if config.pieces == "pairs" else 1) * shape.turn_tokens + 15)
    whole += reply_tokens(roles["overall_personality"], SUMMARY_TOKENS) if rules["portrait"] != "off" else 0
    whole += reply_tokens(roles["overall_history"], SUMMARY_TOKENS) if rules["overall_history"] else 0
    return float(min(whole, config.context["max_tokens"] or whole))
