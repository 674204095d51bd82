"""Expected calls of MemoryOS."""

from collections.abc import Mapping
from math import ceil, inf

from baselines.memoryos.config import MemoryOSConfig
from baselines.memoryos.rules import HeatRules, PageCut
from memsys.call_model import (
    SHORT_TOKENS,
    DataShape,
    ExpectedCalls,
    reply_tokens,
    settings_key,
    template_tokens,
)
from memsys.llm.scope import Phase

#: Turns of LoCoMo for each page: 5,882 make about 3,075 that never leave their session, and 2,864 as released.
TURNS_PER_PAGE: Mapping[PageCut, float] = {"pairs": 1.91, "turns": 1.0, "released_pairs": 5882 / 2864}
#: Turns on a page; the released pairs lose the others.
TURNS_ON_A_PAGE: Mapping[PageCut, float] = {**TURNS_PER_PAGE, "released_pairs": 2.0}
#: Pages at a session's beginning that go on with a chain of the session before, an assumption: their summary waits for
#: that chain's (30 over the 18 later sessions of conv-26 with Qwen2.5-Coder-0.5B).
CARRIED_PER_SESSION = 1.6
#: Segments that a page opens, an assumption: with two topics a page, half of which join a segment, it is one.
OPENED_PER_PAGE = 1.0
#: Tokens of a summary, a description and a fact.
SUMMARY_TOKENS, PROFILE_TOKENS, FACT_TOKENS = 60, 250, 25


def expected_calls(config: MemoryOSConfig, shape: DataShape) -> list[ExpectedCalls]:
    """Return three calls for each page that leaves the queue, two or three for each promotion, one for a question.

    Where segments' keywords are asked for, one more for each that a page opens.
    """
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
    if config.mid_term["keywords_of"] == "asked":
        found.append(calls("write", "keywords", OPENED_PER_PAGE * flushed, SUMMARY_TOKENS, SHORT_TOKENS))
    if config.long_term["enabled"]:
        read = pages_of_a_promotion(config.heat_rules)
        promotions = flushed / read
        found += [
            calls("write", "profile", promotions, min(read, flushed) * page, PROFILE_TOKENS),
            calls("write", "agent_facts", promotions, min(read, flushed) * page, 4 * FACT_TOKENS),
            calls("write", "merge_profile", max(promotions - len(shape.turns), 0), 2 * PROFILE_TOKENS, PROFILE_TOKENS),
        ]
    if config.retrieve["query_keywords"]:
        found.append(calls("retrieve", "keywords", shape.asked, shape.question_tokens, SHORT_TOKENS))
    return found


def pages_of_a_promotion(heat: HeatRules) -> float:
    """Return the pages of a hot segment: four with the paper's weights, seven with the released ones.

    An assumption: a page joins one or two segments, and counts for one.
    """
    return max(ceil((heat.tau - heat.gamma) / heat.beta), 1) if heat.beta else inf


def context_tokens(config: MemoryOSConfig, shape: DataShape) -> float:
    """Return the tokens of recent pages, pages found, profile and facts."""
    page, search = _pages(config, shape)[1], config.retrieve
    kept = config.short_term_rules.kept(int(_pages(config, shape)[0] / max(len(shape.turns), 1)))
    whole = (kept + search["pages"]) * page + search["pages"] * SUMMARY_TOKENS
    if config.long_term["enabled"]:
        limit = config.long_term["capacity"] or 100
        facts = sum(limit if search[name] is None else search[name] for name in ("user_facts", "agent_facts"))
        whole += reply_tokens(config.roles["merge_profile"], PROFILE_TOKENS) + facts * FACT_TOKENS
    return float(min(whole, config.context["max_tokens"] or whole))


def _pages(config: MemoryOSConfig, shape: DataShape) -> tuple[float, float]:
    """Return the number of pages, and the tokens of one."""
    return sum(shape.turns) / TURNS_PER_PAGE[config.pages], TURNS_ON_A_PAGE[config.pages] * shape.turn_tokens + 12
