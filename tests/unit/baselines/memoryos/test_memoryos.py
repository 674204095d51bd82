"""MemoryOS: pages, the queue, segments and their heat, profile and facts, and what the reader sees."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from math import exp
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines.memoryos.long_term import SpeakerFact, fact_lines, read_profile
from baselines.memoryos.memory import MemoryOSMemory
from baselines.memoryos.pages import PagedConversation, PageTopic, agent_of, pages_of
from baselines.memoryos.rules import HeatRules, MidTermRules, PromptLayout, ShortTermRules
from baselines.memoryos.segments import MidTermMemory, TopicSegment, keyword_overlap, recency
from eval.sweep.calls import memory_calls
from memsys.call_model import DataShape
from memsys.errors import ConfigError
from memsys.turns import TurnFormat
from memsys.vocabulary import Conversation, Retrieval, Turn
from tests.support.composing import composed, conversation, ingest, memory_config, parts
from tests.support.fakes import FakeModel
from tests.support.shown import check_shown

#: Five pages of two turns.
TALK = conversation(
    ["boat sea", "boat sail"], ["boat wind", "boat rope"], ["cake oven", "cake milk"], ["p", "q"], ["r", "s"]
)
MID = MidTermRules(
    capacity=2,
    theta=0.6,
    overlap="jaccard",
    keyword_case="lower",
    merge_by="sum",
    copies=False,
    topics_of="both",
    evict="heat",
    unread_topics="beginning",
    fallback_chars=9,
    continues="said",
    chain_shown="latest",
    keywords_of="topic",
    page_vector="dated",
)
LAYOUT = PromptLayout("{dated}", "{dated}", "\n\n", "PROFILE:", "FACTS:", "")
HEAT = HeatRules(alpha=1, beta=1, gamma=1, mu=86400.0, tau=5, recency="dialogue", credit="joined", nothing_new="cool")


def replying(**replies: Any) -> FakeModel:
    """Reply per role with a value, or a function of values and key; topics are the page's own words."""
    usual: dict[str, Any] = {
        "continues": "false",
        "topics": lambda values, key: {
            "topics": [{"theme": "t", "keywords": ["Word "], "content": values["page"].split()[1]}]
        },
        "profile": "PROFILE:\nkind\nFACTS:\n- user sails",
        "agent_facts": "- I bake",
        "keywords": "boat, sea",
    }

    def function(role: str, values: Mapping[str, str], key: str) -> Any:
        said = {**usual, **replies}.get(role, f"made by {role}")
        return said(values, key) if callable(said) else said

    return FakeModel(function)


def memory(model: FakeModel, preset: str = "memoryos", **changes: Any) -> MemoryOSMemory:
    settings = {
        group: {**composed(preset)[group], **change} if isinstance(change, Mapping) else change
        for group, change in changes.items()
    }
    system = memory_config(preset, **settings).build(parts(model))
    assert isinstance(system, MemoryOSMemory)
    return system


def ingested(model: FakeModel | None = None, talk: Conversation = TALK, **changes: Any) -> MemoryOSMemory:
    system = memory(model or replying(), **{"short_term": {"capacity": 1}, **changes})
    ingest(system, talk)
    return system


def asked(system: MemoryOSMemory, question: str = "boat sea") -> Retrieval:
    return asyncio.run(system.retrieve(question))


def counts(system: MemoryOSMemory) -> Mapping[str, int]:
    found: Any = system.statistics()["counts"]
    return found  # type: ignore[no-any-return]


def talk_of(*said: tuple[str, str, str]) -> Conversation:
    turns = tuple(
        Turn(f"{session}:{n}", session, speaker, text, f"{session[1:] or 1} May 2023")
        for n, (session, speaker, text) in enumerate(said)
    )
    return Conversation("c", turns, ("Ann", "Ben"))


# Pages


def test_pairs_stay_in_their_session_and_may_have_one_side() -> None:
    talk = talk_of(
        ("s1", "Ben", "a"), ("s1", "Ann", "b"), ("s1", "Ann", "c"), ("s1", "Ben", "d"), ("s1", "Ann", "e"),
        ("s2", "Ben", "f"), ("s2", "Ben", "g"),
    )  # fmt: skip
    pages = pages_of(talk, TurnFormat(), "pairs")
    assert [page.turn_ids for page in pages] == [
        ("s1:0",), ("s1:1", "s1:2", "s1:3"), ("s1:4",), ("s2:5", "s2:6"),
    ]  # fmt: skip
    assert (pages[0].user, pages[0].agent) == ("", "Ben: a")
    assert pages[1].text == "Ann: b\nAnn: c\nBen: d"
    assert (talk.user, agent_of(talk)) == ("Ann", "Ben")


#: As released, one reply is overwritten, one opens a session, and three turns stand alone.
BROKEN_PAIRS = talk_of(
    ("s1", "Ben", "alone boat"), ("s1", "Ann", "unanswered boat"), ("s1", "Ann", "boat sea"),
    ("s1", "Ben", "overwritten wind"), ("s1", "Ben", "sail rope"), ("s1", "Ann", "cake oven"),
    ("s2", "Ben", "cake milk"), ("s2", "Ann", "unanswered cake"),
    ("s3", "Ann", "song drum"), ("s3", "Ben", "song band"),
)  # fmt: skip


def test_released_pairs_lose_turns_and_cross_sessions() -> None:
    pages = pages_of(BROKEN_PAIRS, TurnFormat(), "released_pairs")
    assert [page.turn_ids for page in pages] == [("s1:2", "s1:4"), ("s1:5", "s2:6"), ("s3:8", "s3:9")]
    assert [(page.session_id, page.date) for page in pages][1] == ("s1", "1 May 2023")
    assert pages[1].text == "Ann: cake oven\nBen: cake milk"
    items = talk_of(("s1", "System", "a"), ("s1", "System", "b"))
    assert [page.turn_ids for page in pages_of(items, TurnFormat(), "released_pairs")] == [("s1:0",), ("s1:1",)]


def test_turns_that_released_pairs_lose_are_counted_and_never_named() -> None:
    model = replying()
    system = ingested(model, BROKEN_PAIRS, pages="released_pairs", retrieve={"segment_score": -1.0, "page_cos": -1.0})
    assert (counts(system)["lost.turns_without_a_pair"], counts(system)["misdated.turns"]) == (4, 1)
    assert "lost.turns_without_a_pair" not in counts(ingested())
    # Three pages, the last of which is in the queue.
    assert system.statistics()["pages"] == 3 and model.count("topics") == model.count("chain") == 2
    assert {hit.turn_ids for hit in asked(system).hits} == {("s1:2", "s1:4"), ("s1:5", "s2:6")}
    assert not any("unanswered" in prompt or "overwritten" in prompt for prompt in model.prompts)


def test_a_released_pair_is_written_when_its_reply_is_said() -> None:
    system = memory(replying(), pages="released_pairs", short_term={"capacity": 1})

    async def pages_after_each_session() -> list[Any]:
        found = []
        for unit in system.units(BROKEN_PAIRS):
            await system.write(unit, await system.prepare(unit))
            found.append(system.statistics()["pages"])
        return found

    assert asyncio.run(pages_after_each_session()) == [1, 2, 3]


@pytest.mark.real_data
def test_released_pairs_of_locomo(locomo_file: Any) -> None:
    from eval.inspect_data import read_config

    data = read_config("locomo", {"path": str(locomo_file)}).load()
    talks = [sample.conversation for sample in data.samples]
    cut = [(talk, PagedConversation(talk, TurnFormat(), "released_pairs")) for talk in talks]
    assert sum(len(paged.pages) for _, paged in cut) == 2864
    assert sum(paged.lost(talk.turns) for talk, paged in cut) == 154
    assert sum(paged.misdated(talk.turns) for talk, paged in cut) == 118


def test_a_conversation_is_cut_into_pages_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cut: list[str] = []

    def counted(talk: Conversation, turn_format: TurnFormat, how: Any) -> Any:
        cut.append(talk.conversation_id)
        return pages_of(talk, turn_format, how)

    monkeypatch.setattr("baselines.memoryos.pages.pages_of", counted)
    assert ingested().statistics()["pages"] == 5 and len(cut) == 1


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4)), max_size=6), st.sampled_from([2.0, 4.5, 5.0]))
def test_the_hottest_segment_is_that_of_the_whole_ranking(made: list[tuple[int, int]], tau: float) -> None:
    rules = replace(HEAT, tau=tau)
    memory = MidTermMemory(2, MID, rules)
    for number, (interactions, day) in enumerate(made):
        name = f"segment_{number}"
        memory.segments[name] = TopicSegment(name, "", (), [], interactions, f"{day} May 2023")
    ranked = sorted(memory.segments.values(), key=lambda each: -round(each.heat(rules, "4 May 2023"), 6))
    best = ranked[0] if ranked and ranked[0].heat(rules, "4 May 2023") >= tau else None
    assert memory.hottest("4 May 2023") is best


@given(st.lists(st.tuples(st.sampled_from("xy"), st.sampled_from(["Ann", "Ben", "Cy"])), max_size=30))
def test_no_turn_is_lost(said: list[tuple[str, str]]) -> None:
    talk = talk_of(*((session, speaker, "w") for session, speaker in said))
    for cut in ("pairs", "turns"):
        found = pages_of(talk, TurnFormat(), cut)  # type: ignore[arg-type]
        assert [turn for page in found for turn in page.turn_ids] == [turn.turn_id for turn in talk.turns]


def test_items_are_pages_and_nobody_is_described() -> None:
    model = replying()
    talk = talk_of(*(("s", "System", f"item{n} word") for n in range(12)))
    system = memory(model)
    ingest(system, talk)
    assert system.statistics()["pages"] == 12
    assert model.count("topics") == 5 and model.count("profile") == 0


# The queue


def test_the_queue_keeps_seven_pages_of_which_nothing_is_asked() -> None:
    model = replying()
    talk = conversation(*[[f"a{n}", f"b{n}"] for n in range(9)])
    system = ingested(model, talk, short_term={"capacity": 7})
    statistics = system.statistics()
    assert (statistics["pages"], statistics["pages_in_queue"]) == (9, 7)
    assert (model.count("topics"), model.count("chain"), model.count("continues")) == (2, 2, 1)
    shown = asked(system).context
    assert shown.startswith("Recent conversation:\n[3 May 2023]\nAnn: a2\nBen: b2\n")


def test_the_released_queue_is_empty_when_questions_are_asked() -> None:
    rules = ShortTermRules(capacity=1, flush="after_append")
    assert (rules.kept(5), ShortTermRules(7, "before_append").kept(5)) == (0, 5)
    model = replying()
    system = memory(model, "memoryos_code")
    ingest(system, TALK)
    assert system.statistics()["pages_in_queue"] == 0 and model.count("topics") == 5
    assert "Recent conversation" not in asked(system).context


# Segments


def test_overlap_of_keywords_by_hand() -> None:
    assert keyword_overlap({"a", "b"}, {"b", "c", "d"}, "jaccard") == 1 / 4
    assert keyword_overlap({"a", "b"}, {"b", "c", "d"}, "mean_share") == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert keyword_overlap(set(), {"a"}, "mean_share") == 0 == keyword_overlap({"a"}, set(), "jaccard")


def topic(vector: tuple[float, float], *keywords: str) -> PageTopic:
    return PageTopic("s", keywords, np.asarray(vector, np.float32))


def test_a_topic_joins_the_best_sum_and_opens_a_segment_below_theta() -> None:
    segments = MidTermMemory(2, MID, HEAT)
    assert segments.insert(topic((1, 0), "a"), "p0", "1 May 2023") is not None
    assert segments.insert(topic((0, 1), "b"), "p1", "1 May 2023") is not None
    # Cosines 0.8 and 0.6: with the overlap of 1 the second has the greater sum.
    assert segments.insert(topic((0.8, 0.6), "b"), "p2", "2 May 2023") is None
    assert [segment.pages for segment in segments.segments.values()] == [["p0"], ["p1", "p2"]]
    # The same page again adds nothing.
    assert segments.insert(topic((0, 1)), "p2", "2 May 2023") is None
    assert [segment.interactions for segment in segments.segments.values()] == [1, 2]


def test_the_nearest_segment_is_credited_as_released_whether_its_page_joins_or_not() -> None:
    found = {}
    for credit in ("joined", "nearest"):
        segments = MidTermMemory(2, MID, replace(HEAT, credit=credit))  # type: ignore[arg-type]
        segments.insert(topic((1, 0)), "p0", "1 May 2023")
        segments.insert(topic((0, 1)), "p1", "1 May 2023")  # nearest, and only, is the first
        segments.insert(topic((0, 1)), "p2", "1 May 2023")  # joins the second
        found[credit] = [(each.pages, each.interactions) for each in segments.segments.values()]
    assert found["joined"] == [(["p0"], 1), (["p1", "p2"], 2)]
    assert found["nearest"] == [(["p0"], 2), (["p1", "p2"], 2)]


def test_a_page_is_in_a_segment_twice_as_released() -> None:
    segments = MidTermMemory(2, replace(MID, copies=True), HEAT)
    for _ in range(2):
        segments.insert(topic((1, 0)), "p0", "1 May 2023")
    assert [(each.pages, each.interactions) for each in segments.segments.values()] == [(["p0", "p0"], 2)]


def test_the_coldest_segment_is_evicted() -> None:
    segments = MidTermMemory(2, MID, HEAT)
    segments.insert(topic((1, 0)), "p0", "1 May 2023")
    segments.insert(topic((1, 0)), "p1", "1 May 2023")
    segments.insert(topic((0, 1)), "p2", "1 May 2023")
    segments.insert(topic((-1, 0)), "p3", "1 May 2023")
    assert sorted(segments.segments) == ["segment_0", "segment_2"] and segments.evicted == 1


def test_heat_by_hand() -> None:
    segments = MidTermMemory(2, MID, HEAT)
    for page in range(4):
        assert segments.hottest("1 May 2023") is None
        segments.insert(topic((1, 0)), f"p{page}", "1 May 2023")
    # Four pages and recency 1 make five; two days later the recency is exp(-2).
    assert segments.hottest("1 May 2023") is not None
    assert segments.hottest("3 May 2023") is None
    assert recency(HEAT, "1 May 2023", "3 May 2023") == pytest.approx(exp(-2))
    assert recency(HEAT, "", "3 May 2023") == 1.0
    released = replace(HEAT, alpha=0.8, beta=0.8, gamma=1e-4, mu=3600, recency="fresh")
    segment = segments.segments["segment_0"]
    segment.interactions = 6
    assert segment.heat(released, "") < 5
    segment.interactions = 7
    assert segment.heat(released, "") >= 5


# Chains and topics


def test_a_chain_reaches_over_sessions_and_all_its_pages_show_its_latest_summary() -> None:
    def chain(values: Mapping[str, str], key: str) -> str:
        return f"{values['known']}+{key}"

    model = replying(chain=chain, continues=lambda values, key: "True." if key != "D3:0" else "no idea")
    system = ingested(model, retrieve={"segment_score": -1.0, "page_cos": -1.0})
    context = asked(system, "boat cake").context
    assert context.count("(about: nothing yet+D1:0+D2:0)") == 2
    assert context.count("(about: nothing yet+D3:0+D4:0)") == 2
    assert counts(system)["fallback.continues"] == 1
    assert system.statistics()["chains"] == 2


@pytest.mark.parametrize(
    "reply", ["no json", {"topics": []}, {"topics": [{"theme": "", "keywords": [], "content": " "}]}]
)
def test_a_page_whose_topics_cannot_be_read_is_kept(reply: Any) -> None:
    system = ingested(replying(topics=reply))
    assert counts(system)["fallback.topics"] == 4
    assert {hit.turn_ids for hit in asked(system, "boat sea").hits} >= {("D1:0", "D1:1"), ("D2:0", "D2:1")}


def test_a_page_whose_topics_cannot_be_read_is_dropped_as_released() -> None:
    def topics(values: Mapping[str, str], key: str) -> Any:
        return "no json" if key == "D2:0" else {"topics": [{"theme": "", "keywords": [], "content": values["page"]}]}

    def chain(values: Mapping[str, str], key: str) -> str:
        return f"{values['known']}+{key}"

    model = replying(topics=topics, chain=chain, continues="true")
    everything = {"segment_score": -1.0, "page_cos": -1.0}
    system = ingested(model, mid_term={"unread_topics": "drop"}, retrieve=everything)
    lost = {name: number for name, number in counts(system).items() if name.startswith("lost.")}
    assert lost == {"lost.pages_without_topics": 1, "lost.turns_without_topics": 2}
    assert counts(system)["fallback.topics"] == 1 and system.statistics()["pages"] == 4
    found = asked(system, "boat wind")
    assert {hit.turn_ids[0] for hit in found.hits} == {"D1:0", "D3:0", "D4:0"}
    assert "wind" not in found.context and "wind" not in str(system.state()["pages"])
    # The calls are those of any page, and the chain goes through it.
    assert (model.count("topics"), model.count("chain"), model.count("continues")) == (4, 4, 3)
    assert "(about: nothing yet+D1:0+D2:0+D3:0+D4:0)" in found.context


def test_keywords_are_compared_as_written_as_released() -> None:
    for case, joins in (("lower", True), ("kept", False)):
        model = replying(
            topics=lambda values, key: {
                "topics": [{"theme": "", "keywords": [" Boat" if key == "D1:0" else "boat "], "content": "same"}]
            },
            keywords="Boat",
        )
        # The cosine is one: with a keyword in common the score is two.
        system = ingested(model, mid_term={"keyword_case": case, "theta": 1.5})
        pages = [each["pages"] for each in system.state()["mid_term"]["segments"]]
        together = [["D1:0", "D2:0", "D3:0", "D4:0"]]
        assert pages == (together if joins else [["D1:0"], ["D2:0", "D3:0", "D4:0"]])
        assert asked(system, "same").trace["keywords"] == (["boat"] if joins else ["Boat"])


def test_what_a_page_is_summarised_from() -> None:
    both, user = replying(), replying()
    ingested(both)
    ingested(user, mid_term={"topics_of": "user_only"})
    assert any("Ann: boat sea\nBen: boat sail" in prompt for prompt in both.prompts if "topics" in prompt)
    assert not any("Ben: boat sail" in prompt for prompt in user.prompts if "topics" in prompt)


# Profile and facts


def test_a_hot_segment_is_read_once_and_cools_down() -> None:
    same = {"topics": [{"theme": "t", "keywords": ["k"], "content": "same"}]}
    model = replying(topics=same, merge_profile="a merged profile of more than thirty characters")
    system = ingested(model, heat={"tau": 2.5, "gamma": 1.0}, retrieve={"fact_cos": -1.0})
    # Two pages and recency 1: hot after the second and the fourth of four pages that left the queue.
    assert model.count("profile") == 2 == model.count("agent_facts") and model.count("merge_profile") == 1
    state = system.state()["long_term"]
    assert state["profile"].startswith("a merged profile")
    facts = [SpeakerFact.from_state(each) for each in state["user"]["facts"]]
    assert [fact.turn_ids for fact in facts] == [("D1:0", "D1:1", "D2:0", "D2:1"), ("D3:0", "D3:1", "D4:0", "D4:1")]
    context = asked(system, "user sails").context
    assert "Facts about Ann:\n- Ann sails (said on" in context and "Facts about Ben:\n- Ben bake" in context


def test_a_fact_without_a_date_says_of_no_day() -> None:
    undated = replace(TALK, turns=tuple(replace(turn, date_time="") for turn in TALK.turns))
    context = asked(ingested(replying(), undated, heat={"tau": 0.5}, retrieve={"fact_cos": -1.0})).context
    assert "Facts about Ann:\n- Ann sails\n" in context + "\n" and "said on" not in context


#: What the pages of a talk are about: two of one thing make its segment hot, the next two open segments of their own.
ABOUT = {"D1:0": "same", "D2:0": "same", "D3:0": "same other", "D4:0": "elsewhere"}


def released_heat(nothing_new: str, pages: int) -> tuple[int, list[int]]:
    """Promotions, and the pages credited to each segment, after so many pages left the queue."""

    def topics(values: Mapping[str, str], key: str) -> Any:
        return {"topics": [{"theme": "", "keywords": [], "content": ABOUT.get(key, "elsewhere")}]}

    heat = {"tau": 2.0, "gamma": 0.0, "credit": "nearest", "nothing_new": nothing_new}
    talk = conversation(*(["boat sea", "boat sail"] for _ in range(pages + 1)))
    system = ingested(replying(topics=topics), talk, heat=heat, mid_term={"theta": 0.9, "merge_by": "cosine"})
    return counts(system)["promotions"], [each["interactions"] for each in system.state()["mid_term"]["segments"]]


def test_a_hot_segment_without_a_new_page_cools_down_or_blocks_the_others_as_released() -> None:
    assert released_heat("cool", 2) == (1, [0]) == released_heat("block", 2)
    # The third and the fourth page are credited to the first segment, which has none of them: hot, nothing to read.
    assert released_heat("cool", 4) == (1, [0, 1, 1])
    assert released_heat("block", 4) == (1, [2, 1, 1])
    # The fifth joins the third segment, which is as hot as the one that blocks it; the sixth makes it hotter.
    assert released_heat("cool", 5) == (2, [0, 1, 0])
    assert released_heat("block", 5) == (1, [2, 1, 2])
    assert released_heat("block", 6) == (2, [2, 1, 0])


def test_a_merged_profile_that_is_too_short_keeps_the_old_one() -> None:
    same = {"topics": [{"theme": "t", "keywords": ["k"], "content": "same"}]}
    system = ingested(replying(topics=same, merge_profile="None"), heat={"tau": 2.5})
    assert system.state()["long_term"]["profile"] == "kind"
    assert counts(system)["fallback.merge_profile"] == 1


def test_facts_beyond_the_capacity_go_oldest_first() -> None:
    same = {"topics": [{"theme": "t", "keywords": ["k"], "content": "same"}]}
    lines = "PROFILE: x\nFACTS:\n" + "\n".join(f"- fact {n}" for n in range(5))
    system = ingested(replying(topics=same, profile=lines), heat={"tau": 2.5}, long_term={"capacity": 3})
    facts = [each["fact_id"] for each in system.state()["long_term"]["user"]["facts"]]
    assert facts == ["user_fact_7", "user_fact_8", "user_fact_9"]


def test_a_profile_is_split_at_the_second_mark() -> None:
    text = "**PROFILE:**\nkind\n\n## FACTS:\n- a (1 May)\n2. b\nNone\nWork:\n"
    assert read_profile(text, LAYOUT) == ("kind", ["a (1 May)", "b"])
    assert read_profile("only a profile", LAYOUT) == ("only a profile", None)
    assert read_profile("Part 1: PROFILE:\nkind\n\nPart 2: FACTS:\n- a", LAYOUT) == ("kind", ["a"])
    assert read_profile("1. Profile\nkind\n2. Facts\n- a", LAYOUT) == ("kind", ["a"])
    other = replace(LAYOUT, profile="[User Profile]", facts="[User Data]")
    assert read_profile("[User Profile]\nkind\n[User Data]\n- a", other) == ("kind", ["a"])
    assert fact_lines("none") == [] == fact_lines("")


# Reading


def test_pages_under_two_topics_are_found_once_and_no_question_is_remembered() -> None:
    two = {"topics": [{"theme": "t", "keywords": [text], "content": text} for text in ("boat", "cake")]}
    system = ingested(replying(topics=two))
    before = system.statistics()
    first = asked(system)
    assert len({hit.memory_id for hit in first.hits}) == len(first.hits)
    assert asked(system).hits == first.hits and system.statistics() == before
    assert before["pages_in_two_segments"] == 4


def test_a_page_in_two_segments_takes_two_places_as_released() -> None:
    two = {"topics": [{"theme": "t", "keywords": [text], "content": text} for text in ("boat", "cake")]}
    limits = {"pages": 4, "segment_score": -1.0, "page_cos": -1.0}
    once, twice = (
        asked(ingested(replying(topics=two), mid_term={"copies": copies}, retrieve=limits)) for copies in (False, True)
    )
    assert [hit.memory_id for hit in twice.hits] == [hit.memory_id for hit in once.hits][:2]
    assert len(once.hits) == 4 and twice.context.count(twice.hits[0].text) == 2 == 2 * once.context.count(
        once.hits[0].text
    )


@pytest.mark.parametrize("copies", [False, True])
def test_pages_that_had_no_room_are_not_shown(copies: bool) -> None:
    two = {"topics": [{"theme": "t", "keywords": [text], "content": text} for text in ("boat", "cake")]}
    limits = {"pages": 4, "segment_score": -1.0, "page_cos": -1.0}
    changes: dict[str, Any] = {"mid_term": {"copies": copies}, "retrieve": limits}
    whole = asked(ingested(replying(topics=two), **changes))
    assert whole.shown == tuple(range(len(whole.hits)))
    room = len(whole.context[: whole.context.index(whole.hits[1].text)].split())
    check_shown(asked(ingested(replying(topics=two), context={"max_tokens": room}, **changes)))


def test_recent_pages_and_facts_that_are_shown_name_their_turns() -> None:
    rules: dict[str, Any] = {"heat": {"tau": 0.5}, "retrieve": {"fact_cos": -1.0}}
    found = asked(ingested(**rules))
    others = [(memory.text, memory.turn_ids) for memory in found.also_shown]
    assert others[0] == ("Ann: r\nBen: s", ("D5:0", "D5:1"))
    assert ("Ann sails", ("D1:0", "D1:1")) in others and ("Ben bake", ("D1:0", "D1:1")) in others
    assert all(text in found.context for text, _ in others)
    assert len(asked(ingested(context={"max_tokens": 10}, **rules)).also_shown) == 1


def test_keywords_of_a_question_are_its_words_where_none_is_named() -> None:
    found = asked(ingested(replying(keywords=" , ")), "What about the boat race in Spain and France")
    assert found.trace["keywords"] == ["boat", "race", "spain"]
    assert found.trace["fallbacks"] == ["keywords:words"]


def test_a_budget_keeps_what_stands_first() -> None:
    cut = asked(ingested(context={"max_tokens": 10}))
    assert cut.context == "Recent conversation:\n[5 May 2023]\nAnn: r\nBen: s" and cut.trace["left_out"] > 0
    assert cut.hits and cut.shown == ()
    with pytest.raises(ConfigError, match="reserve_tokens"):
        ingested(context={"reserve_tokens": 9000})


# Plans


def test_calls_by_hand() -> None:
    shape = DataShape([191, 191], [19] * 20, {1: 10}, turn_tokens=30.0)
    calls = memory_calls(memory_config("memoryos"), shape) or ()
    found: dict[str, float] = {}
    for each in calls:
        found[each.role] = found.get(each.role, 0.0) + each.calls
    # 1.6 pages of each of the 18 later sessions go on with a chain of the session before.
    assert [each.calls for each in calls if (each.phase, each.role) == ("write", "chain")] == pytest.approx([28.8])
    # 100 pages per conversation, seven of which stay in the queue.
    assert found == {
        "continues": 184, "chain": 186, "topics": 186, "profile": 46.5, "agent_facts": 46.5, "merge_profile": 44.5,
        "keywords": 10,
    }  # fmt: skip


def test_calls_of_the_released_pairs_by_hand() -> None:
    """Ten conversations of LoCoMo's length: 2,864 pages, of which none stays in the queue."""
    shape = DataShape([588] * 8 + [589] * 2, [20] * 270, {1: 10}, turn_tokens=30.0)
    calls = {(each.phase, each.role): each for each in memory_calls(memory_config("memoryos_code"), shape) or ()}
    assert calls["prepare", "topics"].calls == pytest.approx(2864)
    assert calls["prepare", "continues"].calls == pytest.approx(2854)
    chains = calls["prepare", "chain"].calls + calls["write", "chain"].calls
    assert chains == pytest.approx(2864)
    # Seven pages make a segment hot: 0.8 * 6 + 0.0001 < 5 <= 0.8 * 7.
    assert calls["write", "profile"].calls == pytest.approx(2864 / 7)
