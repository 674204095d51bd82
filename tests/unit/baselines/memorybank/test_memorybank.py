"""MemoryBank: pieces, summaries, the portrait, forgetting, and what the reader sees."""

import asyncio
import re
from collections.abc import Mapping
from math import exp
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines.limits import cut_to_tokens
from baselines.memorybank.bank import BankEntry, Day, pieces_of
from baselines.memorybank.context import Overall, write_context
from baselines.memorybank.forgetting import ForgettingRules, days_ago, is_kept
from baselines.memorybank.memory import MemoryBankMemory
from baselines.memorybank.rules import MemoryBankContextRules, SummaryRules
from baselines.memorybank.summaries import dated_entries, first_sentences, parts_of
from eval.config.presets import MEMORY, preset_names
from eval.inspect_data import read_config
from eval.loaders.shapes import shape_of
from eval.sweep.calls import memory_calls
from memsys.call_model import DataShape
from memsys.errors import ConfigError
from memsys.turns import TurnFormat
from memsys.vocabulary import Conversation, Retrieval, Turn, Unit
from tests.support.composing import composed, conversation, ingest, memory_config, parts
from tests.support.fakes import FakeModel
from tests.support.shown import check_shown

TALK = conversation(["boat sea", "sail wind", "rope"], ["cake oven", "milk sugar"], ["song drum", "band stage"])


def replying(**replies: Any) -> FakeModel:
    """Reply with a text per role, or a function of values and key."""

    def function(role: str, values: Mapping[str, str], key: str) -> str:
        said = replies.get(role, f"made by {role}")
        return str(said(values, key) if callable(said) else said)

    return FakeModel(function)


def memory(model: FakeModel, preset: str = "memorybank", seed: int = 1, **changes: Any) -> MemoryBankMemory:
    settings = {
        group: {**composed(preset)[group], **change} if isinstance(change, Mapping) else change
        for group, change in changes.items()
    }
    system = memory_config(preset, **settings).build(parts(model, seed=seed))
    assert isinstance(system, MemoryBankMemory)
    return system


def ingested(
    model: FakeModel | None = None, preset: str = "memorybank", talk: Conversation = TALK, **changes: Any
) -> MemoryBankMemory:
    system = memory(model or replying(), preset, **changes)
    ingest(system, talk)
    return system


def days_of(system: MemoryBankMemory) -> list[Day]:
    return [Day.from_state(entry) for entry in system.state()["days"]]


def pieces(system: MemoryBankMemory) -> list[BankEntry]:
    return [piece for day in days_of(system) for piece in day.pieces]


def asked(system: MemoryBankMemory, question: str = "boat sea") -> Retrieval:
    return asyncio.run(system.retrieve(question))


def counts(system: MemoryBankMemory) -> Mapping[str, int]:
    found: Any = system.statistics()["counts"]
    return found  # type: ignore[no-any-return]


def unit(*said: tuple[str, str]) -> Unit:
    turns = tuple(Turn(f"D1:{n}", "s", speaker, text, "1 May 2023") for n, (speaker, text) in enumerate(said))
    return Unit("u", turns)


# Pieces


def test_a_piece_is_what_is_said_and_what_is_replied() -> None:
    talk = unit(("Ann", "a"), ("Ann", "b"), ("Ben", "c"), ("Ann", "d"), ("Ben", "e"), ("Ben", "f"), ("Ann", "g"))
    found = pieces_of(talk, TurnFormat(), "pairs")
    assert [piece.turn_ids for piece in found] == [("D1:0", "D1:1", "D1:2"), ("D1:3", "D1:4", "D1:5"), ("D1:6",)]
    assert found[0].shown == "[1 May 2023] Ann: a\nAnn: b\nBen: c"
    assert [piece.turn_ids for piece in pieces_of(talk, TurnFormat(), "turns")] == [(f"D1:{n}",) for n in range(7)]


@given(st.lists(st.sampled_from(["Ann", "Ben", "Cy"]), min_size=1, max_size=30))
def test_no_turn_is_lost_and_none_said_twice(speakers: list[str]) -> None:
    talk = unit(*((speaker, "x") for speaker in speakers))
    found = [turn_id for piece in pieces_of(talk, TurnFormat(), "pairs") for turn_id in piece.turn_ids]
    assert found == [turn.turn_id for turn in talk.turns]


def test_pieces_never_cross_a_session() -> None:
    assert [piece.turn_ids for piece in pieces(ingested())] == [
        ("D1:0", "D1:1"), ("D1:2",), ("D2:0", "D2:1"), ("D3:0", "D3:1"),
    ]  # fmt: skip


def test_every_unit_of_the_index_bears_its_date() -> None:
    system = ingested(replying(day_summary="a day"))
    entries = [entry for day in days_of(system) for entry in (*day.summaries, *day.pieces)]
    assert all(entry.shown.startswith(f"[{entry.date}] ") and entry.date for entry in entries)
    embedder: Any = system._parts.embedder
    assert {entry.shown for entry in entries} == {text for call in embedder.calls for text in call}


def test_captions_stay() -> None:
    turns = (Turn("D1:0", "s", "Ann", "look", "1 May 2023", caption="a red boat"),)
    assert "a red boat" in pieces(ingested(talk=Conversation("c", turns, ("Ann", "Ben"))))[0].text


# Summaries


def test_two_calls_a_day_and_two_at_the_end() -> None:
    model = replying()
    ingested(model)
    assert {role: model.count(role) for role in composed("memorybank")["roles"]} == {
        "day_summary": 3, "day_personality": 3, "overall_history": 1, "overall_personality": 1,
    }  # fmt: skip


def test_days_are_summarised_and_described_from_their_own_talk_alone() -> None:
    model = replying()
    ingested(model)
    prompts = [prompt for (role, _), prompt in zip(model.calls, model.prompts, strict=True) if role.startswith("day_")]
    assert all(sum(word in prompt for word in ("boat", "cake", "song")) == 1 for prompt in prompts)
    described = [prompt for (role, _), prompt in zip(model.calls, model.prompts, strict=True) if "personality" in role]
    assert all("Ann and Ben" in prompt for prompt in described)


def test_a_summary_names_all_turns_of_its_day() -> None:
    (first, *_) = days_of(ingested(replying(day_summary="they sailed")))
    assert [(each.text, each.turn_ids) for each in first.summaries] == [("they sailed", ("D1:0", "D1:1", "D1:2"))]


@pytest.mark.parametrize(("named_turns", "named"), [("none", ()), ("all", ("D1:0", "D1:1", "D1:2"))])
def test_a_summary_that_is_found_counts_as_evidence_where_the_config_says_so(
    named_turns: str, named: tuple[str, ...]
) -> None:
    system = ingested(replying(day_summary="they sailed"), summaries={"named_turns": named_turns})
    hits = {hit.memory_id: hit.turn_ids for hit in asked(system, "they sailed").hits}
    summaries = {memory_id: turn_ids for memory_id, turn_ids in hits.items() if "#summary" in memory_id}
    assert named in summaries.values() and all(bool(turn_ids) == bool(named) for turn_ids in summaries.values())
    assert all(turn_ids for memory_id, turn_ids in hits.items() if memory_id not in summaries)


def test_the_user_alone_is_described_where_the_released_code_does_so() -> None:
    model = replying()
    ingested(model, "memorybank_code")
    described = [prompt for (role, _), prompt in zip(model.calls, model.prompts, strict=True) if "personality" in role]
    assert len(described) == 4 and all("Ann" in prompt and "Ann and Ben" not in prompt for prompt in described)


def test_what_stands_in_for_empty_replies_is_counted() -> None:
    empty = dict.fromkeys(composed("memorybank")["roles"], "  ")
    system = ingested(replying(**empty))
    assert [each.text for each in days_of(system)[0].summaries] == ["Ann: boat sea Ben: sail wind Ann: rope"]
    state = system.state()
    assert state["personality"] == "" and state["history"].startswith("[1 May 2023] Ann: boat sea Ben")
    assert {name: number for name, number in counts(system).items() if name.startswith("fallback")} == {
        "fallback.day_summary": 3,
        "fallback.day_personality": 3,
        "fallback.overall_history": 1,
        "fallback.overall_personality": 0,  # nobody was described, so nobody is asked for a portrait
    }
    portrait = ingested(replying(overall_personality=""))
    assert counts(portrait)["fallback.overall_personality"] == 1 and portrait.state()["personality"] == ""


def test_first_sentences() -> None:
    assert first_sentences("Ann: One. Two!\nBen: Three? Four", 3) == "Ann: One. Two! Ben: Three?"


def test_a_long_day_is_summarised_in_parts_each_with_its_own_turns() -> None:
    talk = conversation([f"w{n} x y" for n in range(5)])  # four words a line
    system = ingested(replying(day_summary=lambda values, key: f"on {values['transcript'].split()[1]}"), talk=talk,
                      summaries={"part_tokens": 8})  # fmt: skip
    (day,) = days_of(system)
    assert [(each.text, each.turn_ids) for each in day.summaries] == [
        ("on w0", ("D1:0", "D1:1")), ("on w2", ("D1:2", "D1:3")), ("on w4", ("D1:4",)),
    ]  # fmt: skip
    assert len(day.personality) == 3


def parted(records: str, limit: int, words: int = 1) -> list[str]:
    turns = [Turn(str(n), "s", "", "w " * words, extra={"record": record}) for n, record in enumerate(records)]
    found = asyncio.run(parts_of(replying(), turns, TurnFormat("bare"), limit))
    assert [turn for part in found for turn in part.turns] == turns
    return ["".join(str(turn.extra["record"]) for turn in part.turns) for part in found]


def test_parts_end_with_records_where_they_can() -> None:
    assert parted("aabbb", 4) == ["aa", "bbb"]
    assert parted("aaaaab", 4) == ["aaaa", "ab"]
    assert parted("abbbbcc", 4) == ["a", "bbbb", "cc"]
    assert parted("abbbbbb", 4) == ["a", "bbbb", "bb"]
    assert parted("abc", 9) == ["abc"]


@given(st.text("abc", min_size=1, max_size=30), st.integers(1, 12))
def test_parts_fit(records: str, limit: int) -> None:
    assert all(len(part) <= limit for part in parted("".join(sorted(records)), limit))


def test_a_turn_longer_than_a_part_is_cut_for_its_summary_alone() -> None:
    (part,) = asyncio.run(parts_of(replying(), [Turn("1", "s", "", "w " * 50)], TurnFormat("bare"), 7))
    assert 1 <= len(part.transcript.split()) <= 7 and part.turns[0].text == "w " * 50


def test_too_many_days_are_cut_evenly_so_that_the_instruction_and_every_day_stay() -> None:
    rules = SummaryRules(True, 9, 3, "both", overall_history=True, named_turns="none", reserve_tokens=8192 - 60)
    entries = [(f"day{n}", "w " * 40) for n in range(10)]
    text, cut = asyncio.run(dated_entries(replying(), entries, rules))
    assert cut and len(text.split()) <= 60
    lines = [line.split() for line in text.split("\n")]
    assert [line[0] for line in lines] == [f"[day{n}]" for n in range(10)] and len({len(line) for line in lines}) == 1
    assert asyncio.run(dated_entries(replying(), entries[:1], rules)) == (f"[day0] {'w ' * 40}", False)


def test_cut_to_ends_at_the_limit() -> None:
    assert len(asyncio.run(cut_to_tokens(replying(), "w " * 30, 4)).split()) in (3, 4)
    assert asyncio.run(cut_to_tokens(replying(), "", 4)) == ""


# Forgetting


def rules(mode: Any, strength: float = 1.0, scale: float = 5.0) -> ForgettingRules:
    return ForgettingRules(mode, strength, scale, drop_bare_days=False)


def test_the_curves_by_hand() -> None:
    assert rules("off").retention(99) == 1
    assert rules("paper", 2).retention(4) == pytest.approx(exp(-2))
    assert rules("scaled", 2).retention(10) == pytest.approx(exp(-1))
    assert rules("code_bug", 2).retention(10) == pytest.approx(exp(-4))
    assert rules("scaled").retention(7) == rules("code_bug").retention(7), "the same at a strength of one"


def test_strength_keeps_but_for_the_released_code_where_it_forgets() -> None:
    for mode, sign in (("paper", 1), ("scaled", 1), ("code_bug", -1)):
        assert sign * (rules(mode, 3).retention(5) - rules(mode, 1).retention(5)) > 0


def test_days_are_counted_on_the_conversations_own_calendar() -> None:
    dates = ["11:50 pm on 7 May, 2023", "0:10 am on 8 May, 2023", "unknown", "20 May 2023", "19 May 2023"]
    assert days_ago(dates) == [13, 12, None, 0, 1]
    assert days_ago(["", "?"]) == [None, None] and days_ago([]) == []


def test_a_draw_depends_on_seed_conversation_and_piece_alone() -> None:
    drawn = [is_kept(rules("scaled"), 3, seed, "c", f"D1:{n}") for seed in (1, 2) for n in range(200)]
    assert drawn == [is_kept(rules("scaled"), 3, seed, "c", f"D1:{n}") for seed in (1, 2) for n in range(200)]
    assert sum(drawn) / 400 == pytest.approx(exp(-3 / 5), abs=0.08)
    assert drawn[:200] != drawn[200:]


def long_talk() -> Conversation:
    return conversation(*[[f"s{session} w{n}" for n in range(8)] for session in range(12)])


def test_forgetting_leaves_the_last_day_and_keeps_summaries() -> None:
    system = ingested(preset="memorybank_forget", talk=long_talk())
    days = days_of(system)
    assert len(days[-1].pieces) == 4, "no day has passed"
    assert 4 <= len(pieces(system)) < 16 and all(len(day.summaries) == 1 for day in days)
    found = counts(system)
    assert found["forgotten.pieces"] == 48 - len(pieces(system)) and found["forgotten.summaries"] == 0
    assert found["forgotten.bare_days"] == sum(not day.pieces for day in days) > 0
    hits = {hit.memory_id for question in ("s0 w0", "s5 w1") for hit in asked(system, question).hits}
    assert hits <= {entry.entry_id for day in days for entry in (*day.pieces, *day.summaries)}


def test_a_bare_day_loses_its_summary_where_the_released_code_drops_it() -> None:
    system = ingested(preset="memorybank_forget", talk=long_talk(), forgetting={"drop_bare_days": True})
    days = days_of(system)
    assert all(bool(day.pieces) == bool(day.summaries) for day in days)
    assert counts(system)["forgotten.summaries"] == sum(not day.pieces for day in days) > 0


def test_what_is_kept_depends_on_the_seed_but_the_calls_do_not() -> None:
    models = [replying() for _ in range(3)]
    systems = [
        ingested(m, "memorybank_forget_scaled", long_talk(), seed=seed)
        for m, seed in zip(models, (1, 1, 2), strict=True)
    ]
    assert pieces(systems[0]) == pieces(systems[1]) != pieces(systems[2])
    off = replying()
    ingested(off, talk=long_talk())
    assert sorted(models[0].prompts) == sorted(off.prompts), "replies are shared with the system that keeps everything"


def test_undated_days_forget_nothing_and_say_so() -> None:
    turns = tuple(Turn(f"{n}", "s", "System", f"w{n}") for n in range(5))
    system = ingested(preset="memorybank_forget", talk=Conversation("c", turns), pieces="turns")
    assert len(pieces(system)) == 5 and counts(system)["undated_days"] == 1


def test_nothing_is_forgotten_by_default() -> None:
    assert len(pieces(ingested(talk=long_talk()))) == 48


# The context


def test_portrait_digest_found_entries_by_day_and_the_days() -> None:
    system = ingested(
        replying(day_summary="calm day", overall_history="short digest", overall_personality="two sailors"),
        retrieve_k=4,
    )
    lines = asked(system, "song drum band stage cake oven milk sugar").context.splitlines()
    assert lines[0] == "Portrait of the speakers: two sailors"
    assert lines[1] == "Digest of the whole conversation: short digest"
    dates = [int(match.group(1)) for line in lines if (match := re.match(r"\[(\d) May 2023\]", line))]
    assert len(dates) == 4 and dates == sorted(dates)
    assert re.fullmatch(r"Days recalled: (\d May 2023; )*\d May 2023", lines[-1])


def test_a_question_does_not_go_through_all_days() -> None:
    system = ingested(preset="memorybank_forget_scaled")
    whole = asked(system)
    kept = {entry.entry_id for day in days_of(system) for entry in (*day.summaries, *day.pieces)}
    assert whole.trace["stored"] == len(kept) and {hit.memory_id for hit in whole.hits} <= kept
    system._days = []
    again = asked(system)
    assert (again.hits, again.context) == (whole.hits, whole.context)


def test_hits_come_best_first_whatever_the_context_shows() -> None:
    found = asked(ingested(), "song drum band stage")
    assert found.hits[0].turn_ids == ("D3:0", "D3:1")
    assert [hit.score for hit in found.hits] == sorted((hit.score for hit in found.hits), reverse=True)
    assert found.context.index("boat") < found.context.index("song")


def test_the_digest_is_not_shown_where_the_released_code_loses_it() -> None:
    model = replying()
    found = asked(ingested(model, "memorybank_code"))
    assert model.count("overall_history") == 0 and "Digest" not in found.context and len(found.hits) == 2


def test_ten_units_are_found_and_the_question_is_what_is_searched_by() -> None:
    model = replying()
    system = ingested(model, talk=long_talk())
    before = len(model.calls)
    assert len(asked(system).hits) == 10 and len(model.calls) == before
    embedder: Any = system._parts.embedder
    assert embedder.calls[-1] == ["boat sea"]


def test_entries_that_had_no_room_are_not_shown() -> None:
    whole = asked(ingested(talk=long_talk()))
    assert whole.shown == tuple(range(10))
    context = {**composed("memorybank")["context"], "max_tokens": len(whole.context.split()) - 10}
    check_shown(asked(ingested(talk=long_talk(), context=context)))


def entry(number: int, words: int = 4) -> BankEntry:
    return BankEntry(f"e{number}", f"{number} May", " ".join(f"e{number}w{n}" for n in range(words)), (f"t{number}",))


def written(found: list[BankEntry], limit: int | None, overall: Overall) -> tuple[str, int]:
    position = {f"e{number}": number for number in range(10)}
    made = asyncio.run(write_context(replying(), MemoryBankContextRules(True, limit, 2000), overall, found, position))
    return made.text, made.left_out


def test_a_limit_keeps_portrait_and_digest_and_the_best_entries() -> None:
    overall = Overall("digest", "portrait")  # five and six words with their labels
    found = [entry(number) for number in (7, 2, 5)]  # six words each, and eight for the days
    text, left_out = written(found, 5 + 6 + 12 + 8, overall)
    assert left_out == 1 and "e5w0" not in text and text.index("e2w0") < text.index("e7w0")
    assert text.endswith("Days recalled: 2 May; 7 May\n")
    assert written(found, None, overall)[1] == 0
    assert written(found, 12, overall) == ("", 5)


@given(st.lists(st.integers(1, 30), max_size=8), st.integers(1, 200))
def test_the_context_fits(sizes: list[int], limit: int) -> None:
    text, left_out = written([entry(n, size) for n, size in enumerate(sizes)], limit, Overall("a digest", "a portrait"))
    assert len(text.split()) <= limit and 0 <= left_out <= len(sizes) + 2


# The memory as a whole


@pytest.mark.parametrize("preset", ["memorybank", "memorybank_forget_scaled", "memorybank_code"])
def test_snapshots_and_look_ahead_do_not_move_a_result(preset: str) -> None:
    straight = ingested(preset=preset, talk=long_talk())
    ahead = memory(replying(), preset)

    async def backwards() -> None:
        units = list(ahead.units(long_talk()))
        prepared = await asyncio.gather(*(ahead.prepare(each) for each in reversed(units)))
        for each, made in zip(units, reversed(prepared), strict=True):
            await ahead.write(each, made)
        await ahead.consolidate()

    asyncio.run(backwards())
    restored = memory(replying(), preset)
    restored.load_state(straight.state())
    for other in (ahead, restored):
        assert days_of(other) == days_of(straight) and other.statistics() == straight.statistics()
        first, second = asked(other), asked(straight)
        assert (first.hits, first.context) == (second.hits, second.context)


def test_items_of_a_pool_are_pieces_and_nobody_is_described() -> None:
    (sample, *_) = read_config("hotpotqa20_sample", {}).load().samples
    model = replying()
    system = ingested(model, "memorybank_items_small", sample.conversation)
    assert len(pieces(system)) == len(sample.conversation.turns)
    assert model.count("day_personality") == model.count("overall_personality") == 0
    (day,) = days_of(system)
    assert [turn for each in day.summaries for turn in each.turn_ids] == [t.turn_id for t in sample.conversation.turns]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pieces": "lines"}, "memory.pieces='lines'"),
        ({"retrieve_k": 0}, "memory.retrieve_k=0"),
        ({"uses_gold": True}, "memory.uses_gold"),
        ({"forgetting": {"mode": "clock"}}, "memory.forgetting.mode='clock'"),
        ({"forgetting": {"strength": 0}}, "memory.forgetting.strength=0"),
        ({"summaries": {"portrait": "all"}}, "memory.summaries.portrait='all'"),
        ({"summaries": {"days": False}}, "memory.summaries.overall_history=True needs"),
        ({"roles": {"answer": {}}}, "memory.roles"),
    ],
)
def test_wrong_settings_name_themselves(changes: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        memory(replying(), **changes)


def test_a_window_without_room_is_an_error_before_anything_is_stored() -> None:
    for group in ("context", "summaries"):
        with pytest.raises(ConfigError, match=f"memory.{group}.reserve_tokens=9000"):
            ingested(**{group: {"reserve_tokens": 9000}})


# Figures of the data


@pytest.mark.real_data
def test_on_locomo_little_is_left_but_the_last_session(locomo_file: Path) -> None:
    """564 calls; exp(-t) keeps 3.5 percent of the turns, exp(-t / 5) 7.0 percent."""
    samples = read_config("locomo", {"path": str(locomo_file)}).load().samples
    model, left = replying(), {"memorybank_forget": 0, "memorybank_forget_scaled": 0}
    for preset in left:
        expected = 0.0
        for sample in samples:
            system = ingested(model, preset, sample.conversation)
            left[preset] += sum(len(piece.turn_ids) for piece in pieces(system))
            turns, known = sample.conversation.turns, system._forgetting
            ages = days_ago([turn.date_time for turn in turns])
            expected += sum(known.retention(age or 0) for age in ages)
        share = {"memorybank_forget": 0.035, "memorybank_forget_scaled": 0.070}[preset]
        assert expected / 5882 == pytest.approx(share, abs=0.0006)
        assert left[preset] / 5882 == pytest.approx(share, abs=0.01)
    assert len(model.calls) == 2 * 564


#: Two conversations of 120 and 30 turns in sessions of 20 and 10, ten questions.
PLANNED = DataShape([120, 30], [20] * 6 + [10] * 3, {1: 4, 4: 6})


def planned(preset: str, shape: DataShape) -> dict[tuple[str, str], float]:
    found = memory_calls(memory_config(preset), shape)
    assert found is not None
    return {(each.phase, each.role): each.calls for each in found}


def test_calls_by_hand() -> None:
    assert planned("memorybank", PLANNED) == {
        ("prepare", "day_summary"): 9,
        ("prepare", "day_personality"): 9,
        ("consolidate", "overall_history"): 2,
        ("consolidate", "overall_personality"): 2,
    }
    assert planned("memorybank_items_small", DataShape([300], [300], {6: 3})) == {
        ("prepare", "day_summary"): 12, ("consolidate", "overall_history"): 1,
    }  # fmt: skip


@pytest.mark.real_data
def test_locomo_takes_564_calls(locomo_file: Path) -> None:
    config = read_config("locomo", {"path": str(locomo_file)})
    assert sum(planned("memorybank", shape_of(config, config.load())).values()) == 564


def test_every_preset_of_memorybank_is_covered_by_the_contract() -> None:
    names = {name for name in preset_names(MEMORY) if name.startswith("memorybank")}
    assert names == {
        "memorybank", "memorybank_code", "memorybank_forget", "memorybank_forget_scaled",
        "memorybank_items_small", "memorybank_small",
    }  # fmt: skip
