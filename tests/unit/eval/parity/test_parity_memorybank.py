"""Parity with MemoryBank's released code, without that code: the worker on files in its place."""

from pathlib import Path

import pytest

from eval.parity.config import backbone_settings
from eval.parity.facts import KnownTexts
from eval.parity.replies import DeterministicBackbone
from eval.parity.stores import memorybank_store
from memsys.seeding import generator
from tests.support.released import StandIn

#: In place of the authors' files: the names that the worker uses, and imports of what it replaces.
FILES = {
    "summarize_memory": """
import json

def summarize_memory(file, name, language):
    memory = json.load(open(file))
    reply = openai.ChatCompletion.create(messages=[{"role": "user", "content": "Sum up"}], model="m", max_tokens=5)
    assert reply["choices"][0]["message"]["content"]
    days = list(memory[name]["history"])
    memory[name] |= {"summary": {day: {"content": " a day "} for day in days},
                     "personality": {day: "calm" for day in days}, "overall_personality": "kind"}
    json.dump(memory, open(file, "w"))
    return memory
""",
    "local_doc_qa": """
import json
from langchain.document_loaders import UnstructuredFileLoader
from langchain.docstore.document import Document
from langchain.vectorstores import FAISS
from memory_retrieval.configs.model_config import *

class Loader(UnstructuredFileLoader):
    def __init__(self, file):
        super().__init__(file, mode="elements")

class LocalMemoryRetrieval:
    def init_memory_vector_store(self, filepath, vs_path, user_name):
        own = json.load(open(Loader(filepath).file_path))[user_name]
        documents = []
        for day, pairs in own["history"].items():
            documents += [Document(f"Conversation content on {day}:[|User|]: {one['query']}; [|AI|]: {one['response']}",
                                   {"source": day}) for one in pairs]
            summary = f"The summary of the conversation on {day} is: {own['summary'][day]}"
            documents.append(Document(page_content=summary, metadata={"source": day}))
        FAISS.from_documents(documents, self.embeddings).save_local(vs_path)
        return vs_path, [filepath]

    def load_memory_index(self, path):
        FAISS.similarity_search_with_score_by_vector = lambda index, vector, k: [
            (index.docstore.search(index.index_to_docstore_id[place]), score)
            for score, place in zip(*(one[0] for one in index.index.search(vector[None], k)))]
        return FAISS.load_local(path, self.embeddings)

    def search_memory(self, query, index):
        assert CHUNK_SIZE and self.chunk_size == 0
        found = index.similarity_search_with_score(query, k=self.top_k)
        shown = [document.page_content for document, _ in found]
        found[0][0].page_content = "changed"
        return shown, found[0][0].metadata["source"]
""",
    "forget_memory": """
import json, random
from memory_retrieval.textsplitter import ChineseTextSplitter

def forgetting_curve(days, strength):
    return 0.5 ** (days * strength)

class MemoryForgetterLoader:
    def __init__(self, file, language):
        self.file, self.memory_bank = file, {}

    def initial_load_forget_and_save(self, name, today):
        self.memory_bank = json.load(open(self.file))
        assert today == "noon"
        self.memory_bank[name]["history"] = {today: [{"query": str(random.random()), "response": ""}]}
        json.dump(self.memory_bank, open(self.file, "w"))
""",
    "memory_retrieval.configs.model_config": "import torch\nCHUNK_SIZE = 200\n",
    "prompt_utils": """
boot_actual_name_dict = {"en": "Friend"}

def told():
    return {"en": "told"}

generate_meta_prompt_dict_chatglm_app = generate_new_user_meta_prompt_dict_chatglm = told
generate_user_keyword = generate_ai_keyword = told

def build_prompt_with_search_memory_chatglm_app(history, text, memory, user, index, search, *told):
    return "\\n".join([memory["overall_personality"], *search.search_memory(text, index)[0], text])
""",
}


def worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgetting: str
) -> tuple[StandIn, list[dict[str, object]], str]:
    stand_in = StandIn("authors_memorybank", FILES, DeterministicBackbone(KnownTexts([]), backbone_settings().words))
    told = {"retrieve_k": 2, "forgetting": forgetting, "scale": 100, "texts": {"summary": "Summary: {text}"}}
    result = stand_in.run(tmp_path, monkeypatch, told)
    days = result.store["days"]
    assert isinstance(days, list) and result.store["portrait"] == {"portrait": {"text": "kind"}}
    return stand_in, days, result.answers["q"].context  # type: ignore[return-value]


def test_pairs_are_stored_searched_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in, days, context = worker(tmp_path, monkeypatch, "off")
    assert days == [{"date": "noon", "pieces": ["t1\nt2"], "summary": "a day", "personality": "calm"}]
    shown = context.split("\n")
    assert (shown[0], shown[-1], len(shown)) == ("kind", "noon", 5)  # of the piece, two lines
    assert any(line.startswith("The summary of the conversation on noon is: {") for line in shown)
    asked = [call.request.prompt for call in stand_in.endpoint.calls["theirs"]]
    assert asked[0] == "Sum up" and asked[1].startswith("kind\n") and asked[1].endswith("\nwhy?")


def test_what_is_forgotten_follows_our_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, days, context = worker(tmp_path, monkeypatch, "code_bug")
    drawn = str(generator(0, "c", "memorybank.forget", "D1:1").random())
    assert days[0]["pieces"] == [drawn] and drawn in context


def test_our_days_are_stored_in_the_same_form() -> None:
    day = {"date": "noon", "pieces": [{"text": "t1"}], "summaries": [{"text": "a day"}], "personality": ["calm"]}
    assert memorybank_store({"days": [day], "personality": "kind"}) == {
        "days": [{"date": "noon", "pieces": ["t1"], "summary": "a day", "personality": "calm"}],
        "portrait": {"portrait": {"text": "kind"}},
    }
