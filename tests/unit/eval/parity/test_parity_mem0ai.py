"""Parity with Mem0's own library, without that code: the worker on stand-in files, and replies."""

import json
from pathlib import Path

import pytest

from eval.parity.config import backbone_settings
from eval.parity.facts import KnownTexts
from eval.parity.ours import Answered
from eval.parity.replies import DeterministicBackbone, read_request
from tests.support.released import StandIn

#: In place of the authors' files: the names that the worker uses, and imports of what it leaves out.
FILES = {
    "mem0.configs.prompts": "from datetime import datetime\nTODAY = f'{datetime.now():%Y-%m-%d}'\n",
    "mem0.memory.main": """
import posthog, pytz
from datetime import datetime
from qdrant_client import QdrantClient
from qdrant_client.models import FieldCondition, Filter, MatchValue, PointStruct
from mem0.configs.prompts import TODAY

class Memory:
    def __init__(self, config):
        self.client = QdrantClient(path=config["vector_store"]["config"]["path"])

    from_config = classmethod(lambda cls, config: cls(config))

    def add(self, messages, user_id, metadata):
        datetime.now(pytz.timezone("US/Pacific"))
        for one in messages:
            payload = {"user_id": user_id, "data": f"{TODAY} {one['role']} {one['content']}", **metadata}
            self.client.upsert(points=[PointStruct(id=one["content"] + user_id, vector=[1.0, 0.0], payload=payload)])

    def search(self, query, user_id, limit):
        user = Filter(must=[FieldCondition(key="user_id", match=MatchValue(value=user_id))])
        found = self.client.query_points(query=[1.0, 0.0], query_filter=user, limit=limit).points
        return {"results": [{"memory": one.payload["data"], "metadata": one.payload, "score": one.score}
                            for one in found]}

    def delete_all(self, user_id):
        assert user_id in ("Ann_0", "Bob_0")
""",
    "prompts": "ANSWER_PROMPT = 'unused'\n",
    "add": """
from dotenv import load_dotenv
from mem0 import MemoryClient
load_dotenv()

class MemoryADD:
    def __init__(self, batch_size):
        self.client, self.batch_size = MemoryClient(api_key=None, org_id=None, project_id=None), batch_size
        self.client.update_project(custom_instructions="Be brief.")

    def process_conversation(self, item, place):
        said = item["conversation"]
        for role, speaker in (("user", said["speaker_a"]), ("assistant", said["speaker_b"])):
            self.client.delete_all(user_id=f"{speaker}_{place}")
            messages = [{"role": role, "content": chat["text"]} for chat in said["session_s"][:self.batch_size]]
            self.client.add(messages, user_id=f"{speaker}_{place}", version="v2",
                            metadata={"timestamp": said["session_s_date_time"]}, enable_graph=False)
""",
    "search": """
from mem0 import MemoryClient
from prompts import ANSWER_PROMPT

class MemorySearch:
    def __init__(self, top_k):
        self.client, self.top_k = MemoryClient(api_key=None), top_k

    def answer_question(self, one, two, question, answer, category):
        found = [[{"timestamp": memory["metadata"]["timestamp"], "memory": memory["memory"]}
                  for memory in self.client.search(question, user_id=user, top_k=self.top_k, filter_memories=False)]
                 for user in (one, two)]
        return (question.upper(), *found)
""",
}


def test_the_evaluation_asks_the_library_in_the_place_of_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = StandIn("authors_mem0ai", FILES, DeterministicBackbone(KnownTexts([]), backbone_settings().words))
    settings = {"retrieve_k": 1, "batch_size": 2, "date": "2026-05-01"}
    result = stand_in.run(tmp_path, monkeypatch, settings)
    assert result.store["memories"] == [
        {"owner": speaker, "text": f"2026-05-01 {role} t{n}", "timestamp": "noon"}
        for speaker, role in (("Ann", "user"), ("Bob", "assistant"))
        for n in (1, 2)
    ]
    context = "Memories of Ann:\nnoon: 2026-05-01 user t1\n\nMemories of Bob:\nnoon: 2026-05-01 assistant t1"
    assert result.answers == {"q": Answered("why?", context, "WHY?")}


def test_its_facts_are_texts() -> None:
    phrases = {"extract_texts": ("List the facts",)}
    backbone = DeterministicBackbone(KnownTexts(["A boat."]), backbone_settings().words, phrases=phrases)
    for number in range(20):
        messages = [{"role": "user", "content": f"List the facts: A boat. zq00000{number % 10} zq0000{number}"}]
        facts = json.loads(backbone.reply(read_request({"messages": messages}, phrases)))["facts"]
        assert all(isinstance(fact, str) and fact for fact in facts)
