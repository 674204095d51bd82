"""A-Mem: the write and read path, its versions, and that CLAG without clusters is the same."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from baselines.amem.config import AmemConfig
from baselines.amem.memory import AmemMemory
from memsys.errors import ConfigError
from memsys.notes.context import format_context
from memsys.notes.note import Note
from memsys.notes.store import NoteStore
from memsys.protocol import MemorySystem
from memsys.vocabulary import Turn, Unit
from tests.support.clag import JOINT, evolution
from tests.support.composing import composed, memory_config, parts
from tests.support.fakes import FakeModel, WordEmbedder
from tests.support.shown import check_shown

WORDS = ["boat", "cake", "song", "rose", "harbour", "oven", "drum", "seed"]


def replying(**replies: Any) -> FakeModel:
    """Reply with an object or text per role, or a function of values and key; sensible where nothing is said."""

    def function(role: str, values: Mapping[str, str], key: str) -> Mapping[str, Any] | str:
        reply = replies.get(role)
        if reply is not None:
            return reply(values, key) if callable(reply) else reply  # type: ignore[no-any-return]
        if role == "analyse":
            word = values["content"].split()[-1]
            return {"keywords": [word], "context": f"On {word}", "tags": [f"tag-{word}"]}
        if role == "keywords":
            return {"keywords": values["question"]}
        return evolution(should_evolve=False)

    return FakeModel(function)


def unit(number: int, text: str | None = None) -> Unit:
    spoken = text or f"{WORDS[number % 8]} w{number}"
    return Unit(f"D1:{number}", (Turn(f"D1:{number}", "s", "Ann", spoken, date_time="1 May"),))


def memory(model: FakeModel, preset: str = "amem", **changes: Any) -> AmemMemory:
    system = memory_config(preset, **changes).build(parts(model))
    assert isinstance(system, AmemMemory)
    return system


def write(system: MemorySystem, units: Sequence[Unit]) -> None:
    async def run() -> None:
        for each in units:
            await system.write(each, await system.prepare(each))

    asyncio.run(run())


def notes(system: AmemMemory) -> dict[str, dict[str, Any]]:
    return {note["note_id"]: note for note in system.state()["notes"]}


def test_two_calls_per_note_and_one_per_retrieval() -> None:
    model = replying()
    system = memory(model)
    write(system, [unit(0), unit(1), unit(2)])
    assert [role for role, _ in model.calls] == ["analyse", "evolve"] * 3
    model.calls.clear()
    asyncio.run(system.retrieve("boat"))  # the answer is the second call of a question, the reader's
    assert [role for role, _ in model.calls] == ["keywords"]


def test_the_first_note_is_asked_about_with_no_neighbours() -> None:
    seen: list[str] = []

    def evolve(values: Mapping[str, str], key: str) -> dict[str, Any]:
        seen.append(values["neighbour_count"])
        return evolution(actions=["strengthen", "update_neighbor"], suggested_connections=[0], tags_to_update=["new"])

    system = memory(replying(evolve=evolve))
    write(system, [unit(0)])
    assert seen == ["0"]
    assert notes(system)["D1:0"]["tags"] == ["new"] and notes(system)["D1:0"]["links"] == []


def test_strengthen_links_and_tags_the_new_note_alone() -> None:
    def evolve(values: Mapping[str, str], key: str) -> dict[str, Any]:
        if key != "D1:2":
            return evolution(should_evolve=False)
        return evolution(actions=["strengthen"], suggested_connections=[1, 0], tags_to_update=["joined"])

    system = memory(replying(evolve=evolve))
    write(system, [unit(0), unit(1), unit(2)])
    stored = notes(system)
    assert stored["D1:2"]["links"] == ["D1:1", "D1:0"] and stored["D1:2"]["tags"] == ["joined"]
    assert stored["D1:0"]["tags"] == ["tag-w0"] and stored["D1:0"]["links"] == stored["D1:1"]["links"] == []


def test_update_neighbor_edits_the_retrieved_notes_in_order() -> None:
    def evolve(values: Mapping[str, str], key: str) -> dict[str, Any]:
        if key != "D1:9":
            return evolution(should_evolve=False)
        return evolution(
            actions=["update_neighbor"],
            new_context_neighborhood=["first", "second"],
            new_tags_neighborhood=[["one"], ["two"]],
        )

    system = memory(replying(evolve=evolve), k_local=2)
    write(system, [unit(0, "sea boat"), unit(1, "cake"), unit(2, "sea boat sail"), unit(9, "sea boat sail")])
    stored = notes(system)
    assert (stored["D1:2"]["context"], stored["D1:2"]["tags"]) == ("first", ["one"])
    assert (stored["D1:0"]["context"], stored["D1:0"]["tags"]) == ("second", ["two"])
    assert stored["D1:1"]["context"] == "On cake"
    assert stored["D1:9"]["context"] == "On sail" and stored["D1:2"]["keywords"] == ["sail"]


def rewriting(values: Mapping[str, str], key: str) -> dict[str, Any]:
    """Rewrite every neighbour, naming the note that caused it."""
    count = int(values["neighbour_count"])
    contexts, tags = [f"by {key}"] * count, [[f"tag-{key}"]] * count
    return evolution(actions=["update_neighbor"], new_context_neighborhood=contexts, new_tags_neighborhood=tags)


def fresh_vectors(system: AmemMemory, text_format: str) -> np.ndarray:
    texts = [Note.from_state(note).text(text_format) for note in system.state()["notes"]]  # type: ignore[arg-type]
    return asyncio.run(WordEmbedder().embed(texts))


def test_every_hundredth_evolved_note_rebuilds_the_index_in_place() -> None:
    system = memory(replying(evolve=rewriting), "amem_v2")
    write(system, [unit(number) for number in range(99)])
    assert system.statistics()["counts"]["consolidations"] == 0
    assert not np.allclose(system.state()["index"]["vectors"], fresh_vectors(system, "labelled"))
    write(system, [unit(99)])
    assert system.statistics()["counts"]["consolidations"] == 1
    assert system.state()["index"]["ids"] == [f"D1:{number}" for number in range(100)]
    assert np.allclose(system.state()["index"]["vectors"], fresh_vectors(system, "clustered"))


def test_notes_that_did_not_evolve_do_not_count_towards_consolidation() -> None:
    system = memory(replying(), evo_threshold=2)
    write(system, [unit(number) for number in range(5)])
    assert system.statistics()["counts"]["consolidations"] == 0 and system.statistics()["evolved_notes"] == 0


@pytest.mark.parametrize(("reembed", "stale"), [("on_change", False), ("consolidate", True), ("never", True)])
def test_when_rewritten_notes_are_indexed_anew(reembed: str, stale: bool) -> None:
    system = memory(replying(evolve=rewriting), reembed=reembed)
    write(system, [unit(number) for number in range(4)])
    assert np.allclose(system.state()["index"]["vectors"], fresh_vectors(system, "labelled")) is not stale
    asyncio.run(system.consolidate())
    assert np.allclose(system.state()["index"]["vectors"], fresh_vectors(system, "labelled")) is (reembed != "never")


def test_strict_versions_leave_vectors_stale_at_the_end() -> None:
    system = memory(replying(evolve=rewriting), "amem_v2")
    write(system, [unit(number) for number in range(4)])
    before = system.state()["index"]["vectors"]
    asyncio.run(system.consolidate())
    assert np.array_equal(system.state()["index"]["vectors"], before)
    assert system.statistics()["stale_notes"] == 4


def test_the_first_version_indexes_metadata_without_the_content() -> None:
    system = memory(replying(), "amem_v1")
    write(system, [unit(0, "sea boat")])
    assert np.allclose(system.state()["index"]["vectors"], fresh_vectors(system, "metadata"))


@pytest.mark.parametrize(("preset", "links"), [("amem", []), ("amem_v2", ["D1:0"])])
def test_links_out_of_range_or_not_shown_are_dropped_and_counted(preset: str, links: list[str]) -> None:
    def evolve(values: Mapping[str, str], key: str) -> dict[str, Any]:
        if key != "D1:3":
            return evolution(should_evolve=False)
        return evolution(actions=["strengthen"], suggested_connections=[0, 99, -1, 3])

    system = memory(replying(evolve=evolve), preset, k_local=1)
    write(system, [unit(0, "sea"), unit(1, "cake"), unit(2, "rose"), unit(3, "cake rose rose")])
    assert notes(system)["D1:3"]["links"] == links
    assert system.statistics()["counts"]["links.dropped"] == 4 - len(links)


@pytest.mark.parametrize(
    ("preset", "expected"),
    [("amem_v1", [11, 1, 1]), ("amem_v2", [11, 1, 1]), ("amem_robust", [11, 11, 11]), ("amem", [10, 10, 10])],
)
def test_how_many_links_each_hit_shows(preset: str, expected: list[int]) -> None:
    store = NoteStore()
    for number in range(48):
        store.add(Note(f"n{number}", f"c{number}", "", [], "", [], ()))
    hits = [store[f"n{number}"] for number in (45, 46, 47)]
    for rank, hit in enumerate(hits):
        hit.links = [f"n{15 * rank + offset}" for offset in range(15)]
    config = memory_config(preset)
    assert isinstance(config, AmemConfig)
    lines = asyncio.run(format_context(replying(), config.context_rules, hits, store)).text.splitlines()
    starts = [row for row, line in enumerate(lines) if any(f": {hit.content}" in line for hit in hits)]
    assert [end - start - 1 for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)] == expected


def test_linked_notes_follow_their_hit_and_are_no_hits() -> None:
    def evolve(values: Mapping[str, str], key: str) -> dict[str, Any]:
        linking = evolution(actions=["strengthen"], suggested_connections=[0])
        return linking if key == "D1:1" else evolution(should_evolve=False)

    with_links = memory(replying(evolve=evolve), retrieve_k=1)
    without = memory(replying(evolve=evolve), context={**composed("amem")["context"], "max_links": 0}, retrieve_k=1)
    for system in (with_links, without):
        write(system, [unit(0, "sea boat"), unit(1, "cake oven")])
    shown, bare = asyncio.run(with_links.retrieve("cake oven")), asyncio.run(without.retrieve("cake oven"))
    assert [hit.memory_id for hit in shown.hits] == [hit.memory_id for hit in bare.hits] == ["D1:1"]
    assert "sea boat" in shown.context.splitlines()[1] and shown.trace["linked_ids"] == ["D1:0"]
    assert len(bare.context.splitlines()) == 1


def test_hits_that_had_no_room_are_not_shown() -> None:
    context = {**composed("amem")["context"], "max_tokens": 40}
    system = memory(replying(), context=context)
    write(system, [unit(number) for number in range(6)])
    check_shown(asyncio.run(system.retrieve("boat sea")))


def test_without_evolution_nothing_is_asked_or_linked() -> None:
    model = replying()
    system = memory(model, evolution=False)
    write(system, [unit(number) for number in range(3)])
    assert model.count("evolve") == 0 and model.count("analyse") == 3


def test_keywords_alone_are_searched_by() -> None:
    system = memory(replying(keywords={"keywords": "cake"}))
    write(system, [unit(0, "boat"), unit(1, "cake")])
    retrieval = asyncio.run(system.retrieve("boat"))
    assert retrieval.hits[0].memory_id == "D1:1" and retrieval.trace["keywords"] == "cake"
    by_question = memory(replying(keywords={"keywords": "cake"}), search_query="question")
    write(by_question, [unit(0, "boat"), unit(1, "cake")])
    assert asyncio.run(by_question.retrieve("boat")).hits[0].memory_id == "D1:0"


def test_empty_keywords_are_replaced_by_the_question_or_kept() -> None:
    mended, strict = (
        memory(replying(keywords={"keywords": " "})),
        memory(replying(keywords={"keywords": " "}), "amem_v2"),
    )
    for system in (mended, strict):
        write(system, [unit(0, "boat")])
    assert asyncio.run(mended.retrieve("boat")).trace["keywords"] == "boat"
    assert asyncio.run(strict.retrieve("boat")).trace["keywords"] == " "


def test_malformed_replies_leave_defaults_and_are_counted() -> None:
    system = memory(replying(analyse="no", evolve="no", keywords="sea things"))
    write(system, [unit(0), unit(1)])
    assert notes(system)["D1:0"]["context"] == "General" and notes(system)["D1:0"]["keywords"] == []
    counts = system.statistics()["counts"]
    assert (counts["fallback.analyse"], counts["fallback.evolve"]) == (2, 2)
    assert asyncio.run(system.retrieve("boat")).trace["fallbacks"] == ["keywords:raw_reply"]


@pytest.mark.parametrize("preset", ["amem", "amem_v2"])
def test_a_snapshot_goes_on_as_if_never_taken(preset: str) -> None:
    straight = memory(replying(evolve=rewriting), preset, evo_threshold=4)
    write(straight, [unit(number) for number in range(10)])
    first = memory(replying(evolve=rewriting), preset, evo_threshold=4)
    write(first, [unit(number) for number in range(6)])
    second = memory(replying(evolve=rewriting), preset, evo_threshold=4)
    second.load_state(first.state())
    write(second, [unit(number) for number in range(6, 10)])
    assert second.state()["notes"] == straight.state()["notes"]
    assert np.array_equal(second.state()["index"]["vectors"], straight.state()["index"]["vectors"])
    assert second.statistics() == straight.statistics()
    assert asyncio.run(second.retrieve("boat")).hits == asyncio.run(straight.retrieve("boat")).hits


@pytest.mark.parametrize("reembed", ["on_change", "never"])
def test_clag_without_clusters_is_a_mem(reembed: str) -> None:
    def evolve(values: Mapping[str, str], key: str) -> dict[str, Any]:
        number = int(key.partition(":")[2])
        return {
            **rewriting(values, key),
            "actions": ["strengthen", "update_neighbor"][: 1 + number % 2],
            "suggested_connections": [number - 1, number - 2],
            "tags_to_update": [f"own-{number}"],
        }

    settings = {
        "reembed_global": reembed,
        "buffer_size": 1000,
        "evolution_scope": "global",
        "retrieval_scope": "global",
        **JOINT,
    }
    clag = memory_config("clag", **settings).build(parts(replying(evolve=evolve)))
    amem = memory(replying(evolve=evolve), reembed=reembed)
    units = [unit(number, f"{WORDS[number % 8]} {WORDS[number % 5]} {WORDS[number % 3]}") for number in range(40)]
    for system in (clag, amem):
        write(system, units)
        asyncio.run(system.consolidate())
    assert clag.state()["notes"] == amem.state()["notes"]
    for question in [*WORDS, "boat cake", "rose of the harbour"]:
        one, other = asyncio.run(clag.retrieve(question)), asyncio.run(amem.retrieve(question))
        assert len(one.hits) == 10 and one.hits == other.hits and one.context == other.context


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"calls": "parallel"}, "joint, staged"),
        ({"reembed": "always"}, "on_change, consolidate, never"),
        ({"retrieve_k": 0}, "retrieve_k"),
        ({"uses_gold": True}, "uses_gold"),
        ({"roles": {}}, "analyse, evolve, keywords"),
        ({"context": {}}, "memory.context"),
        ({"evolution_rules": {"link_targets": "any"}}, "memory.evolution_rules"),
    ],
)
def test_bad_settings_are_refused(changes: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        memory_config("amem", **changes)
