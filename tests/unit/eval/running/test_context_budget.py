"""The same room for every memory's context."""

import re
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    assert cut(5, Retrieval((HITS[0], HITS[2]), "first memory; third; ...")).context == "first memory; ; ..."


def named(context: str, budget: int, *texts: str, linked: str = "") -> tuple[str, tuple[int, ...] | None]:
    hits = tuple(Hit(text, 1.0, (f"t{place}",)) for place, text in enumerate(texts))
    found = cut(budget, Retrieval(hits, context, also_shown=(Hit(linked, 0.0, ("l",)),) if linked else ()))
    return found.context, found.shown


def test_a_memory_leaves_its_own_lines_alone() -> None:
    tea = ("Ben likes tea and cake", "Ben likes tea")
    assert named("- Ben likes tea and cake\n- Ben likes tea", 8, *tea) == ("- Ben likes tea and cake", (0,))
    assert named("- Ben likes tea\n- Ben likes tea and cake", 8, *tea) == ("- Ben likes tea and cake", (0,))
    heading = "Notes on him:\n[May 2023] Bob broke his phone"
    assert named(f"{heading}\n1. on", 11, "Bob broke his phone", "on") == (heading, (0,))
    # The second has a place in the text of the first alone, which is cut at its end.
    assert named("Bob broke his phone", 3, "Bob broke his phone", "on") == ("Bob broke hi", (0,))


def test_of_memories_with_the_same_text_one_stays() -> None:
    assert named("[May] yes\n[June] yes\n[July] no", 5, "yes", "no", "yes") == ("[May] yes\n[July] no", (0, 1))
    twice = "Recent:\n[May] yes\n[May] no\nFound:\n[May] yes"
    assert named(twice, 8, "no", "yes") == ("Recent:\n[May] no\nFound:", (0,))


def test_of_memories_of_several_lines_each_keeps_its_own() -> None:
    context = "[May]\nAnn: Yes\nBen: tea\n[June]\nAnn: Yes\nBen: cake"
    assert named(context, 9, "Ann: Yes\nBen: cake", "Ann: Yes\nBen: tea") == (
        "[May]\n[June]\nAnn: Yes\nBen: cake",
        (0,),
    )
    dated = "[May; June] Tea\n- (May) Ann: Yes\n- (June) Ben: tea\n[July] Cake"  # as MemFly shows its notes
    assert named(dated, 3, "Cake", "Tea\nAnn: Yes\nBen: tea") == ("[July] Cake", (0,))


@pytest.mark.parametrize("separator", ["\t", ""])
def test_a_note_leaves_with_its_fields_and_stays_where_another_one_repeats_it(separator: str) -> None:
    def line(content: str, context: str) -> str:
        return separator.join(["time: May", f"memory content: {content}", f"memory context: {context}", ""])

    notes = [line("Ann says: I bake", "baking"), line("Ben says: tea", "Ann says: I bake"), line("Cy says: no", "no")]
    texts, whole = ("Ben says: tea", "Ann says: I bake"), "\n".join(notes)
    assert named(whole, 40, *texts, linked="Cy says: no") == ("\n".join(notes[1:]), (0,))


@st.composite
def contexts(draw: st.DrawFn) -> tuple[list[str], str]:
    """Memories of a few words, which often hold each other, and a context that lists them in any order."""
    words = st.sampled_from(["tea", "a", "Ben", "on", "one"])
    texts = draw(st.lists(st.lists(words, min_size=1, max_size=4).map(" ".join), min_size=1, max_size=6))
    marks = st.sampled_from(["", "- ", "[May] ", "2. ", "said: "])
    return texts, "\n".join(["Notes on Ben:", *(draw(marks) + text for text in draw(st.permutations(texts)))])


@given(contexts(), st.integers(1, 40))
def test_every_memory_that_stays_is_whole_and_all_others_leave(given: tuple[list[str], str], budget: int) -> None:
    texts, context = given
    left, shown = named(context, budget, *texts)
    kept = [texts[place] for place in range(len(texts)) if shown is None or place in shown]
    assert estimated_tokens(left) <= budget
    if len(kept) > 1 or estimated_tokens(context) <= budget:
        head, *lines = left.split("\n")
        assert head == "Notes on Ben:"
        assert sorted(re.sub(r"^(?:- |\[May\] |2\. |said: )", "", line) for line in lines) == sorted(kept)
    else:
        assert kept == texts[:1]


LIKES = ("Ann likes tea", "Ben likes cake and tea", "Cy likes pie")


def in_time(layout: str, separator: str) -> str:
    """Return a context with the third memory of :data:`LIKES` first and the first one last."""
    return separator.join(layout.format(text) for text in reversed(LIKES))


@pytest.mark.parametrize(
    ("layout", "separator", "left"),
    [
        ("{}", ", ", "Ben likes cake and tea, Ann likes tea"),
        ("{}.", " ", "Ben likes cake and tea. Ann likes tea."),
        ("{}", ". ", "Ben likes cake and tea. Ann likes tea"),
        ("{}", "。", "Ben likes cake and tea。Ann likes tea"),
        ("{}, said on 5 May", "\n", "Ben likes cake and tea, said on 5 May\nAnn likes tea, said on 5 May"),
        ("Memory: '{}'", "\n", "Memory: 'Ben likes cake and tea'\nMemory: 'Ann likes tea'"),
        ("At 5 May, he said, {}", "\n", "At 5 May, he said, Ben likes cake and tea\nAt 5 May, he said, Ann likes tea"),
        ("'{}'", ", ", "'', 'Ben likes cake and tea', 'Ann likes tea'"),
        ("({})", " ", "() (Ben likes cake and tea) (Ann likes tea)"),
        ("{}", " ", "Ben likes cake and tea Ann likes tea"),
        ("{} and", " ", "and Ben likes cake and tea and Ann likes tea and"),
        ("on {} too", "\n", "on Ben likes cake and tea too\non Ann likes tea too"),
    ],
)  # fmt: skip
def test_memories_leave_whatever_separates_them(layout: str, separator: str, left: str) -> None:
    assert named(in_time(layout, separator), estimated_tokens(left), *LIKES) == (left, (0, 1))


def test_sentences_that_end_themselves_are_parts() -> None:
    assert named("Cy is ill. Ann is well.", 4, "Ann is well.", "Cy is ill.") == ("Ann is well.", (0,))
    assert named("我喜欢茶。他喜欢蛋糕。", 6, "他喜欢蛋糕。", "我喜欢茶。") == ("他喜欢蛋糕。", (0,))
    assert named("我喜欢茶他喜欢蛋糕", 6, "他喜欢蛋糕", "我喜欢茶") == ("他喜欢蛋糕", (0,))


def test_no_part_of_a_word_or_of_another_memory_leaves() -> None:
    assert named("Ben, the baker, is on, on", 5, "Ben, the baker, is on", "on") == ("Ben, the baker, is o", (0,))
    assert named("I paid 3.5, he paid 3", 3, "he paid 3", "I paid 3.5", "I paid 3") == ("he paid 3", (0,))
    assert named("don't, can't and won't stop", 5, "can", "t") == ("don't, can't and won", None)
    # A text of which a summary says a word is none of its items: the end is cut, and all stay shown.
    said = "Ann, Ben and Cy met, had tea, and left"
    assert named(said, 6, "Ann met Ben", "tea", "Cy left early") == (said[:24], None)


@given(contexts(), st.sampled_from([", ", ". "]), st.integers(1, 40))
def test_every_memory_between_commas_that_stays_is_whole(
    given: tuple[list[str], str], separator: str, budget: int
) -> None:
    texts, _ = given
    left, shown = named(context := separator.join(reversed(texts)), budget, *texts)
    kept = [texts[place] for place in range(len(texts)) if shown is None or place in shown]
    assert estimated_tokens(left) <= budget
    if len(kept) > 1 or estimated_tokens(context) <= budget:
        assert sorted(filter(None, left.split(separator))) == sorted(kept)
    else:
        assert kept == texts[:1] and texts[0].startswith(left.removesuffix(separator.strip()))


def test_a_long_context_is_cut_in_a_moment() -> None:
    """A text found 3,000 times took half a second, and one line with hundreds of memories is looked at as a whole."""
    texts = ["on", *(f"memory {number} of tea and on, on" for number in range(3000))]
    begun = time.perf_counter()
    for separator in ("\n", ", "):
        assert named(separator.join(reversed(texts)), 6, *texts[:50])[1] == (0,)
    assert time.perf_counter() - begun < 5.0


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
