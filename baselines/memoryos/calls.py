"""Expected calls of MemoryOS."""

from typing import TYPE_CHECKING

from memsys.call_model import (
    SHORT_TOKENS,
    DataShape,
    ExpectedCalls,
    reply_tokens,
    settings_key,
    template_tokens,
)
from memsys.llm.scope import Phase

if TYPE_CHECKING:
    from baselines.memoryos.config import MemoryOSConfig

#: Turns of a LoCoMo page that never leaves its session (5,882 turns make about 3,075 pages).
TURNS_PER_PAGE = 1.91
#: Promotions per page that left the queue, an assumption: a page joins one or two segments, and four make one hot.
PROMOTIONS_PER_PAGE = 0.25
#: Pages at a session's beginning that go on with a chain of the session before, an assumption: their summary waits for
#: that chain's (30 over the 18 later sessions of conv-26 with Qwen2.5-Coder-0.5B).
CARRIED_PER_SESSION = 1.6
#: Tokens of a summary, a description and a fact.
SUMMARY_TOKENS, PROFILE_TOKENS, FACT_TOKENS = 60, 250, 25
#: Pages read by a promotion.
PAGES_READ = 4


def expected_calls(config: "MemoryOSConfig", shape: DataShape) -> list[ExpectedCalls]:
    """Three calls for each page that leaves the queue, two or three for each promotion, one for a question."""
    pages, page = _pages(config, shape)
    kept = config.short_term_rules.kept(int(pages / max(len(shape.turns), 1))) * len(shape.turns)
    flushed = max(pages - kept, 0.0)
    key = settings_key(config, "retrieve", "context", "context_texts")

    def calls(phase: Phase, role: str, number: float, shown: float, reply: float) -> ExpectedCalls:
        prompt = template_tokens(f"baselines/memoryos/prompts/{role}.txt") + shown
        length = reply_tokens(config.roles[role], reply)
        return ExpectedCalls(phase, role, number, prompt, length, key if phase != "retrieve" else "")

    carried = min(CARRIED_PER_SESSION * max(len(shape.sessions) - len(shape.turns), 0), flushed)
    found = [
        calls("prepare", "continues", max(flushed - len(shape.turns), 0.0), 2 * page, 2),
        calls("prepare", "chain", flushed - carried, page + SUMMARY_TOKENS, SUMMARY_TOKENS),
        calls("write", "chain", carried, page + SUMMARY_TOKENS, SUMMARY_TOKENS),
        calls("prepare", "topics", flushed, page, 2 * SUMMARY_TOKENS),
    ]
    if config.long_term["enabled"]:
        promotions = PROMOTIONS_PER_PAGE * flushed
        found += [
            calls("write", "profile", promotions, PAGES_READ * page, PROFILE_TOKENS),
            calls("write", "agent_facts", promotions, PAGES_READ * page, 4 * FACT_TOKENS),
            calls("write", "merge_profile", max(promotions - len(shape.turns), 0), 2 * PROFILE_TOKENS, PROFILE_TOKENS),
        ]
    if config.retrieve["query_keywords"]:
        found.append(calls("retrieve", "keywords", shape.asked, shape.question_tokens, SHORT_TOKENS))
    return found


def context_tokens(config: "MemoryOSConfig", shape: DataShape) -> float:
    """Recent pages, pages found, profile and facts."""
    page, search = _pages(config, shape)[1], config.retrieve
    kept = config.short_term_rules.kept(int(_pages(config, shape)[0] / max(len(shape.turns), 1)))
    whole = (kept + search["pages"]) * page + search["pages"] * SUMMARY_TOKENS
    if config.long_term["enabled"]:
        limit = config.long_term["capacity"] or 100
        facts = sum(limit if search[name] is None else search[name] for name in ("user_facts", "agent_facts"))
        whole += reply_tokens(config.roles["merge_profile"], PROFILE_TOKENS) + facts * FACT_TOKENS
    return float(min(whole, config.context["max_tokens"] or whole))


def _pages(config: "MemoryOSConfig", shape: DataShape) -> tuple[float, float]:
    """Pages, and tokens of one."""
    turns = TURNS_PER_PAGE if config.pages == "pairs" else 1.0
    return sum(shape.turns) / turns, turns * shape.turn_tokens + 12
