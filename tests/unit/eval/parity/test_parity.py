"""Parity runs without the authors' code: facts, replies, comparison, explanation, the worker on stand-in files."""

import json
import random
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval.commands.commands import EXIT_DONE, EXIT_ERROR
from eval.parity.__main__ import main
from eval.parity.compare import AGAIN, Comparer, FoundDifference
from eval.parity.config import backbone_settings, counterparts, find_counterpart
from eval.parity.corrupt_replies import SPOILERS, WHOLE, possible_changes, spoil
from eval.parity.endpoint import ParityEndpoint, RecordedCall
from eval.parity.explain import explain
from eval.parity.facts import Facts, KnownTexts
from eval.parity.ours import Answered, SideResult
from eval.parity.replies import DeterministicBackbone, Request, read_request
from eval.parity.report import ParityReport, report_page
from eval.parity.rules import passes
from eval.parity.ties import tied_neighbours, tied_questions
from memsys.assets.paths import ROOT
from memsys.deviations import Deviation, Match, read_deviations
from memsys.embedding.hashing import HashingEmbedder
from memsys.errors import ConfigError, WorkerError
from memsys.vocabulary import Question
from tests.support.released import StandIn

LONG = "Ann says : " + "the boat leaks " * 20
KNOWN = KnownTexts(["Ann says : Hello", "Ann says : Hello there", LONG, "Who sails?"])
TOPICS = backbone_settings().words
CHOICE = {"properties": {"choice": {"type": "string"}}}
ANALYSE = {"properties": {key: {"type": "string"} for key in ("keywords", "context", "tags")}}


def request(prompt: str, schema: Mapping[str, Any] = ANALYSE, temperature: float = 0.7) -> Request:
    return Request("", prompt, schema, {"temperature": temperature, "max_tokens": 9})


def replies(prompt: str, schema: Mapping[str, Any] = ANALYSE, spoiled: int = 0) -> str:
    return DeterministicBackbone(KNOWN, TOPICS, spoiled).reply(request(prompt, schema))


def calls(*prompts: str, schema: Mapping[str, Any] = ANALYSE, temperature: float = 0.7) -> list[RecordedCall]:
    return [RecordedCall(request(prompt, schema, temperature), "") for prompt in prompts]


def deviation(*match: Match, presets: tuple[str, ...] = ("all",)) -> Deviation:
    return Deviation(
        "known", presets, "release", "a.py:1", "What.", "Why.", None, tuple({m.kind for m in match}), match
    )


def test_facts_are_what_a_text_shows_whatever_its_words() -> None:
    shown = f"cluster_id: cluster_1\nAnn says : Hello there\nid: cluster_new_2\n- {LONG[:160]}\nzq00000b zq00000a"
    assert KNOWN.facts(shown) == Facts((1, 2), ("zq00000a", "zq00000b"), ("cluster_1", "cluster_new_2"), ())
    assert KNOWN.facts("memory index:12\t ... memory index: 3").notes == (12, 3)
    assert KNOWN.facts("Ann says : Hello. Ann says : Hello there").texts == (0, 1)


def test_replies_follow_facts_and_schema_and_not_the_wording() -> None:
    one = replies("Analyse this: Ann says : Hello")
    assert one == replies("In other words, what is this?\nAnn says : Hello")
    assert one != replies("Analyse this: Ann says : Hello zq123456")
    assert set(json.loads(one)) == {"keywords", "context", "tags"}
    chosen = {
        json.loads(replies(f"id: cluster_0 id: cluster_1 zq{n:06x}", CHOICE))["choice"].strip() for n in range(60)
    }
    assert chosen == {"cluster_0", "cluster_1", TOPICS.unknown_cluster}


def test_some_replies_are_spoiled_always_the_same_ones() -> None:
    prompts = [f"Ann says : Hello zq{n:06x}" for n in range(200)]
    clean, spoiled = [replies(p) for p in prompts], [replies(p, spoiled=4) for p in prompts]
    changed = sum(one != other for one, other in zip(clean, spoiled, strict=True))
    assert 30 <= changed <= 70
    assert spoiled == [replies(p, spoiled=4) for p in prompts]
    assert all(json.loads(text) for text in clean)
    text = '{"a": "b"}'
    assert all(spoiler(text) != text for spoiler in SPOILERS.values())


def test_calls_are_paired_by_what_they_show() -> None:
    ours = calls("Read: Ann says : Hello", "Read: Ann says : Hello there", f"Read: {LONG}")
    theirs = calls(f"See: {LONG}", "Read: Ann says : Hello", "Read: Ann says : Hello there zq000001")
    comparer = Comparer(KNOWN)
    comparer.compare_calls(ours, [*theirs, *calls("Who sails?")])
    count = comparer.result.roles["analyse"]
    assert (count.ours, count.theirs, count.equal, count.wording, count.content) == (3, 4, 1, 1, 1)
    kinds = [(one.kind, one.extent) for one in comparer.result.differences]
    assert kinds == [("prompt", "wording"), ("prompt", "content"), ("calls", "content")]


def test_equal_messages_are_paired_first_and_a_question_is_named() -> None:
    shown = ["Join 7 and 7", "Join a and a", "Read: Who sails? zq000001"]
    comparer = Comparer(KNOWN, {"Who sails?": "c:q0"})
    comparer.compare_calls(calls(*shown), calls(shown[1], shown[0], "Read: Who sails? zq000002"))
    assert comparer.result.roles["analyse"].equal == 2
    assert [one.place for one in comparer.result.differences] == ["analyse 3 c:q0"]


def test_a_dialogue_has_the_facts_of_all_its_messages_and_another_reply() -> None:
    def said(temperature: float, *more: str) -> Request:
        messages = [{"role": "user", "content": "Ann says : Hello"}]
        messages += [{"role": "assistant", "content": text} for text in more]
        return read_request({"messages": messages, "temperature": temperature})

    backbone = DeterministicBackbone(KNOWN, TOPICS)
    requests = [said(0.1), said(0.1, "", "Again."), said(0.2, "", "Again."), said(0.1, "zq000001", "Again.")]
    assert requests[1].prompt == "Ann says : Hello" and requests[1].exchange == ("", "Again.")
    assert len({backbone.reply(request) for request in requests}) == 4
    assert backbone.reply(said(0.1, "", "Again.")) == backbone.reply(said(0.1, "", "In other words."))
    one, other = (f"a{AGAIN}bad{AGAIN}{text}" for text in ("Again.", "In other words."))
    assert passes("same_but_correction", "", one, other) and not passes("same_but_correction", "", "Again.", "Other.")
    assert not passes("same_but_correction", "", one, other.replace("bad", "worse"))


class Directions:
    """Embeds texts along given cosines with the question."""

    def __init__(self, cosines: Mapping[str, float]) -> None:
        self._cosines = {"Who sails?": 1.0, **cosines}

    def embed(self, texts: Sequence[str]) -> Any:
        rows = [[self._cosines[text], (1 - self._cosines[text] ** 2) ** 0.5] for text in texts]
        return np.asarray(rows, dtype=np.float64)


@pytest.mark.parametrize(
    ("ours", "theirs", "tied"),
    [
        ("a b c", "a b d", True),  # c and d are equally near
        ("a c b", "a b c", False),
        ("c d", "d c", True),
        ("a b e", "a b a", True),  # e was rewritten: our side found it by its old vector, that of a
        ("a b", "a b c", False),
        ("a b c", "a b c", False),
        ("nothing", "none", False),
    ],
)
def test_ties_are_measured(ours: str, theirs: str, tied: bool) -> None:
    cosines = {"a": 0.9, "b": 0.5, "c": 0.3, "d": 0.3 + 4e-7, "e": 0.1}
    store = {"facts": [{"text": name} for name in cosines]}
    sides = [SideResult(store, {"q": Answered("Who sails?", context, "", {"e": 0.9})}) for context in (ours, theirs)]
    assert tied_questions(Directions(cosines), *sides) == ({"q"} if tied else set())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("theirs", "tied"),
    [
        ("a d b e c", True),  # b with what is linked with it, and c, are equally near
        ("a d c e b", False),  # what is linked with b is shown after c
        ("b e a d c", False),
    ],
)
def test_hits_that_tie_move_with_what_is_linked_with_them(theirs: str, tied: bool) -> None:
    cosines = {"a": 0.9, "b": 0.5, "c": 0.5 + 4e-7, "d": 0.7, "e": 0.1}
    links: dict[str, list[Any]] = {"a": ["3", "none", 9], "b": [4], "c": [0]}
    store: Any = {"notes": [{"content": name, "links": links.get(name, [])} for name in cosines]}
    found = {name: cosines[name] for name in "abc"}
    sides = [SideResult(store, {"q": Answered("?", context, "", found)}) for context in ("a d c b e", theirs)]
    endpoint: Any = Directions({"?": 1.0, **cosines})
    assert tied_questions(endpoint, *sides) == ({"q"} if tied else set())


def test_a_hit_that_is_linked_with_another_hit_moves_with_it_too() -> None:
    cosines = {"a": 0.9, "b": 0.5, "c": 0.5 + 4e-7}
    store: Any = {
        "notes": [{"content": "a", "links": [1]}, {"content": "b", "links": [0]}, {"content": "c", "links": []}]
    }
    contexts = ("a b b a c", "a b c b a")  # a with b, then b with a, and c as near as b
    sides = [SideResult(store, {"q": Answered("?", context, "", dict(cosines))}) for context in contexts]
    endpoint: Any = Directions({"?": 1.0, **cosines})
    assert tied_questions(endpoint, *sides) == {"q"}


def test_the_order_of_tied_neighbours_is_measured() -> None:
    cosines = {"a": 0.9, "b": 0.5, "c": 0.5 + 4e-7}

    def side(nearest: list[int]) -> SideResult:
        facts: list[Any] = [{"text": "Who sails?", "nearest": nearest}, *({"text": name} for name in cosines)]
        return SideResult({"facts": facts})

    endpoint: Any = Directions(cosines)
    assert tied_neighbours(endpoint, side([1, 2, 3]), side([1, 3, 2])) == {"facts.0.nearest"}
    assert not tied_neighbours(endpoint, side([1, 2, 3]), side([2, 1, 3]))
    assert not tied_neighbours(endpoint, side([1, 2]), side([1, 3]))


def test_a_tie_is_a_difference_of_its_own() -> None:
    comparer = Comparer(KNOWN, {"Who sails?": "c:q0"})
    comparer.tied = {"c:q0"}
    comparer.compare_calls(calls("Read: Who sails? zq000001"), calls("Read: Who sails? zq000002"))
    one, other = (SideResult({}, {"c:q0": Answered("Who sails?", text, text)}) for text in ("a", "b"))
    comparer.compare_results(one, other)
    assert [(found.kind, found.extent) for found in comparer.result.differences] == [
        ("prompt", "tie"), ("context", "tie"), ("answer", "tie"),
    ]  # fmt: skip


def test_what_stands_around_answers_is_not_compared() -> None:
    comparer = Comparer(KNOWN)
    comparer.compare_results(*(SideResult({}, {"q": Answered("", "", text)}) for text in (" a\n", "```\na\n```")))
    assert not comparer.result.differences


def test_the_order_of_neighbours_counts_but_not_whether_the_new_note_stands_first() -> None:
    def extent(ours: str, theirs: str) -> list[str]:
        comparer = Comparer(KNOWN)
        comparer.compare_calls(calls(ours), calls(theirs))
        return [one.extent for one in comparer.result.differences]

    hello, there, long = "Ann says : Hello", "Ann says : Hello there", LONG
    assert extent(f"{hello} | {there} | {long}", f"{long} | {hello} | {there}") == ["wording"]
    assert extent(f"{hello} | {there} | {long}", f"{there} | {hello} | {long}") == ["order"]


def test_other_sampling_or_schema_of_a_role_is_told_once() -> None:
    comparer = Comparer(KNOWN)
    prompts = ("Ann says : Hello", "Ann says : Hello there")
    comparer.compare_calls(calls(*prompts, temperature=0.2), calls(*prompts))
    assert comparer.result.differences == [
        FoundDifference("calls", "analyse.temperature", "content", 0.2, 0.7, "analyse")
    ]


def test_memories_contexts_and_answers_are_compared_value_by_value() -> None:
    note = {"content": "x", "links": [0], "context": "Notes about a zq000001"}
    ours = SideResult({"notes": [note], "clusters": {"c": {"members": [0]}}}, {"q": Answered("?", "x", "y")})
    other = {**note, "links": [0, 7], "context": "Memories on a zq000001"}
    theirs = SideResult({"notes": [other], "clusters": {}}, {"q": Answered("?", "x", "z")})
    comparer = Comparer(KNOWN)
    comparer.compare_results(ours, theirs)
    assert [(one.kind, one.place, one.extent) for one in comparer.result.differences] == [
        ("store", "clusters.c", "content"),
        ("store", "notes.0.context", "wording"),
        ("store", "notes.0.links", "content"),
        ("answer", "q", "content"),
    ]
    assert comparer.result.parts["contexts"].equal == 1


def test_a_difference_is_explained_where_all_of_a_match_fits() -> None:
    wording = FoundDifference("prompt", "router 1", "wording", "a b", "b a", "router")
    links = FoundDifference("store", "notes.3.links", "content", [1], [1, -1, 3, 9])

    def explained(found: FoundDifference, match: Match, prompts: str = "ours", preset: str = "p") -> bool:
        known = deviation(match, presets=("p",))
        return explain([found], [known], preset, prompts)[0].deviation is known

    assert explained(wording, Match("prompt"))
    assert explained(wording, Match("prompt", roles=("router",), rule="same_words_but_labels", prompts="ours"))
    for match in (
        Match("store"),
        Match("prompt", extent="content"),
        Match("prompt", roles=("evolve",)),
        Match("prompt", prompts="authors"),
        Match("prompt", rule="same_words"),
    ):
        assert not explained(wording, match)
    assert not explained(wording, Match("prompt"), preset="another")
    dropped = Match("store", "content", place="notes.*.links", rule="links_to_stored_notes")
    assert explained(links, dropped)
    assert not explained(FoundDifference("store", "notes.3.links", "content", [], [1]), dropped)
    with pytest.raises(ConfigError, match="rule=nonsense is unknown"):
        explained(wording, Match("prompt", rule="nonsense"))


@pytest.mark.parametrize(
    ("match", "message"),
    [
        ({"kind": "mood"}, "kind='mood'; choose one of prompt, calls"),
        ({"kind": "store", "extent": "all"}, "extent='all'; choose one of wording, order, tie, content"),
        ({"kind": "context"}, "match is of kind context, which parity does not name"),
        ({"kind": "store", "colour": 1}, "settings are kind, extent, roles, place, rule, prompts"),
    ],
)
def test_a_match_that_is_wrong_is_one_error(tmp_path: Path, match: Mapping[str, object], message: str) -> None:
    entry = {"id": "one", "presets": "all", "from": "release", "where": "w", "what": "w", "why": "w", "option": None}
    path = tmp_path / "deviations.yaml"
    path.write_text(json.dumps([{**entry, "parity": ["store"], "match": [match]}]))
    with pytest.raises(ConfigError, match=r"deviations\.yaml") as raised:
        read_deviations(path)
    assert message in str(raised.value)


def test_the_report_names_what_is_unexplained_first() -> None:
    comparer = Comparer(KNOWN)
    comparer.compare_calls(calls("Read Ann says : Hello", "x zq000001"), calls("See Ann says : Hello", "x zq000002"))
    known = deviation(Match("prompt"))
    found = explain(comparer.result.differences, [known], "p", "ours")
    report = ParityReport("clag_code", "authors_clag", "c", {"prompts": "ours"}, comparer.result, found)
    text = report_page(report)
    assert report.verdict == "2 differences, 1 of them explained by no documented deviation."
    assert text.index("### unexplained: prompt (content) analyse") < text.index("### known: prompt (wording) analyse")
    assert "| all | 2 | 2 | 0 | 1 | 0 | 0 | 1 |" in text
    assert "-See Ann says : Hello\n+Read Ann says : Hello" in text


def test_the_endpoint_records_each_side() -> None:
    endpoint = ParityEndpoint(DeterministicBackbone(KNOWN, TOPICS), HashingEmbedder(8))
    form = {"type": "json_schema", "json_schema": {"name": "r", "schema": ANALYSE}}
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "Ann says : Hello"}]
    with endpoint.listening():
        told = _post(endpoint.url("theirs"), "chat/completions", {"messages": messages, "response_format": form})
        vectors = _post(endpoint.url("theirs"), "embeddings", {"input": ["a b", "c"]})["data"]
        tokens = _post(endpoint.url("ours").removesuffix("/v1"), "tokenize", {"prompt": "a  b c"})
    assert endpoint.calls["ours"] == []
    call = endpoint.calls["theirs"][0]
    assert (call.request.role, call.request.system, call.request.prompt) == ("analyse", "s", "Ann says : Hello")
    assert told["choices"][0]["message"]["content"] == call.reply
    assert [len(row["embedding"]) for row in vectors] == [8, 8] and tokens == {"count": 3}


def _post(url: str, path: str, body: Mapping[str, Any]) -> Any:
    data = urllib.request.Request(f"{url}/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(data) as reply:
        return json.load(reply)


#: In place of the authors' files: the names that the worker uses, and imports of packages that are not there.
MEMORY_FILE = """
from litellm import completion
from rank_bm25 import BM25Okapi
from sentence_transformers import SentenceTransformer

class Note:
    def __init__(self, content, time):
        self.id, self.content, self.timestamp = content[-1], content, time
        self.keywords, self.context, self.tags, self.links, self.cluster_id = [], "General", [], [], "cluster_0"

class AgenticMemorySystem:
    def __init__(self):
        self.memories, self.clusters, self.limit = {}, {}, 1
        self.model = SentenceTransformer("any", device="cuda")

    def initialize_clusters_if_needed(self):
        pass

    def consolidate_memories(self):
        norms = [float((row ** 2).sum()) for row in self.model.encode(["a", "a", "b"])]
        print("this goes to the log")
        self.clusters["cluster_0"] = {"members": list(self.memories), "summary": norms[0], "tags": {"b", "a"}}
"""
DRIVER_FILE = """
import nltk, random
from stand_in import AgenticMemorySystem, Note
nltk.data.find("punkt")

class advancedMemAgent:
    def __init__(self, model, backend, retrieve_k, temperature):
        self.memory_system = AgenticMemorySystem()

    def add_memory(self, content, time=None):
        note = Note(content, time)
        self.memory_system.memories[note.id] = note

    def answer_question(self, question, category, answer):
        first = "no" if random.random() < 0.5 else answer
        if category == 2:
            raise KeyError("broken")
        return f'{{"answer": "{first}"}}', "prompt", f"context of {self.memory_system.limit}"
"""


def run_stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, category: int, **attributes: int) -> SideResult:
    files = {"stand_in": MEMORY_FILE, "driver": DRIVER_FILE}
    stand_in = StandIn("authors_clag", files, DeterministicBackbone(KNOWN, TOPICS))
    question = Question(question_id="q", conversation_id="c", text="?", category=category)
    settings = {"attributes": attributes, "retrieve_k": 3}
    return stand_in.run(folder, monkeypatch, settings, question, options=("yes", "no"))


def test_the_worker_drives_released_code_without_its_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run_stand_in(tmp_path, monkeypatch, category=5, limit=7)
    assert result.answers == {"q": Answered("?", "context of 7", "yes")}
    notes, clusters = result.store["notes"], result.store["clusters"]
    assert [(note["content"], note["timestamp"]) for note in notes] == [("Ann: t1", "noon"), ("Ann: t2", "noon")]  # type: ignore[index, union-attr, call-overload]
    cluster = clusters["cluster_0"]  # type: ignore[index, call-overload]
    assert cluster == {"members": [0, 1], "summary": pytest.approx(1.0), "tags": ["a", "b"], "representatives": []}
    assert "this goes to the log" in (tmp_path / "log").read_text()


def test_what_the_released_code_raises_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WorkerError, match="'answer' failed: KeyError: 'broken'"):
        run_stand_in(tmp_path, monkeypatch, category=2)
    with pytest.raises(WorkerError, match="the released code has no attribute size"):
        run_stand_in(tmp_path, monkeypatch, category=5, size=7)


def test_every_released_code_names_files_of_its_pack() -> None:
    assert {"authors_amem", "authors_clag"} <= set(counterparts())
    for name in counterparts():
        counterpart = find_counterpart(name)
        assert counterpart.sources(counterpart.find_pack(ROOT))


def test_without_sources_the_command_fails_or_says_that_it_skips(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEMSYS_SOURCES", str(tmp_path))
    line = [
        "memory=clag_code",
        "against=authors_clag",
        "dataset=locomo_sample",
        "embedder=hashing",
        f"--out={tmp_path}",
    ]
    assert main([*line, "--skip-without-sources"]) == EXIT_DONE
    assert capsys.readouterr().out.startswith("parity skipped: ")
    assert main(line) == EXIT_ERROR
    assert main(["memory=clag_code"]) == EXIT_ERROR
    assert (
        "against=authors_amem or against=authors_amem_robust or against=authors_amem_v1 or" in capsys.readouterr().err
    )
    assert main(["memory=amem_v2", "against=authors_clag", "dataset=locomo_sample", "embedder=hashing"]) == EXIT_ERROR
    assert "against=authors_clag is code of clag; memory=amem_v2 is another" in capsys.readouterr().err


def test_spoiled_objects_have_values_of_other_types_but_for_those_kept() -> None:
    told = {"tags": ["a", "b"], "new": [["c"]], "yes": True}
    changes = possible_changes(told, {"tags": ["null"], "new[][]": "all"})
    assert set(changes) == {WHOLE, "tags", "tags[]", "new", "new[]", "yes"}
    assert "null" not in {other for _, other in changes["tags"]} and "missing" in {
        other for _, other in changes["tags"]
    }
    assert all(other != "missing" for _, other in changes["tags[]"])
    seen = {spoil(json.dumps(told), random.Random(seed)) for seed in range(400)}
    for other in (
        {**told, "tags": "a, b"},
        {**told, "tags": [7, "b"]},
        {**told, "yes": "true"},
        {**told, "new": ["c"]},
        {**told, "tags": None},
        {"tags": ["a", "b"], "new": [["c"]]},
        None,
        7,
        [told],
        json.dumps(told),
    ):
        assert json.dumps(other) in seen
    assert set(possible_changes(told, {WHOLE: ["null", "text"]})[WHOLE]) == {((), "list"), ((), "number")}
    assert ((), "item") in possible_changes(["a"], {})[WHOLE] and not possible_changes("a text", {})


def test_an_answer_of_another_type_is_compared_as_its_text() -> None:
    known = KnownTexts(["Who sails?"])
    for ours, theirs, same in (("7", 7, 1), ("", None, 1), ("['a']", ["a"], 1), ("7", 8, 0)):
        comparer = Comparer(known)
        sides = [SideResult({}, {"q": Answered("Who sails?", "", answer)}) for answer in (ours, theirs)]
        comparer.compare_results(*sides)
        assert comparer.result.parts["answers"].equal == same
