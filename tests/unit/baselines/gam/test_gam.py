"""GAM: pages and their numbers, the three tools, rounds of research, and what the reader sees."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from baselines.gam.lucene import LuceneIndex
from baselines.gam.memory import GamMemory
from baselines.gam.pages import AbstractedPage, AbstractLines, drifted
from baselines.gam.roles import TEXTS, make_roles
from baselines.gam.rules import GamPageRules
from baselines.gam.stems import stems
from eval.sweep.calls import memory_calls
from memsys.call_model import DataShape
from memsys.errors import ConfigError
from memsys.llm.structured import parse_object
from memsys.llm.thoughts import strip_thinking
from memsys.turns import sessions_of
from memsys.vocabulary import Conversation, Retrieval
from tests.support.composing import composed, conversation, ingest, memory_config, parts
from tests.support.fakes import FakeModel, TableEmbedder
from tests.support.shown import check_shown

TALK = conversation(["boat sea", "boat sail"], ["cake oven", "cake milk"], ["song drum", "band stage"])
RULES = GamPageRules(max_tokens=None, bound="session", embedded="beginning", abstract_chars=4, by_position=False)


def plan(*tools: str, words: Sequence[str] = (), queries: Sequence[str] = (), pages: Sequence[int] = ()) -> Any:
    return {
        "info_needs": [],
        "tools": list(tools),
        "keyword_collection": list(words),
        "vector_queries": list(queries),
        "page_index": list(pages),
    }


def replying(**replies: Any) -> FakeModel:
    """Reply per role with a value, or a function of values and key."""
    usual: dict[str, Any] = {
        "abstract": lambda values, key: f"about {key}",
        "plan": plan("keyword", words=["boat"]),
        "integrate": lambda values, key: {"content": f"found by {key[-1]}", "sources": ["0", "(7)", "x"]},
        "check": {"enough": True},
        "requests": {"new_requests": ["Who sailed?", "Where to?"]},
    }

    def function(role: str, values: Mapping[str, str], key: str) -> Any:
        said = {**usual, **replies}[role]
        return said(values, key) if callable(said) else said

    return FakeModel(function)


def memory(model: FakeModel, preset: str = "gam", **changes: Any) -> GamMemory:
    settings = {
        group: {**composed(preset)[group], **change} if isinstance(change, Mapping) else change
        for group, change in changes.items()
    }
    system = memory_config(preset, **settings).build(parts(model))
    assert isinstance(system, GamMemory)
    return system


def ingested(model: FakeModel | None = None, talk: Conversation = TALK, **changes: Any) -> GamMemory:
    system = memory(model or replying(), **changes)
    ingest(system, talk)
    return system


def asked(system: GamMemory, question: str = "Who sailed?") -> Retrieval:
    return asyncio.run(system.retrieve(question))


def page(number: int, abstract: str) -> AbstractedPage:
    return AbstractedPage(f"p{number}", f"text{number}", (f"t{number}",), abstract)


# Pages


def test_a_session_is_a_page_under_its_date() -> None:
    pages = [AbstractedPage.from_state(each) for each in ingested().state()["pages"]]
    assert [each.turn_ids for each in pages] == [("D1:0", "D1:1"), ("D2:0", "D2:1"), ("D3:0", "D3:1")]
    assert pages[1].text == (
        "This is session_2, held on 2 May 2023; the date may be used to answer questions.\n\n"
        "Ann: cake oven\nBen: cake milk"
    )


def test_a_long_session_is_cut_between_turns() -> None:
    pages = ingested(pages={"max_tokens": 6}, talk=conversation(["a b", "c d", "e f", "one two three four five six"]))
    assert [each["turn_ids"] for each in pages.state()["pages"]] == [["D1:0", "D1:1"], ["D1:2"], ["D1:3"]]


@pytest.mark.real_data
def test_conv_26_has_19_pages(locomo_file: Any) -> None:
    from eval.inspect_data import read_config

    data = read_config("locomo", {"path": str(locomo_file)}).load()
    sizes = {each.conversation.conversation_id: len(sessions_of(each.conversation.turns)) for each in data.samples}
    assert sizes["conv-26"] == 19 and sum(sizes.values()) == 272
    first = next(each.conversation for each in data.samples if each.conversation.conversation_id == "conv-26")
    assert ingested(talk=first).statistics()["pages"] == 19


def test_a_line_of_an_abstract_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    def counted(name: str, **values: Any) -> str:
        written.append(name)
        return TEXTS(name, **values)

    monkeypatch.setattr("baselines.gam.pages.TEXTS", counted)
    asked(ingested())
    assert written.count("page") == 3


def test_abstracts_see_the_earlier_ones_and_keep_their_numbers() -> None:
    model = replying(abstract=lambda values, key: {"D1:0": "same", "D2:0": "same", "D3:0": ""}[key])
    system = ingested(model)
    third = next(prompt for prompt in model.prompts if "song drum" in prompt)
    assert "Page 0: same\nPage 1: same\n" in third and "(nothing yet)" in model.prompts[0]
    statistics = system.statistics()
    assert statistics["counts"] == {
        "fallback.abstract": 1,
        "abstract.duplicate": 1,
        "abstract.cut": 0,
        "abstract.page_cut": 0,
    }
    assert statistics["drifted_pages"] == 2


def lines(pages: Sequence[AbstractedPage], rules: GamPageRules) -> list[str]:
    made = AbstractLines(rules)
    for each in pages:
        made.add(each)
    return made.lines


def test_numbers_drift_in_the_released_list() -> None:
    pages = [page(0, "a"), page(1, "a"), page(2, ""), page(3, "b")]
    assert lines(pages, RULES) == ["Page 0: a", "Page 1: a", "Page 2: text", "Page 3: b"]
    released = replace(RULES, by_position=True)
    assert lines(pages, released) == ["Page 0: a", "Page 1: b"]
    assert drifted(pages) == 3


# Tools


def test_words_are_stems_without_lucenes_stop_words() -> None:
    assert stems("The boats were sailing into THE harbour") == ["boat", "were", "sail", "harbour"]


def test_cosines_of_a_page_that_two_queries_find_add_up() -> None:
    table = {f"{name}": vector for name, vector in (("q1", (1, 0)), ("q2", (0.6, 0.8)))}
    texts = [each["text"] for each in ingested().state()["pages"]]
    table |= dict(zip(texts, ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)), strict=True))
    model = replying(plan=plan("vector", queries=["q1", "q2"]))
    system = memory_config("gam", research={**composed("gam")["research"], "top_k": 2}).build(
        parts(model, embedder=TableEmbedder(table))
    )
    ingest(system, TALK)
    hits = asyncio.run(system.retrieve("q")).hits
    # q1 finds pages 0 (1.0) and 1 (0.0), q2 finds 1 (0.8) and 0 (0.6).
    assert [(hit.memory_id, round(hit.score, 6)) for hit in hits] == [("D1:0", 1.6), ("D2:0", 0.8)]


class HalvingEmbedder(TableEmbedder):
    """Reads the first or the second half of a page, between its two turns."""

    def windows(self, text: str) -> Sequence[str]:
        """Cut a page before its last line."""
        begin, _, end = text.rpartition("\n")
        return (begin, end)


def halves() -> dict[str, tuple[float, float]]:
    """Vectors of pages, which are those of their first halves, and of the halves."""
    table: dict[str, tuple[float, float]] = {"q": (0.0, 1.0)}
    second = ((0.6, 0.8), (1.0, 0.0), (-1.0, 0.0))
    for each, vector in zip(ingested().state()["pages"], second, strict=True):
        begin, _, end = each["text"].rpartition("\n")
        table |= {each["text"]: (1.0, 0.0), begin: (1.0, 0.0), end: vector}
    return table


def embedding(how: str, embedder: TableEmbedder) -> GamMemory:
    changed = {"pages": {**composed("gam")["pages"], "embedded": how}}
    system = memory_config("gam", **changed).build(
        parts(replying(plan=plan("vector", queries=["q"])), embedder=embedder)
    )
    assert isinstance(system, GamMemory)
    ingest(system, TALK)
    return system


def test_a_page_is_embedded_by_its_beginning_or_by_the_mean_of_its_windows() -> None:
    beginning = asked(embedding("beginning", HalvingEmbedder(halves())))
    assert [round(hit.score, 6) for hit in beginning.hits] == [0, 0, 0]
    # (1, 0) and (0.6, 0.8) have the mean (0.8, 0.4), of length 0.894427; the last page's halves cancel out.
    whole = asked(embedding("mean_of_windows", HalvingEmbedder(halves())))
    assert [(hit.memory_id, round(hit.score, 6)) for hit in whole.hits] == [
        ("D1:0", 0.447214),
        ("D2:0", 0),
        ("D3:0", 0),
    ]
    with pytest.raises(ConfigError, match="embedder table has no windows"):
        embedding("mean_of_windows", TableEmbedder(halves()))


def test_what_no_named_tool_is_for_is_ignored() -> None:
    found = asked(ingested(replying(plan=plan("page_index", words=["boat"], pages=[2, 9, -1, 2]))))
    assert [hit.memory_id for hit in found.hits] == ["D3:0"]
    assert found.trace["found_by_tool"] == {"page_index": 1}
    inferred = asked(ingested(replying(plan=plan(words=["boat"])), research={"infer_tools": True}))
    assert [hit.memory_id for hit in inferred.hits] == ["D1:0"]


def test_a_page_keeps_its_better_score_and_pages_by_number_come_last() -> None:
    both = plan("page_index", "keyword", words=["cake"], pages=[2, 1])
    found = asked(ingested(replying(plan=both)))
    assert [hit.memory_id for hit in found.hits] == ["D2:0", "D3:0"]
    assert found.hits[0].score > 0 == found.hits[1].score


# Rounds


def test_no_hit_means_no_integration() -> None:
    model = replying(plan=plan("keyword", words=["nowhere"]), check={"enough": False})
    found = asked(ingested(model))
    assert model.count("integrate") == 0 and found.context == "" and found.hits == ()


def test_thirteen_calls_at_most_and_one_less_without_the_last_requests() -> None:
    model = replying(check={"enough": False})
    found = asked(ingested(model))
    research = [role for role, _ in model.calls if role != "abstract"]
    # With the reader's call the specification's thirteen.
    assert research == ["plan", "integrate", "check", "requests"] * 3
    assert (found.trace["rounds"], found.trace["ended_by"]) == (3, "rounds")
    spared = replying(check={"enough": False})
    asked(ingested(spared, research={"last_requests": False}))
    assert spared.count("requests") == 2


def test_further_requests_are_planned_together_and_integrated_for_the_first_question() -> None:
    model = replying(check=lambda values, key: {"enough": key.endswith(":1")})
    asked(ingested(model), "When was it?")
    plans = [prompt for prompt in model.prompts if "You plan the search" in prompt]
    assert "Question: When was it?" in plans[0] and "Question: Who sailed? Where to?" in plans[1]
    merged = [prompt for prompt in model.prompts if "Facts are collected that" in prompt]
    assert all("Question: When was it?" in prompt for prompt in merged)
    assert "Known so far:\nfound by 0" in merged[1]


@pytest.mark.parametrize(("keep", "expected"), [(True, "found by 0"), (False, "")])
def test_an_empty_integration_keeps_or_erases(keep: bool, expected: str) -> None:
    def integrate(values: Mapping[str, str], key: str) -> Any:
        return {"content": "found by 0" if key.endswith(":0") else " ", "sources": ["0"]}

    model = replying(integrate=integrate, check=lambda values, key: {"enough": key.endswith(":1")})
    found = asked(ingested(model, research={"keep_on_empty": keep}))
    assert found.context == expected and "integrate:empty" in found.trace["fallbacks"]


def test_a_plan_that_cannot_be_read_searches_nothing_or_the_question() -> None:
    assert asked(ingested(replying(plan="no json")), "boat sea").hits == ()
    found = asked(ingested(replying(plan="no json"), research={"plan_fallback": "question"}), "boat sea")
    assert found.hits[0].memory_id == "D1:0" and found.trace["fallbacks"] == ["plan:question"]


def test_a_check_in_words_and_a_lost_integration() -> None:
    model = replying(check='{"enough": "Yes"}', integrate="lost")
    found = asked(ingested(model))
    assert found.trace["ended_by"] == "enough" and found.trace["fallbacks"] == ["integrate:kept"]


def test_a_plan_after_a_thinking_block_is_read() -> None:
    text = '<think>{"tools": 5}</think> The plan: {"tools": ["keyword"]} done'
    schema = {"type": "object", "required": ["tools"]}
    assert parse_object(strip_thinking(text), schema, repair=False).value == {"tools": ["keyword"]}


def test_pages_that_do_not_fit_are_left_out_from_the_last() -> None:
    class Narrow(FakeModel):
        context_length = 2048 + 256 + 140

    usual = replying(plan=plan("keyword", "page_index", words=["boat"], pages=[0, 1, 2]), check={"enough": True})
    model = Narrow(usual.function)
    system = memory_config("gam", context={**composed("gam")["context"], "reserve_tokens": 10}).build(parts(model))
    ingest(system, TALK)
    found = asyncio.run(system.retrieve("Who sailed?"))
    prompt = next(prompt for prompt in model.prompts if "Facts are collected that" in prompt)
    assert "1. [keyword](0) This is session_1" in prompt
    assert found.trace["pages_cut"] > 0 and len(prompt.split()) <= 140
    # The text is made of the pages that an integration read.
    assert found.shown == (0,) and len(found.hits) > 1


@pytest.mark.parametrize(("room", "seen"), [(10_000, [0, 1, 2]), (10, [1, 2]), (1, [])])
def test_a_plan_sees_the_last_abstracts_that_fit_beside_its_question(room: int, seen: list[int]) -> None:
    """An abstract's line has five words, as many as its tokens here; half of the window is not kept free."""
    frame = len(make_roles(composed("gam")["roles"])["plan"].prompt.render({"question": "?", "abstracts": ""}).split())

    class Window(FakeModel):
        context_length = 2048 + 256 + frame + room

    model = Window(replying(abstract="a sea song").function)
    system = memory_config("gam", context={**composed("gam")["context"], "reserve_tokens": 10}).build(parts(model))
    ingest(system, TALK)
    found = asyncio.run(system.retrieve("?"))
    prompt = next(prompt for prompt in model.prompts if "You plan the search" in prompt)
    assert [number for number in range(3) if f"Page {number}: a sea song" in prompt] == seen
    assert found.trace["abstracts_cut"] == 3 - len(seen)


@pytest.mark.parametrize("role", ["plan", "integrate", "check", "requests"])
def test_prompts_describe_their_fields_without_a_placeholder_that_could_be_copied(role: str) -> None:
    """Models of half a billion parameters searched for ``<piece>`` when the prompt showed one."""
    text = make_roles(composed("gam")["roles"])[role].prompt.text
    assert not re.search(r"<[a-z ]+>|\.\.\.", text)


@pytest.mark.parametrize("preset", ["gam", "gam_small", "gam_code"])
def test_a_plan_need_not_open_pages_by_number(preset: str) -> None:
    schema = make_roles(composed(preset)["roles"])["plan"].schema
    assert schema and schema["properties"]["page_index"]["minItems"] == 0
    assert schema["properties"]["tools"].get("minItems") == (1 if preset == "gam_small" else None)


# As released


def released(model: FakeModel, talk: Conversation = TALK, **changes: Any) -> Retrieval:
    """Ask the memory of ``gam_code``."""
    system = memory(model, "gam_code", **changes)
    ingest(system, talk)
    return asked(system)


def test_lucene_finds_a_word_that_half_of_the_pages_have() -> None:
    """Okapi's inverse document frequency of it is 0, so that two pages alone were never found by words."""
    two = conversation(["boat sea", "boat sail"], ["cake oven", "cake milk"])
    found = released(replying(plan=plan("keyword", words=["boats"])), two)
    assert [hit.memory_id for hit in found.hits] == ["D1:0"]
    assert asked(ingested(replying(plan=plan("keyword", words=["boats"])), talk=two)).hits == ()


def test_lucenes_score_by_hand() -> None:
    index = LuceneIndex(0.9, 0.4)
    index.add(["a", "b", "c"], ["boat boat sea", "boat", "cake oven"])
    # boat is in 2 of 3: ln(1 + 1.5 / 2.5) = 0.470004. Lengths are 3, 1 and 2, their mean 2.
    # a: 2 / (2 + 0.9 (0.6 + 0.4 * 1.5)) = 0.649351; b: 1 / (1 + 0.9 (0.6 + 0.4 * 0.5)) = 0.581395; twice asked, twice.
    assert index.scores("boats").tolist() == pytest.approx([0.305197, 0.273258, 0.0], abs=1e-5)
    assert index.scores("boat boat")[1] == pytest.approx(2 * 0.273258, abs=1e-5)


def test_lucene_names_tied_pages_as_texts() -> None:
    many = conversation(*([["boat sea"]] * 11))
    found = released(replying(plan=plan("keyword", words=["boat"])), many, research={"top_k": 4})
    assert [hit.memory_id for hit in found.hits] == ["D1:0", "D2:0", "D11:0", "D3:0"]


@pytest.mark.parametrize(("preset", "sessions"), [("gam", (2, 3, 4, 5, 7)), ("gam_code", (7, 5, 4, 3, 2, 1))])
def test_pages_by_number_are_limited_and_in_order_or_as_the_plan_has_them(preset: str, sessions: list[int]) -> None:
    system = memory(replying(plan=plan("page_index", pages=[6, 4, 3, 2, 1, 0])), preset)
    ingest(system, conversation(*([["a b"]] * 7)))
    assert [hit.memory_id for hit in asked(system).hits] == [f"D{number}:0" for number in sessions]


@pytest.mark.parametrize(
    ("reply", "ended", "asked_further"),
    [
        ({"enough": "no"}, "enough", 0),
        ({"enough": 0}, "rounds", 3),
        ({"other": True}, "rounds", 3),
        ("no object", "rounds", 0),
    ],
)
def test_checks_are_read_as_python_does_and_unread_ones_ask_for_nothing(
    reply: Any, ended: str, asked_further: int
) -> None:
    model = replying(check=reply)
    assert released(model).trace["ended_by"] == ended
    assert model.count("requests") == asked_further
    careful = replying(check=reply)
    asked(ingested(careful))
    assert careful.count("requests") == 3


def test_a_plan_and_an_integration_may_lack_fields_and_hold_others() -> None:
    model = replying(plan={"tools": ["web", "keyword"], "keyword_collection": ["boat"]}, integrate={"sources": 1 > 0})
    found = released(model)
    assert [hit.memory_id for hit in found.hits] == ["D1:0"]
    assert found.trace["fallbacks"] == ["integrate:kept"]
    assert asked(ingested(replying(plan={"tools": ["web", "keyword"], "keyword_collection": ["boat"]}))).hits == ()
    erased = released(replying(integrate={"sources": [0, None]}))
    assert (erased.context, erased.trace["sources"]) == ("", ["D1:0"])
    numbers = plan("page_index")
    numbers["page_index"] = [" 1 ", True, 2.0]
    assert [hit.memory_id for hit in released(replying(plan=numbers)).hits] == ["D2:0", "D3:0"]


def test_all_requests_are_taken_and_no_white_space_is_lost() -> None:
    many = {"new_requests": [f"{n}?" for n in range(7)]}
    model = replying(check={"enough": False}, requests=many, integrate={"content": " x ", "sources": []})
    assert released(model).context == " x "
    assert "Question: 0? 1? 2? 3? 4? 5? 6?\n" in [prompt for prompt in model.prompts if "You plan" in prompt][1]


def test_a_header_may_count_sessions_from_0() -> None:
    system = ingested(pages={}, texts={"header": "{index} of {date}", "no_findings": "none"})
    assert [each["text"].split(" of ")[0] for each in system.state()["pages"]] == ["0", "1", "2"]


def test_pages_that_the_integration_names_are_a_ranking_of_the_hits() -> None:
    """In the order in which it names them; one that no tool found is counted."""
    named = replying(plan=plan("page_index", pages=[0, 1]), integrate={"content": "x", "sources": ["1", "2", "0", "1"]})
    found = asked(ingested(named))
    assert [hit.memory_id for hit in found.hits] == ["D1:0", "D2:0"]
    assert found.rankings == {"named": (1, 0)} and found.trace["sources_not_found"] == 1


def test_a_number_of_thousands_of_digits_is_no_page() -> None:
    """Python refuses to read it, which ended the question with a ValueError."""
    endless = "1" * 5000
    named = replying(integrate={"content": "x", "sources": [endless, "0"]})
    assert asked(ingested(named)).rankings == {"named": (0,)}
    numbers = plan("page_index", pages=[1])
    numbers["page_index"] = [endless, "+1"]
    assert [hit.memory_id for hit in released(replying(plan=numbers)).hits] == ["D2:0"]


# Reading


def test_the_reader_sees_the_integrated_text_the_pages_or_both() -> None:
    found = asked(ingested())
    assert found.context == "found by 0" and found.trace["sources"] == ["D1:0"]
    assert found.rankings == {"named": (0,)} and found.trace["sources_not_found"] == 0
    both = asked(ingested(context={"shown": "integrated_and_pages"})).context
    assert both.startswith("found by 0\n\nThis is session_1")
    model = replying()
    pages = asked(ingested(model, context={"shown": "pages"}))
    assert pages.context.startswith("This is session_1") and model.count("integrate") == 0
    assert pages.rankings == {}, "nothing is merged, so nothing is named"
    assert asked(ingested(context={"max_tokens": 2})).context == "found"
    three = plan("page_index", pages=[0, 1, 2])
    check_shown(asked(ingested(replying(plan=three), context={"shown": "pages", "max_tokens": 30})))
    read = asked(ingested())
    assert read.shown == tuple(range(len(read.hits)))
    unread = asked(ingested(replying(integrate="no object"), context={"shown": "integrated"}))
    assert unread.context == "" and unread.hits and unread.shown == ()
    with pytest.raises(ConfigError, match="reserve_tokens"):
        ingested(context={"reserve_tokens": 9000})


# Plans


def test_calls_by_hand() -> None:
    shape = DataShape([190, 190], [19] * 20, {1: 10}, turn_tokens=30.0)
    found = {each.role: each.calls for each in memory_calls(memory_config("gam"), shape) or ()}
    assert found == {"abstract": 20, "plan": 20, "check": 20, "requests": 10, "integrate": 20}


def test_wrong_settings_are_named() -> None:
    for change, message in (
        ({"research": {"tools": ["smell"]}}, "memory.research.tools"),
        ({"research": {"bm25": [1]}}, "memory.research.bm25"),
        ({"pages": {"max_tokens": 0}}, "memory.pages.max_tokens"),
        ({"research": {"keywords": "solr"}}, "memory.research.keywords"),
        ({"research": {"opened": "none"}}, "memory.research.opened"),
        ({"research": {"ties": "luck"}}, "memory.research.ties"),
        ({"research": {"checks": "kind"}}, "memory.research.checks"),
        ({"research": {"max_requests": 0}}, "memory.research.max_requests"),
        ({"pages": {"embedded": "end"}}, "memory.pages.embedded"),
    ):
        with pytest.raises(ConfigError, match=message):
            memory(replying(), **change)
