"""A-Mem's staged calls: reading free text, heuristics, and the order of the calls."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines.amem.heuristics import HeuristicRules, first_sentence, salient_words
from baselines.amem.memory import AmemMemory
from baselines.amem.roles import make_roles
from baselines.amem.sections import (
    Analysis,
    UnreadableReplyError,
    analysis,
    connections,
    decision,
    items,
    neighbour_blocks,
    query_keywords,
    section,
)
from memsys.turns import TurnFormat
from memsys.vocabulary import Turn, Unit
from tests.support.composing import memory_config, parts
from tests.support.fakes import FakeModel

GOOD_ANALYSIS = "KEYWORDS: boat, sea\nCONTEXT: Ann buys\na boat.\nTAGS: hobby, sailing, purchase"


HEURISTICS = HeuristicRules(keywords=5, shortest_word=3, tags=3, context_chars=200)
OF_ANALYSIS = ("KEYWORDS", "CONTEXT", "TAGS")


def test_sections_end_at_the_next_heading() -> None:
    assert section(GOOD_ANALYSIS, "KEYWORDS", ("CONTEXT", "TAGS")) == "boat, sea"
    assert section(GOOD_ANALYSIS, "CONTEXT", ("KEYWORDS", "TAGS")) == "Ann buys\na boat."
    assert section(GOOD_ANALYSIS, "REASON", OF_ANALYSIS) == ""
    assert section("  context : c", "CONTEXT", ("TAGS",)) == "c"


def test_a_heading_in_bold_is_none() -> None:
    assert section("**TAGS:** a, b\n**CONTEXT:** c", "CONTEXT", ("TAGS",)) == ""
    assert analysis("**KEYWORDS:** boat\n**CONTEXT:** c\n**TAGS:** t") == Analysis([], "", [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"keywords": ["boat", " sea"], "context": "c", "more": 1}', Analysis(["boat", " sea"], "c", [])),
        ('```json\n{"keywords": "boat, sea", "context": ["a", "b"], "tags": ["t"]}\n```',
         Analysis(["boat", "sea"], "a b", ["t"])),
        ('Here: {"keywords": ["boat"], "context": "c", "tags": ["t"]}', Analysis([], "", [])),
        ('{"keywords": ["boat"], "context": "c", "tags": ["t"', Analysis([], "", [])),
        ('KEYWORDS: boat\nCONTEXT: {"a": 1}\nTAGS: t', Analysis(["boat"], '{"a": 1}', ["t"])),
    ],
)  # fmt: skip
def test_json_counts_where_the_whole_reply_is_an_object(text: str, expected: Analysis) -> None:
    assert analysis(text) == expected


@pytest.mark.parametrize("text", ['{"context": 5}', '{"keywords": [1]}', '{"tags": {"a": 1}}', '{"context": [1]}'])
def test_json_of_other_types_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableReplyError):
        analysis(text)


def test_items_lose_bullets_and_quotes_and_keep_repeats() -> None:
    assert items('- "boat"\n* sea\n2. Ann\nboat') == ["boat", "sea", "Ann", "boat"]
    assert items("") == [] and items("none") == ["none"]
    assert items("3d print; 2nd, 'x'") == ["3d print; 2nd", "x"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CONNECTIONS: 0, -1, two, 3\nTAGS: a, b", ([0, -1, 3], ["a", "b"])),
        ("CONNECTIONS: [0, 2]", ([], [])),
        ('{"suggested_connections": [1, "2", 3.0], "tags_to_update": ["t"]}', ([1, 3.0], ["t"])),
        ('{"connections": [4], "suggested_connections": [1], "tags": ["t"]}', ([4], ["t"])),
        ("nothing", ([], [])),
    ],
)
def test_connections(text: str, expected: tuple[list[Any], list[str]]) -> None:
    assert connections(text) == expected


@pytest.mark.parametrize(
    ("text", "actions"),
    [
        ("DECISION: NO_EVOLUTION\nREASON: it stands alone, nothing to strengthen", None),
        ("DECISION: no evolution\nREASON: strengthen", None),
        ("DECISION: STRENGTHEN\nREASON: close", ("strengthen",)),
        ("update neighbor", ("update_neighbor",)),
        ("STRENGTHEN_AND_UPDATE", ("strengthen", "update_neighbor")),
        ("Strengthen and update.", ("strengthen", "update_neighbor")),
        ("**DECISION:** NO_EVOLUTION, nothing to update", ("update_neighbor",)),
        ("I would link it to the others", None),
        ("banana", None),
        ("", None),
        ('{"should_evolve": false, "actions": ["strengthen"]}', None),
        ('{"should_evolve": true, "actions": ["strengthen"]}', ("strengthen",)),
        ('{"should_evolve": true, "actions": ["dance"]}', None),
        ('{"decision": "UPDATE_NEIGHBOR"}', ("update_neighbor",)),
        ('{"decision": "strengthen"}', ()),
        ('{"reason": "STRENGTHEN"}', None),
        ('So: {"should_evolve": false, "actions": ["strengthen"]}', ("strengthen",)),
    ],
)
def test_decisions(text: str, actions: tuple[str, ...] | None) -> None:
    assert decision(text) == actions


def test_neighbour_blocks_go_by_their_number() -> None:
    text = "NEIGHBOR 0:\nCONTEXT: first\nTAGS:\nNEIGHBOR 1:\nCONTEXT: second\nTAGS: b, c\nNEIGHBOR 7:\nCONTEXT: no such"
    assert neighbour_blocks(text, 3) == [("first", []), ("second", ["b", "c", "NEIGHBOR 7:"]), ("", [])]
    assert neighbour_blocks("NEIGHBOR 0\nCONTEXT: c", 1) == [("", [])]
    assert neighbour_blocks('{"new_context_neighborhood": ["c", null]}', 3) == [("c", []), ("", []), ("", [])]


def test_keywords_of_a_question_are_free_text_or_an_object() -> None:
    assert query_keywords(" boat, sea\n") == "boat, sea"
    assert query_keywords('{"keywords": "boat"}') == "boat" and query_keywords('{"keywords": ["a"]}') == "['a']"
    assert query_keywords('Here: {"keywords": "boat"}') == 'Here: {"keywords": "boat"}'


@given(st.text(max_size=80), st.integers(0, 3))
def test_reading_text_never_fails(text: str, count: int) -> None:
    words, sentence = partial(salient_words, rules=HEURISTICS), partial(first_sentence, rules=HEURISTICS)
    for read in (decision, items, connections, analysis, query_keywords, words, sentence):
        with suppress(UnreadableReplyError):
            read(text)
    with suppress(UnreadableReplyError):
        assert len(neighbour_blocks(text, count)) == count


def test_heuristics() -> None:
    text = "the old boat of Ann was in Oslo, Ann said it is 99 ft"
    assert salient_words(text, HEURISTICS) == ["ann", "oslo", "old", "boat"]
    assert salient_words("ok, it is me", HEURISTICS) == []
    assert salient_words("one two three four five six", HEURISTICS) == ["one", "two", "three", "four", "five"]
    assert first_sentence("Ann: It sank. Then we swam.", HEURISTICS) == "Ann: It sank."
    assert first_sentence("It sank", HEURISTICS) == "It sank" and first_sentence("x" * 300, HEURISTICS) == "x" * 200
    fewer = HeuristicRules(keywords=2, shortest_word=4, tags=1, context_chars=4)
    assert salient_words(text, fewer) == ["oslo", "boat"] and first_sentence("It sank", fewer) == "It s"


def system(replies: Mapping[str, Any]) -> tuple[AmemMemory, FakeModel]:
    model = FakeModel(lambda role, values, key: replies.get(f"{role} {key}", replies.get(role, "")))
    built = memory_config("amem_robust").build(parts(model))
    assert isinstance(built, AmemMemory)
    return built, model


def write(memory: AmemMemory, *texts: str) -> list[dict[str, Any]]:
    async def run() -> None:
        for number, text in enumerate(texts):
            unit = Unit(f"u{number}", (Turn(f"u{number}", "s", "Ann", text, date_time="1 May"),))
            await memory.write(unit, await memory.prepare(unit))

    asyncio.run(run())
    return list(memory.state()["notes"])


def test_both_actions_take_three_calls_after_the_analysis() -> None:
    memory, model = system(
        {
            "analyse_sections": GOOD_ANALYSIS,
            "decide": "DECISION: STRENGTHEN_AND_UPDATE",
            "strengthen": "CONNECTIONS: 0, 5\nTAGS: joined",
            "update_neighbours": "NEIGHBOR 0:\nCONTEXT: rewritten\nTAGS:",
        }
    )
    first, second = write(memory, "a boat", "another boat")
    assert [role for role, _ in model.calls] == [
        "analyse_sections",
        *("analyse_sections", "decide", "strengthen", "update_neighbours"),
    ]
    assert second["links"] == ["u0"] and second["tags"] == ["joined"]
    assert first["context"] == "rewritten" and first["tags"] == ["hobby", "sailing", "purchase"]
    assert memory.statistics()["counts"]["links.dropped"] == 1


def test_no_evolution_is_one_call() -> None:
    memory, model = system({"analyse_sections": GOOD_ANALYSIS, "decide": "NO_EVOLUTION"})
    write(memory, "a boat", "another boat")
    assert model.count("decide") == 1 and model.count("strengthen") == model.count("update_neighbours") == 0
    assert memory.statistics()["evolved_notes"] == 0


def test_missing_keywords_are_guessed_and_asked_for_only_where_no_word_is_left() -> None:
    memory, model = system({"analyse_sections": "CONTEXT: c\nTAGS: t", "focus_keywords": "KEYWORDS: mast, sail"})
    first, second = write(memory, "Oslo was cold. Very cold.", "")
    assert first["keywords"] == ["ann", "oslo", "cold"] and first["context"] == "c"
    assert model.count("focus_keywords") == 0 and second["keywords"] == ["ann"]
    parts_of = parts(model, turn_format=TurnFormat(style="bare"))
    bare = memory_config("amem_robust").build(parts_of)
    assert isinstance(bare, AmemMemory)
    (note,) = write(bare, "ok")
    assert model.count("focus_keywords") == 1 and note["keywords"] == ["KEYWORDS: mast", "sail"]


def test_garbage_everywhere_still_gives_a_note() -> None:
    memory, _ = system({})
    (note,) = write(memory, "Oslo was cold. Very cold.")
    assert note["keywords"] == ["ann", "oslo", "cold"] and note["tags"] == ["ann", "oslo", "cold"]
    assert note["context"] == "Ann: Oslo was cold."
    assert memory.statistics()["counts"]["fallback.analyse"] == 1


def test_a_neighbour_reply_of_other_types_ends_the_evolution_and_keeps_the_links() -> None:
    memory, _ = system(
        {
            "analyse_sections": GOOD_ANALYSIS,
            "decide": "DECISION: STRENGTHEN_AND_UPDATE",
            "strengthen": "CONNECTIONS: 0\nTAGS: joined",
            "update_neighbours": '{"new_context_neighborhood": 5}',
        }
    )
    first, second = write(memory, "a boat", "another boat")
    assert second["links"] == ["u0"] and second["tags"] == ["joined"] and first["context"] == "Ann buys\na boat."
    counts = memory.statistics()["counts"]
    assert (counts["fallback.evolve"], counts["evolution.yes"], memory.statistics()["evolved_notes"]) == (1, 0, 0)


def test_each_call_shows_what_the_released_one_shows() -> None:
    memory, model = system(
        {
            "analyse_sections": GOOD_ANALYSIS,
            "decide": "STRENGTHEN_AND_UPDATE",
            "strengthen": "",
            "update_neighbours": "",
        }
    )
    write(memory, "a boat", "another boat")
    shown = {
        role: {field for field in ("context", "content", "keywords") if f"\n{field}: " in prompt.split("\nSimilar")[0]}
        for (role, _), prompt in zip(model.calls, model.prompts, strict=True)
    }
    assert shown["decide"] == {"context", "content", "keywords"}
    assert shown["strengthen"] == {"content", "keywords"} and shown["update_neighbours"] == {"content", "context"}


def test_keywords_are_asked_for_as_free_text() -> None:
    memory, _ = system({"keywords": "boat, sea"})
    write(memory, "a boat")
    assert asyncio.run(memory.retrieve("Which boat?")).trace["keywords"] == "boat, sea"
    assert asyncio.run(memory.retrieve("Which boat?")).trace["fallbacks"] == []
    assert all(role.schema is None for role in make_roles("staged", memory_config("amem_robust").roles).values())  # type: ignore[attr-defined]
