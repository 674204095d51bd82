"""Parity with xMemory's released code, without that code: the worker on stand-in files, replies, the store."""

import json
from pathlib import Path

import pytest

from eval.config.presets import read_settings
from eval.parity.config import backbone_settings, find_counterpart
from eval.parity.facts import KnownTexts
from eval.parity.ours import Answered
from eval.parity.replies import DeterministicBackbone, read_request
from eval.parity.rules import passes
from eval.parity.stores import xmemory_store
from tests.support.released import StandIn

ROOT = Path(__file__).resolve().parents[4]
CODE = find_counterpart("authors_xmemory")
BACKBONE = DeterministicBackbone(KnownTexts([]), backbone_settings().words, phrases=CODE.phrases)

#: In place of the authors' files: the names that the worker uses, and imports of what it leaves out.
FILES = {
    "src.config": "",
    "src.core.memory_hierarchy": "MAX_THEME_SIZE = 12\n",
    "src.generation.episode_generator": (
        "class EpisodeGenerator:\n    def generate_episode(self, user_id, messages, boundary_reason=''):\n"
        "        return None\n"
    ),
    "src.utils": "import torch\nclass LLMClient:\n    def read(self, text):\n        return text\n",
    "evaluation.locomo.config": '{"top": 20}',
    "evaluation.locomo.add": """
import json
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
import chromadb
from dotenv import load_dotenv
from utils import LLMClient
FOUND = {}

class xMemory:
    def __init__(self, config, llm_client):
        self.llm, self.client = llm_client, chromadb.PersistentClient(path=config.chroma_persist_directory, settings={})
        self._memory_system = SimpleNamespace(
            embedding_client="embedder", _semantic_generation_executor=ThreadPoolExecutor(1))

    def wait_for_semantic(self, user_id, timeout):
        return True

    def update_hierarchy_graph(self, user_id, new_eps, new_sems):
        raise RuntimeError("left out")

def load_config(path):
    return SimpleNamespace(search_top_k_semantic=json.loads(path.read_text())["top"])

def process_single_conversation(config, item, idx, batch_size, wait, tracker, lock, llm_client):
    from src.core.memory_hierarchy import MAX_THEME_SIZE
    assert config.semantic_generation_workers == 1 and MAX_THEME_SIZE == 8
    said, user = item["conversation"], f"{item['conversation']['speaker_a']}_{idx}"
    memory = xMemory(config=config, llm_client=llm_client)
    assert memory.wait_for_semantic(user, 1.0) and memory.update_hierarchy_graph(user, [], []) == {}
    messages = [{"role": chat["speaker"], "content": chat["text"]} for chat in said["session_s"]]
    asked = [{"role": "user", "content": "You cut a long conversation into episodes"}]
    told = llm_client.chat_completion(asked, 0.1, 9)
    collection = memory.client.create_collection("facts")
    collection.add(ids=["f0", "f1"], documents=["zero", "one"], metadatas=[{}, {}], embeddings=[[0.0, 1.0], [1.0, 0.0]])
    nearest = collection.query([[0.8, 0.6]], 1)
    fact = {"content": nearest["documents"][0][0], "source_episodes": ["e"], "created_at": "noon"}
    FOUND.update(
        episodes={"e": {"title": sorted(json.loads(told.content))[0], "content": "c", "timestamp": "noon",
                        "original_messages": messages}},
        semantics={"f": fact, "g": {**fact, "content": str(nearest["distances"][0][0])[:4]}},
        themes={"t": {"semantic_ids": ["g", "f"], "summary": said["session_s_date_time"]}},
        semantic_knn={"g": [{"id": "f", "sim": 0.5}]},
    )
    tracker[user] = {"success": True}
""",
    "evaluation.locomo.xMemory_search_framework": """
from add import FOUND

def format_memory_lines(memories, include_original_limit=0):
    return f"{memories} {include_original_limit}"

class LocomoSearcher:
    def __init__(self, config, top_k_episodes, llm_client, search_strategy, **given):
        assert search_strategy == "adaptive_hier"
        self.top, self.llm = top_k_episodes, llm_client

    def _load_hierarchy(self, user_id):
        return FOUND

    def search(self, memory, user_id, question):
        cache = self.llm.build_prefix_cache_plain("# SEMANTICS")
        told = self.llm.generate_with_logprobs_from_cache_plain(cache, f" {question}", 0.0, 20)
        return {"episodic": len(told["logprobs"]), "semantic": self.top}

    def _hydrate_episode_results(self, memory, user_id, episodes):
        pass

    def _hydrate_semantic_results(self, found):
        pass

    def answer(self, question, found):
        return question.upper()
""",
}


def test_the_worker_drives_the_released_driver_and_searcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = StandIn("authors_xmemory", FILES, BACKBONE)
    texts = read_settings(ROOT / CODE.texts)
    settings = {
        "attributes": {"MAX_THEME_SIZE": 8}, "retrieve_k": 10, "raw_messages": 7, "texts": texts, "quoted_chars": 200,
    }  # fmt: skip
    result = stand_in.run(tmp_path, monkeypatch, settings)
    assert stand_in.roles() == ["boundary", "probe"]
    fact = {"text": "one", "episode": [0], "time": "noon", "nearest": []}
    assert result.store == {
        "episodes": [{"title": "confidence", "content": "c", "time": "noon", "messages": ["Ann: t1", "Ann: t2"]}],
        "facts": [fact, {**fact, "text": "0.4", "nearest": [0]}],
        "themes": {"of_0": {"facts": [0, 1], "summary": "noon"}},
    }
    tokens = len(BACKBONE.logprobs(*probe("# SEMANTICS why?")))
    context = f"Semantic memories:\n10 0\n\nEpisodic memories:\n{tokens} 7"
    assert result.answers == {"q": Answered("why?", context, "WHY?")}


def probe(text: str) -> tuple[object, str]:
    request = read_request({"prompt": text}, CODE.phrases)
    return request, BACKBONE.reply(request)


def test_how_sure_a_probe_is_follows_from_what_it_shows() -> None:
    one, other = BACKBONE.logprobs(*probe("# SEMANTICS zq000001")), BACKBONE.logprobs(*probe("# SEMANTICS zq000002"))
    assert one != other and one == BACKBONE.logprobs(*probe("zq000001: Answer the question briefly from the memories"))
    assert all(-0.9 <= logprob <= -0.1 for _, logprob in one)
    assert "".join(token for token, _ in one) == probe("# SEMANTICS zq000001")[1]


def test_replies_of_its_roles_are_what_its_prompts_ask_for() -> None:
    def said(phrase: str) -> dict[str, object]:
        message = {"role": "user", "content": phrase}
        found: dict[str, object] = json.loads(BACKBONE.reply(read_request({"messages": [message]}, CODE.phrases)))
        return found

    assert isinstance(said("You cut a long conversation into episodes")["should_end"], bool)
    assert {"title", "content"} <= set(said("You write the memory of one episode"))
    assert set(said("You collect lasting knowledge from a conversation")) == {"statements"}


def test_lines_with_headings_and_bullets_are_the_same_lines() -> None:
    ours = "Semantic memories:\n- [noon] sails\n\nEpisodic memories:\n- [noon] story\nAnn: hi"
    theirs = (
        "Semantic Memories:\n    - [noon] sails\n\nEpisodic Memories:\n    - [noon] story\n    Original Messages:\n"
    )
    theirs += "    \u2022 Ann: hi"
    assert passes("same_lines", "q", ours, theirs)
    assert not passes("same_lines", "q", ours, theirs.replace("story", "tale"))
    assert not passes("same_lines", "q", "a\nb", "b\na")


def test_the_state_of_xmemory_in_the_form_that_is_compared() -> None:
    state = {
        "store": {
            "episodes": [
                {"episode_id": "e", "title": "t", "content": "c", "time": "noon", "messages": [{"line": "Ann: hi"}]}
            ],
            "facts": [{"fact_id": f"f{n}", "text": f"{n}", "episode_id": "e", "time": "noon"} for n in (0, 1)],
            "fact_edges": {"f1": [["f0", 0.5]]},
            "themes": {"members": {"x": ["f1", "f0"]}},
            "summaries": {"x": "both"},
        }
    }
    fact = {"text": "0", "episode": [0], "time": "noon", "nearest": []}
    assert xmemory_store(state) == {
        "episodes": [{"title": "t", "content": "c", "time": "noon", "messages": ["Ann: hi"]}],
        "facts": [fact, {**fact, "text": "1", "nearest": [0]}],
        "themes": {"of_0": {"facts": [0, 1], "summary": "both"}},
    }
