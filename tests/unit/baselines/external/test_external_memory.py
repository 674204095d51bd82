"""Memories that are not written for the protocol: objects, functions, a server, MCP tools."""

import asyncio
import csv
import json
import linecache
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any, cast

import pytest

import memsys
from baselines.external.config import ExternalConfig, HttpConfig, McpConfig, ObjectConfig
from baselines.external.found import ITEM_KEY, read_found, read_ids
from baselines.external.given import is_search_function
from baselines.external.http_server import HttpStore
from baselines.external.mcp_server import McpStore, ToolResult, _filled, found_in, names_in, shown_in
from baselines.external.memory import ExternalMemory
from baselines.external.objects import ObjectStore
from baselines.external.store import Found, Item, Sources
from eval.check_memory import check, main
from eval.commands.commands import EXIT_FAULT, EXIT_INCOMPLETE
from eval.commands.terminal import console
from eval.config.compose import compose_run
from eval.run import run_single
from eval.running.composed import compose_plan
from eval.running.experiment import run_experiment
from memsys.errors import ConfigError, MemoryProtocolError, MemoryRaisedError
from memsys.llm.none import NoBackbone
from memsys.protocol import Parts
from memsys.vocabulary import Conversation, Retrieval, Turn
from tests.support.fakes import WordEmbedder

ROOT = Path(__file__).resolve().parents[4]
TURNS = (
    Turn("t1", "s1", "Ann", "My cat is Pixel.", "5 January 2024"),
    Turn("t2", "s1", "Bob", "A fine name.", "5 January 2024"),
    Turn("t3", "s2", "Ann", "Pixel caught a mouse.", "9 January 2024"),
)
PROXY = {
    "default_max_tokens": 64, "max_body_mb": 1, "body_timeout_s": 5, "json_mode": "free", "tool_calls": "served",
}  # fmt: skip
CONVERSATION = Conversation("c1", TURNS, ("Ann", "Bob"))


def words(text: str) -> set[str]:
    return set(text.lower().replace(".", "").replace("?", "").split())


class Plain:
    """Texts in, texts out."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, text: str) -> None:
        self.texts.append(text)

    def search(self, query: str, k: int) -> list[str]:
        return sorted(self.texts, key=lambda text: -len(words(text) & words(query)))[:k]


class Async(Plain):
    """The same with coroutine functions, ids and mappings, as Mem0 has them; one object for all users."""

    def __init__(self) -> None:
        self.of_user: dict[str, list[dict[str, Any]]] = {}

    async def add(self, messages: list[dict[str, str]], *, user_id: str, metadata: dict[str, Any] | None = None) -> Any:  # type: ignore[override]
        mine = self.of_user.setdefault(user_id, [])
        mine.append({"id": f"m{len(mine)}", "memory": f"noted: {messages[0]['content']}"})
        return {"results": [{"id": mine[-1]["id"], "event": "ADD"}]}

    async def search(self, query: str, *, user_id: str, limit: int = 3) -> Any:  # type: ignore[override]
        return {"results": self.of_user.get(user_id, [])[:limit]}


class VectorStore:
    """As LangChain's vector stores: documents with metadata."""

    def __init__(self) -> None:
        self.documents: list[SimpleNamespace] = []

    def add_texts(
        self, texts: list[str], metadatas: list[dict[str, Any]] | None = None, *, ids: list[str] | None = None
    ) -> list[str]:
        for text, about in zip(texts, metadatas or [], strict=True):
            self.documents.append(SimpleNamespace(page_content=text.upper(), metadata=about, id=None))
        return list(ids or [])

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[SimpleNamespace]:
        return self.documents[:k]


class Graph:
    """As Graphiti: episodes in, edges with the episodes they came from out."""

    def __init__(self) -> None:
        self.edges: list[SimpleNamespace] = []

    async def add_episode(
        self, name: str, episode_body: str, source_description: str, reference_time: Any, group_id: str | None = None
    ) -> Any:
        uuid = f"episode-{len(self.edges)}"
        self.edges.append(
            SimpleNamespace(uuid=f"edge-{len(self.edges)}", fact="a fact", episodes=[uuid], at=reference_time)
        )
        return SimpleNamespace(episode=SimpleNamespace(uuid=uuid), nodes=[], edges=[])

    async def search(self, query: str, group_ids: list[str] | None = None, num_results: int = 10) -> list[Any]:
        return self.edges[:num_results]


class LangChain(VectorStore):
    """As LangChain's: a ``search`` that wants more than a query."""

    def search(self, query: str, search_type: str, **kwargs: Any) -> list[SimpleNamespace]:
        raise AssertionError(search_type)


class Filtered(Async):
    """As Mem0 from version 2 on: users of a search are a filter."""

    async def search(self, query: str, *, top_k: int = 3, filters: dict[str, Any] | None = None) -> Any:  # type: ignore[override]
        return await super().search(query, user_id=(filters or {})["user_id"], limit=top_k)


class Closing(Plain):
    closed: list[bool] = []  # noqa: RUF012

    async def close(self) -> None:
        self.closed.append(True)


async def made_in_a_loop(user_id: str) -> Closing:
    return Closing()


def by_function(messages: list[dict[str, str]], query: str, k: int = 2) -> list[str]:
    return [message["content"] for message in messages if words(message["content"]) & words(query)][:k]


def config(given: Any, **changes: Any) -> ObjectConfig:
    settings = {
        "name": "mine", "uses_gold": False, "k": 2, "unit": "turn", "dates": "text", "object": "x:Y",
        "arguments": None, "proxy": PROXY,
    }  # fmt: skip
    return ObjectConfig(**{**settings, "given": given, **changes})


def parts(conversation_id: str = "c1") -> Parts:
    return Parts(conversation_id, NoBackbone("mine"), WordEmbedder(), 0)


async def built(settings: ExternalConfig) -> Any:
    memory: Any = settings.build(parts())
    for unit in memory.units(CONVERSATION):
        await memory.write(unit, None)
    await memory.consolidate()
    return memory


def asked(settings: ExternalConfig, query: str = "Pixel") -> tuple[Retrieval, dict[str, Any]]:
    async def run() -> tuple[Retrieval, dict[str, Any]]:
        memory = await built(settings)
        found = await memory.retrieve(query)
        await memory.close()
        return found, memory.statistics()

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("given", "traced"),
    [
        (Plain, "text"),
        (Plain(), "text"),
        (lambda: Plain(), "text"),
        (by_function, "text"),
        (Async(), "ids"),
        (VectorStore, "ids"),
        (LangChain, "ids"),
        (Filtered(), "ids"),
        (Graph, "ids"),
        (made_in_a_loop, "text"),
    ],
)
def test_memories_of_every_shape_are_traced_to_turns(given: Any, traced: str) -> None:
    found, counts = asked(config(given))
    assert found.traced and len(found.hits) == 2
    expected = {"t1", "t2"} if traced == "ids" else {"t1", "t3"}
    assert {turn for hit in found.hits for turn in hit.turn_ids} == expected
    assert found.trace["traced"] == {"ids": 0, "text": 0, "none": 0, traced: 2} and counts["added"] == 3


def test_what_is_made_for_a_conversation_is_closed() -> None:
    Closing.closed.clear()
    asked(config(Closing))
    assert Closing.closed == [True]


@pytest.mark.parametrize(
    ("given", "lends"),
    [
        (lambda base_url: Plain(), True),
        (lambda base_url, api_key, model: Plain(), True),
        (lambda base_url=None: Plain(), True),
        (lambda base_url="http://localhost:1": Plain(), False),
        (Plain, False),
        (by_function, False),
    ],
)
def test_what_takes_a_base_url_is_lent_the_models(given: Any, lends: bool) -> None:
    assert config(given).lends is lends and config(given).embeds is lends
    assert config(given, arguments={"base_url": "http://localhost:1"}).lends is False
    assert is_search_function(given) is (given is by_function)


def test_what_nothing_traces_is_said_to_be_untraced() -> None:
    class Rewriting(Plain):
        def search(self, query: str, k: int) -> list[str]:
            return ["Ann has a cat."]

    found, _ = asked(config(Rewriting))
    assert not found.traced and found.hits[0].turn_ids == ()
    assert found.trace["traced"] == {"ids": 0, "text": 0, "none": 1}


def test_dates_stand_before_the_text_or_apart() -> None:
    assert asked(config(Plain))[0].hits[0].text == "[5 January 2024] Ann: My cat is Pixel."
    assert asked(config(Plain, dates="apart"))[0].hits[0].text == "Ann: My cat is Pixel."


def test_a_session_is_one_addition() -> None:
    found, counts = asked(config(Plain, unit="session"))
    assert counts["added"] == 2 and found.hits[0].turn_ids == ("t1", "t2")


def test_an_object_without_users_is_copied_for_each_conversation() -> None:
    given = Plain()
    asked(config(given))
    assert given.texts == []


def test_a_changed_memory_comes_from_all_that_changed_it() -> None:
    sources = Sources()
    for place, turn in enumerate(TURNS[:2], 1):
        sources.added(Item(f"item-{place}", (turn,), (turn.text,), "Ann"), ["m0"])
    assert sources.trace(Found("merged", memory_id="m0")) == ("ids", ("t1", "t2"))


def test_a_snapshot_is_added_again() -> None:
    async def run() -> None:
        memory = await built(config(Plain))
        later: Any = config(Plain).build(parts())
        later.load_state(memory.state())
        await later.resume()
        assert (await later.retrieve("Pixel")) == (await memory.retrieve("Pixel"))
        assert later.state() == memory.state()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (type("NoSearch", (), {"add": lambda self, text: None})(), "no search(query, k)"),
        (type("NoAdd", (), {"search": lambda self, query: []})(), "no add(messages)"),
        (type("Odd", (), {"add": lambda self, text, tenant: None, "search": lambda self, query: []}), "needs tenant"),
        (type("Numbers", (), {"add": lambda self, text: None, "search": lambda self, query: [3]}), "has no text"),
    ],
)
def test_what_cannot_be_a_memory_is_one_sentence(given: Any, said: str) -> None:
    with pytest.raises(MemoryProtocolError, match=said.replace("(", r"\(").replace(")", r"\)")):
        asked(config(given))


def test_an_object_that_cannot_be_imported_is_named() -> None:
    with pytest.raises(ConfigError, match=r"memory\.object=nothing\.here:At"):
        asked(config(None, object="nothing.here:At"))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], []),
        ("", []),
        ("one text", [Found("one text")]),
        ([("text", 0.5)], [Found("text", 0.5)]),
        ({"memories": [{"content": "a", "id": 7, "score": 1}]}, [Found("a", 1.0, "7")]),
        ([{"text": "a", "turn_ids": ["t1", "t2"]}], [Found("a", None, "", ("t1", "t2"))]),
        ([{"text": "a", "metadata": {ITEM_KEY: "item-4"}}], [Found("a", None, "", ("item-4",))]),
        ({"entities": [{"name": "item-1", "observations": ["a", "b"]}]}, [Found("a\nb", None, "", ("item-1",))]),
    ],
)
def test_results_of_many_shapes_are_read(given: Any, expected: list[Found]) -> None:
    assert read_found(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, []),
        (True, []),
        ("a", ["a"]),
        ([1, "b"], ["1", "b"]),
        ({"id": "x"}, ["x"]),
        ({"ids": ["p", "q"]}, ["p", "q"]),
    ],
)
def test_ids_that_add_returns_are_read(given: Any, expected: list[str]) -> None:
    assert read_ids(given) == expected


def test_arguments_of_tools_are_filled_and_names_in_them_found() -> None:
    filled = _filled(
        {"entities": [{"name": "{key}", "n": "{k}", "text": "{date}: {text}"}]},
        {"key": "item-1", "k": 3, "date": "d", "text": "{x}"},
    )
    assert filled == {"entities": [{"name": "item-1", "n": 3, "text": "d: {x}"}]}
    assert names_in(filled) == ["item-1"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], []),
        ([[]], []),
        ([{"entities": []}], []),
        (["plain"], [Found("plain")]),
        ([["one", {"text": "two"}]], [Found("one"), Found("two")]),
        ([{"count": 1}, "what was found"], [Found("what was found")]),
    ],
)
def test_results_of_tools_are_read(values: list[Any], expected: list[Found]) -> None:
    assert found_in(ToolResult("", values, failed=False), "search") == expected


def test_an_agent_may_call_what_returns_no_results() -> None:
    assert shown_in(ToolResult("7", [7], failed=False)) == [Found("7")]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The example server of the how-to."""
    program = [sys.executable, str(ROOT / "examples" / "memory_server.py"), "0"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


def http(url: str, **changes: Any) -> HttpConfig:
    settings = {
        "name": "http", "uses_gold": False, "k": 2, "unit": "turn", "dates": "text", "url": url, "api_key_env": "",
        "timeout": 5.0, "settle_seconds": 0.5, "lend_models": False, "proxy": PROXY,
    }  # fmt: skip
    return HttpConfig(**{**settings, **changes})


def test_a_memory_behind_http_is_traced_by_ids(server: str) -> None:
    found, counts = asked(http(server))
    assert [hit.turn_ids for hit in found.hits] == [("t1",), ("t3",)] or {hit.turn_ids for hit in found.hits} == {
        ("t1",),
        ("t3",),
    }
    assert counts["memory"] == {"items": 3, "pending": 0, "watched": True}
    assert found.trace["traced"] == {"ids": 2, "text": 0, "none": 0}


def test_the_example_server_passes_every_check(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([server]) == 0
    assert "wrong" not in capsys.readouterr().out


def test_an_object_is_checked_by_its_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory=object", f"memory.object={__name__}:Plain"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "right  what was added is found" in said
    assert "note  results name ids: 4 of 4 results name none; their turns are found by equal text" in said
    assert "not checked  results come best first: no two results have a score" in said
    assert not [line for line in said if "reset" in line or "/stats" in line], "these are of servers"


class Dateless(Plain):
    def add(self, text: str) -> None:
        super().add(text.partition("] ")[2])


class Silent(Plain):
    def search(self, query: str, k: int) -> list[str]:
        return []


def test_a_check_notes_results_that_nothing_traces_and_what_it_could_not_see(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing was found, and the order, dates and users of nothing were called right."""
    main(["memory=object", f"memory.object={__name__}:Dateless"])
    assert "note  results name ids: 4 of 4 results name no ids and are not texts" in capsys.readouterr().out
    assert main(["memory=object", f"memory.object={__name__}:Silent"]) == 5
    verdicts = [line.split("  ")[0] for line in capsys.readouterr().out.splitlines()]
    assert verdicts == ["wrong", *["not checked"] * 6, "wrong"], "found, ..., any script"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["memory=rag"], "must be object, http or mcp"),
        (["memory=mcp", "memory.url=http://localhost:1"], "name memory.write_tool and memory.search_tool"),
        (["memory=object", "memory.object=tests.support.outside_memory:Asking"], "test it with `memsys run`"),
    ],
)
def test_what_cannot_be_checked_is_one_sentence(
    settings: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(settings) == 2
    assert said in " ".join(capsys.readouterr().err.split())


class Forgetful(HttpStore):
    """A store whose faults are chosen."""

    fault = ""

    async def open(self, lent: Any) -> None:
        self._items: list[Item] = [] if self.fault != "reset deletes" else getattr(Forgetful, "all", [])
        if self.fault == "reset deletes":
            Forgetful.all = self._items  # type: ignore[attr-defined]
        self._asked = 0

    async def add(self, item: Item) -> Sequence[str]:
        (Forgetful.shared if self.fault == "users are separate" else self._items).append(item)  # type: ignore[attr-defined]
        return [item.key]

    async def settle(self) -> None: ...

    async def close(self) -> None: ...

    async def search(self, query: str, k: int) -> Sequence[Found]:
        self._asked += 1
        items = Forgetful.shared if self.fault == "users are separate" else self._items  # type: ignore[attr-defined]
        results = [
            Found(item.text, None, item.key) for item in sorted(items, key=lambda i: -len(words(i.text) & words(query)))
        ]
        if self.fault == "results are indexed when /stats says so" and self._asked == 1:
            return []
        if self.fault == "what was added is found":
            results = [found for found in results if "Pixel" not in found.text]
        if self.fault == "results name ids":
            results = [Found(found.text) for found in results]
        if self.fault == "dates are kept":
            results = [Found(found.text.partition("] ")[2], None, found.memory_id) for found in results]
        if self.fault == "a search changes nothing" and self._asked % 2:
            results = results[::-1]
        if self.fault == "results come best first":
            results = [Found(found.text, float(rank), found.memory_id) for rank, found in enumerate(results)]
        if self.fault == "any script is text":
            results = [found for found in results if found.text.isascii()]
        return results if self.fault == "no more results than asked for" else results[:k]


@pytest.mark.parametrize(
    "fault",
    [
        "what was added is found", "no more results than asked for", "results are indexed when /stats says so",
        "results name ids", "dates are kept", "a search changes nothing", "users are separate", "reset deletes",
        "any script is text", "results come best first", "a lost memory shows",
    ],
)  # fmt: skip
def test_each_fault_of_a_server_is_named(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Forgetful, "fault", fault)
    monkeypatch.setattr(Forgetful, "shared", [], raising=False)
    monkeypatch.setattr(Forgetful, "all", [], raising=False)
    monkeypatch.setattr("eval.check_memory.make_store", lambda config, parts, user: Forgetful(config, user))
    found = {one.name: one.verdict for one in asyncio.run(check(http("http://localhost:1")))}
    assert found[fault] == ("note" if fault == "results name ids" else "wrong")


def test_a_server_that_is_not_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("baselines.external.http_server._FIRST_PAUSE", 0.0)
    with pytest.raises(MemoryProtocolError, match=r"http://127.0.0.1:9/reset failed 4 times"):
        asked(http("http://127.0.0.1:9"))


def test_evaluate_measures_an_object_next_to_a_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    console.cache_clear()
    settings = [f"runs_dir={tmp_path}", "embedder=hashing", "dataset.limit_questions=5", "progress=lines"]
    result = memsys.evaluate(Plain, baselines=["no_memory"], settings=settings)
    assert result.complete and result.path.parent == tmp_path / "evaluate"
    assert set(result.frame["system"]) == {"Plain", "no_memory"} and len(result.frame) == 10
    assert "| Plain | 5 |" in result.table and (result.path / "comparison" / "compare.csv").is_file()
    assert f"scored: {result.path}\n" in capsys.readouterr().out, "a path that can be copied"
    printed = str(result)  # it was two pages of Markdown
    assert " Plain " in printed and "\x1b" not in printed and "| ---" not in printed
    *lines, last = printed.splitlines()
    assert max(map(len, lines)) <= 60 and last.startswith("written: ")
    again = memsys.evaluate(Plain, baselines=[], settings=settings)
    assert again.path == result.path, "the same source and settings are the same run"
    console.cache_clear()


class Failing(Plain):
    def search(self, query: str, k: int) -> list[str]:
        return list(parsed("{"))


def parsed(text: str) -> Any:
    return json.loads(text)


def test_a_run_shows_the_users_own_lines_where_their_memory_raised(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It showed none of them, and ended as if a setting were wrong."""
    run = compose_run(
        ["memory=object", f"memory.object={__name__}:Failing", "mode=retrieval_only", f"runs_dir={tmp_path}"]
    )
    assert run is not None
    with pytest.raises(SystemExit) as ended:
        run_single(run)
    assert ended.value.code == EXIT_FAULT
    message, *lines = [line for line in capsys.readouterr().err.splitlines() if "^" not in line]
    assert message.startswith("error: Failing.search() raised JSONDecodeError('Expecting property name")
    assert [line.strip() for line in lines[1:4:2]] == ['return list(parsed("{"))', "return json.loads(text)"]
    assert [line.rpartition(", in ")[2] for line in lines[::2]] == ["search", "parsed", "raw_decode"], "not all of json"
    assert main(["memory=object", f"memory.object={__name__}:Failing"]) == EXIT_FAULT
    assert "return json.loads(text)" in capsys.readouterr().err


def test_evaluate_raises_one_error_whose_cause_begins_in_the_users_code(tmp_path: Path) -> None:
    """It was 150 lines of nested groups."""
    with pytest.raises(MemoryRaisedError) as raised:
        memsys.evaluate(Failing, baselines=[], settings=[f"runs_dir={tmp_path}", "embedder=hashing"])
    cause = raised.value.__cause__
    assert isinstance(cause, json.JSONDecodeError)
    assert [frame.name for frame in traceback.extract_tb(cause.__traceback__)][:2] == ["search", "parsed"]
    printed = "".join(traceback.format_exception(raised.value))
    assert "ExceptionGroup" not in printed and "runner.py" not in printed


def test_a_memory_server_that_is_away_leaves_the_work_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("baselines.external.http_server._FIRST_PAUSE", 0.0)
    assert main(["http://127.0.0.1:9"]) == EXIT_INCOMPLETE


def recalls(result: Any) -> dict[str, tuple[str, str]]:
    """Evidence recall of each system of a comparison: by turn ids, by substring; empty where there is none."""
    with (result.path / "comparison" / "compare.csv").open() as file:
        return {row["system"]: (row["R@10 (turn ids)"], row["R@10 (substring)"]) for row in csv.DictReader(file)}


def test_results_that_nothing_traces_are_counted_and_their_evidence_is_shown_by_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such a run ended without a table and without a word."""
    settings = [f"runs_dir={tmp_path}", "embedder=hashing", "dataset.limit_questions=5"]
    run = compose_run(["memory=object", f"memory.object={__name__}:Dateless", "mode=retrieval_only", *settings])
    assert run is not None
    run_single(run)
    said = " ".join(capsys.readouterr().out.split())
    assert "50 of 50 results could not be traced to turns" in said
    assert "R@10 (substring)" in said and "Evidence by turn ids" not in said
    assert "has R@10 (substring)" in said
    result = memsys.evaluate(Dateless, baselines=["bm25_turn"], settings=settings)
    assert "R@10 (substring)" in result.table
    traced = memsys.evaluate(Plain, baselines=[], settings=[*settings, "memory.dates=apart"])  # of the same texts
    assert "substring" not in traced.table
    by_ids, by_text = recalls(result)["Dateless"]
    assert by_ids == "" and by_text == recalls(traced)["Plain"][0]
    assert recalls(result)["bm25_turn"][0] == recalls(result)["bm25_turn"][1] != ""


def test_evaluate_works_in_an_event_loop_and_takes_an_edited_class_for_another(tmp_path: Path) -> None:
    class Edited(Plain):
        """Another source."""

    settings = [f"runs_dir={tmp_path}", "embedder=hashing", "dataset.limit_questions=2", "progress=lines"]

    async def notebook() -> tuple[Path, Path]:
        kinds = (Plain, Edited)
        first, second = (memsys.evaluate(kind, name="mine", baselines=[], settings=settings).path for kind in kinds)
        return first, second

    first, second = asyncio.run(notebook())
    assert first != second


def test_evaluate_takes_other_arguments_for_another_memory(tmp_path: Path) -> None:
    class First(Plain):
        """Finds so many."""

        def __init__(self, most: int) -> None:
            super().__init__()
            self.most = most

        def search(self, query: str, k: int) -> list[str]:
            return super().search(query, min(k, self.most))

    settings = [f"runs_dir={tmp_path}", "embedder=hashing", "dataset.limit_questions=2", "progress=lines"]
    memories = [partial(First, 1), partial(First, 10), partial(First, 1)]
    first, second, third = (memsys.evaluate(one, baselines=[], settings=settings).path for one in memories)
    assert first == third != second


def test_an_edited_memory_of_the_command_line_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    text = "class Mine:\n    def add(self, text): pass\n    def search(self, query, k): return []\n"
    settings = ["memory.object=mine_1:Mine", f"runs_dir={tmp_path}/runs", "mode=retrieval_only", "embedder=hashing"]
    outputs = []
    for source in (text, text, text.replace("[]", "['x']")):
        (tmp_path / "mine_1.py").write_text(source, encoding="utf-8")
        sys.modules.pop("mine_1", None)
        linecache.clearcache()
        run_experiment(compose_plan(["memory=object", *settings, "dataset.limit_questions=1", "progress=lines"]))
        outputs.append(capsys.readouterr().out)
    said = "the source of memory=object has changed since"
    assert [said in output for output in outputs] == [False, False, True]


def test_evaluate_takes_one_baseline_or_setting_without_brackets(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no memory/bm26"):
        memsys.evaluate(Plain, baselines="bm26", settings=[f"runs_dir={tmp_path}"])
    with pytest.raises(ConfigError, match=r"limit_questions=-1"):
        memsys.evaluate(Plain, settings="dataset.limit_questions=-1")
    with pytest.raises(ConfigError, match="memory=None: give a class or an object"):
        memsys.evaluate(None)


def test_evaluate_says_that_it_cannot_know_a_memory_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lock = Lock()

    def factory() -> Plain:
        with lock:
            return Plain()

    settings = [f"runs_dir={tmp_path}", "embedder=hashing", "dataset.limit_questions=2", "progress=lines"]
    first, second = (memsys.evaluate(factory, baselines=[], settings=settings).path for _ in range(2))
    assert first != second
    assert "factory: its settings cannot be compared with those of earlier runs (cannot pickle" in caplog.text


@pytest.mark.parametrize("prompts", ["ours", "authors"])
def test_a_place_that_is_not_named_is_one_sentence(prompts: str) -> None:
    with pytest.raises(ConfigError, match=r"^memory\.url has no value: add memory\.url=VALUE$"):
        compose_plan(["memory=http", f"prompts={prompts}"])


class Restarting:
    """Connection with a server that keeps no session, holds texts, and may be started again empty."""

    tools: Mapping[str, Any] = {}

    def __init__(self, finds: Callable[[list[str], str], list[str]]) -> None:
        self.held: list[str] = []
        self._finds = finds

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        if name == "put":
            self.held.append(arguments["text"])
            return ToolResult("kept", (), failed=False)
        found = self._finds(self.held, arguments["query"])
        return ToolResult("", [{"results": [{"text": text} for text in found]}], failed=False)


def sharing(held: list[str], query: str) -> list[str]:
    return [text for text in held if words(text) & words(query)]


@pytest.mark.parametrize("searches_first", [False, True])
def test_a_server_by_url_that_lost_everything_stops_the_run(searches_first: bool) -> None:
    """It answered every question with nothing."""
    settings = ["memory=mcp", "mode=retrieval_only", "memory.url=http://h/mcp", "memory.write_tool=put"]
    settings += ["memory.write_arguments={text: '{text}'}", "memory.search_tool=get"]
    plan = compose_plan([*settings, "memory.search_arguments={query: '{query}'}"])
    assert isinstance(plan.memory, McpConfig)
    store, connection = McpStore(plan.memory, cast(Any, SimpleNamespace(llm=None))), Restarting(sharing)
    store._connection = cast(Any, connection)

    async def run() -> None:
        for turn in TURNS:
            await store.add(Item(turn.turn_id, (turn,), (f"{turn.speaker}: {turn.text}",), "Ann"))
        if searches_first:
            assert [one.text for one in await store.search("Which mouse?", 3)] == ["Ann: Pixel caught a mouse."]
            assert await store.search("zebra", 3) == []
        connection.held.clear()
        await store.search("Which mouse?", 3)

    with pytest.raises(MemoryProtocolError, match=r"http://h/mcp finds nothing for the first text that was written"):
        asyncio.run(run())


def test_evaluate_says_what_a_hosted_model_will_cost(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        memsys.evaluate(Plain, backbone="gpt4o_mini", baselines=[], settings=[f"runs_dir={tmp_path}"])
    said = "".join(capsys.readouterr())
    assert "gpt4o_mini: about 34 calls with" in said and "under $0.01 (list prices of" in said


def test_evaluate_says_that_a_memory_asks_a_model_where_none_is_passed() -> None:
    """It said that the memory counts tokens, and named memories of this project to take instead."""

    class Rewriter(Plain):
        def __init__(self, base_url: str) -> None:
            super().__init__()

    with pytest.raises(ConfigError, match=r"^Rewriter asks a model \(its parameter base_url\): pass backbone="):
        memsys.evaluate(Rewriter)


def test_evaluate_says_what_an_unknown_name_may_have_meant() -> None:
    with pytest.raises(ConfigError, match="locomo_sample"):
        memsys.evaluate(Plain, "locomo_sampel")


def test_a_store_of_an_object_keeps_users_apart() -> None:
    shared = Async()

    async def run() -> list[Found]:
        one, other = ObjectStore(config(shared), "one"), ObjectStore(config(shared), "other")
        await one.open({})
        await other.open({})
        await one.add(Item("item-1", TURNS[:1], ("Ann: My cat is Pixel.",), "Ann"))
        return list(await other.search("Pixel", 3))

    assert asyncio.run(run()) == []


def test_the_memory_of_a_conversation_is_the_protocols() -> None:
    assert isinstance(config(Plain).build(parts()), ExternalMemory)
