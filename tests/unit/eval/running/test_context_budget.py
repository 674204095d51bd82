"""The same room for every memory's context."""

from dataclasses import replace

import pytest

from eval.running.composed import make_plan
from eval.running.context_budget import within_budget
from eval.running.plan import Plan, identity_of
from memsys.errors import ConfigError
from memsys.scripts import estimated_tokens
from memsys.vocabulary import Hit, Retrieval

HITS = tuple(Hit(text, 1.0, (f"t{place}",)) for place, text in enumerate(("first memory", "second\nmemory 2", "third")))
CONTEXT = "[May] first memory\nheading\nsecond\nmemory 2\n[June] third"


RETRIEVAL = Retrieval(HITS, CONTEXT)


def cut(budget: int, retrieval: Retrieval = RETRIEVAL) -> Retrieval:
    return within_budget(retrieval, budget)


def test_memories_leave_from_the_last_rank_with_their_lines() -> None:
    assert cut(estimated_tokens(CONTEXT)) == Retrieval(HITS, CONTEXT)
    assert cut(12) == Retrieval(HITS, "[May] first memory\nheading\nsecond\nmemory 2", shown=(0, 1))
    assert cut(8) == Retrieval(HITS, "[May] first memory\nheading", shown=(0,))
    assert cut(2) == Retrieval(HITS, "[May] fi", shown=(0,))  # the first is cut, or a large one would leave nothing


def test_rank_decides_and_not_the_place_in_the_context() -> None:
    by_time = Retrieval(HITS, "third\nfirst memory", shown=(0, 2))
    assert cut(4, by_time) == Retrieval(HITS, "first memory", shown=(0,))


def test_of_a_line_with_two_memories_one_stays() -> None:
    assert cut(5, Retrieval(HITS[:2], "first memory; second; memory 2")).context == "first memory; ; "


def test_a_context_without_texts_of_memories_is_cut() -> None:
    whole = Retrieval((Hit("", 0.0, ("t0", "t1")),), "old and new", ranked=False)
    assert cut(1, whole) == replace(whole, context=" new", traced=False)
    written = Retrieval(HITS, "a summary of all three")
    assert cut(2, written) == Retrieval(HITS, "a summar")
    own = Retrieval(HITS, CONTEXT, answer="yes")
    assert cut(1, own) == own


def plan(*overrides: str) -> Plan:
    from eval.api.parts import composed
    from eval.config.compose import without_hydra

    return make_plan(without_hydra(composed(["mode=retrieval_only", *overrides])))


def test_the_budget_is_part_of_a_run_only_where_it_is_set() -> None:
    without, with_budget = plan(), plan("context.budget=1024")
    assert (without.context_budget, with_budget.context_budget) == (None, 1024)
    assert "context" not in identity_of(without, "")
    assert identity_of(with_budget, "")["context"] == {"budget": 1024}


@pytest.mark.parametrize("override", ["context.budget=0", "context.budget=many", "context=1024"])
def test_what_is_no_number_of_tokens_is_refused(override: str) -> None:
    with pytest.raises(ConfigError, match=r"^context"):
        plan(override)
