"""Parity with LightMem's released code, without that code: the worker on stand-in files, replies, the store, rules."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from eval.parity.config import backbone_settings, find_counterpart
from eval.parity.facts import KnownTexts
from eval.parity.ours import Answered
from eval.parity.replies import DeterministicBackbone, Request, read_request
from eval.parity.rules import passes
from eval.parity.stores import lightmem_store
from memsys.assets.paths import ROOT
from memsys.errors import WorkerError
from tests.support.released import StandIn

WORDS = backbone_settings().words
PHRASES = find_counterpart("authors_lightmem").phrases

#: In place of the authors' files: the names that the worker uses, and imports of what it leaves out.
FILES = {
    "lightmem.factory.topic_segmenter.llmlingua_2": """
import torch
from transformers import AutoModel, AutoTokenizer

class LlmLingua2Segmenter:
    def propose_cut(self, texts):
        raise AssertionError("the model is asked for attention")
""",
    "lightmem.memory.lightmem": """
import tiktoken
from llmlingua import PromptCompressor
from qdrant_client import QdrantClient
from qdrant_client.models import FieldCondition, Filter, PointIdsList, PointStruct, Range
from sentence_transformers import SentenceTransformer
from transformers.tokenization_utils_fast import PreTrainedTokenizerFast
from types import SimpleNamespace
from lightmem.factory.topic_segmenter.llmlingua_2 import LlmLingua2Segmenter

class LightMemory:
    def __init__(self, folder):
        self.compressor = PromptCompressor(model_name="c")
        self.shortmem_buffer_manager = SimpleNamespace(max_tokens=512)
        self.client, self.model = QdrantClient(path=folder), SentenceTransformer("m")
        assert not isinstance("m", PreTrainedTokenizerFast)

    def add_memory(self, number, chat, time):
        text = self.compressor.compress_prompt(context=[chat["text"]])["compressed_prompt"]
        positions = self.compressor.model.config.max_position_embeddings
        limit = self.shortmem_buffer_manager.max_tokens
        tokens = len(tiktoken.encoding_for_model("m").encode(f"{text} and more"))
        memory = f"{text}. {positions} {limit} {tokens} {LlmLingua2Segmenter().propose_cut(['a', 'b'])}"
        payload = {"memory": memory, "time_stamp": time, "float_time_stamp": number, "speaker_name": chat["speaker"],
                   "topic_id": number}
        vector = self.model.encode(f"{text} ", convert_to_numpy=True).tolist()
        self.client.upsert(points=[PointStruct(id=number, vector=vector, payload=payload)])

    def construct_update_queue_all_entries(self, top_k=20, keep_top_n=10, max_workers=8):
        earlier = Filter(must=[FieldCondition(key="float_time_stamp", range=Range(gte=None, lte=1))])
        for point in self.client.scroll(limit=100)[0]:
            hits = self.client.query_points(query=point.vector, query_filter=earlier, limit=keep_top_n).points
            point.payload["queue"] = [hit.id for hit in hits], max_workers

    def offline_update_all_entries(self, score_threshold=0.9, max_workers=5):
        queues = [point.payload["queue"] for point in self.client.scroll()[0]]
        assert queues == [([0, 1], 1), ([1, 0], 1), ([0, 1], 1)] and (score_threshold, max_workers) == (0.5, 1)
        self.client.delete(points_selector=PointIdsList(points=[2]))
""",
    "prompts": "ANSWER_PROMPT = 'Answer: {question}'\n",
    "retrievers": """
import spacy
from qdrant_client import QdrantClient

class QdrantEntryLoader:
    def __init__(self, path):
        self.path = path

    def load_entries(self, name, with_vectors=False):
        return [point.model_dump() for point in QdrantClient(path=self.path).scroll()[0]]

class VectorRetriever:
    def __init__(self, embedder):
        self.embedder = embedder
""",
    "add_locomo": """
from lightmem.memory.lightmem import LightMemory
LLM_MODEL, LLMLINGUA_MODEL_PATH, QDRANT_POST_UPDATE_DIR = "", "", "./after"

def process_single_sample(sample, api_key, args):
    said, memory = sample["conversation"], LightMemory(f"{QDRANT_POST_UPDATE_DIR}/{sample['sample_id']}")
    if said["session_s_date_time"] != "noon":
        return {"status": "failed"}
    for number, chat in enumerate([*said["session_s"], said["session_s"][0]]):
        memory.add_memory(number, chat, "2026-05-01T12:00:00.000")
    memory.construct_update_queue_all_entries()
    memory.offline_update_all_entries(score_threshold=0.9)
    return {"status": "success", "model": (LLM_MODEL, LLMLINGUA_MODEL_PATH, args.extraction_mode)}
""",
    "search_locomo": """
from openai import OpenAI
from types import SimpleNamespace
from llm_judge import evaluate_llm_judge
from prompts import ANSWER_PROMPT
BaseTextEmbedderConfig, TextEmbedderHuggingface = SimpleNamespace, lambda settings: settings

def retrieve_combined(entries, retriever, question, total_limit):
    return [{**one, "_retrieved_speaker": one["payload"]["speaker_name"]} for one in entries[:total_limit]]

def format_related_memories(found):
    return "\\n\\n".join(f"[when]\\n{one['payload']['memory']}" for one in found)

def process_sample(sample, loader, retriever, client, judge, model, judge_model, categories, each, total, mode):
    asked = sample["qa"][0]
    assert asked["category"] in categories and each == total == 1 and mode == "combined"
    messages = [{"role": "system", "content": ANSWER_PROMPT.format(question=asked["question"])}]
    reply = client.chat.completions.create(model=model, messages=messages, temperature=0.0)
    return {"results": [{"prediction": reply.choices[0].message.content, "judge": evaluate_llm_judge()}]}
""",
}
SETTINGS = {"retrieve_k": 1, "buffer_tokens": 7, "stm_tokens": 9, "theta": 0.5, "keep": 2}


def stand_in(**files: str) -> StandIn:
    return StandIn("authors_lightmem", {**FILES, **files}, DeterministicBackbone(KnownTexts(["why?"]), WORDS))


def test_the_worker_drives_the_released_scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stand_in()
    result = run.run(tmp_path, monkeypatch, SETTINGS)
    row = {"time": "2026-05-01T12:00:00", "speaker": "Ann"}
    assert result.store == {"facts": {"t1  7 9 3 [0, 1]": {**row, "topic": 0}, "t2  7 9 3 [0, 1]": {**row, "topic": 1}}}
    call = run.endpoint.calls["theirs"][0]
    assert (call.request.system, call.request.prompt) == ("", "Answer: why?")
    assert result.answers == {"q": Answered("why?", "Memories of Ann:\n[when]\nt1. 7 9 3 [0, 1]", call.reply)}


def test_a_script_that_failed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = FILES["add_locomo"].replace('!= "noon"', '== "noon"')
    with pytest.raises(WorkerError, match="the released script failed"):
        stand_in(add_locomo=broken).run(tmp_path, monkeypatch, SETTINGS)


def test_every_file_of_the_release_has_a_checksum() -> None:
    code = find_counterpart("authors_lightmem")
    sources = code.sources(code.find_pack(ROOT))
    assert {"lightmem.memory.lightmem", "prompts", "add_locomo", "search_locomo"} <= set(sources)
    assert {one.repository for one in sources.values()} == {"zjunlp/LightMem"}
    assert {len(one.sha256) for one in sources.values()} == {64} and {len(one.commit) for one in sources.values()} == {
        40
    }


def request(system: str, prompt: str) -> Request:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": prompt}]
    return read_request({"messages": messages}, PHRASES)


def replied(phrase: str, prompt: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(
        DeterministicBackbone(KnownTexts(["Hello", "Boats"]), WORDS, phrases=PHRASES).reply(request(phrase, prompt))
    )
    return found


def test_facts_name_messages_by_the_numbers_that_stand_before_them() -> None:
    said: list[Any] = []
    for number in range(80):
        shown = f"zq{number:06x}\n[9 May, Tuesday] 0.Ann: Hello\n[9 May, Tuesday] 1.Bob Lee: Boats"
        other = f"zq{number:06x}\n[2023-05-09T12:00:00.000, Tue] 5.Ann: Hello\n6.Bob Lee: Boats"
        replies = [replied(PHRASES["sourced_facts"][0], text) for text in (shown, other)]
        ours, theirs = (reply["data"] if isinstance(reply, dict) else reply for reply in replies)
        assert [one["fact"] for one in ours] == [one["fact"] for one in theirs]
        assert [int(one["source_id"]) + 5 for one in ours] == [int(one["source_id"]) for one in theirs]
        said += ours
    assert {type(one["source_id"]) for one in said} == {int, str, float}
    texts = [one["fact"] for one in said]
    assert len(set(texts)) < len(texts)
    habits = {text.split(" zq")[0] for text in texts if text.startswith("Often")}
    assert any(sum(text.startswith(habit) for text in set(texts)) > 1 for habit in habits), "some nearly repeat another"


def test_a_revision_updates_deletes_ignores_or_is_no_decision() -> None:
    said = [replied(PHRASES["revise"][1], f"Target memory: zq{number:06x}") for number in range(200)]
    actions = {one.get("action", "none") for one in said}
    assert {"update", "delete", "ignore", "Delete", "merge", "none"} <= actions
    assert all(one["new_memory"] for one in said if one.get("action") == "update")


def test_the_state_of_lightmem_in_the_form_that_is_compared() -> None:
    fact = {"text": "Ann sails.", "date": "9 May 2023", "speaker": "Ann", "topic": 3}
    stamped = {**fact, "moment": "2023-05-09T00:00:01"}
    assert lightmem_store({"facts": [fact, stamped]}) == {
        "facts": {
            "Ann sails ": {"time": "2023-05-09T00:00:01", "speaker": "Ann", "topic": 3},
            "Ann sails  (2)": {"time": "9 May 2023", "speaker": "Ann", "topic": 3},
        }
    }


MINE = """  Memories of Ann:
[Memory recorded on: 1:56 pm on 8 May, 2023, Monday]
sails
[8 May 2023, Monday] 2.Ann: Hi"""
YOURS = """Memories for user Ann:

[Memory recorded on: 08 May 2023, Mon]
sails

[2023-05-08T13:56:02.000, Mon] 2.Ann: Hi"""


def test_stamps_of_one_day_are_the_same() -> None:
    rule = "same_but_stamps"
    assert passes(rule, "", MINE, YOURS)
    assert passes(rule, "", MINE, f"{YOURS}\nMemories for user Speaker 2:\n\nNo memories available.\n")
    for changed in (YOURS.replace("-05-08T", "-05-09T"), YOURS.replace(", Mon", ", Tue"), YOURS.replace("Hi", "Ho")):
        assert not passes(rule, "", MINE, changed)
    assert not passes(rule, "", MINE, YOURS.replace("2.Ann", "3.Ann"))


def test_numbers_that_go_on_are_all_larger() -> None:
    rule = "same_but_numbers"
    one = "[8 May 2023, Mon] 0.Ann: an example\n[8 May 2023, Mon] 0.Ann: Hi\n[8 May 2023, Mon] 1.Bob: Ho"
    on = one.replace("0.Ann: Hi", "7.Ann: Hi").replace("1.Bob", "8.Bob")
    assert passes(rule, "", one, on)
    assert not passes(rule, "", one, one) and not passes(rule, "", on, one)
    assert not passes(rule, "", one, on.replace("8.Bob", "9.Bob"))


def test_dates_before_the_facts_of_an_update() -> None:
    ours = (
        "Target memory:[1:56 pm on 8 May, 2023, Monday] a [note]\n- [9 May 2023, Tuesday] b\n- [9 May 2023, Tuesday] c"
    )
    theirs = "Target memory:a [note]\n- b\n- c"
    assert passes("same_but_dates", "", ours, theirs)
    assert not passes("same_but_dates", "", ours, theirs.replace("b", "d"))
    assert passes("same_but_dates_and_order", "", ours, "Target memory:a [note]\n- c\n- b")
    assert not passes("same_but_dates_and_order", "", ours, theirs)


def test_topics_that_are_cut_off() -> None:
    assert passes("an_earlier_topic", "", 5, 3)
    assert not passes("an_earlier_topic", "", 3, 5) and not passes("an_earlier_topic", "", 3, None)
