"""Notes: formats, analysis, evolution rules, context lines."""

import asyncio
import json

import pytest

from memsys.errors import ConfigError, DataError
from memsys.notes.analyse import analyse
from memsys.notes.context import NoteContextRules, format_context, note_labels
from memsys.notes.evolve import EvolutionRules, Evolver
from memsys.notes.keywords import ask_keywords
from memsys.notes.note import Note
from memsys.notes.roles import note_role
from memsys.notes.store import NoteStore
from memsys.settings import from_settings
from memsys.turns import TurnFormat
from memsys.vocabulary import Turn, Unit
from tests.support.composing import composed
from tests.support.fakes import FakeModel

SETTINGS = {"temperature": 0.7, "max_tokens": 1000}
LABELS = note_labels(composed("amem")["note_labels"])
CAREFUL = EvolutionRules(
    link_targets="shown", link_reading="index", unique_links=True, actions_once=True, ignore_empty=True, labels=LABELS
)
FAITHFUL = EvolutionRules(
    link_targets="any", link_reading="index", unique_links=False, actions_once=False, ignore_empty=False, labels=LABELS
)


def make_note(note_id: str, *, links: list[str] | None = None) -> Note:
    return Note(
        note_id=note_id,
        content=f"text {note_id}",
        timestamp="noon",
        keywords=["k1", "k2"],
        context="About it",
        tags=["t1"],
        turn_ids=(note_id,),
        links=links or [],
    )


def make_store(*notes: Note) -> NoteStore:
    store = NoteStore()
    for note in notes:
        store.add(note)
    return store


def evolve_reply(**changes: object) -> dict[str, object]:
    return {
        "should_evolve": True,
        "actions": ["strengthen", "update_neighbor"],
        "suggested_connections": [],
        "tags_to_update": [],
        "new_context_neighborhood": [],
        "new_tags_neighborhood": [],
        **changes,
    }


def evolver(reply: object, store: NoteStore, rules: EvolutionRules = CAREFUL) -> tuple[Evolver, FakeModel]:
    model = FakeModel(lambda role, values, key: reply)  # type: ignore[arg-type,return-value]
    return Evolver(model, note_role("evolve", SETTINGS), rules, store), model


def test_the_five_texts_of_a_note() -> None:
    note = make_note("n")
    assert note.text("content") == "text n"
    assert note.text("labelled") == "content:text n context:About it keywords: k1, k2 tags: t1"
    assert note.text("plain") == "text n About it k1 k2 t1"
    assert note.text("clustered") == "text n , About it k1 k2 t1"
    assert note.text("metadata") == "About it keywords: k1, k2"


def analysed(reply: object) -> tuple[Note, bool]:
    unit = Unit("D1:1", (Turn("D1:1", "1", "Ann", "Hello", date_time="1 May"),))
    model = FakeModel(lambda role, values, key: reply)  # type: ignore[arg-type,return-value]
    result = asyncio.run(analyse(model, note_role("analyse", SETTINGS), unit, TurnFormat()))
    assert model.calls == [("analyse", "D1:1")]
    return result.note, result.fallback


def test_analysis_keeps_the_turn_and_cleans_the_metadata() -> None:
    note, fallback = analysed({"keywords": [" sea ", ""], "context": " A walk. ", "tags": ["trip"]})
    assert (note.note_id, note.content, note.timestamp, note.turn_ids) == ("D1:1", "Ann: Hello", "1 May", ("D1:1",))
    assert (note.keywords, note.context, note.tags, fallback) == (["sea"], "A walk.", ["trip"], False)


@pytest.mark.parametrize("reply", ["no json", {"keywords": "sea", "context": "x", "tags": []}, {"keywords": []}])
def test_a_malformed_analysis_gives_the_defaults(reply: object) -> None:
    note, fallback = analysed(reply)
    assert (note.keywords, note.context, note.tags, fallback) == ([], "General", [], True)


def test_strengthen_links_and_retags_the_new_note_only() -> None:
    store = make_store(*(make_note(f"n{i}") for i in range(4)))
    reply = evolve_reply(suggested_connections=[2, 1, 2, 3, -1, 99], tags_to_update=["fresh"])
    evolver_, model = evolver(reply, store)
    note = make_note("new")
    result = asyncio.run(evolver_.evolve(note, [store["n2"], store["n1"]]))
    assert note.links == ["n2", "n1"]
    assert note.tags == ["fresh"]
    assert note.evolution_history == [{"by": "new", "context": "About it", "tags": ["t1"]}]
    assert result.rewritten == ()
    assert result.counts["links.created"] == 2
    assert result.counts["links.repeated"] == 1
    assert result.counts["links.dropped"] == 3  # 3 is stored but was not shown; -1 and 99 name nothing
    assert "memory index: 2" in model.prompts[0]


def test_links_to_unshown_notes_pass_only_if_asked_for() -> None:
    store = make_store(*(make_note(f"n{i}") for i in range(4)))
    evolver_, _ = evolver(evolve_reply(actions=["strengthen"] * 2, suggested_connections=[3, 4, -1]), store, FAITHFUL)
    note = make_note("new")
    result = asyncio.run(evolver_.evolve(note, [store["n0"]]))
    assert note.links == ["n3", "n3"]  # a repeated action applies twice
    assert result.counts["links.dropped"] == 4
    assert note.tags == []  # an empty list replaces


def test_ranks_can_be_read_instead_of_indices() -> None:
    store = make_store(*(make_note(f"n{i}") for i in range(4)))
    rules = EvolutionRules("shown", "rank", True, True, True, LABELS)
    evolver_, _ = evolver(evolve_reply(suggested_connections=[0, 2]), store, rules)
    note = make_note("new")
    asyncio.run(evolver_.evolve(note, [store["n3"], store["n1"]]))
    assert note.links == ["n3"]


def test_update_neighbor_edits_the_shown_notes_in_order() -> None:
    store = make_store(*(make_note(f"n{i}") for i in range(3)))
    reply = evolve_reply(
        actions=["update_neighbor", "merge"],
        new_context_neighborhood=["C0", "", "C2"],
        new_tags_neighborhood=[["a"], []],
    )
    evolver_, _ = evolver(reply, store)
    result = asyncio.run(evolver_.evolve(make_note("new"), [store["n2"], store["n0"], store["n1"]]))
    assert (store["n2"].context, store["n2"].tags) == ("C0", ["a"])
    assert (store["n0"].context, store["n0"].tags) == ("About it", ["t1"])  # empties are ignored
    assert store["n1"].context == "About it"  # no tags for it: untouched
    assert result.rewritten == ("n2",)
    assert result.counts["evolution.length_mismatch"] == 1
    assert result.counts["evolution.unknown_action"] == 1
    assert store["n2"].keywords == ["k1", "k2"]


def test_the_faithful_rules_let_empties_replace() -> None:
    store = make_store(make_note("n0"))
    reply = evolve_reply(actions=["update_neighbor"], new_context_neighborhood=[""], new_tags_neighborhood=[[]])
    evolver_, _ = evolver(reply, store, FAITHFUL)
    asyncio.run(evolver_.evolve(make_note("new"), [store["n0"]]))
    assert (store["n0"].context, store["n0"].tags) == ("", [])


@pytest.mark.parametrize(
    "reply",
    ["False", {"should_evolve": "False"}, evolve_reply(should_evolve="False"), evolve_reply(actions="strengthen")],
)
def test_a_malformed_evolution_changes_nothing(reply: object) -> None:
    store = make_store(make_note("n0"))
    before = json.dumps(store.state())
    evolver_, _model = evolver(reply, store)
    result = asyncio.run(evolver_.evolve(make_note("new"), [store["n0"]]))
    assert not result.evolved
    assert result.counts == {"fallback.evolve": 1}
    assert json.dumps(store.state()) == before


def test_the_first_note_asks_with_no_neighbours() -> None:
    evolver_, model = evolver(evolve_reply(suggested_connections=[0]), NoteStore())
    note = make_note("new")
    result = asyncio.run(evolver_.evolve(note, []))
    assert model.calls == [("evolve", "new")]
    assert (result.evolved, note.links) == (True, [])


def context_rules(link_cap: str, **changes: object) -> NoteContextRules:
    settings = {"separator": "\t", "link_cap": link_cap, "max_links": 10, "drop_repeats": False, "max_tokens": None}
    return from_settings(NoteContextRules, {**settings, "labels": LABELS, **changes}, "context")  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("link_cap", "links", "expected"),
    [
        ("shared_counter", 15, [11, 1, 1]),
        ("per_hit_plus_one", 15, [11, 11, 11]),
        ("per_hit", 15, [10, 10, 10]),
        ("shared_counter", 5, [5, 5, 1, 1]),
    ],
)
def test_link_caps_of_the_versions(link_cap: str, links: int, expected: list[int]) -> None:
    targets = [make_note(f"old{i}") for i in range(links)]
    hits = [make_note(f"hit{i}", links=[note.note_id for note in targets]) for i in range(len(expected))]
    store = make_store(*targets, *hits)
    context = asyncio.run(format_context(FakeModel(lambda *_: {}), context_rules(link_cap), hits, store))
    lines = ["hit" if "text hit" in line else "link" for line in context.text.splitlines()]
    assert [len(part.split()) for part in " ".join(lines).split("hit")[1:]] == expected
    assert len(context.trace["linked_ids"]) == sum(expected)


def test_lines_of_the_context() -> None:
    note, linked = make_note("a", links=["b"]), make_note("b")
    store = make_store(linked, note)
    model = FakeModel(lambda *_: {})
    context = asyncio.run(format_context(model, context_rules("per_hit"), [note], store))
    first, second = context.text.splitlines()
    assert first == (
        "talk start time: noon\tmemory content: text a\tmemory context: About it"
        "\tmemory keywords: ['k1', 'k2']\tmemory tags: ['t1']"
    )
    assert "text b" in second
    bare = asyncio.run(format_context(model, context_rules("per_hit", separator=""), [note], store))
    assert bare.text.startswith("talk start time: noonmemory content: text amemory context: ")


def test_repeats_are_dropped_where_asked() -> None:
    first, second, old = make_note("a", links=["old", "b", "old"]), make_note("b", links=["old"]), make_note("old")
    store = make_store(old, second, first)
    model = FakeModel(lambda *_: {})
    context = asyncio.run(format_context(model, context_rules("per_hit", drop_repeats=True), [first, second], store))
    assert context.trace["linked_ids"] == ["old"] and [note.note_id for note in context.linked] == ["old"]
    assert context.text.count("text b\t") == 1


def test_the_token_limit_keeps_hits_before_links() -> None:
    old = make_note("old")
    hits = [make_note("a", links=["old"]), make_note("b")]
    store = make_store(old, *hits)
    model = FakeModel(lambda *_: {})
    words = len(asyncio.run(format_context(model, context_rules("per_hit"), [old], store)).text.split())
    limited = context_rules("per_hit", max_tokens=2 * words)
    context = asyncio.run(format_context(model, limited, hits, store))
    assert [line.split("\t")[1] for line in context.text.splitlines()] == [
        "memory content: text a",
        "memory content: text b",
    ]
    assert context.shown == (0, 1)
    less = asyncio.run(format_context(model, context_rules("per_hit", max_tokens=words), hits, store))
    assert less.shown == (0,) and "text a" in less.text and "text b" not in less.text
    assert context.trace == {"linked_ids": [], "dropped_lines": 1}


@pytest.mark.parametrize(
    ("reply", "text", "fallback"),
    [
        ({"keywords": " sea, boat,"}, "sea, boat,", None),
        ("sea; boat", "sea; boat", "raw_reply"),
        ({"keywords": " , "}, "Where?", "question"),
        ("", "Where?", "question"),
    ],
)
def test_keywords_and_their_fallbacks(reply: object, text: str, fallback: str | None) -> None:
    model = FakeModel(lambda role, values, key: reply)  # type: ignore[arg-type,return-value]
    keywords = asyncio.run(ask_keywords(model, note_role("keywords", SETTINGS), "Where?"))
    assert (keywords.text, keywords.fallback) == (text, fallback)


def test_empty_keywords_stay_empty_where_asked() -> None:
    model = FakeModel(lambda role, values, key: {"keywords": " "})
    role = note_role("keywords", SETTINGS)
    keywords = asyncio.run(ask_keywords(model, role, "Where?", question_if_empty=False))
    assert (keywords.text, keywords.tags, keywords.fallback) == ("", [], None)


def test_the_store_round_trips_and_refuses_doubles() -> None:
    note = make_note("a")
    note.rewrite("b", context="new", tags=["x"])
    store = make_store(note, make_note("b", links=["a"]))
    copy = NoteStore()
    copy.load_state(json.loads(json.dumps(store.state())))
    assert copy.state() == store.state()
    assert (copy.position("b"), copy.at(0).turn_ids, copy["b"].links) == (1, ("a",), ["a"])
    copy["a"].rewrite("c", context="newer", tags=[])
    assert store["a"].context == "new"
    with pytest.raises(DataError, match="'a'"):
        store.add(make_note("a"))


@pytest.mark.parametrize("changes", [{"link_cap": "all"}, {"max_links": -1}, {"max_tokens": 0}])
def test_wrong_context_rules_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=f"context.{next(iter(changes))}"):
        context_rules(**{"link_cap": "per_hit", **changes})  # type: ignore[arg-type]


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="colour"):
        from_settings(NoteContextRules, {"colour": "red"}, "context")
