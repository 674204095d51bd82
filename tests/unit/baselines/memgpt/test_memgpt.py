"""MemGPT: calls and their repair, core memory, the control loop, paging, searches, and what the reader sees."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baselines.memgpt.core import CoreMemory, FunctionFailedError
from baselines.memgpt.memory import MemGptMemory
from baselines.memgpt.messages import QueuedMessage
from baselines.memgpt.reading import read_call
from baselines.memgpt.rules import CoreRules, PagedSearchRules
from baselines.memgpt.storage import MemGptRecord, RecallStorage
from eval.sweep.calls import memory_calls, reader_calls
from memsys.call_model import DataShape
from memsys.errors import ConfigError
from memsys.llm.contract import Reply
from memsys.vocabulary import Completion, Conversation, Retrieval
from tests.support.composing import composed, conversation, ingest, memory_config, parts
from tests.support.fakes import FakeModel, TableEmbedder
from tests.support.readers import READER
from tests.support.shown import places_in_text

TALK = conversation(["boat sea", "boat sail"], ["cake oven", "cake milk"], ["song drum", "band stage"])
SEND: Mapping[str, Any] = {"thought": "", "function": "send_message", "args": {"message": "done"}}


def call(function: str, heartbeat: bool = False, **args: Any) -> dict[str, Any]:
    return {"thought": "so", "function": function, "args": {**args, "request_heartbeat": heartbeat}}


def replying(
    agent: Iterable[Any] = (), search: Iterable[Any] = (), summary: Callable[[str], str] | None = None
) -> FakeModel:
    """Reply with these calls in order, then with send_message; summaries are made of their prompt's messages."""
    said = {"agent": iter(agent), "search": iter(search)}

    def function(role: str, values: Mapping[str, str], key: str) -> Any:
        if role == "summarise":
            return summary(values["messages"]) if summary else f"summary of {key}"
        return next(said[role], SEND)

    return FakeModel(function)


def memory(model: FakeModel, preset: str = "memgpt", **changes: Any) -> MemGptMemory:
    merged = {group: {**composed(preset)[group], **change} for group, change in changes.items()}
    system = memory_config(preset, **merged).build(parts(model))
    assert isinstance(system, MemGptMemory)
    return system


def ingested(model: FakeModel, talk: Conversation = TALK, preset: str = "memgpt", **changes: Any) -> MemGptMemory:
    system = memory(model, preset, **changes)
    ingest(system, talk)
    return system


def asked(system: MemGptMemory, question: str = "Who sailed?") -> Retrieval:
    return asyncio.run(system.retrieve(question))


def counts(system: MemGptMemory) -> Mapping[str, int]:
    found: Mapping[str, int] = system.statistics()["counts"]
    return found


def shown(model: FakeModel, number: int) -> list[str]:
    """Messages that a prompt showed."""
    return model.prompts[number].split("latest one last:\n")[1].split("\n\nReply with one JSON")[0].splitlines()


# Calls


def reply(text: str) -> Reply:
    return Reply(None, text, Completion(text, 1, 1, 0.0, "stop"), malformed=True)


@pytest.mark.parametrize(
    ("text", "name", "args"),
    [
        ('{"thought": "t", "function": "send_message", "args": {"message": "hi"', "send_message", {"message": "hi"}),
        ('Sure:\n```json\n{"function": "f", "args": {"page": 1,}}\n``` done', "f", {"page": 1}),
        ('{"function": "f", "query": "a\nb"}', "f", {"query": "a\nb"}),
        ('{"call": [send_message, "message": "so \\"it\\" is", {', "send_message", {"message": 'so "it" is'}),
        ('{"call": [send_message, "message": "no \\escape", {', "send_message", {"message": "no \\escape"}),
        ('{"name": 3}', "", {}),
    ],
)
def test_a_broken_call_is_repaired_as_far_as_possible(text: str, name: str, args: Mapping[str, Any]) -> None:
    found = read_call(reply(text))
    assert found is not None and (found.name, found.args) == (name, args)


@given(st.text(alphabet='{}[]":,\\send_message function args \n', max_size=80))
def test_no_reply_stops_the_reading(text: str) -> None:
    found = read_call(reply(text))
    assert found is None or json.loads(found.identity)


def test_text_without_an_object_is_a_thought_and_ends_the_turn() -> None:
    system = ingested(model := replying(agent=["I shall wait."]))
    assert model.count("agent") == 3 and counts(system)["thoughts_alone"] == 1 and counts(system)["failed"] == 0


# Core memory


def test_each_speaker_has_half_of_the_human_block() -> None:
    core = CoreMemory(CoreRules(limit=100, human="halves"))
    core.introduce(("Ann", "Ben"))
    persona, *humans = core.blocks.values()
    assert (persona.limit, persona.text[:56]) == (100, "I keep the memory of the conversation between Ann and Be")
    assert [(each.name, each.limit, each.text) for each in humans] == [("human_1", 50, "Ann:"), ("human_2", 50, "Ben:")]
    core.append("Ben", "sails", ["D1:1"])
    core.append("human_2", "bakes", ["D1:1", "D2:1"])
    core.replace("human_2", "sails", "", [])
    assert (core.blocks["human_2"].text, core.blocks["human_2"].turn_ids) == ("Ben:\n\nbakes", ("D1:1", "D2:1"))


@pytest.mark.parametrize(
    ("edit", "reason", "text"),
    [
        (lambda core: core.append("human_1", "x" * 46, []), "over_limit", "would have 51 characters, and 50"),
        (lambda core: core.replace("human_1", "Bob", "Ann", []), "not_in_block", "does not contain old_content"),
        (lambda core: core.append("human", "x", []), "unknown_block", "persona, human_1, human_2"),
    ],
)
def test_an_edit_that_cannot_be_made_says_why(edit: Callable[[CoreMemory], None], reason: str, text: str) -> None:
    core = CoreMemory(CoreRules(limit=100, human="halves"))
    core.introduce(("Ann", "Ben"))
    before = core.state()
    with pytest.raises(FunctionFailedError, match=text) as caught:
        edit(core)
    assert caught.value.reason == reason and core.state() == before


# The control loop


def test_an_edit_is_seen_by_the_next_call_and_names_its_turns() -> None:
    steps = [
        call("core_memory_append", True, name="human_1", content="likes boats"),
        call("archival_memory_insert", content="a"),
    ]
    system = ingested(model := replying(agent=steps))
    assert "<human_1: 16 of 1000 characters>\nAnn:\nlikes boats" in model.prompts[1]
    assert [line.split(":")[0] for line in shown(model, 1)] == ["user", "assistant", "function", "user"]
    assert '"status": "OK"' in shown(model, 1)[2] and '"heartbeat"' in shown(model, 1)[3]
    assert model.count("agent") == 4  # two calls for the first session, one for each other one
    state = system.state()
    assert state["core"][1]["turn_ids"] == state["archival"]["records"][0]["turn_ids"] == ["D1:0", "D1:1"]
    assert state["archival"]["records"][0]["date"] == "1 May 2023"


def test_a_note_names_the_turns_that_were_found_for_it_too() -> None:
    steps = [SEND, call("conversation_search", True, query="boat"), call("archival_memory_insert", content="a")]
    state = ingested(replying(agent=steps), search={"page_size": 1}).state()
    assert state["archival"]["records"][0]["turn_ids"] == ["D2:0", "D2:1", "D1:1"]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (call("fly"), "unknown_function"),
        ('{"function"', "unreadable"),
        (call("conversation_search", query=" "), "bad_argument"),
        (call("archival_memory_search", query="a", page=-1), "bad_argument"),
        (call("conversation_search_date", start_date="then", end_date="2023-05-01"), "bad_argument"),
        (call("core_memory_replace", name="persona", old_content="not there", new_content=""), "not_in_block"),
    ],
)
def test_a_failed_call_has_another_step_and_two_end_the_event(said: Any, reason: str) -> None:
    system = ingested(model := replying(agent=[said, said]))
    assert '"status": "Failed"' in shown(model, 1)[2] and "last call failed" in shown(model, 1)[3]
    assert model.count("agent") == 4 and counts(system)["ended.failures"] == 1
    assert counts(system)[f"failed.{reason}"] == counts(system)["failed"] == 2


def test_the_same_call_again_is_refused_and_steps_are_limited() -> None:
    again = call("conversation_search", True, query="boat")
    others = [call("conversation_search", True, query=f"boat {number}") for number in range(5)]
    system = ingested(replying(agent=[again, {**again, "thought": "more"}, SEND]))
    assert counts(system)["failed.repeated"] == 1 and counts(system)["calls.conversation_search"] == 1
    system = ingested(model := replying(agent=others))
    # Four of the first session, one and the end of the second, one of the third.
    assert (counts(system)["ended.steps"], model.count("agent")) == (1, 7)


def test_a_warning_comes_before_the_step_that_was_asked_for_and_both_come() -> None:
    steps = [call("archival_memory_insert", True, content="a"), SEND, SEND]
    system = ingested(model := replying(agent=steps), conversation(["boat sea"]), main_context={"warn_share": 0.01})
    assert model.count("agent") == 3 and counts(system)["alerts"] == 1
    assert "nearly full" in shown(model, 1)[-1] and "as you asked" in shown(model, 2)[-1]


def test_all_turns_come_from_the_user_under_their_names() -> None:
    ingested(model := replying())
    assert shown(model, 0) == [
        'user: {"type": "user_message", "time": "1 May 2023", "message": "Ann: boat sea\\nBen: boat sail"}'
    ]


# Ingestion


def test_insert_asks_no_agent_and_cuts_passages_within_sessions() -> None:
    talk = conversation([f"word{number}" for number in range(7)], ["one two three four five"])
    system = ingested(model := replying(), talk, "memgpt_insert", ingest={"passage_tokens": 8})
    assert model.calls == []
    notes = system.state()["archival"]["records"]
    # Two words a turn, so that four fill a passage; that of six words is one by itself.
    assert [len(note["turn_ids"]) for note in notes] == [4, 3, 1]
    assert notes[1]["record_id"] == "passage:D1:4" and notes[2]["date"] == "2 May 2023"


@pytest.mark.parametrize(("mode", "tokens", "events"), [("session", 2000, 2), ("session", 6, 4), ("turn", 2000, 5)])
def test_events_are_sessions_parts_of_them_or_pairs(mode: str, tokens: int, events: int) -> None:
    talk = conversation(["a b"] * 5, ["c d"] * 3)  # three words a turn with its speaker
    changes = {"mode": mode, "event_tokens": tokens}
    system = ingested(model := replying(), talk, ingest=changes)
    assert model.count("agent") == (events if tokens > 6 else 5)
    assert system.statistics()["turns_in_recall"] == 8


# Paging


def paged(model: FakeModel, talk: Conversation, window: int = 420, **changes: Any) -> MemGptMemory:
    """Insert with a window that holds the prompt and some messages; a summary has ten words at most."""
    roles = {"summarise": {**composed("memgpt_insert")["roles"]["summarise"], "max_tokens": 10}}
    context = {"window": window, "flush_share": 1.0, **changes}
    return ingested(model, talk, "memgpt_insert", main_context=context, roles=roles)


def test_summaries_contain_the_earlier_one_and_evicted_turns_are_still_found() -> None:
    talk = conversation(*([f"topic{number} " + "and more words " * 8] for number in range(12)))
    made: list[str] = []

    def summary(messages: str) -> str:
        made.append(messages)
        return f"part {len(made)}"

    system = paged(replying(summary=summary), talk)
    assert len(made) > 1 and "part 1" in made[1] and "topic0" in made[0] and "topic0" not in made[1]
    state = system.state()["context"]
    hidden = state["summary"]["hidden"]
    assert state["summary"]["turn_ids"] == [f"D{number}:0" for number in range(1, hidden + 1)]
    assert hidden + len(state["messages"]) == 12 and counts(system)["evicted_messages"] == hidden
    assert f"{hidden} earlier messages" in state["summary"]["message"]["text"]
    found = asked(system, "topic0")
    assert found.trace["searched"] == "forced" and "D1:0" in {turn for hit in found.hits for turn in hit.turn_ids}
    assert "Summary of earlier conversation:\npart" in found.context


def test_an_eviction_takes_three_quarters_but_not_the_latest_three() -> None:
    system = memory(replying())
    context = system._context
    context.messages = [QueuedMessage("user", "m", "", tokens=10) for _ in range(8)]
    assert context._cut() == 5  # six would be three quarters, and three stay
    context.messages = [QueuedMessage("user", "m", "", tokens=10) for _ in range(20)]
    assert context._cut() == 15
    # The cut would leave an event at the beginning whose call comes next: it goes too.
    senders = ["user", "assistant", "function"] * 6
    context.messages = [QueuedMessage(sender, "m", "", tokens=10) for sender in senders]  # type: ignore[arg-type]
    assert context._cut() == 14
    context.messages = [QueuedMessage(sender, "m", "", tokens=10) for sender in senders[:16]]  # type: ignore[arg-type]
    assert context._cut() == 13


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=14), st.integers(370, 600))
def test_the_window_always_holds_and_no_message_is_lost(sizes: list[int], window: int) -> None:
    talk = conversation(*(["word " * size] for size in sizes))
    system = paged(replying(), talk, window)
    role = system._roles["search"]
    functions = composed("memgpt_insert")["agent"]["question_functions"]
    assert asyncio.run(system._context.total(role, functions)) <= window
    statistics = system.statistics()
    assert statistics["hidden_messages"] + statistics["queued_messages"] == len(sizes) == statistics["turns_in_recall"]
    assert system._context.messages[-1].turn_ids == (f"D{len(sizes)}:0",)


def test_an_empty_summary_is_made_of_first_words_and_a_long_message_is_cut() -> None:
    talk = conversation(["first " + "word " * 60], ["second " + "word " * 500])
    system = paged(replying(summary=lambda messages: " "), talk)
    assert counts(system)["fallback.summarise"] >= 1 and counts(system)["messages_cut"] == 1
    assert system.state()["context"]["summary"]["text"].startswith('user: {"type":')


def test_messages_that_exceed_the_summarisers_window_are_summed_up_in_halves() -> None:
    summariser = memory(replying(), main_context={"window": 40})._context._summariser
    messages = [QueuedMessage("user", "word " * 12, "", tokens=13) for _ in range(4)]
    assert asyncio.run(summariser.summarise(messages, "7")) == "summary of 7:1:1"
    assert summariser._counts["summaries"] == 3  # the first two, their summary with the third, and that with the last


def test_a_window_without_room_for_messages_is_one_error() -> None:
    with pytest.raises(ConfigError, match=r"main_context.window=300: .* raise the window"):
        ingested(replying(), main_context={"window": 300})


# Searches

TABLE = {f"Ann: {name}": (1.0 - number / 10, 0.1 * number) for number, name in enumerate("abcdef")}


def recall(mode: Any, size: int = 2) -> RecallStorage:
    rules = PagedSearchRules(recall=mode, bm25=(1.5, 0.75), page_size=size)
    storage = RecallStorage(TableEmbedder({**TABLE, "q": (1.0, 0.0)}), rules)
    texts = list(TABLE) if mode == "embedding" else ["Ann: a boat", "Ben: the Boat sails", "Ann: a cake"]
    records = [MemGptRecord(f"t{n}", f"{n + 1} May 2023", text, (f"t{n}",)) for n, text in enumerate(texts)]
    vectors = asyncio.run(TableEmbedder(TABLE).embed(texts)) if mode == "embedding" else None
    storage.add(records, vectors)
    return storage


def ids(found: Any) -> list[str]:
    return [record.record_id for record, _ in found.found]


def test_pages_go_on_where_the_one_before_ended_and_every_search_sees_all() -> None:
    storage = recall("embedding")
    pages, again = ([asyncio.run(storage.search("q", number)) for number in range(4)] for _ in range(2))
    assert [ids(page) for page in pages] == [["t0", "t1"], ["t2", "t3"], ["t4", "t5"], []]
    assert again == pages
    assert pages[1].shown.splitlines()[:2] == ["Results 3 to 4 of 6, page 1 of 0 to 2:", "[3 May 2023] Ann: c"]
    assert pages[3].shown == "No result on page 3; there are 6 results."


def test_a_question_never_occurs_word_for_word() -> None:
    for mode, query, expected in (
        ("substring", "BOAT", ["t0", "t1"]),
        ("substring", "Who has a boat?", []),
        ("substring", "", []),
        ("bm25", "the cake", ["t2"]),
    ):
        assert ids(asyncio.run(recall(mode).search(query, 0))) == expected


def test_days_are_those_of_the_sessions_both_ends_included() -> None:
    storage = recall("substring")
    assert ids(storage.between(date(2023, 5, 2), date(2023, 5, 3), 0)) == ["t1", "t2"]
    assert ids(storage.between(date(2023, 5, 2), date(2023, 5, 1), 0)) == []


def test_results_are_cut_and_only_turns_are_found() -> None:
    steps = [call("archival_memory_insert", True, content="boat"), call("fly"), SEND]
    system = ingested(replying(agent=steps), agent={"return_chars": 60})
    assert system.statistics()["messages_in_recall"] > 6 == system.statistics()["turns_in_recall"]
    found = asyncio.run(system._recall.search("last call failed", 1))
    assert found.total == 6
    results = [m for m in system._recall.others if m.sender == "function"]
    assert max(len(json.loads(m.text)["message"]) for m in results) == 60


# Questions


def test_found_records_come_first_once_each_then_the_latest_turns() -> None:
    steps = [
        call("conversation_search_date", start_date="2023-05-02", end_date="2023-05-02"),
        call("conversation_search_date", start_date="2023-05-01", end_date="2023-05-02"),
        SEND,
    ]
    found = asked(ingested(replying(search=steps)))
    assert [hit.memory_id for hit in found.hits] == ["D2:0", "D2:1", "D1:0", "D1:1", "D3:1", "D3:0"]
    assert (found.trace["asked"], found.trace["found"], found.trace["recent"]) == (3, 4, 2)
    assert found.rankings == {"searched": (0, 1, 2, 3)}
    assert (found.trace["searched"], found.trace["ended_by"]) == ("agent", "send_message")
    headings = ["Core memory:", "Recent messages:", "Search results:"]
    assert [line for line in found.context.splitlines() if line in headings] == headings
    assert found.context.endswith("Search results:\n[2 May 2023] Ann: cake oven\n[2 May 2023] Ben: cake milk\n"
                                  "[1 May 2023] Ann: boat sea\n[1 May 2023] Ben: boat sail")  # fmt: skip


def test_edits_are_refused_and_a_question_without_a_search_is_searched_for() -> None:
    insert = call("archival_memory_insert", content="the answer")
    system = ingested(model := replying(search=[insert, call("core_memory_append", name="persona", content="x")]))
    before = json.dumps(system.state()["core"])
    found = asked(system, "boat sea")
    assert found.trace["failed"] == ["read_only", "read_only"] and found.trace["ended_by"] == "failures"
    assert found.trace["searched"] == "forced" and found.hits[0].memory_id == "D1:0"
    assert json.dumps(system.state()["core"]) == before and model.count("search") == 2


def test_the_agents_message_is_the_answer_where_it_is_asked_for_one() -> None:
    found_by, said = call("conversation_search", query="boat sea"), call("send_message", message=" Ben \n")
    system = ingested(model := replying(search=[found_by, said]), preset="memgpt_native")
    found = asked(system)
    assert found.answer == "Ben" and found.trace["answered"] == "agent" and found.hits[0].turn_ids == ("D1:0",)
    assert "its message is the answer" in model.prompts[-1]
    # Said at once: nothing was searched, so nothing it has not seen counts as found.
    system = ingested(replying(search=[said]), preset="memgpt_native")
    found = asked(system)
    assert found.answer == "Ben" and (found.trace["found"], found.trace["searched"], found.ranked) == (0, "none", False)
    for reader_answers in (
        ingested(replying(search=[said])),
        ingested(replying(search=[call("send_message", message=" ")]), preset="memgpt_native"),
        ingested(replying(search=[call("x"), call("x")]), preset="memgpt_native"),
    ):
        found = asked(reader_answers)
        assert found.answer is None and "answered" not in found.trace and found.trace["searched"] == "forced"


def test_a_question_has_five_steps_and_no_memory_of_another() -> None:
    searches = [call("conversation_search", query=f"boat {number}") for number in range(6)]
    system = ingested(model := replying(search=searches))
    found = asked(system)
    assert (found.trace["asked"], found.trace["ended_by"]) == (5, "steps")
    asked(system, "And who baked?")
    assert "Who sailed?" not in model.prompts[-1] and "boat 4" not in model.prompts[-1]


def test_core_memory_and_results_go_before_the_latest_turns_where_room_is_short() -> None:
    system = ingested(replying(search=[call("conversation_search", query="cake")]), search={"page_size": 2},
                      context={"max_tokens": 52})  # fmt: skip
    found = asked(system)
    assert "Core memory:" in found.context and "cake milk" in found.context
    # From the latest turn back, as many as fit.
    assert "band stage" in found.context and "song drum" not in found.context and found.trace["left_out"] > 0
    assert found.trace["recent"] == 1
    assert found.shown == tuple(range(len(found.hits)))  # turns without room are no hits
    tight = [
        asked(ingested(replying(search=[call("conversation_search", query="cake")]), search={"page_size": 2},
                       context={"max_tokens": limit}))
        for limit in range(36, 52, 2)
    ]  # fmt: skip
    assert all(one.shown == places_in_text(one) for one in tight)
    assert any(0 < len(one.shown or ()) < len(one.hits) for one in tight)


def test_prompts_of_a_question_leave_old_messages_out() -> None:
    talk = conversation(*([f"topic{number} " + "and more words " * 8] for number in range(5)))
    steps = [call("conversation_search", query="topic1"), call("conversation_search", query="topic2")]
    model = replying(search=steps)
    system = paged(model, talk, 460)
    found = asked(system)
    assert found.trace["unseen_messages"] > 0 and len(model.prompts[-1].split()) <= 460


# Settings and plans


@pytest.mark.parametrize(
    ("group", "change", "message"),
    [
        ("ingest", {"mode": "all"}, "memory.ingest.mode='all' is unknown; choose one of insert, session, turn"),
        ("main_context", {"warn_share": 75}, "must be a number from 0 to 1"),
        ("agent", {"question_functions": ["conversation_search"]}, "must name send_message"),
        ("search", {"recall": "words"}, "choose one of embedding, bm25, substring"),
        ("search", {"bm25": [1.0]}, "must be k1 and b"),
    ],
)
def test_a_wrong_setting_is_named(group: str, change: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        memory(replying(), "memgpt", **{group: change})


def test_a_call_of_a_small_model_has_the_arguments_of_searches_alone() -> None:
    config = memory_config("memgpt_small")
    schema = config.build(parts(replying()))._roles["search"].schema  # type: ignore[attr-defined]
    assert list(schema["properties"]) == ["thought", "function", "args"]
    assert list(schema["properties"]["args"]["properties"]) == ["query", "page", "message", "request_heartbeat"]
    assert schema["properties"]["thought"]["maxLength"] == 100


def test_planned_calls_follow_the_mode() -> None:
    shape = DataShape(turns=[588] * 10, sessions=[22] * 267, questions={"multi_hop": 1986})

    def planned(preset: str) -> dict[str, float]:
        return {each.role: each.calls for each in memory_calls(memory_config(preset), shape) or ()}

    # Four calls for each of LoCoMo's sessions at most; three to six summaries a conversation without the agent.
    assert planned("memgpt")["agent"] <= 4 * 267 < planned("memgpt_turn")["agent"]
    assert set(planned("memgpt_insert")) == {"summarise", "search"}
    assert 30 <= planned("memgpt_insert")["summarise"] <= 60
    assert planned("memgpt_small")["search"] == planned("memgpt_insert")["search"] == 3 * 1986
    answers = [reader_calls(READER, memory_config(name), shape) for name in ("memgpt", "memgpt_native")]
    assert [sum(each.calls for each in calls) for calls in answers] == [1986, 0]
    gates = [memory_config("gated", host=memory_config(name)) for name in ("memgpt", "memgpt_native")]
    assert [sum(each.calls for each in reader_calls(READER, gate, shape)) for gate in gates] == [1986, 0]
