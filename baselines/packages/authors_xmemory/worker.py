"""xMemory's released code as a worker: their LoCoMo driver adds a conversation, their searcher answers.

Settings:
    name: of the release, for the record.
    files: module name -> file of the authors, fetched by checksum; they lie in folders as in the release.
    speakers: of the conversation, in the data set's order.
    attributes: constants of the module that makes themes, with the values that they get.
    retrieve_k: episodes per question.
    raw_messages: how many episodes may bring their messages.

Replaced are the model, which the release loads into its own process (its client asks the endpoint instead), Chroma
(exact search in memory) and scikit-learn's one function. Left out are ``networkx`` and the graph of all levels, which
nothing reads. Facts are extracted by one thread, so that each extraction sees all facts before it.
"""

import importlib
import json
import re
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from released_code import ConversationWorker, load, nearest, prepare, set_attribute

#: Imported by the released files, called by nothing that runs here.
UNUSED = ("dotenv", "rank_bm25", "torch", "transformers", "networkx")
#: Their driver's place of the conversation in the data set.
PLACE = 0


class _Collection:
    """Replacement of a Chroma collection: search by squared distance, its default."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[Any, str, dict[str, Any]]] = {}

    def add(self, ids: list[str], documents: list[str], metadatas: list[Any], embeddings: list[Any]) -> None:
        import numpy as np

        rows = np.array(embeddings, dtype=np.float32)  # once: each query reads them all
        for row in zip(ids, rows, documents, metadatas, strict=True):
            self._rows[row[0]] = row[1:]

    def count(self) -> int:
        return len(self._rows)

    def get(self, ids: list[str], **named: Any) -> dict[str, Any]:
        found = [one for one in ids if one in self._rows]
        return {"ids": found, "embeddings": [self._rows[one][0].tolist() for one in found]}

    def query(self, query_embeddings: list[Any], n_results: int) -> dict[str, Any]:
        names = list(self._rows)
        best = nearest([self._rows[name][0] for name in names], query_embeddings[0], n_results)
        kept = [self._rows[names[place]] for place, _ in best]
        return {
            "ids": [[names[place] for place, _ in best]],
            "documents": [[row[1] for row in kept]],
            "metadatas": [[row[2] for row in kept]],
            "distances": [[round(2 - 2 * cosine, 6) for _, cosine in best]],  # of unit vectors, squared
        }


class _Chroma:
    """Replacement of ``chromadb.PersistentClient``; one store per path."""

    stores: ClassVar[dict[str, dict[str, _Collection]]] = {}

    def __init__(self, path: str, settings: Any) -> None:
        self._collections = self.stores.setdefault(path, {})

    def get_collection(self, name: str) -> _Collection:
        if name not in self._collections:
            raise ValueError(f"Collection {name} does not exist.")
        return self._collections[name]

    def create_collection(self, name: str, metadata: Any = None) -> _Collection:
        return self._collections.setdefault(name, _Collection())


#: What the release stores as title and story where no reply gives one, and its title where it dates by the clock.
_NO_TITLE = re.compile(r"Generated Episode|Conversation [\d-]{10} [\d:]{5} \(\d+ messages\)|Episode generation failed")
_NO_STORY = re.compile(
    r"Episode content not generated|Episode created at .*|Unable to generate episode content due to an error\.",
    re.DOTALL,
)
_OF_THE_CLOCK = "Episode generation failed"


def retell_untold(texts: Mapping[str, str], quoted_chars: int) -> dict[str, dict[str, str]]:
    """Describe episodes that no reply tells as ours are once they are made, so that what follows can be compared.

    Args:
        texts: of our descriptions.
        quoted_chars: of the messages that they quote.

    Returns:
        What the release has of such episodes by their ids, filled as they are made: it is what the comparison gets.
    """
    generator = importlib.import_module("src.generation.episode_generator").EpisodeGenerator
    make, released = generator.generate_episode, {}

    def generate_episode(self: Any, user_id: str, messages: Any, boundary_reason: str = "") -> Any:
        episode = make(self, user_id, messages, boundary_reason)
        untitled, untold = _NO_TITLE.fullmatch(episode.title), _NO_STORY.fullmatch(episode.content)
        if not (untitled or untold):
            return episode
        released[episode.episode_id] = {**_described(episode.to_dict())}
        times = [message.timestamp for message in messages]
        if episode.title == _OF_THE_CLOCK:
            episode.timestamp = min(times)
        if untitled:
            name = "title_of_one" if len(messages) == 1 else "title"
            episode.title = texts[name].format(count=len(messages))
        if untold:
            lines = [f"{message.role}: {message.content}"[:quoted_chars] for message in (messages[0], messages[-1])]
            name = "one_line" if lines[0] == lines[1] else "first_and_last"
            story = texts[name].format(count=len(messages), line=lines[0], first=lines[0], last=lines[1])
            episode.content = texts["dated_content"].format(time=times[0].isoformat(), content=story)
        return episode

    generator.generate_episode = generate_episode
    return released


class Worker(ConversationWorker):
    """The authors' memory for one conversation."""

    def __init__(self, opening: dict[str, Any]) -> None:
        settings = opening["settings"]
        super().__init__(settings)
        prepare(opening, UNUSED)
        _replace_packages()
        files = settings["files"]
        sys.path.insert(0, str(Path(files["src.config"]).parents[1]))
        from src import utils

        sys.modules["utils"] = utils
        self._add = load("add", files["evaluation.locomo.add"])
        self._search = load("xMemory_search_framework", files["evaluation.locomo.xMemory_search_framework"])
        for name, value in settings["attributes"].items():
            set_attribute(importlib.import_module("src.core.memory_hierarchy"), name, value)
        self._add.xMemory = _settled(self._add.xMemory)
        self._untold = retell_untold(settings["texts"], settings["quoted_chars"])
        self._llm = _client_class(utils.LLMClient)(opening["llm"]["model"])
        folder = Path(opening["folder"])
        self._config = self._add.load_config(Path(files["evaluation.locomo.config"]))
        self._config.storage_path, self._config.chroma_persist_directory = str(folder), str(folder / "chroma")
        self._config.semantic_generation_workers = 1
        self._folder = folder
        self._user = f"{settings['speakers'][0]}_{PLACE}"
        self._searcher: Any = None

    def finish(self) -> list[dict[str, str]]:
        """Let their driver add the conversation, message by message."""
        import threading

        tracker: dict[str, Any] = {}
        item = {"conversation": self.conversation()}
        self._add.process_single_conversation(
            self._config, item, PLACE, 1, 1800.0, tracker, threading.Lock(), llm_client=self._llm
        )
        if not tracker[self._user]["success"]:
            raise RuntimeError(f"the released driver failed: {tracker[self._user]}")
        return []

    def export(self) -> list[dict[str, str]]:
        """Return the facts in the order they were stored."""
        return [{"memory_id": name, "text": fact["content"]} for name, fact in self._hierarchy()["semantics"].items()]

    def store(self) -> dict[str, Any]:
        """Return the episodes, facts and themes in the form that parity runs compare."""
        kept = self._hierarchy()
        facts = {name: place for place, name in enumerate(kept["semantics"])}
        episodes = {name: place for place, name in enumerate(kept["episodes"])}
        themes = {}
        for theme in kept["themes"].values():
            members = sorted(facts[name] for name in theme["semantic_ids"])
            themes[f"of_{members[0]}"] = {"facts": members, "summary": theme["summary"]}
        return {
            "episodes": [
                {**_episode(episode), **self._untold.get(name, {})} for name, episode in kept["episodes"].items()
            ],
            "facts": [
                {
                    "text": fact["content"],
                    "episode": [episodes[name] for name in fact["source_episodes"]],
                    "time": fact["created_at"],
                    "nearest": [facts[edge["id"]] for edge in kept["semantic_knn"].get(name, [])],
                }
                for name, fact in kept["semantics"].items()
            ],
            "themes": themes,
        }

    def _hierarchy(self) -> dict[str, Any]:
        """Return the hierarchy that the authors' searcher reads from files."""
        return self._opened()._load_hierarchy(self._user)

    def _opened(self) -> Any:
        if self._searcher is None:
            self._memory = self._add.xMemory(config=self._config, llm_client=self._llm)
            self._searcher = self._search.LocomoSearcher(
                self._config,
                output_path=self._folder / "results.json",
                top_k_episodes=self._settings["retrieve_k"],
                top_k_semantic=self._config.search_top_k_semantic,
                search_method="vector",
                include_original_messages_top_k=self._settings["raw_messages"],
                llm_client=self._llm,
                search_strategy="adaptive_hier",
            )
            self._searcher._embedding_client = self._memory._memory_system.embedding_client
        return self._searcher

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Answer a question as their driver does; the context is what the answer's prompt shows of the memory."""
        searcher = self._opened()
        found = searcher.search(self._memory, self._user, question["text"])
        searcher._hydrate_episode_results(self._memory, self._user, found["episodic"])
        searcher._hydrate_semantic_results(found["semantic"])
        lines = self._search.format_memory_lines
        context = "\n\n".join(
            (
                f"Semantic memories:\n{lines(found['semantic'], include_original_limit=0)}",
                f"Episodic memories:\n{lines(found['episodic'], self._settings['raw_messages'])}",
            )
        )
        return {"prediction": searcher.answer(question["text"], found), "context": context}


def _described(episode: dict[str, Any]) -> dict[str, Any]:
    return {"title": episode["title"], "content": episode["content"], "time": episode["timestamp"]}


def _episode(episode: dict[str, Any]) -> dict[str, Any]:
    return {
        **_described(episode),
        "messages": [f"{message['role']}: {message['content']}" for message in episode["original_messages"]],
    }


def _cosine_similarity(ones: Any, others: Any) -> Any:
    """Return the cosines (n, m) of rows (n, d) and (m, d)."""
    import numpy as np

    units = [rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12) for rows in (ones, others)]
    return units[0] @ units[1].T


def _replace_packages() -> None:
    pairwise: Any = types.ModuleType("sklearn.metrics.pairwise")
    pairwise.cosine_similarity = _cosine_similarity
    for name in ("sklearn", "sklearn.metrics"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules[pairwise.__name__] = pairwise
    chroma: Any = types.ModuleType("chromadb")
    config: Any = types.ModuleType("chromadb.config")
    chroma.PersistentClient, chroma.config = _Chroma, config
    config.Settings = lambda **named: named
    sys.modules |= {"chromadb": chroma, "chromadb.config": config}


def _settled(base: type) -> type:
    """Return the authors' memory; its wait for facts ends when the last are stored, and it draws no graph."""

    class Settled(base):
        def wait_for_semantic(self, user_id: str, timeout: float = 30.0) -> bool:
            done = super().wait_for_semantic(user_id, timeout=timeout)
            self._memory_system._semantic_generation_executor.submit(lambda: None).result()
            return done

        def update_hierarchy_graph(self, user_id: str, new_eps: Any, new_sems: Any) -> dict[str, Any]:
            return {}  # nothing reads it

    return Settled


def _client_class(base: type) -> type:
    """Return the authors' client class of a local model, changed to ask the endpoint; its parsing of replies stays."""
    from openai import OpenAI

    class Client(base):
        def __init__(self, model: str) -> None:
            self.model_name, self.tokenizer, self._client = model, None, OpenAI()

        def chat_completion(self, messages: Any, temperature: float = 0.7, max_tokens: Any = None) -> Any:
            reply = self._client.chat.completions.create(
                model=self.model_name, messages=messages, temperature=temperature, max_tokens=max_tokens
            )
            return types.SimpleNamespace(content=reply.choices[0].message.content.strip())

        def build_prefix_cache_plain(self, prefix_text: str) -> dict[str, Any]:
            return {"past_key_values_legacy": prefix_text, "prefix_len": 0}

        def generate_with_logprobs_from_cache_plain(
            self, prefix_cache: Any, continuation_text: str, temperature: float = 0.0, max_tokens: int = 5
        ) -> dict[str, Any]:
            text = prefix_cache["past_key_values_legacy"] + continuation_text
            return self.generate_with_logprobs_plain(text, temperature, max_tokens)

        def generate_with_logprobs_plain(
            self, plain_text: str, temperature: float = 0.0, max_tokens: int = 5
        ) -> dict[str, Any]:
            reply = self._client.completions.create(
                model=self.model_name, prompt=plain_text, temperature=temperature, max_tokens=max_tokens, logprobs=1
            )
            choice = json.loads(reply.model_dump_json())["choices"][0]
            return {"text": choice["text"], "logprobs": choice["logprobs"]["token_logprobs"]}

    return Client
