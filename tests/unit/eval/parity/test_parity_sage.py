"""Parity with SAGE's released code, without that code: the worker on stand-in files, roles, replies, the store."""

import json
from pathlib import Path

import pytest

from eval.parity.config import Counterpart, backbone_settings, find_counterpart
from eval.parity.facts import KnownTexts
from eval.parity.ours import Answered
from eval.parity.replies import DeterministicBackbone, read_request
from eval.parity.rules import passes
from eval.parity.stores import sage_store
from memsys.errors import ConfigError
from tests.support.released import StandIn

WORDS = backbone_settings().words
PHRASES = {"extract": ("List the facts",), "merge": ("Existing memory: ", "Join the two")}

#: In place of the authors' files: the names that the worker uses, and imports of what it leaves out.
FILES = {
    "mem0.configs.prompts": "from datetime import datetime\nTODAY = f'{datetime.now():%Y-%m-%d}'\n",
    "mem0.memory.main": """
import posthog
from qdrant_client import QdrantClient
from qdrant_client.models import FieldCondition, Filter, MatchValue, PointStruct
from types import SimpleNamespace

class Memory:
    def __init__(self, path):
        client = QdrantClient(path=path)
        self.vector_store = SimpleNamespace(client=client, get=lambda key: client.retrieve(ids=[key])[0])
        self.novelty_scorer = SimpleNamespace(get_scope_ids=lambda key: [
            point.id for point in client.scroll()[0] if f"{point.payload['user_id']}||" == key])
        self.adaptive_threshold = SimpleNamespace(tau_0=0.0, _threshold_by_scope={"Ann_0||": 0.12345678})
""",
    "prompts": "ANSWER_PROMPT = 'unused'\n",
    "add_sage": """
from collections import Counter, defaultdict
from dotenv import load_dotenv
from mem0 import Memory, MemoryClient
from mem0.configs.prompts import TODAY
from mem0.memory.main import PointStruct
load_dotenv()

class MemoryADDSAGE:
    def __init__(self, qdrant_path, batch_size, **given):
        assert given["enable_sage"] and given["infer_add"] and given["embedding_dims"] == 8
        self.memory, self.batch_size = Memory(qdrant_path), batch_size
        self.per_user_action_counts = defaultdict(Counter)

    def process_conversation(self, item, place):
        said = item["conversation"]
        for speaker in (said["speaker_a"], said["speaker_b"]):
            for n, chat in enumerate(said["session_s"][:self.batch_size]):
                payload = {"user_id": f"{speaker}_{place}", "data": f"{TODAY} {chat['text']}",
                           "timestamp": said["session_s_date_time"]}
                point = PointStruct(id=f"{speaker}{n}", vector=[1.0, float(n)], payload=payload)
                self.memory.vector_store.client.upsert(points=[point])
                self.per_user_action_counts[f"{speaker}_{place}"]["ADD"] += 1
""",
    "search_local_backend": """
from mem0 import Memory
from prompts import ANSWER_PROMPT
from qdrant_client.models import FieldCondition, Filter, MatchValue

class MemorySearchLocal:
    def __init__(self, top_k, qdrant_path, **given):
        self.memory, self.top_k = Memory(qdrant_path), top_k

    def answer_question(self, one, two, question, answer, category):
        return (question.upper(), *([
            {"timestamp": point.payload["timestamp"], "memory": point.payload["data"]}
            for point in self.memory.vector_store.client.query_points(
                query=[0.0, 1.0], limit=self.top_k,
                query_filter=Filter(must=[FieldCondition(key="user_id", match=MatchValue(value=user))])).points
        ] for user in (one, two)))
""",
}


def test_the_worker_drives_the_released_runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = StandIn("authors_sage", FILES, DeterministicBackbone(KnownTexts([]), WORDS))
    attributes = {"adaptive_threshold.tau_0": 0.5}
    settings = {"attributes": attributes, "retrieve_k": 1, "batch_size": 8, "date": "2026-05-01"}
    result = stand_in.run(tmp_path, monkeypatch, settings)
    row = {"owner": "Ann", "text": "2026-05-01 t1", "timestamp": "noon"}
    memories = result.store["memories"]
    assert isinstance(memories, list)
    assert (memories[0], [memory["text"][-2:] for memory in memories]) == (row, ["t1", "t2", "t1", "t2"])  # type: ignore[index, call-overload]
    assert result.store["scopes"] == {
        "Ann": {"threshold": 0.123457, "added": 2, "updated": 0},
        "Bob": {"threshold": None, "added": 2, "updated": 0},
    }
    context = "Memories of Ann:\nnoon: 2026-05-01 t2\n\nMemories of Bob:\nnoon: 2026-05-01 t2"
    assert result.answers == {"q": Answered("why?", context, "WHY?")}


def test_a_role_is_known_by_a_phrase_where_no_schema_tells_it() -> None:
    def role(system: str, prompt: str) -> str:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": prompt}]
        return read_request({"messages": messages}, PHRASES).role

    assert role("List the facts.", "user: Existing") == "extract"
    assert role("", "Existing memory: a. New: b") == role("", "Join the two: a, b") == "merge"
    assert role("", "Say something") == "unknown"
    code = find_counterpart("authors_sage")
    with pytest.raises(ConfigError, match="phrases: mood: choose from"):
        Counterpart(**{name: getattr(code, name) for name in code.__slots__} | {"phrases": {"mood": ("x",)}})


def test_facts_are_texts_and_odd_shapes_and_some_repeat() -> None:
    backbone = DeterministicBackbone(KnownTexts([]), WORDS, phrases=PHRASES)
    said = []
    for number in range(120):
        message = {"role": "user", "content": f"List the facts: zq{number:06x}"}
        reply = backbone.reply(read_request({"messages": [message]}, PHRASES))
        said += json.loads(reply)["facts"]
    texts = [fact for fact in said if isinstance(fact, str) and fact]
    assert len(set(texts)) < len(texts) < len(said)
    assert {type(fact) for fact in said} == {str, dict, int, list, type(None)}
    merged = backbone.reply(read_request({"messages": [{"role": "user", "content": "Join the two"}]}, PHRASES))
    assert "{" not in merged


def test_the_state_of_sage_in_the_form_that_is_compared() -> None:
    memory = {"text": "sails", "dates": ["noon"], "created": "dawn"}
    state = {"scopes": [{"owner": "Ann", "memories": [memory], "tau": 0.05000049, "counts": {"route.update": 2}}]}
    assert sage_store(state) == {
        "memories": [{"owner": "Ann", "text": "sails", "timestamp": "noon"}],
        "scopes": {"Ann": {"threshold": 0.05, "added": 0, "updated": 2}},
    }


def test_lines_below_headings_and_json_lists_hold_the_same_words() -> None:
    ours = "Memories of Zoë:\nnoon: “sails” 🙂"
    theirs = 'Memories for user Zoë:\n\n[\n    "noon: \\u201csails\\u201d \\ud83d\\ude42"\n]'
    rule = "same_words_but_headings"
    assert passes(rule, "reply 1", ours, theirs)
    assert not passes(rule, "reply 1", ours, theirs.replace("sails", "rows"))
    assert not passes(rule, "reply 1", f"{ours} noon", theirs)
