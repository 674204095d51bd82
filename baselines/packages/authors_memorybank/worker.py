"""MemoryBank's released code as a worker: its summaries, portrait, forgetting, search, and the prompt of its chat.

Its program is a chat with one user and has no evaluation: here the user asks the questions, each of a chat of its own.

Settings:
    name: of the release, for the record.
    files: module name -> file of the authors, fetched by checksum; they lie in folders as in the release.
    speakers: of the conversation, in the data set's order; the first one is the user.
    conversation: id of the conversation.
    texts: ours; how a summary is embedded.
    retrieve_k: hits.
    forgetting: ``off``, or another word for the loader that forgets, before the search of the program without it.
    scale: days after which a share of 1/e is kept; days are longer or shorter where it is not the release's own.

Replaced are the function of openai's old client, without the exchange of greetings before each request; langchain's
FAISS by an exact search in memory; what a text is embedded as, by our layout; and the generator that forgets by our
draws. A hit is not widened by its neighbours.
"""

import ast
import copy
import json
import math
import re
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from released_code import ConversationWorker, EndpointEmbedder, load, prepare

#: Fields of a request that it sends besides its messages.
SAMPLING = ("model", "temperature", "max_tokens", "top_p", "frequency_penalty", "presence_penalty", "stop", "n")
#: Imported by the released files, called by nothing that runs here.
UNUSED = ("langchain", "memory_retrieval.textsplitter", "torch")
LANGUAGE = "en"
SEEDING = Path(__file__).parents[3] / "memsys" / "seeding.py"
#: A piece, and a summary as Python writes it, as the loader of the release lays them out.
_PIECE = re.compile(r"Conversation content on (.*?):\[\|User\|\]: (.*); \[\|AI\|\]: (.*)", re.DOTALL)
_SUMMARY = re.compile(r"The summary of the conversation on (.*?) is: (\{.*\})", re.DOTALL)


class _Document:
    """Replacement of langchain's ``Document``."""

    def __init__(self, page_content: str, metadata: dict[str, Any]) -> None:
        self.page_content, self.metadata = page_content, metadata


class _Loader:
    """Replacement of langchain's loader of files, which the release's own extend."""

    def __init__(self, file_path: str, mode: str) -> None:
        self.file_path = file_path


class _Vectors:
    """Replacement of langchain's FAISS and of the index in it: exact squared distances, the least first.

    ``written`` holds what was saved, by path; each load is a copy, since a search of the release changes its documents.
    """

    written: dict[str, tuple[list[Any], Any]] = {}  # noqa: RUF012

    def __init__(self, documents: list[Any], rows: Any, embedder: Any) -> None:
        self._documents, self._rows, self._embedder = documents, rows, embedder
        self.index, self.docstore = self, types.SimpleNamespace(search=documents.__getitem__)
        self.index_to_docstore_id = {place: place for place in range(len(documents))}

    @classmethod
    def from_documents(cls, documents: list[Any], embedder: Any) -> "_Vectors":
        return cls(documents, embedder.rows([one.page_content for one in documents]), embedder)

    @classmethod
    def load_local(cls, path: str, embedder: Any) -> "_Vectors":
        documents, rows = cls.written[path]
        return cls(copy.deepcopy(documents), rows, embedder)

    def save_local(self, path: str) -> None:
        self.written[path] = (self._documents, self._rows)

    def search(self, queries: Any, k: int) -> tuple[Any, Any]:
        import numpy as np

        distances = ((queries[:, None] - self._rows[None]) ** 2).sum(axis=2)
        places = np.argsort(distances, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(distances, places, axis=1), places

    def similarity_search_with_score(self, query: str, k: int) -> Any:
        return self.similarity_search_with_score_by_vector(self._embedder.rows([query])[0], k)  # theirs


class _Embedder:
    """Replacement of langchain's embeddings: a piece or summary is embedded in our layout.

    Args:
        opening: of the worker; names the embedder.
        dates: of the release's file -> as the data set has them.
        summary: our text of a summary, with ``{text}`` in it.
    """

    def __init__(self, opening: dict[str, Any], dates: dict[str, str], summary: str) -> None:
        self._embedder, self._dates, self._summary = EndpointEmbedder(opening), dates, summary

    def rows(self, texts: list[str]) -> Any:
        import numpy as np

        return np.array(self._embedder.embed([self._shown(text) for text in texts]), dtype=np.float32)

    def _shown(self, text: str) -> str:
        if piece := _PIECE.fullmatch(text):
            return f"[{self._dates[piece[1]]}] " + "\n".join(filter(None, piece.groups()[1:]))
        if summary := _SUMMARY.fullmatch(text):
            told = ast.literal_eval(summary[2])["content"].strip()
            return f"[{self._dates[summary[1]]}] {self._summary.format(text=told)}"
        return text


class Worker(ConversationWorker):
    """The authors' memory for one conversation."""

    def __init__(self, opening: dict[str, Any]) -> None:
        settings = opening["settings"]
        super().__init__(settings)
        prepare(opening, UNUSED)
        _replace_langchain()
        self._opening, files = opening, settings["files"]
        sys.path.insert(0, str(Path(files["memory_retrieval.configs.model_config"]).parents[2]))
        self._summaries = load("summarize_memory", files["summarize_memory"])
        self._searching, self._forgetting, self._prompts = (
            load(name, files[name]) for name in ("local_doc_qa", "forget_memory", "prompt_utils")
        )
        self._complete = _completions()
        self._summaries.openai = types.SimpleNamespace(ChatCompletion=types.SimpleNamespace(create=self._complete))
        self._file, self._user = Path(opening["folder"]) / "memories.json", settings["speakers"][0]
        self._dates: dict[str, str] = {}
        self._memory: dict[str, Any] = {}
        self._retrieval: Any = None
        self._index = ""

    def finish(self) -> list[dict[str, str]]:
        """Save the conversation as the program does, let it summarise, forget and index."""
        history, first_turns = self._history()
        saved = {self._user: {"name": self._user, "history": history}}
        self._file.write_text(json.dumps(saved), encoding="utf-8")
        self._memory = self._summaries.summarize_memory(str(self._file), self._user, language=LANGUAGE)[self._user]
        if self._settings["forgetting"] != "off":
            self._forget(first_turns)
        self._retrieval = self._searching.LocalMemoryRetrieval()
        self._retrieval.language, self._retrieval.top_k = LANGUAGE, self._settings["retrieve_k"]
        self._retrieval.chunk_size = 0
        self._retrieval.embeddings = _Embedder(self._opening, self._dates, self._settings["texts"]["summary"])
        self._index, _ = self._retrieval.init_memory_vector_store(
            filepath=str(self._file), vs_path=str(Path(self._opening["folder"]) / "index"), user_name=self._user
        )
        return []

    def _history(self) -> tuple[dict[str, list[dict[str, str]]], list[str]]:
        """Return the pairs of each day, and the first turn of each; consecutive turns of one speaker are joined.

        A day begins with a pair whoever speaks first.
        """
        days: dict[str, list[dict[str, str]]] = {}
        first_turns: list[str] = []
        spoke, side = "", "response"
        for turn in self._turns:
            date = _day(turn["date"])
            pairs, self._dates[date] = days.setdefault(date, []), turn["date"]
            if not pairs or turn["speaker"] != spoke:
                side = "response" if pairs and side == "query" else "query"
            if side == "query" and (not pairs or turn["speaker"] != spoke):
                pairs.append({"query": "", "response": ""})
                first_turns.append(turn["turn_id"])
            pairs[-1][side] = "\n".join(filter(None, (pairs[-1][side], turn["text"])))
            spoke = turn["speaker"]
        return days, first_turns

    def _forget(self, first_turns: list[str]) -> None:
        """Let its loader forget, on the last day of the conversation."""
        draws, curve = self._draws(first_turns), self._forgetting.forgetting_curve
        longer = -1 / math.log(curve(1, 1)) / self._settings["scale"]
        self._forgetting.forgetting_curve = lambda days, strength: curve(days * longer, strength)
        self._forgetting.random = types.SimpleNamespace(random=lambda: next(draws))
        loader = self._forgetting.MemoryForgetterLoader(str(self._file), LANGUAGE)
        loader.initial_load_forget_and_save(self._user, max(self._dates))
        self._memory |= loader.memory_bank[self._user]

    def _draws(self, first_turns: list[str]) -> Iterator[float]:
        seeding = load("seeding", str(SEEDING))
        parts = (self._opening["seed"], self._settings["conversation"], "memorybank.forget")
        return (float(seeding.generator(*parts, turn).random()) for turn in first_turns)

    def export(self) -> list[dict[str, str]]:
        """Return the summaries in the order of their days."""
        return [{"memory_id": date, "text": one["content"]} for date, one in self._memory["summary"].items()]

    def store(self) -> dict[str, Any]:
        """Return pieces, summaries, descriptions and the portrait in the form that parity runs compare."""
        told, history = self._memory["summary"], self._memory["history"]
        return {
            "days": [
                {
                    "date": self._dates[date],
                    "pieces": [
                        "\n".join(filter(None, (one["query"], one["response"]))) for one in history.get(date, [])
                    ],
                    "summary": told[date]["content"].strip() if date in told else "",
                    "personality": personality.strip(),
                }
                for date, personality in self._memory["personality"].items()
            ],
            "portrait": {"portrait": {"text": self._memory["overall_personality"].strip()}},
        }

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Ask a question as the first one of a chat; the context is what its prompt shows of the memory."""
        shown: list[Any] = []
        search = types.SimpleNamespace(search_memory=lambda *asked: _kept(shown, self._retrieval.search_memory(*asked)))
        prompts = self._prompts
        prompt = prompts.build_prompt_with_search_memory_chatglm_app(
            [],
            question["text"],
            self._memory,
            self._user,
            self._retrieval.load_memory_index(self._index),
            search,
            prompts.generate_meta_prompt_dict_chatglm_app()[LANGUAGE],
            prompts.generate_new_user_meta_prompt_dict_chatglm()[LANGUAGE],
            prompts.generate_user_keyword()[LANGUAGE],
            prompts.generate_ai_keyword()[LANGUAGE],
            prompts.boot_actual_name_dict[LANGUAGE],
            LANGUAGE,
        )
        (memories, dates) = shown[0]
        reply = self._complete([{"role": "user", "content": prompt}], model=self._opening["llm"]["model"])
        context = "\n".join([self._memory["overall_personality"].strip(), *memories, dates])
        return {"prediction": reply["choices"][0]["message"]["content"].strip(), "context": context}


def _replace_langchain() -> None:
    for name, values in (
        ("docstore.document", {"Document": _Document}),
        ("document_loaders", {"UnstructuredFileLoader": _Loader}),
        ("vectorstores", {"FAISS": _Vectors}),
    ):
        module = sys.modules[f"langchain.{name}"] = types.ModuleType(f"langchain.{name}")
        vars(module).update(values)


def _kept(shown: list[Any], found: Any) -> Any:
    shown.append(found)
    return found


def _day(date: str) -> str:
    """Return the day of one of LoCoMo's dates as the program writes it; other texts as they are."""
    try:
        return time.strftime("%Y-%m-%d", time.strptime(date.split(" on ")[-1], "%d %B, %Y"))
    except ValueError:
        return date


def _completions() -> Any:
    from openai import OpenAI

    client = OpenAI()

    def create(messages: list[dict[str, str]], **named: Any) -> dict[str, Any]:
        asked = {name: named[name] for name in SAMPLING if name in named}
        shown = messages if len(messages) == 1 else [messages[0], messages[-1]]
        reply = client.chat.completions.create(messages=shown, **asked)
        return json.loads(reply.model_dump_json())

    return create
