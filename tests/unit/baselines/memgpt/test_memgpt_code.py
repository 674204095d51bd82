"""MemGPT as its released code runs it: the loop, eviction, searches, failed calls, and questions asked of a copy."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from baselines.memgpt.code_memory import MemGptCodeMemory
from baselines.memgpt.code_messages import written_time
from memsys.errors import ConfigError
from memsys.vocabulary import Conversation, Retrieval
from tests.support.composing import composed, conversation, ingest, memory_config, parts
from tests.support.fakes import FakeModel

TALK = conversation(["boat sea", "boat sail"], ["cake oven", "cake milk"], ["song drum", "band stage"])
SEND: Mapping[str, Any] = {"thought": "", "function": "send_message", "args": {"message": "done"}}


def call(function: str, heartbeat: Any = False, **args: Any) -> dict[str, Any]:
    return {"thought": "so", "function": function, "args": {**args, "request_heartbeat": heartbeat}}


def replying(
    agent: Iterable[Any] = (), search: Iterable[Any] = (), summary: Callable[[str], str] = lambda messages: "summary"
) -> FakeModel:
    """Reply with these in order, then with a message; summaries are made of their prompt's messages."""
    said = {"agent": iter(agent), "search": iter(search)}

    def function(role: str, values: Mapping[str, str], key: str) -> Any:
        return summary(values["messages"]) if role == "summarise" else next(said[role], SEND)

    return FakeModel(function)


def ingested(model: FakeModel, talk: Conversation = TALK, **changes: Any) -> MemGptCodeMemory:
    merged = {group: {**composed("memgpt_code")[group], **change} for group, change in changes.items()}
    system = memory_config("memgpt_code", **merged).build(parts(model))
    assert isinstance(system, MemGptCodeMemory)
    ingest(system, talk)
    return system


def asked(system: MemGptCodeMemory, question: str = "Who sailed?") -> Retrieval:
    return asyncio.run(system.retrieve(question))


def counts(system: MemGptCodeMemory) -> Mapping[str, int]:
    found: Mapping[str, int] = system.statistics()["counts"]
    return found


def shown(model: FakeModel, number: int) -> list[tuple[str, Mapping[str, Any]]]:
    """Messages that a prompt showed: who sent them, and their fields."""
    text = model.prompts[number].split("latest one last:\n")[-1].split("\n\nReply with one JSON")[0]
    lines = [line.partition(": ") for line in text.splitlines()]
    return [(sender, json.loads(fields)) for sender, _, fields in lines]


def results(model: FakeModel) -> list[Mapping[str, Any]]:
    """What functions returned, as the last prompt showed it, but for the first messages."""
    return [fields for sender, fields in shown(model, -1) if sender == "function"][1:]


def test_the_queue_begins_with_a_call_and_events_bear_the_time_of_their_session() -> None:
    ingested(model := replying())
    first = shown(model, 0)
    assert [sender for sender, _ in first] == ["assistant", "function", "user", "user"]
    assert [fields.get("type") for _, fields in first[2:]] == ["login", "user_message"]
    assert first[3][1]["time"] == "2023-05-01 12:00:00 AM" == written_time("1 May 2023")
    assert first[3][1]["message"].splitlines()[0].endswith("boat sea")
    assert written_time("noon") == "noon"


def test_heartbeats_are_followed_as_long_as_they_are_asked_for_with_a_true_value() -> None:
    steps = [call("archival_memory_insert", True, content="a")] * 6 + [
        call("archival_memory_insert", "true", content="b")
    ]
    system = ingested(model := replying(agent=steps))
    assert model.count("agent") == 7 + 2 and system.statistics()["archival_notes"] == 7
    assert [fields["type"] for sender, fields in shown(model, 1) if sender == "user"][-1] == "heartbeat"


def test_a_message_may_ask_for_another_step_and_a_thought_alone_ends_the_event() -> None:
    model = replying(agent=[call("send_message", True, message="hm"), "I shall wait."])
    system = ingested(model)
    assert model.count("agent") == 4 and counts(system)["thoughts_alone"] == 1


@pytest.mark.parametrize(
    ("group", "settings", "steps", "reason"),
    [
        ("agent", {"ingest_steps": 3}, [call("archival_memory_insert", True, content="a")] * 3, "ended.steps"),
        ("agent", {"max_failures": 2}, [call("archival_memory_insert", True)] * 2, "ended.failures"),
    ],
)
def test_what_never_ends_is_left(group: str, settings: Any, steps: list[Any], reason: str) -> None:
    system = ingested(replying(agent=steps), **{group: settings})
    assert counts(system)[reason] == 1 and counts(system)["steps"] == len(steps) + 2


def test_the_warning_takes_the_place_of_the_step_that_was_asked_for() -> None:
    talk = conversation(["boat sea"])
    model = replying(agent=[call("archival_memory_insert", True, content="a"), call("send_message", message="x")])
    system = ingested(model, talk, main_context={"warn_share": 0.01})
    assert counts(system)["alerts"] == 1 and counts(system)["steps"] == 2
    assert [fields["type"] for sender, fields in shown(model, 1) if sender == "user"][-1] == "system_alert"


# Eviction


WINDOW = {"window": 540}
#: Room for summaries that leaves some for messages.
SHORT = {"summarise": {**composed("memgpt_code")["roles"]["summarise"], "max_tokens": 20}}


def evicting(**changes: Any) -> tuple[FakeModel, MemGptCodeMemory]:
    talk = conversation(*[[f"w{n} " * 20] for n in range(9)])
    model = replying(summary=lambda messages: f"{len(messages.splitlines())} lines")
    return model, ingested(model, talk, main_context={**WINDOW, **changes}, roles=SHORT)


def test_messages_are_evicted_before_the_event_that_does_not_fit_and_their_summary_is_a_message() -> None:
    model, system = evicting()
    assert counts(system)["evictions"] > 0
    place = next(n for n, (role, _) in enumerate(model.calls) if role == "summarise")
    evicted, before, after = shown_lines(model, place), shown(model, place - 1), shown(model, place + 1)
    assert evicted == [*shown_lines(model, place - 1)][: len(evicted)]
    assert after[0][1]["type"] == "system_alert" and f"{len(evicted)} lines" in after[0][1]["message"]
    assert after[0][1]["message"].startswith(f"{len(evicted)} earlier messages")
    assert after[1][0] != "user", "an event at the cut goes too"
    assert after[-1][1]["message"] != before[-1][1]["message"], "the event waits until there is room"


def shown_lines(model: FakeModel, number: int) -> list[str]:
    text = model.prompts[number].split("latest one last:\n")[-1].split("\n\nReply with one JSON")[0]
    return [line for line in text.splitlines() if line.partition(": ")[0] in ("user", "assistant", "function")]


def test_an_eviction_stays_within_its_share_and_leaves_the_latest_messages() -> None:
    _, system = evicting(evict_share=1.0, keep_messages=5)
    assert system.statistics()["queued_messages"] >= 5
    model, _ = evicting(evict_share=0.2)
    place = next(n for n, (role, _) in enumerate(model.calls) if role == "summarise")
    tokens = [len(f"{line}\n".split()) for line in shown_lines(model, place - 1)]
    gone = len(shown_lines(model, place))
    assert sum(tokens[: gone - 1]) <= 0.2 * (sum(tokens) + 20)


def test_too_many_messages_are_summed_up_twice_the_first_of_them_alone() -> None:
    model, system = evicting(warn_share=0.05)
    first, second = [n for n, (role, _) in enumerate(model.calls) if role == "summarise"][:2]
    assert model.calls[first][1].endswith(":0") and model.calls[second][1].endswith(":1")
    assert "lines\n" in model.prompts[second]
    assert counts(system)["summaries"] > counts(system)["evictions"]


def test_a_window_that_leaves_no_room_is_refused_before_anything_is_written() -> None:
    with pytest.raises(ConfigError, match="raise the window"):
        ingested(replying(), main_context={"window": 300})


def test_an_event_that_is_longer_than_the_window_is_cut() -> None:
    system = ingested(replying(), conversation(["w " * 900]), main_context=WINDOW, roles=SHORT)
    assert counts(system)["messages_cut"] == 1


# Searches


def test_recall_holds_events_and_thoughts_and_is_searched_word_for_word() -> None:
    search = call("conversation_search", True, query="BOAT")
    found = asked(ingested(model := replying(search=[search])))
    listed = results(model)[-1]["message"]
    head, _, items = listed.partition(" [")
    assert head == "Results 1 to 1 of 1, page 0 of 0 to 0:" and json.loads(f"[{items}")[0].startswith("2023-05-01")
    assert found.hits[0].turn_ids == ("D1:0", "D1:1")
    asked(ingested(model := replying(search=[call("conversation_search", True, query="boat sail band")])))
    assert "there are 0 results" in results(model)[-1]["message"]
    thought = {**SEND, "thought": "a plan of mine"}
    asked(ingested(model := replying(agent=[thought], search=[call("conversation_search", True, query="PLAN OF")])))
    assert "assistant - a plan of mine" in results(model)[-1]["message"]


@pytest.mark.parametrize(("page", "first"), [("none", 1), (None, 1), ("1", 6), (1.0, 6)])
def test_pages_are_read_as_the_release_reads_them(page: Any, first: int) -> None:
    days = call("conversation_search_date", True, start_date="2023-05-01", end_date="2023-05-03", page=page)
    asked(ingested(model := replying(search=[days])))
    assert results(model)[-1]["message"].startswith(f"Results {first} to ")


def test_what_a_query_found_is_shown_again_though_notes_came_since() -> None:
    search = call("archival_memory_search", True, query="tea")
    steps = [
        call("archival_memory_insert", True, content="tea"), search,
        call("archival_memory_insert", True, content="tea tea"), search,
        call("archival_memory_search", True, query="tea, please"),
    ]  # fmt: skip
    asked(ingested(model := replying(search=steps)))
    heads = [fields["message"].partition(":")[0] for fields in results(model) if "Results" in fields["message"]]
    assert heads == [f"Results 1 to {n} of {n}, page 0 of 0 to 0" for n in (1, 1, 2)]


# Calls


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (call("core_memory_append", name="human"), "bad_argument"),
        (call("core_memory_append", name="human", content=7), "bad_argument"),
        (call("core_memory_append", name="notes", content="x"), "unknown_block"),
        (call("core_memory_append", name="human", content="x" * 2000), "over_limit"),
        (call("core_memory_replace", name="human", old_content="zebra", new_content="x"), "not_in_block"),
        (call("conversation_search", query=7), "bad_argument"),
        (call("conversation_search", query="a", page="first"), "bad_argument"),
        (call("conversation_search", query="a", page=float("inf")), "bad_argument"),
        (call("conversation_search_date", start_date="May", end_date="2023-05-01"), "bad_argument"),
        (call("merge"), "unknown_function"),
        ('{"call": [1', "unreadable"),
    ],
)
def test_a_call_that_fails_says_so_and_another_step_follows(step: Any, reason: str) -> None:
    system = ingested(model := replying(agent=[step]), conversation(["boat sea", "boat sail"]))
    assert counts(system)[f"failed.{reason}"] == 1 and counts(system)["steps"] == 2
    assert results(model)[-1]["status"] == "Failed"
    assert shown(model, -1)[-1][1]["message"].startswith("Your last call failed")


def test_arguments_of_other_functions_are_left_out_and_a_note_that_is_no_text_is_none() -> None:
    step = call("archival_memory_insert", True, content=7, page=0, name="human")
    system = ingested(model := replying(agent=[step]), conversation(["boat sea"]))
    assert counts(system)["failed"] == 0 and system.statistics()["archival_notes"] == 0
    calls = [fields for sender, fields in shown(model, -1) if sender == "assistant"]
    assert calls[-1]["args"] == {"content": 7, "request_heartbeat": True}


def test_every_equal_passage_is_replaced_and_the_counts_are_those_of_the_last_edit() -> None:
    steps = [
        call("core_memory_append", True, name="human", content="tea tea"),
        call("archival_memory_insert", True, content="a"),
        call("core_memory_replace", True, name="human", old_content="tea", new_content="milk"),
    ]
    ingested(model := replying(agent=steps), conversation(["boat sea"]))
    assert "milk milk" in model.prompts[-1]
    counted = [prompt.partition("Stored beyond this page: ")[2].partition(".")[0] for prompt in model.prompts]
    assert counted == [
        f"{recall} messages in recall memory, {notes} notes in archival memory"
        for recall, notes in ((0, 0), (4, 0), (4, 0), (11, 1))
    ]


# Questions


def test_a_question_is_asked_of_a_copy_which_may_write() -> None:
    writes = [
        call("core_memory_append", True, name="human", content="sails"),
        call("archival_memory_insert", True, content="a"),
        call("send_message", True, message="Let me see."),
        call("send_message", message=" Ann "),
    ]
    system = ingested(model := replying(search=writes))
    before = {key: value for key, value in system.state().items() if key != "archival"}
    found = asked(system)
    assert found.answer == "Ann" and found.trace["asked"] == 4 and found.trace["failed"] == []
    assert "sails" in model.prompts[-1] and {key: system.state()[key] for key in before} == before
    assert system.statistics()["archival_notes"] == 0
    assert model.prompts[-1].partition("\n")[0] == model.prompts[0].partition("\n")[0], "it has the agent's prompt"


def test_a_question_without_a_message_is_left_to_the_reader_with_all_that_is_in_sight() -> None:
    found = asked(ingested(replying(search=["I do not know."])))
    assert found.answer is None and "band stage" in found.context and found.trace["ended_by"] == "yielded"


def test_the_reader_sees_the_summary() -> None:
    _, system = evicting()
    assert "lines" in asked(system).context.partition("Summary of earlier conversation:")[2].partition("\n\n")[0]


def test_a_memory_with_nothing_in_it_finds_nothing() -> None:
    system = memory_config("memgpt_code").build(parts(replying()))
    assert asyncio.run(system.retrieve("Who?")).context == ""


@pytest.mark.parametrize(
    ("group", "settings"),
    [
        ("ingest", {"mode": "insert"}),
        ("core", {"human": "halves"}),
        ("agent", {"answer": "reader"}),
        ("agent", {"refuse_repeats": True}),
        ("search", {"recall": "bm25"}),
    ],
)
def test_a_setting_that_the_release_does_not_have_is_refused(group: str, settings: Mapping[str, Any]) -> None:
    changed = {group: {**composed("memgpt_code")[group], **settings}}
    with pytest.raises(ConfigError, match=rf"memory\.{group}\.{next(iter(settings))} must be"):
        memory_config("memgpt_code", **changed)
