"""Gists: one call for each page, and what replaces a reply that is not a gist."""

from dataclasses import replace

from baselines.readagent.pages import GistPage
from baselines.readagent.rules import GistRules
from memsys.index.words import words as content_words
from memsys.llm.contract import LanguageModel, Role
from memsys.scripts import count_words, first_words


async def with_gist(
    llm: LanguageModel, role: Role, page: GistPage, rules: GistRules, *, key: str
) -> tuple[GistPage, list[str]]:
    """Give a page its gist.

    A reply that is not a gist is replaced by the beginning of the page.

    Returns:
        The page, and what is to be counted: ``gist.cut`` for a reply at the limit of new tokens, ``gist.<cause>`` and
        ``fallback.gist`` for what is not a gist.
    """
    reply = await llm.ask(role, {"page": page.full}, key=key)
    gist = reply.text.strip()
    counts = ["gist.cut"] if reply.completion.finish_reason == "length" else []
    cause = no_gist(gist, page, rules)
    if cause is not None:
        gist = first_words(page.text, max(1, round(rules.fallback_share * page.words)))
        counts += [f"gist.{cause}", "fallback.gist"]
    return replace(page, gist=gist), counts


def no_gist(gist: str, page: GistPage, rules: GistRules) -> str | None:
    """Say why a reply is not a gist: ``empty``, ``long`` or ``unrelated``; ``None`` when it is one."""
    if not gist:
        return "empty"
    if count_words(gist) > rules.max_share * page.words:
        return "long"
    known, used = set(content_words(page.full)), set(content_words(gist))
    if used and len(used & known) < rules.min_overlap * len(used):
        return "unrelated"
    return None
