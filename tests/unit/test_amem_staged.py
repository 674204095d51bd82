"""A-Mem's staged calls: reading free text, heuristics, and the order of the calls."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines.amem.memory import AmemMemory
from baselines.amem.sections import decision, items, neighbour_blocks, numbers, section
from baselines.amem.staged import first_sentence, salient_words
from memsys.vocabulary import Turn, Unit
from tests.support.composing import memory_config, parts
from tests.support.fakes import FakeModel

GOOD_ANALYSIS = "KEYWORDS: boat, sea\nCONTEXT: Ann buys\na boat.\nTAGS: hobby, sailing, purchase"


def test_sections_end_at_the_next_heading() -> None:
    assert section(GOOD_ANALYSIS, "KEYWORDS") == "boat, sea"
    assert section(GOOD_ANALYSIS, "CONTEXT") == "Ann buys\na boat."
    assert section(GOOD_ANALYSIS, "REASON") == ""
    assert section("**TAGS:** a, b\n**CONTEXT:** c", "TAGS").strip("* ") == "a, b"


def test_json_is_read_first() -> None:
    text = 'Here: {"keywords": ["boat", "sea"], "context": "c"}'
    assert section(text, "KEYWORDS") == "boat, sea" and section(text, "CONTEXT") == "c"
    assert section(text, "TAGS") == ""


def test_items_lose_bullets_quotes_and_repeats() -> None:
    assert items('- "boat"\n- [sea]\n2. Ann\nboat') == ["boat", "sea", "Ann"]
    assert items("none") == [] and items("") == []
    assert items("3d print; 2nd") == ["3d print", "2nd"]


def test_numbers_keep_their_sign() -> None:
    assert numbers("[0, 12], -1 and 3") == [0, 12, -1, 3]


@pytest.mark.parametrize(
    ("text", "actions"),
    [
        ("DECISION: NO_EVOLUTION\nREASON: it stands alone, nothing to strengthen", ()),
        ("DECISION: STRENGTHEN\nREASON: close", ("strengthen",)),
        ("update neighbor", ("update_neighbor",)),
        ("STRENGTHEN_AND_UPDATE", ("strengthen", "update_neighbor")),
        ("Strengthen and update.", ("strengthen", "update_neighbor")),
        ("I would link it to the others", ("strengthen",)),
        ("Please revise the old notes and connect them", ("strengthen", "update_neighbor")),
        ("no need to update anything", ()),
        ("banana", ()),
        ("", ()),
    ],
)
def test_decisions(text: str, actions: tuple[str, ...]) -> None:
    assert decision(text) == actions


def test_neighbour_blocks_go_by_their_number() -> None:
    text = "NEIGHBOR 1\nCONTEXT: second\nTAGS: b, c\nNEIGHBOR 0:\nCONTEXT: first\nTAGS:\nNEIGHBOR 7\nCONTEXT: no such"
    assert neighbour_blocks(text, 3) == [("first", []), ("second", ["b", "c"]), ("", [])]
    assert neighbour_blocks("nothing", 1) == [("", [])]


@given(st.text(max_size=80), st.integers(0, 3))
def test_reading_never_fails(text: str, count: int) -> None:
    for read in (decision, items, numbers, salient_words, first_sentence):
        read(text)
    section(text, "TAGS")
    assert len(neighbour_blocks(text, count)) == count


def test_heuristics() -> None:
    assert salient_words("the old boat of Ann was in Oslo, Ann said") == ["Ann", "Oslo", "old", "boat", "said"]
    assert first_sentence("Ann: It sank. Then we swam.") == "Ann: It sank."


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
            "update_neighbours": "NEIGHBOR 0\nCONTEXT: rewritten\nTAGS:",
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


def test_missing_keywords_are_asked_for_again_then_guessed() -> None:
    memory, model = system({"analyse_sections": "CONTEXT: c\nTAGS: t", "focus_keywords u0": "KEYWORDS: mast, sail"})
    first, second = write(memory, "We sailed", "Oslo was cold. Very cold.")
    assert first["keywords"] == ["mast", "sail"] and model.count("focus_keywords") == 2
    assert second["keywords"][:2] == ["Ann", "Oslo"] and second["context"] == "c"


def test_garbage_everywhere_still_gives_a_note() -> None:
    memory, _ = system({})
    (note,) = write(memory, "Oslo was cold. Very cold.")
    assert note["keywords"] == ["Ann", "Oslo", "Very", "cold"] and note["tags"] == ["Ann", "Oslo", "Very"]
    assert note["context"] == "Ann: Oslo was cold."
    assert memory.statistics()["counts"]["fallback.analyse"] == 1
