"""ReadAgent: where pages end, what counts as a gist, look-ups, and what the reader sees."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines.readagent.config import ReadAgentConfig
from baselines.readagent.gists import no_gist
from baselines.readagent.lookup import gist_batches, named_pages, next_step
from baselines.readagent.memory import ReadAgentMemory
from baselines.readagent.pages import GistPage, mix
from baselines.readagent.pagination import Chunk, chosen_place, marked, next_chunk, paginate
from baselines.readagent.paragraphs import TranscriptParagraph, paragraphs_of
from baselines.readagent.rules import PageRules
from eval.config.presets import MEMORY, preset_names
from eval.inspect_data import read_config
from eval.loaders.shapes import shape_of
from eval.sweep.calls import memory_calls
from memsys.call_model import DataShape
from memsys.errors import ConfigError
from memsys.llm.contract import Reply
from memsys.turns import TurnFormat
from memsys.vocabulary import Completion, Conversation, Retrieval, Turn
from tests.support.composing import composed, conversation, ingest, memory_config, parts
from tests.support.fakes import FakeModel

RULES = PageRules(600, 280, 350, 400, respect_sessions=True, dates="header")

#: Pages of few words, so that short talks have several.
SHORT_PAGES = {"max_words": 12, "start_words": 6, "tail_words": 6, "split_words": 40}


def paragraphs(*sizes: int) -> list[TranscriptParagraph]:
    return [TranscriptParagraph(" ".join([f"p{n}"] * size), f"D1:{n}", "1 May", size) for n, size in enumerate(sizes)]


def marks(passage: str) -> list[int]:
    return [int(mark) for mark in re.findall(r"^<(\d+)>$", passage, re.MULTILINE)]


def replying(**replies: Any) -> FakeModel:
    """Break at the last mark, gist a page by its last three words, look up page 0; or as told per role."""

    def function(role: str, values: Mapping[str, str], key: str) -> Mapping[str, Any] | str:
        reply = replies.get(role)
        if reply is not None:
            return reply(values, key) if callable(reply) else reply  # type: ignore[no-any-return]
        if role == "paginate":
            return {"label": marks(values["passage"])[-1]}
        if role == "gist":
            return " ".join(values["page"].split()[-3:])
        return {"pages": [0]} if role == "lookup" else {"page": "STOP"}

    return FakeModel(function)


def in_turn(*replies: Any) -> Callable[[Mapping[str, str], str], Any]:
    left = iter(replies)
    return lambda values, key: next(left)


def memory(model: FakeModel, preset: str = "readagent", **changes: Any) -> ReadAgentMemory:
    settings = {
        group: {**composed(preset)[group], **change} if isinstance(change, Mapping) else change
        for group, change in changes.items()
    }
    system = memory_config(preset, **settings).build(parts(model))
    assert isinstance(system, ReadAgentMemory)
    return system


#: Three sessions of four lines; a line has five words ("Ann: a0 boat sea sail").
TALK = conversation(
    ["a0 boat sea sail", "a1 boat sea sail", "a2 boat sea sail", "a3 boat sea sail"],
    ["b0 cake oven milk", "b1 cake oven milk", "b2 cake oven milk", "b3 cake oven milk"],
    ["c0 song drum band", "c1 song drum band", "c2 song drum band", "c3 song drum band"],
)


def ingested(model: FakeModel, preset: str = "readagent", talk: Conversation = TALK, **changes: Any) -> ReadAgentMemory:
    system = memory(model, preset, **{"pages": SHORT_PAGES, **changes})
    ingest(system, talk)
    return system


def asked(system: ReadAgentMemory, question: str = "Who sails?") -> Retrieval:
    return asyncio.run(system.retrieve(question))


def pages_of(system: ReadAgentMemory) -> list[GistPage]:
    return [GistPage.from_state(entry) for entry in system.state()["pages"]]


def reply(text: str = "", value: Mapping[str, Any] | None = None, *, malformed: bool = False) -> Reply:
    return Reply(value, text, Completion(text, 1, 1, 0.0, "stop"), malformed=malformed)


def cut(model: FakeModel, sizes: Sequence[int], rules: PageRules = RULES) -> list[int]:
    role = ReadAgentConfig(**{k: v for k, v in composed("readagent").items() if k != "_target_"}).make_roles()
    found = asyncio.run(paginate(model, role["paginate"], paragraphs(*sizes), rules, key="k"))
    assert [each for page in found.pages for each in page] == paragraphs(*sizes)
    return [len(page) for page in found.pages]


# Pages


def test_marks_start_where_a_chunk_has_280_words_and_it_ends_at_600() -> None:
    chunk = next_chunk(paragraphs(*[100] * 9), 0, RULES)
    assert (chunk.labels, chunk.end, chunk.words) == ((2, 3, 4, 5, 6), 6, 600)
    assert next_chunk(paragraphs(*[100] * 9), 6, RULES).labels == (8, 9)
    assert next_chunk(paragraphs(700, 50), 0, RULES).labels == (1,)


def test_the_passage_shows_each_mark_on_a_line_before_its_paragraph() -> None:
    chunk = next_chunk(paragraphs(3, 3, 2), 0, PageRules(6, 5, 0, None, respect_sessions=True, dates="header"))
    assert marked(paragraphs(3, 3, 2), chunk) == "p0 p0 p0\n<1>\np1 p1 p1\n<2>"


def test_a_page_ends_at_the_chosen_mark_and_the_next_one_begins_there() -> None:
    model = replying(paginate=in_turn({"label": 3}, {"label": 7}))
    assert cut(model, [100] * 9) == [3, 4, 2]
    assert model.count("paginate") == 2, "the last 200 words are a tail"
    first, second = model.prompts
    assert "(none: the text begins)" in first and "p6" in first.rpartition("Line after the passage:")[2]
    before, _, rest = second.partition("Passage:")
    assert "p0 " in before and "p2 " in before and "p3 " not in before and rest.lstrip().startswith("p3 ")


def test_a_tail_is_one_page_without_a_call_and_so_is_a_long_paragraph() -> None:
    model = replying()
    assert cut(model, [100, 249]) == [2] and cut(model, [700]) == [1] and model.calls == []
    assert cut(model, [100, 250]) == [2] and model.count("paginate") == 1, "350 words are no tail"


def test_the_tail_rule_holds_at_the_end_of_the_text_alone() -> None:
    rules = PageRules(100, 50, 350, None, respect_sessions=True, dates="header")
    assert cut(replying(), [60] * 6, rules) == [2, 2, 2]


@pytest.mark.parametrize("bad", [{"label": 99}, {"label": 0}, "no object", {}])
def test_what_names_no_mark_ends_the_page_at_the_chunks_end_and_is_counted(bad: Any) -> None:
    talk = conversation([f"a{n} boat sea sail" for n in range(8)])
    system = ingested(replying(paginate=bad), talk=talk)
    assert [len(page.turn_ids) for page in pages_of(system)] == [3, 3, 2]
    counts: Any = system.statistics()["counts"]
    assert counts["fallback.paginate"] == 3 and counts["paginate.chunks"] == 3 and counts["paginate.tails"] == 0


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("<4> a new subject", 4),
        ("I would pause at <4>, not <5>.", 4),
        ("<2> between two marks", 2),  # the notebook takes any place of the chunk
        ("4", None),
        ("", None),
        ("<9>", None),
        ("<0>", None),
    ],
)
def test_in_free_text_the_first_number_in_angle_brackets_is_the_place(text: str, label: int | None) -> None:
    assert chosen_place(reply(text), Chunk(0, 5, (3, 4, 5), 0)) == label


@given(st.lists(st.integers(1, 90), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_pagination_loses_nothing_and_stays_within_the_chunk(sizes: list[int], chance: Any) -> None:
    rules = PageRules(200, 90, 100, None, respect_sessions=True, dates="header")
    model = replying(paginate=lambda values, key: {"label": chance.choice(marks(values["passage"]))})
    taken = iter(sizes)
    for page in cut(model, sizes, rules):
        words = [next(taken) for _ in range(page)]
        assert sum(words[:-1]) < rules.max_words


def test_pages_end_with_their_sessions_unless_told_otherwise() -> None:
    model = replying()
    assert [page.turn_ids for page in pages_of(ingested(model))] == [
        ("D1:0", "D1:1", "D1:2"), ("D1:3",), ("D2:0", "D2:1", "D2:2"), ("D2:3",), ("D3:0", "D3:1", "D3:2"), ("D3:3",),
    ]  # fmt: skip
    merged = pages_of(ingested(model, pages={**SHORT_PAGES, "respect_sessions": False}))
    assert [page.turn_ids for page in merged][1] == ("D1:3", "D2:0", "D2:1")
    assert merged[1].header == "[1 May 2023; 2 May 2023]"


def test_a_date_stands_before_page_and_gist_by_code_or_in_the_text() -> None:
    model = replying(gist="no day at all")
    first = pages_of(ingested(model, gists={"min_overlap": 0.0}))[0]
    assert first.full == "[1 May 2023]\nAnn: a0 boat sea sail\nBen: a1 boat sea sail\nAnn: a2 boat sea sail"
    assert first.short == "[1 May 2023]\nno day at all"
    inline = pages_of(ingested(replying(gist="short", paginate="<1>"), "readagent_code"))
    assert inline[0].full.startswith("[1 May 2023]\nAnn: a0") and inline[0].short == "short"
    assert "[2 May 2023]\nAnn: b0" in "\n".join(page.full for page in inline)


def test_a_long_turn_is_cut_between_sentences_and_keeps_its_id() -> None:
    rules = PageRules(600, 280, 350, 5, respect_sessions=True, dates="header")
    turn = Turn("D1:1", "s", "Ann", "one two. three four! five six seven eight nine ten? end", "1 May")
    found = paragraphs_of([turn], TurnFormat(), rules)
    assert [each.text for each in found] == ["Ann: one two. three four!", "five six seven eight nine ten?", "end"]
    assert {each.turn_id for each in found} == {"D1:1"} and [each.words for each in found] == [5, 6, 1]


# Gists


@pytest.mark.parametrize(
    ("gist", "cause"),
    [
        ("", "empty"),
        ("Ann sails the red boat", None),
        ("I cannot help you there", "unrelated"),
        ("Ann sails boats all day long", "long"),
    ],
)
def test_what_is_no_gist(gist: str, cause: str | None) -> None:
    page = GistPage("[1 May]", "Ann sails a red boat", ("D1:1",), 5)
    assert no_gist(gist, page, memory_config("readagent").rules().gists) == cause  # type: ignore[attr-defined]


def test_a_quarter_of_the_page_stands_in_for_what_is_no_gist() -> None:
    system = ingested(replying(gist="Sorry, that is nothing I can do"))
    assert [page.gist for page in pages_of(system)][:2] == ["Ann: a0 boat sea", "Ben:"]  # of 15 and of 5 words
    counts: Any = system.statistics()["counts"]
    assert counts["fallback.gist"] == counts["gist.unrelated"] + counts["gist.long"] == 6


def test_facts_are_asked_for_unless_the_method_is_to_be_as_released() -> None:
    ours, plain = replying(), replying(paginate="<1>")
    ingested(ours)
    ingested(plain, "readagent_code")
    asked_for = "Keep every name, date, number and place"
    assert asked_for in ours.prompts[-1] and all(asked_for not in prompt for prompt in plain.prompts)


def test_statistics_say_how_much_is_gone() -> None:
    facts = ingested(replying()).statistics()
    assert (facts["pages"], facts["words"], facts["gist_words"]) == (6, 60, 18)
    assert facts["compression"] == pytest.approx(0.7)
    assert facts["tokens"] > facts["gist_tokens"] > 0


# Look-ups


def test_one_call_sees_all_gists_with_their_numbers_and_then_the_question() -> None:
    model = replying(lookup={"pages": [3, 1]})
    system = ingested(model)
    before = len(model.calls)
    found = asked(system)
    assert [role for role, _ in model.calls[before:]] == ["lookup"]
    prompt = model.prompts[-1]
    assert prompt.index("<Page 0>\n[1 May 2023]") < prompt.index("<Page 5>") < prompt.index("Who sails?")
    assert [hit.memory_id for hit in found.hits] == ["page_3", "page_1"], "hits in the order of request"
    assert [hit.turn_ids for hit in found.hits] == [("D2:3",), ("D1:3",)]
    assert found.trace["opened"] == [3, 1] and found.trace["fallbacks"] == []
    assert not found.ranked, "an order of request is not a ranking"


def test_the_context_is_the_document_with_opened_pages_in_place() -> None:
    found = asked(ingested(replying(lookup={"pages": [2]})))
    assert found.context == (
        "<Page 0>\n[1 May 2023]\nboat sea sail\n"
        "<Page 1>\n[1 May 2023]\nboat sea sail\n"
        "<Page 2>\n[2 May 2023]\nAnn: b0 cake oven milk\nBen: b1 cake oven milk\nAnn: b2 cake oven milk\n"
        "<Page 3>\n[2 May 2023]\ncake oven milk\n"
        "<Page 4>\n[3 May 2023]\nsong drum band\n"
        "<Page 5>\n[3 May 2023]\nsong drum band\n"
    )
    assert "<Page" not in asked(ingested(replying(lookup="[2]", paginate="<1>"), "readagent_code")).context


@pytest.mark.parametrize("bad", ["no object", {"pages": []}, {"pages": [77]}, {"pages": [0, 1, 2, 3, 4, 5]}])
def test_without_a_list_the_gists_alone_are_shown_and_it_is_counted(bad: Any) -> None:
    found = asked(ingested(replying(lookup=bad)))
    assert found.hits == () and found.context.count("<Page") == 6
    assert found.trace["fallbacks"] == ["lookup:no_pages"]


@pytest.mark.parametrize(
    ("text", "pages"),
    [
        ("I look up [2, 0] and not [1].", [2, 0]),
        ("[2, 2, two, -1, 9, 0]", [2, 0]),
        ("[Page 1]", []),
        ("2, 0", []),
        ("", []),
    ],
)
def test_numbers_inside_the_first_brackets_are_the_pages(text: str, pages: list[int]) -> None:
    assert named_pages(reply(text), [0, 1, 2]) == pages
    assert named_pages(reply(text, malformed=True), [0, 1, 2]) == []


def test_no_more_pages_are_opened_than_allowed() -> None:
    listed = "[5, 4, 3, 2, 1, 0]"
    for preset, most in (("readagent_code", 6), ("readagent", 5), ("readagent_pages_2", 2)):
        found = asked(ingested(replying(lookup=listed, paginate="<1>", gist="boat"), preset, replies="text"))
        assert len(found.hits) == min(most, found.trace["stored_pages"])


def test_sequential_look_up_sees_opened_pages_in_full_and_stops() -> None:
    model = replying(lookup_next=in_turn({"page": "2"}, {"page": "4"}, {"page": "STOP"}))
    system = ingested(model, "readagent_sequential")
    found = asked(system)
    assert [hit.memory_id for hit in found.hits] == ["page_2", "page_4"] and found.trace["lookup_calls"] == 3
    second = model.prompts[-2]
    assert "b1 cake" in second and "c1 song" not in second and "read again: 2\n" in second
    assert found.trace["fallbacks"] == []


@pytest.mark.parametrize("bad", [{"page": "2"}, "no object"])
def test_a_repeated_or_invalid_page_stops_and_is_counted(bad: Any) -> None:
    found = asked(ingested(replying(lookup_next=in_turn({"page": "2"}, bad)), "readagent_sequential"))
    assert found.trace["opened"] == [2] and found.trace["fallbacks"] == ["lookup_next:stop"]


def test_sequential_look_up_ends_after_its_rounds() -> None:
    model = replying(lookup_next=in_turn(*({"page": str(page)} for page in (5, 4, 3, 2, 1, 0))))
    assert asked(ingested(model, "readagent_sequential")).trace["opened"] == [5, 4, 3, 2, 1]
    few = ingested(replying(lookup_next={"page": "0"}), "readagent_sequential", talk=conversation(["boat sea"]))
    assert asked(few).trace["lookup_calls"] == 1, "nothing is left to open"


@pytest.mark.parametrize(("text", "step"), [("Page 3", 3), ("stop", "STOP"), ("STOP. Not 3", "STOP"), ("none", None)])
def test_a_step_is_a_number_or_stop(text: str, step: int | str | None) -> None:
    assert next_step(reply(text)) == step


def test_gists_that_exceed_a_call_are_shown_in_several_and_the_pages_joined() -> None:
    chosen = {"0": [0, 1], "1": [3, 2], "2": [5]}
    model = replying(lookup=lambda values, key: {"pages": chosen[key.rpartition(":")[2]]})
    # A gist has eight tokens here: its tag's two, the date's three, its own three.
    system = ingested(model, lookup={"max_tokens": 16})
    found = asked(system)
    assert found.trace["lookup_calls"] == 3
    assert found.trace["requested"] == [0, 3, 5, 1, 2], "the first choice of each call comes first"
    assert "<Page 1>" not in model.prompts[-1] and "<Page 4>" in model.prompts[-1]


def page(tokens: int, gist_tokens: int) -> GistPage:
    return GistPage("", "full", ("t",), 1, "gist", tokens, gist_tokens)


def test_batches_by_hand() -> None:
    assert gist_batches([page(9, size) for size in (3, 3, 4, 20, 1)], 6) == [[0, 1], [2], [3], [4]]
    assert gist_batches([], 6) == []


def test_a_full_context_keeps_requested_pages_and_the_gists_nearest_to_them() -> None:
    pages = [page(10, 2) for _ in range(8)]
    mixed = mix(pages, [5, 1], 26)
    assert (mixed.opened, mixed.gists) == ((5, 1), (0, 2, 4))  # distance 1: pages 0, 2, 4 and 6
    assert mix(pages, [5, 1, 7], 29).opened == (5, 1)
    assert mix(pages, [], 5).gists == (6, 7), "with none opened, the last ones"
    assert mix(pages, [3], 100).gists == (0, 1, 2, 4, 5, 6, 7)


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 9)), max_size=12), st.integers(0, 150),
    st.lists(st.integers(0, 11), unique=True),
)  # fmt: skip
def test_what_is_shown_fits_and_nothing_is_shown_twice(
    sizes: list[tuple[int, int]], limit: int, wanted: list[int]
) -> None:
    pages = [page(*size) for size in sizes]
    mixed = mix(pages, [number for number in wanted if number < len(pages)], limit)
    spent = sum(pages[n].tokens for n in mixed.opened) + sum(pages[n].gist_tokens for n in mixed.gists)
    assert spent <= limit and not set(mixed.opened) & set(mixed.gists)
    if limit >= sum(tokens + short for tokens, short in sizes):
        assert len(mixed.opened) + len(mixed.gists) == len(pages)


def test_the_small_preset_shows_all_gists_and_both_pages() -> None:
    talk = conversation(*[[f"w{n} " * 90 for n in range(6)]] * 4)
    pick = replying(lookup=lambda values, key: {"pages": [int(re.findall(r"<Page (\d+)>", values["gists"])[0])]})
    system = ingested(pick, "readagent_small", talk, pages={})
    found = asked(system)
    assert len(pages_of(system)) == 4 and found.hits
    assert all(f"<Page {number}>" in found.context for number in range(4))


# The memory as a whole


@pytest.mark.parametrize("preset", ["readagent", "readagent_code"])
def test_look_ahead_and_snapshots_do_not_move_a_result(preset: str) -> None:
    def mid(values: Mapping[str, str], key: str) -> Mapping[str, Any] | str:
        label = marks(values["passage"])[0]
        return f"<{label}>" if preset == "readagent_code" else {"label": label}

    straight = ingested(replying(paginate=mid), preset)
    ahead = memory(replying(paginate=mid), preset, pages=SHORT_PAGES)
    restored = memory(replying(lookup="[0]" if preset == "readagent_code" else None), preset, pages=SHORT_PAGES)

    async def backwards() -> None:
        units = list(ahead.units(TALK))
        prepared = await asyncio.gather(*(ahead.prepare(unit) for unit in reversed(units)))
        for unit, each in zip(units, reversed(prepared), strict=True):
            await ahead.write(unit, each)

    asyncio.run(backwards())
    assert ahead.state() == straight.state() and len(pages_of(ahead)) > 6
    restored.load_state(straight.state())
    assert restored.statistics() == straight.statistics()
    assert asked(restored).context


def test_every_turn_is_on_a_page_and_in_its_origins() -> None:
    pages = pages_of(ingested(replying()))
    assert [turn for each in pages for turn in each.turn_ids] == [turn.turn_id for turn in TALK.turns]


def test_calls_of_a_session_wait_for_no_other_session() -> None:
    """Pagination is serial within a unit; a unit is a session, so all of a conversation's can run at once."""
    system = memory(replying())
    assert len(system.units(TALK)) == 3
    assert len(memory(replying(), "readagent_code").units(TALK)) == 1


def test_prompts_show_no_number_that_a_small_model_could_copy() -> None:
    files = sorted((Path(__file__).parents[4] / "baselines" / "readagent" / "prompts").glob("*.txt"))
    assert len(files) >= 8
    for file in files:
        assert not re.search(r"\d", file.read_text()), file.name


def test_the_backbone_is_bound_to_the_numbers_that_are_shown() -> None:
    schemas: dict[str, Any] = {}

    class Watching(FakeModel):
        async def ask(self, role: Any, values: Mapping[str, str], *, key: str) -> Reply:
            schemas[role.name] = role.schema
            return await super().ask(role, values, key=key)

    model = Watching(replying(lookup_next=in_turn({"page": "4"}, {"page": "STOP"})).function)
    system = ingested(model, "readagent_sequential", talk=conversation([f"a{n} boat sea sail" for n in range(8)]))
    asked(system)
    assert schemas["lookup_next"]["properties"]["page"]["enum"] == ["0", "1", "2", "STOP"]
    assert schemas["paginate"]["properties"]["label"]["enum"] == [7, 8]
    asked(ingested(model))
    named = schemas["lookup"]["properties"]["pages"]
    assert named["items"]["enum"] == [0, 1, 2, 3, 4, 5] and (named["minItems"], named["maxItems"]) == (1, 5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"replies": "xml"}, "memory.replies='xml'"),
        ({"uses_gold": True}, "memory.uses_gold"),
        ({"pages": {"dates": "none"}}, "memory.pages.dates='none'"),
        ({"pages": {"max_words": 0}}, "memory.pages.max_words=0"),
        ({"pages": {"pages": 1}}, "memory.pages: unknown are pages"),
        ({"gists": {"max_share": 1.5}}, "memory.gists.max_share=1.5"),
        ({"lookup": {"mode": "all"}}, "memory.lookup.mode='all'"),
        ({"roles": {"read": {}}}, "memory.roles"),
    ],
)
def test_wrong_settings_name_themselves(changes: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        memory(replying(), **changes)


def test_a_window_without_room_is_an_error_before_anything_is_stored() -> None:
    system = memory(replying(), context={"reserve_tokens": 9000})
    with pytest.raises(ConfigError, match="reserve_tokens=9000"):
        ingest(system, TALK)


# Figures of the data


def ends(values: Mapping[str, str], key: str) -> dict[str, int]:
    return {"label": marks(values["passage"])[-1]}


@pytest.mark.real_data
def test_locomo_has_about_one_page_per_session(locomo_file: Path) -> None:
    """With every page at its chunk's end: 35.3 pages per conversation (22 to 44); merged, 25.7 (16 to 31)."""
    samples = read_config("locomo", {"path": str(locomo_file)}).load().samples
    assert len(samples) == 10
    for respect, mean, least, most in ((True, 35.3, 22, 44), (False, 25.7, 16, 31)):
        pages = []
        for sample in samples:
            system = memory(replying(paginate=ends), pages={"respect_sessions": respect, "split_words": None})
            pages.append(sum(len(asyncio.run(system.prepare(u)).pages) for u in system.units(sample.conversation)))
        assert (min(pages), max(pages)) == (least, most)
        assert sum(pages) / 10 == pytest.approx(mean, abs=0.25)


#: Two conversations of 120 and 30 turns in sessions of 20 and 10, ten questions.
PLANNED = DataShape([120, 30], [20] * 6 + [10] * 3, {1: 4, 4: 6})


def planned(preset: str, shape: DataShape) -> dict[str, float]:
    found = memory_calls(memory_config(preset), shape)
    assert found is not None
    return {each.role: each.calls for each in found}


def test_calls_by_hand() -> None:
    """A session of 20 turns has 616 words: a page of 440 and a tail; one of 10 turns is a tail."""
    assert planned("readagent", PLANNED) == {"paginate": 6, "gist": 15, "lookup": 10}
    assert planned("readagent_sequential", PLANNED) == {"paginate": 6, "gist": 15, "lookup_next": 30}


@pytest.mark.real_data
def test_planned_pages_of_locomo_are_those_of_breaks_in_the_middle(locomo_file: Path) -> None:
    config = read_config("locomo", {"path": str(locomo_file)})
    data = config.load()

    def middle(values: Mapping[str, str], key: str) -> dict[str, int]:
        return {"label": (found := marks(values["passage"]))[len(found) // 2]}

    model = replying(paginate=middle)
    for sample in data.samples:
        system = memory(model)
        for unit in system.units(sample.conversation):
            asyncio.run(system.prepare(unit))
    calls = planned("readagent", shape_of(config, data))
    assert calls["gist"] == pytest.approx(model.count("gist"), rel=0.1)
    assert calls["paginate"] == pytest.approx(model.count("paginate"), rel=0.1)
    assert calls["lookup"] == 1986


def test_every_preset_of_readagent_is_covered_by_the_contract() -> None:
    names = {name for name in preset_names(MEMORY) if name.startswith("readagent")}
    assert names == {
        "readagent", "readagent_code", "readagent_pages_2", "readagent_sequential", "readagent_small",
    }  # fmt: skip
