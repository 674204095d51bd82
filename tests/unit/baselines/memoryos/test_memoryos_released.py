"""MemoryOS as released: what a parity run with the released evaluation showed that `memoryos_code` did otherwise."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from baselines.memoryos.chains import ChainSummaries
from baselines.memoryos.long_term import profile_as_written, written_facts
from baselines.memoryos.memory import MemoryOSMemory
from baselines.memoryos.pages import PagedConversation
from baselines.memoryos.rules import PromptLayout
from baselines.memoryos.segments import MidTermMemory
from memsys.errors import ConfigError
from memsys.turns import TurnFormat
from tests.support.composing import ingest
from tests.support.fakes import FakeModel
from tests.unit.baselines.memoryos.test_memoryos import (
    BROKEN_PAIRS,
    HEAT,
    LAYOUT,
    MID,
    TALK,
    asked,
    counts,
    memory,
    replying,
    talk_of,
    topic,
)

SAME = {"topics": [{"theme": "t", "keywords": ["k"], "content": "same"}]}


def released(model: FakeModel, talk: Any = TALK, **changes: Any) -> MemoryOSMemory:
    system = memory(model, "memoryos_code", **changes)
    ingest(system, talk)
    return system


def segments(system: MemoryOSMemory) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = system.state()["mid_term"]["segments"]
    return found


# Chains


@pytest.mark.parametrize(("reply", "chains"), [(" TRUE\n", 1), ("true.", 5), ("it is true", 5), ("", 5)])
def test_a_page_goes_on_where_the_reply_is_the_word_true_alone(reply: str, chains: int) -> None:
    system = released(replying(continues=reply))
    assert system.statistics()["chains"] == chains
    said = memory(replying(continues=reply), short_term={"capacity": 1})
    ingest(said, TALK)
    assert said.statistics()["chains"] == (1 if "true" in reply.lower() else 4)


def shown(*pages: tuple[str, bool, bool]) -> Mapping[str, str]:
    """What each stored page of these shows; a page is its name, whether it goes on, and whether it is stored."""
    chains = ChainSummaries("two_later")
    for name, continues, stored in pages:
        chains.add(name, f"s{name}", continues=continues, stored=stored)
        state = chains.state()
        chains = ChainSummaries("two_later")
        chains.load_state(state)
    return {name: chains.of(name) for name, _, stored in pages if stored}


def test_a_page_shows_the_summary_of_the_page_two_places_later() -> None:
    whole = shown(("a", False, True), ("b", True, True), ("c", True, True), ("d", True, True), ("e", False, True))
    assert whole == {"a": "sc", "b": "sd", "c": "sc", "d": "sd", "e": "se"}


def test_a_dropped_page_passes_no_summary_on() -> None:
    # The second page after it may be dropped itself; the pages before a dropped one are never reached again.
    kept = shown(
        ("a", False, True), ("b", True, True), ("c", True, False), ("d", True, False), ("e", True, True),
        ("f", True, True), ("g", True, True),
    )  # fmt: skip
    assert kept == {"a": "sc", "b": "sb", "e": "sg", "f": "sf", "g": "sg"}


def test_an_empty_summary_is_kept_as_released() -> None:
    system = released(replying(chain=lambda values, key: "" if key == "D2:0" else f"{values['known']}+{key}",
                               continues="true"), retrieve={"segment_score": -1.0, "page_cos": -1.0})  # fmt: skip
    assert "(about: nothing yet+D3:0)" in asked(system).context and counts(system)["fallback.chain"] == 1


# Topics and segments


def test_a_bare_list_of_topics_is_read_and_blank_topics_count() -> None:
    listed = json.dumps([{"content": " "}, {"theme": "t", "keywords": [" K"], "content": " said "}])
    system = released(replying(topics=listed, keywords=""), mid_term={"theta": 9.0})
    assert [each["summary"] for each in segments(system)[:2]] == [" ", " said "]
    assert counts(system)["fallback.topics"] == 0
    fenced = released(replying(topics=f"```json\n{listed}\n```"))
    assert segments(fenced) == [] and counts(fenced)["lost.pages_without_topics"] == 5
    other = memory(replying(topics=listed), short_term={"capacity": 1})
    ingest(other, TALK)
    assert counts(other)["fallback.topics"] == 4


def test_keywords_of_a_segment_are_asked_for_when_it_is_opened() -> None:
    model = replying(topics=SAME, keywords="sea, , Boat,sea")
    system = released(model)
    assert [each["keywords"] for each in segments(system)] == [["sea", "Boat"]] and model.count("keywords") == 1
    assert any("same" in prompt for prompt in model.prompts if "keywords of the question" in prompt)


def test_a_segment_that_is_apart_is_not_joined_for_its_keywords() -> None:
    for merge_by, pages in (("sum", [["p0", "p1"]]), ("cosine", [["p0"], ["p1"]])):
        made = MidTermMemory(2, replace(MID, merge_by=merge_by), replace(HEAT, credit="nearest"))  # type: ignore[arg-type]
        made.insert(topic((1, 0), "a"), "p0", "1 May 2023")
        made.insert(topic((-0.1, 0.99), "a"), "p1", "1 May 2023")
        assert [each.pages for each in made.segments.values()] == pages
        assert next(iter(made.segments.values())).interactions == 2


def test_all_keywords_of_a_question_count_and_no_others() -> None:
    assert asked(released(replying(keywords="a, b, c, d"))).trace["keywords"] == ["a", "b", "c", "d"]
    nothing = asked(released(replying(keywords=" , ")), "What about the boat race").trace
    assert (nothing["keywords"], nothing["fallbacks"]) == ([], [])


def test_what_is_embedded_of_a_page_has_no_space_between_its_parts() -> None:
    page = PagedConversation(TALK, TurnFormat(style="bare"), "pairs").pages[0]
    assert page.run_on == f"boat sea{page.date}boat sail"
    dated, run_on = (released(replying(), mid_term={"page_vector": kind}) for kind in ("dated", "run_on"))
    assert asked(dated).hits[0].score != asked(run_on).hits[0].score


# Promotion


def test_replies_are_taken_as_they_are_written() -> None:
    layout = replace(LAYOUT, profile="[P]", facts="[F]")
    assert profile_as_written("[P]\nkind\n[F]\n- a\n\n  - b\nWork:\nNone", layout) == (
        "kind", ["- a", "", "- b", "Work:", "None"],
    )  # fmt: skip
    assert profile_as_written("kind [p] facts:", layout) == ("kind [p] facts:", None)
    assert written_facts(["- a", "", "- None", "- None.", "None"]) == ["- a", "None"]


@pytest.mark.parametrize(
    ("told", "facts"),
    [("- I bake\n- I sail", ["- I bake\n- I sail"]), ("None", []), ("- None.", []), (" None. ", ["None."]), ("", [])],
)
def test_facts_about_the_other_speaker_are_one_fact(told: str, facts: list[str]) -> None:
    model = replying(topics=SAME, agent_facts=told, profile="no second part", merge_profile="")
    system = released(model, heat={"tau": 1.6})
    state = system.state()["long_term"]
    assert [fact["text"] for fact in state["agent"]["facts"]] == 2 * facts
    assert [fact["text"] for fact in state["user"]["facts"]] == ["None", "None"]
    # The merged profile is empty, and replaced the first one.
    assert (state["profile"], model.count("merge_profile")) == ("", 1)


#: After the third pair two segments are hot: one has the first and the third pair, the other the second and the third.
BOTH_HOT = (
    ("s1", "Ann", "boat"), ("s1", "Ben", "a"), ("s1", "Ann", "cake"), ("s1", "Ben", "b"), ("s1", "Ann", "boat cake"),
    ("s1", "Ben", "c"),
)  # fmt: skip


@pytest.mark.parametrize(("after", "promotions"), [((), 1), ((("s1", "Ann", "unanswered"),), 2)])
def test_hot_segments_are_read_at_pages_that_are_lost_too(after: tuple[Any, ...], promotions: int) -> None:
    def topics(values: Mapping[str, str], key: str) -> Any:
        said = values["page"].split()[1:]
        return {"topics": [{"theme": "t", "keywords": [], "content": word} for word in said]}

    heat = {"tau": 1.6, "credit": "joined"}
    system = released(replying(topics=topics), talk_of(*BOTH_HOT, *after), heat=heat, mid_term={"theta": 0.9})
    assert counts(system)["promotions"] == promotions
    before = released(replying(topics=topics), talk_of(*after, *BOTH_HOT), heat=heat, mid_term={"theta": 0.9})
    assert counts(before)["promotions"] == 1


def test_pages_that_are_lost_are_counted_where_they_would_be_queued() -> None:
    assert PagedConversation(BROKEN_PAIRS, TurnFormat(), "released_pairs").idle == [2, 0, 1, 0]
    paged = PagedConversation(BROKEN_PAIRS, TurnFormat(), "pairs")
    assert paged.idle == [0] * (len(paged.pages) + 1)


def test_pages_in_prompts_are_laid_out_as_the_settings_say() -> None:
    layout = {"page": "U {user} A {agent} T {date}", "agent_page": "{dated}", "between": " & "}
    model = replying(topics=SAME)
    released(model, heat={"tau": 2.0}, prompt_layout=layout)
    described = next(prompt for prompt in model.prompts if "Describe Ann" in prompt)
    assert "U Ann: boat sea A Ben: boat sail T 1 May 2023 & U Ann: boat wind" in described
    for wrong in ({"page": "{text}"}, {"facts": "**"}):
        with pytest.raises(ConfigError, match=r"memory\.prompt_layout"):
            memory(model, "memoryos_code", prompt_layout=wrong)
    assert PromptLayout("", "", "", "a", "b", "").agent_facts == ""
