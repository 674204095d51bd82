"""Expected calls of ReadAgent."""

from math import ceil, inf

from baselines.readagent.config import ReadAgentConfig
from memsys.call_model import (
    ENVELOPE_TOKENS,
    SHORT_TOKENS,
    DataShape,
    ExpectedCalls,
    reply_tokens,
    settings_key,
    template_tokens,
)

#: Words of LoCoMo's turns per token, length of a gist over its page's, number and date before either.
WORDS_PER_TOKEN, GIST_SHARE, HEADER_TOKENS = 0.77, 0.25, 18


def expected_calls(config: ReadAgentConfig, shape: DataShape) -> list[ExpectedCalls]:
    """Return a cut and a gist for each page; for a question one look-up, or one more than the opened pages."""
    prompts, roles, gist = "baselines/readagent/prompts", config.roles, _gist_tokens(config)
    pages, cuts = _pages(config, shape)
    key = settings_key(config, "lookup", "context")
    chunk = 2 * config.pages["max_words"] / WORDS_PER_TOKEN  # the page before is shown too
    page = sum(shape.turns) * shape.turn_tokens / max(pages, 1)
    gists = (gist + HEADER_TOKENS) * pages / max(len(shape.turns), 1)
    role, rounds = "lookup", ceil(gists / (config.lookup["max_tokens"] or inf)) or 1
    if config.lookup["mode"] == "sequential":
        role, rounds = "lookup_next", ceil((config.lookup["sequential_pages"] + 1) / 2)
    asked = gists / rounds if role == "lookup" else gists
    prompt = template_tokens(f"{prompts}/{role}.txt") + shape.question_tokens + asked
    return [
        ExpectedCalls(
            "prepare", "paginate", cuts, template_tokens(f"{prompts}/paginate.txt") + chunk, ENVELOPE_TOKENS, key
        ),
        ExpectedCalls("prepare", "gist", pages, template_tokens(f"{prompts}/gist.txt") + page, gist, key),
        ExpectedCalls("retrieve", role, rounds * shape.asked, prompt, reply_tokens(roles[role], SHORT_TOKENS)),
    ]


def context_tokens(config: ReadAgentConfig, shape: DataShape) -> float:
    """Return the tokens of all gists, some replaced by their pages."""
    per_conversation = _pages(config, shape)[0] / max(len(shape.turns), 1)
    page = sum(shape.turns) * shape.turn_tokens / max(_pages(config, shape)[0], 1)
    mode = config.lookup["mode"]
    opened = min(config.lookup[f"{mode}_pages"] / (2 if mode == "sequential" else 1), per_conversation)
    whole = per_conversation * (_gist_tokens(config) + HEADER_TOKENS) + opened * (page - _gist_tokens(config))
    return float(min(whole, config.context["max_tokens"] or whole))


def _pages(config: ReadAgentConfig, shape: DataShape) -> tuple[int, int]:
    """Return the number of pages and of calls that cut them, for breaks in the middle of the marks."""
    rules = config.pages
    pages = cuts = 0
    for turns in shape.sessions if rules["respect_sessions"] else shape.turns:
        left = turns * shape.turn_tokens * WORDS_PER_TOKEN
        while left > 0:
            pages += 1
            if left < rules["tail_words"]:
                break
            cuts += 1
            left -= (rules["start_words"] + min(left, rules["max_words"])) / 2
    return pages, cuts


def _gist_tokens(config: ReadAgentConfig) -> float:
    usual = (config.pages["start_words"] + config.pages["max_words"]) / 2 / WORDS_PER_TOKEN * GIST_SHARE
    return reply_tokens(config.roles["gist"], usual)
