"""SAGE's write and read path."""

import asyncio
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval.loaders.locomo import LocomoConfig
from memsys.errors import ConfigError
from memsys.facts.batches import owners_of_unit
from memsys.facts.extraction import facts_from_reply, messages, unfenced
from memsys.llm.contract import Reply
from memsys.sage.config import SageConfig
from memsys.sage.memory import SageMemory
from memsys.sage.roles import PROMPTS
from memsys.turns import TurnFormat
from memsys.vocabulary import Completion, Conversation, Turn
from tests.support.composing import conversation, ingest, memory_config, without_reading
from tests.support.fakes import TableEmbedder
from tests.support.sage import monologue, replying, sage, spoken_facts
from tests.support.shown import check_shown

#: What each preset changes against ``sage``.
PRESETS: dict[str, dict[str, Any]] = {
    "sage_code": {
        "prompt_date": "2026-05-01",
        "extract_prompt": "user_today",
        "kappa_cap": 50,
        "novelty_scale": "full",
        "tau_0": 0.5,
        "tau_min": 0.05,
        "delta": 0.05,
    },
}
#: On the scale of the code, which is twice the paper's.
FIXED: dict[str, dict[str, Any]] = {
    f"sage_fixed_0{part}": {"threshold": "fixed", "tau_fixed": part / 50} for part in (10, 15, 20, 25, 30)
}


def config(name: str = "sage", **changes: Any) -> SageConfig:
    made = memory_config(name, **changes)
    assert isinstance(made, SageConfig)
    return made


def counts(memory: SageMemory) -> Mapping[str, int]:
    found: Mapping[str, int] = memory.statistics()["counts"]
    return found


def routes(memory: SageMemory) -> tuple[int, int, int]:
    found = counts(memory)
    return found["route.add"], found["route.update"], found["route.noop"]


def reply(text: str, value: Mapping[str, Any] | None = None) -> Reply:
    return Reply(value, text, Completion(text, 1, 1, 0.0, "stop"), malformed=value is None)


# presets


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_changes_what_it_says(name: str) -> None:
    made = config(name)
    assert made == replace(config(), name=name, roles=made.roles, **PRESETS[name])
    assert without_reading(made.roles) == without_reading(config().roles)  # see test_released_replies.py


@pytest.mark.parametrize("name", sorted(FIXED))
def test_a_fixed_threshold_is_all_that_a_row_of_table_7_changes_in_the_code(name: str) -> None:
    assert config(name) == replace(config("sage_code"), name=name, **FIXED[name])


def test_the_small_preset_bounds_replies_alone() -> None:
    small, printed = config("sage_small"), config()
    changed = {field.name for field in fields(SageConfig) if getattr(small, field.name) != getattr(printed, field.name)}
    assert changed == {"name", "roles"}
    for role in ("extract", "merge"):
        limits = {"max_tokens", "min_items", "max_items", "max_chars", "malformed_retries"}
        assert {k: v for k, v in small.roles[role].items() if k not in limits} == {
            k: v for k, v in printed.roles[role].items() if k not in limits
        }


def test_the_printed_hyperparameters() -> None:
    printed = config()
    assert (printed.tau_0, printed.tau_min, printed.decay, printed.alpha) == (0.25, 0.025, 2.0, 0.9)
    assert (printed.delta, printed.pca_components, printed.batch_size, printed.top_k) == (0.025, 16, 8, 30)
    assert printed.roles["extract"]["malformed_retries"] == 0  # one call per write, whatever it returns


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("score", "cosine"),
        ("alpha", 1.0),
        ("batch_size", 0),
        ("kappa_cap", 0),
        ("kappa_floor", 0),
        ("tau_fixed", 0.1),
        ("threshold", "fixed"),
        ("context_max_tokens", 0),
        ("uses_gold", True),
        ("merge_prompt", "long"),
        ("roles", {}),
    ],
)
def test_wrong_settings_are_refused(key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"memory\.({key}|tau_fixed)"):
        config(**{key: value})


def test_the_code_routes_as_the_paper_does_under_the_same_cap() -> None:
    words = ["sea", "cake", "song", "rose", "sea", "cake"] * 8
    talk = monologue(*(f"boat {word} w{n % 7}" for n, word in enumerate(words)))
    one, other = sage(replying(spoken_facts), kappa_cap=50), sage(replying(spoken_facts), "sage_code")
    ingest(one, talk)
    ingest(other, talk)
    assert routes(one) == routes(other)
    assert min(routes(one)) > 0


def test_fixed_thresholds_on_the_codes_scale_route_as_printed() -> None:
    talk = monologue(*(f"boat w{n % 7} x{n % 3}" for n in range(40)))
    one = sage(replying(spoken_facts), kappa_cap=50, threshold="fixed", tau_fixed=0.10)
    other = sage(replying(spoken_facts), "sage_fixed_010")
    ingest(one, talk)
    ingest(other, talk)
    assert routes(one) == routes(other)
    assert min(routes(one)) > 0


# units, scopes and extraction


def test_batches_stay_inside_a_session() -> None:
    talk = monologue(*(["x"] * 11), sessions=[1] * 9 + [2] * 2)
    units = sage(replying()).units(talk)
    assert [len(unit.turns) for unit in units] == [8, 1, 2]
    assert [unit.unit_id for unit in units] == ["D1:0..D1:7", "D1:8", "D2:9..D2:10"]


def test_every_batch_is_extracted_once_per_speaker_with_swapped_roles() -> None:
    model = replying()
    ingest(sage(model), conversation(["hello there", "hi Ann"]))
    assert sorted(model.calls) == [("extract", "D1:0..D1:1:Ann"), ("extract", "D1:0..D1:1:Ben")]
    by_owner = dict(zip((key for _, key in model.calls), model.prompts, strict=True))
    assert "about Ben" in by_owner["D1:0..D1:1:Ben"] and "about Ann" not in by_owner["D1:0..D1:1:Ben"]
    assert "user: Ann: hello there\nassistant: Ben: hi Ann" in by_owner["D1:0..D1:1:Ann"]
    assert "assistant: Ann: hello there\nuser: Ben: hi Ann" in by_owner["D1:0..D1:1:Ben"]
    assert "conversation on 1 May 2023" in model.prompts[0]


@pytest.mark.real_data
def test_locomo_takes_1696_extractions(locomo_file: Path) -> None:
    samples = LocomoConfig(**{**locomo_settings(), "path": str(locomo_file)}).load().samples
    adds = 0
    for sample in samples:
        units = sage(replying()).units(sample.conversation)
        adds += sum(len(owners_of_unit("speakers", unit)) for unit in units)
    assert adds == 1696


def locomo_settings() -> dict[str, Any]:
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    from eval.config.presets import CONF

    with initialize_config_dir(str(CONF), version_base="1.3"):
        settings = OmegaConf.to_container(compose("config", overrides=["dataset=locomo"]).dataset, resolve=True)
    assert isinstance(settings, dict)
    return {str(key): value for key, value in settings.items() if key != "_target_"}


def test_documents_have_one_scope_because_nobody_else_speaks() -> None:
    turns = tuple(Turn(f"1:{n}", "s", "System", f"passage {n}") for n in range(3))
    memory, model = sage(replying()), replying()
    ingest(memory, Conversation("c", turns, ("System", "User")))
    assert [scope["owner"] for scope in memory.state()["scopes"]] == ["System"]
    together = sage(model, scopes="conversation")
    ingest(together, conversation(["hello", "hi"]))
    assert [scope["owner"] for scope in together.state()["scopes"]] == ["conversation"]
    assert "user: Ann: hello\nuser: Ben: hi" in model.prompts[0]


def test_preparing_without_a_conversation_is_refused() -> None:
    unit = replace(sage(replying()).units(monologue("x"))[0], conversation=None)
    with pytest.raises(ValueError, match="units"):
        asyncio.run(sage(replying()).prepare(unit))


def test_a_fixed_prompt_date_is_shown_as_it_is() -> None:
    model = replying()
    ingest(sage(model, prompt_date="2026-05-01"), monologue("x"))
    assert "conversation on 2026-05-01" in model.prompts[0]


def test_the_released_extraction_states_todays_date_and_asks_for_none() -> None:
    told = {}
    for name in ("sage", "sage_code"):
        model = replying()
        ingest(sage(model, name), monologue("x"))
        told[name] = model.prompts[0]
    assert "Today's date is 2026-05-01." in told["sage_code"] and "date of what happened" not in told["sage_code"]
    assert "2026-05-01" not in told["sage"] and "date of what happened" in told["sage"]


def test_all_facts_of_an_extraction_are_kept_unless_there_is_a_limit() -> None:
    facts = [f"fact number {number}" for number in range(25)]
    for name, limit, kept in (("sage", None, 25), ("sage_code", None, 25), ("sage_code", 20, 20)):
        memory = sage(replying(lambda values, key: facts), name, max_facts=limit)
        ingest(memory, monologue("x"))
        assert counts(memory)["facts"] == kept and counts(memory)["extract.over_limit"] == 25 - kept


@pytest.mark.parametrize(
    ("reply", "read"),
    [
        ("```\nAnn sails.\n```", "Ann sails."),
        (" ```text\nAnn sails.\nShe has a boat.\n```\n", "Ann sails.\nShe has a boat."),
        ("<think>two boats?</think>Ann sails.", "Ann sails."),
        ("```\n<think>hm</think>\nAnn sails.\n```", "Ann sails."),
        ("Here: ```\nAnn sails.\n```", "Here: ```\nAnn sails.\n```"),
        ("```\n\n```", ""),
        ("``` ```", "``` ```"),
        ("Ann sails.", "Ann sails."),
    ],
)
def test_a_plain_reply_is_read_without_its_fences_as_the_code_reads_it(reply: str, read: str) -> None:
    assert unfenced(reply) == read


def test_messages_show_captions_as_the_run_writes_turns() -> None:
    unit = sage(replying()).units(monologue("x"))[0]
    shown = replace(unit, turns=(replace(unit.turns[0], caption="a boat"),))
    assert messages(shown, TurnFormat(), "Ann") == "user: Ann: x [shares a boat]"
    assert messages(shown, TurnFormat(captions="none"), "Ben") == "assistant: Ann: x"


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("", {"facts": [" a ", "", "b"]}, (("a", "b"), 0, None)),
        ("", {"facts": []}, ((), 0, None)),
        ("", {"facts": ["a", "b", "c", "d"]}, (("a", "b", "c"), 1, None)),
        ('{"facts": [{"fact": "a"}, {"text": "b"}, {"no": 1}, ["c"]]}', None, (("a", "b", "c"), 0, "recovered")),
        ('{"facts": "one long string"}', None, (("one long string",), 0, "recovered")),
        ('Here: ["a", "b"] so.', None, (("a", "b"), 0, "recovered")),
        ('{"facts": [1, null]}', None, ((), 0, "lost")),
        ('{"memories": ["a"]}', None, (("a",), 0, "recovered")),
        ("I cannot.", None, ((), 0, "lost")),
        ("}{][", None, ((), 0, "lost")),
    ],
)
def test_facts_from_replies(text: str, value: Any, expected: tuple[object, ...]) -> None:
    facts = facts_from_reply(reply(text, value), 3)
    assert (facts.texts, facts.over_limit, facts.fallback) == expected


def test_a_reply_without_facts_is_malformed_only_where_one_is_asked_for() -> None:
    roles = {**config().roles, "extract": {**config().roles["extract"], "min_items": 1}}
    strict, free = sage(replying([]), roles=roles), sage(replying([]))
    for memory, fallbacks in ((strict, 1), (free, 0)):
        ingest(memory, monologue("x"))
        assert (counts(memory)["fallback.extract"], counts(memory)["extract.empty"]) == (fallbacks, 1)


def test_a_malformed_extraction_moves_the_threshold_and_is_counted() -> None:
    memory = sage(replying("no object at all"))
    ingest(memory, monologue("a", "b", "c", sessions=[1, 2, 3]))
    found = counts(memory)
    assert (found["fallback.extract"], found["extract.lost"], found["extract.empty"]) == (3, 3, 3)
    trace = memory.statistics()["scopes"][0]["trace"]
    assert trace["tau"] == [0.275, 0.275, 0.275]  # nothing is stored: the target stays, and is averaged with itself
    assert trace["memories"] == [0, 0, 0]


def test_the_threshold_moves_with_a_malformed_extraction_too() -> None:
    memory = sage(replying(lambda values, key: "no object" if key.startswith("D2") else ["Ann sails"]))
    ingest(memory, monologue("a", "b", sessions=[1, 2]))
    assert memory.statistics()["scopes"][0]["trace"]["tau"] == [0.275, pytest.approx(0.2534, abs=1e-4)]


# routing


def test_three_identical_facts_in_a_first_batch_are_stored_once() -> None:
    model = replying(["Ann sails"] * 3)
    memory = sage(model)
    ingest(memory, monologue("I sail"))
    assert routes(memory) == (1, 0, 2)
    assert model.count("merge") == 0
    assert counts(memory)["exact_duplicates"] == 2


def test_the_threshold_is_set_before_a_batch_and_the_scope_changes_inside_it() -> None:
    table = {"a": [1, 0], "b": [0, 1], "I": [1, 0]}
    memory = sage(replying(["a", "b", "b"]), embedder=TableEmbedder(table))
    ingest(memory, monologue("I"))
    # tau_1 = 0.275: a added; b beside a has novelty 0.5; the second b beside {a, b} (R = 0.707, kappa = 2.12) has
    # s = ln((e^2.12 + 1) / 2) / 2.12 = 0.727, novelty 0.137
    assert routes(memory) == (2, 0, 1)
    trace = memory.statistics()["scopes"][0]["trace"]
    assert trace["novelty"] == [None, 0.5, pytest.approx(0.1366, abs=1e-3)]
    assert trace["tau"] == [0.275]


def test_the_thresholds_of_the_first_writes_are_the_papers() -> None:
    memory = sage(replying(spoken_facts), batch_size=1)
    ingest(memory, monologue("sea boat", "cake oven", "song drum", "rose seed"))
    trace = memory.statistics()["scopes"][0]["trace"]
    assert trace["memories"] == [0, 1, 2, 3]
    assert trace["tau"][:3] == pytest.approx([0.275, 0.2534, 0.2305], abs=1e-4)
    assert trace["target"][2:] == [0.025, 0.025]


@pytest.mark.parametrize(("cosine", "expected"), [(0.6, (1, 0, 1)), (0.42, (1, 1, 0)), (0.3, (2, 0, 0))])
def test_a_second_fact_is_ignored_merged_or_added_by_its_novelty(cosine: float, expected: tuple[int, ...]) -> None:
    # one stored fact, so s is the cosine: novelty 0.2, 0.29, 0.35; tau_1 = 0.275, band up to 0.3
    table: dict[str, list[float]] = {"a": [1, 0], "b": [cosine, (1 - cosine**2) ** 0.5], "a b": [0.9, 0.4359]}
    model = replying(["a", "b"])
    memory = sage(model, embedder=TableEmbedder(table))
    ingest(memory, monologue("I"))
    assert routes(memory) == expected
    assert model.count("merge") == expected[1]


def test_a_novelty_that_is_the_threshold_on_paper_is_it_for_float32_vectors() -> None:
    # cosine 0.4 is 0.40000001 in single precision, its novelty just below 0.3
    table: dict[str, list[float]] = {"a": [1, 0], "b": [0.4, 0.84**0.5], "a b": [0.9, 0.4359]}
    memory = sage(replying(["a", "b"]), embedder=TableEmbedder(table), threshold="fixed", tau_fixed=0.3)
    ingest(memory, monologue("I"))
    assert routes(memory) == (1, 1, 0)


def banded(merged: Any = None, **changes: Any) -> tuple[SageMemory, Any]:
    """Write ``a``, then ``b`` inside the band, in two sessions."""
    both = [0.8, 0.6, 0]
    table: dict[str, list[float]] = {
        "a": [1, 0, 0],
        "b": [0.47, 0.8827, 0],
        "a b": both,
        "A and B.": both,
        "q": [0, 1, 0],
    }
    model = replying(lambda values, key: ["a"] if key.startswith("D1") else ["b"], merged)
    memory = sage(model, embedder=TableEmbedder(table), **changes)
    ingest(memory, monologue("x", "y", sessions=[1, 2]))  # tau_2 = 0.2534, novelty 0.265
    return memory, model


def test_an_update_rewrites_text_vector_and_date_and_joins_the_turns() -> None:
    memory, model = banded(" A and B. ")
    assert routes(memory) == (1, 1, 0)
    assert model.calls[-1] == ("merge", "D2:1:Ann:0")
    assert "Stored: a\nNew: b" in model.prompts[-1]
    (stored,) = memory.state()["scopes"][0]["memories"]
    assert (stored["text"], stored["created"], stored["dates"]) == ("A and B.", "1 May 2023", ["2 May 2023"])
    assert (stored["turn_ids"], stored["merges"]) == (["D1:0", "D2:1"], 1)
    retrieval = asyncio.run(memory.retrieve("q"))
    assert [hit.turn_ids for hit in retrieval.hits] == [("D1:0", "D2:1")]
    assert retrieval.hits[0].score == pytest.approx(0.6)  # of the new vector
    assert retrieval.context == "2 May 2023: A and B."
    statistics = memory.statistics()
    assert (statistics["pi_upd"], statistics["pi_all"], statistics["pi_noop"]) == (0.5, 0.5, 0.0)


def test_both_dates_are_shown_where_asked_for() -> None:
    memory, _ = banded(update_timestamp="keep_both")
    assert asyncio.run(memory.retrieve("q")).context == "1 May 2023, 2 May 2023: a b"


def test_a_fenced_merge_is_stored_without_its_backticks() -> None:
    memory, _ = banded("```\nA and B.\n```")
    assert [stored["text"] for stored in memory.state()["scopes"][0]["memories"]] == ["A and B."]


def test_an_empty_merge_keeps_the_stored_text_and_still_joins_the_turns() -> None:
    memory, _ = banded("  ")
    (stored,) = memory.state()["scopes"][0]["memories"]
    assert (stored["text"], stored["turn_ids"]) == ("a", ["D1:0", "D2:1"])
    assert (counts(memory)["fallback.merge"], counts(memory)["merge.unchanged"]) == (1, 1)


def test_exact_duplicates_are_ignored_where_asked_for() -> None:
    facts = [f"topic{n} word{n}" for n in range(200)] + ["topic0 word0"]
    model = replying(facts)
    memory = sage(model, "sage_fixed_010", tau_fixed=0.0, delta=0.0, max_facts=300)
    ingest(memory, monologue("x"))
    assert routes(memory) == (201, 0, 0)  # the published behaviour: late duplicates look new under the cap
    strict = sage(replying(facts), "sage_fixed_010", tau_fixed=0.0, delta=0.0, max_facts=300, dedupe_exact=True)
    ingest(strict, monologue("x"))
    assert routes(strict) == (200, 0, 1)


def test_the_greatest_cosine_can_take_the_scores_place() -> None:
    texts = [f"shared w{n}" for n in range(6)]
    memory = sage(replying(spoken_facts), score="max_cosine", threshold="fixed", tau_fixed=0.0, delta=0.0)
    ingest(memory, monologue(*texts))
    trace = memory.statistics()["scopes"][0]["trace"]
    pairs = list(zip(trace["novelty"], trace["cosine"], strict=True))[1:]
    assert [novelty for novelty, _ in pairs] == pytest.approx([(1 - cosine) / 2 for _, cosine in pairs], abs=1e-6)


def test_speakers_have_memories_of_their_own() -> None:
    memory = sage(replying(spoken_facts))
    ingest(memory, conversation(["boat sea", "cake oven", "boat harbour", "cake sugar"]))
    retrieval = asyncio.run(memory.retrieve("boat"))
    ann, ben = retrieval.context.split("\n\n")
    assert ann.splitlines()[0] == "Memories of Ann:" and "1 May 2023: boat sea" in ann and "cake" not in ann
    assert ben.splitlines()[0] == "Memories of Ben:" and "boat" not in ben
    scores = [round(hit.score, 6) for hit in retrieval.hits]
    assert scores == sorted(scores, reverse=True)
    assert {hit.memory_id.partition("#")[0] for hit in retrieval.hits} == {"Ann", "Ben"}


def test_speakers_are_shown_in_the_same_order_for_every_question() -> None:
    memory = sage(replying(spoken_facts))
    ingest(memory, conversation(["boat sea", "cake oven"]))
    for query in ("boat", "cake"):
        blocks = asyncio.run(memory.retrieve(query)).context.split("\n\n")
        assert [block.splitlines()[0] for block in blocks] == ["Memories of Ann:", "Memories of Ben:"]


def test_retrieval_is_bounded_per_scope_and_by_tokens() -> None:
    memory = sage(replying(spoken_facts), top_k=2, context_max_tokens=10, tau_fixed=0.0, threshold="fixed", delta=0.0)
    ingest(memory, conversation(["boat sea", "cake oven", "boat harbour", "cake sugar", "boat sail", "cake flour"]))
    retrieval = asyncio.run(memory.retrieve("boat"))
    assert len(retrieval.hits) == 4  # what was found is not what fits
    assert retrieval.trace["left_out"] == 2  # lines of five words
    check_shown(retrieval)
    assert len([line for line in retrieval.context.splitlines() if "May" in line]) == 2


def test_calls_tokens_and_traces_are_in_the_statistics() -> None:
    memory, model = banded()
    statistics = memory.statistics()
    assert statistics["add_phase"]["extract"]["calls"] == model.count("extract") == 2
    assert statistics["add_phase"]["merge"] == {"calls": 1, "prompt_tokens": 1, "completion_tokens": 1, "seconds": 0.0}
    trace = statistics["scopes"][0]["trace"]
    assert trace["memories"] == [0, 1] and trace["action"] == ["add", "update"]
    assert trace["kappa"][0] is None and trace["kappa"][1] == pytest.approx(1 * 2 / 2e-6, rel=1e-3)
    assert statistics["memories"] == statistics["scopes"][0]["memories"] == 1


def test_the_cap_shows_in_the_trace_beside_the_estimate() -> None:
    memory = sage(replying(spoken_facts), "sage_code", batch_size=1)
    ingest(memory, monologue("boat sea", "boat sail"))
    trace = memory.statistics()["scopes"][0]["trace"]
    assert trace["kappa"][1] == 50 < trace["kappa_uncapped"][1]


def test_the_merge_prompt_is_a_choice_and_a_file_of_ones_own_wins(tmp_path: Path) -> None:
    def prompt(**changes: Any) -> str:
        _, model = banded(**changes)
        return str(model.prompts[-1])

    lossless = (PROMPTS / "merge_lossless.txt").read_text(encoding="utf-8").partition("$stored")[0]
    assert prompt(merge_prompt="lossless").startswith(lossless) and not prompt().startswith(lossless)
    own = tmp_path / "mine.txt"
    own.write_text("Mine: $stored + $new", encoding="utf-8")
    roles = {**config().roles, "merge": {**config().roles["merge"], "prompt": str(own)}}
    assert prompt(roles=roles) == "Mine: a + b"


def test_workers_and_look_ahead_change_nothing() -> None:
    talk = conversation(*[[f"boat w{n % 5} s{s}" for n in range(12)] for s in range(4)])
    straight, ahead = sage(replying(spoken_facts)), sage(replying(spoken_facts))
    ingest(straight, talk)

    async def run() -> None:
        units = ahead.units(talk)
        prepared = list(reversed(await asyncio.gather(*(ahead.prepare(unit) for unit in reversed(units)))))
        for unit, each in zip(units, prepared, strict=True):
            await ahead.write(unit, each)

    asyncio.run(run())
    assert repr(ahead.state()) == repr(straight.state())
    assert counts(straight)["route.update"] + counts(straight)["route.noop"] > 0


def test_a_snapshot_of_before_the_running_sum_loads() -> None:
    talk = conversation([f"boat w{n}" for n in range(24)])
    memory, again = sage(replying(spoken_facts)), sage(replying(spoken_facts))
    ingest(memory, talk)
    older = memory.state()
    for scope in older["scopes"]:
        del scope["extent"]
    again.load_state(older)
    for restored, scope in zip(again.state()["scopes"], memory.state()["scopes"], strict=True):
        assert restored.pop("extent") == {"outer": None}
        del scope["extent"]
        assert repr(restored) == repr(scope)


def test_vectors_follow_merges() -> None:
    memory, _ = banded()
    vectors = memory.state()["scopes"][0]["vectors"]
    assert np.allclose(vectors["index"]["vectors"], [[0.8, 0.6, 0]])
    assert np.allclose(vectors["sum"], [0.8, 0.6, 0])
