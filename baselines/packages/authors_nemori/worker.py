"""Nemori's released code of September 2025 as a worker: its LoCoMo driver adds a conversation, its searcher answers.

Settings:
    name: of the release, for the record.
    files: module name -> file of the authors, fetched by checksum; they lie in folders as in the release.
    speakers: of the conversation, in the data set's order.
    retrieve_k: episodes per question.
    facts: per question.
    raw_messages: how many episodes bring their messages.

xMemory is forked from this code, so that the replacement of Chroma is that of its worker. Facts are extracted by one
thread, so that each extraction sees all facts before it.
"""

import sys
import threading
from pathlib import Path
from typing import Any

from released_code import ConversationWorker, load, prepare

_XMEMORY = load("authors_xmemory_worker", str(Path(__file__).parents[1] / "authors_xmemory" / "worker.py"))
#: Imported by the released files, called by nothing that runs here.
UNUSED = ("dotenv", "rank_bm25", "spacy")
#: Their driver's place of the conversation in the data set, its messages per call, and seconds that it may wait.
PLACE, BATCH, WAIT_S = 0, 1, 1800.0


class Worker(ConversationWorker):
    """The authors' memory for one conversation."""

    def __init__(self, opening: dict[str, Any]) -> None:
        settings = opening["settings"]
        super().__init__(settings)
        prepare(opening, UNUSED)
        _XMEMORY._replace_packages()
        files = settings["files"]
        sys.path.insert(0, str(Path(files["src.config"]).parents[1]))
        self._add = load("add", files["evaluation.locomo.add"])
        self._search = load("search", files["evaluation.locomo.search"])
        self._add.NemoriMemory = _settled(self._add.NemoriMemory)
        self._untold = _XMEMORY.retell_untold(settings["texts"], settings["quoted_chars"])
        self._config = self._add.load_config(Path(files["evaluation.locomo.config"]))
        folder = Path(opening["folder"])
        self._config.storage_path, self._config.chroma_persist_directory = str(folder), str(folder / "chroma")
        self._config.llm_model = opening["llm"]["model"]
        self._config.semantic_generation_workers = 1
        self._user = f"{settings['speakers'][0]}_{PLACE}"
        self._searcher = self._search.LocomoSearcher(
            self._config,
            output_path=folder / "results.json",
            top_k_episodes=settings["retrieve_k"],
            top_k_semantic=settings["facts"],
            search_method="vector",
            include_original_messages_top_k=settings["raw_messages"],
        )
        self._memory: Any = None

    def finish(self) -> list[dict[str, str]]:
        """Let their driver add the conversation, message by message."""
        tracker: dict[str, Any] = {}
        item = {"conversation": self.conversation()}
        self._add.process_single_conversation(self._config, item, PLACE, BATCH, WAIT_S, tracker, threading.Lock())
        if not tracker[self._user]["success"]:
            raise RuntimeError(f"the released driver failed: {tracker[self._user]}")
        self._memory = self._add.NemoriMemory(config=self._config)
        return []

    def export(self) -> list[dict[str, str]]:
        """Return the facts in the order they were stored."""
        return [{"memory_id": fact.memory_id, "text": fact.content} for fact in self._facts()]

    def _facts(self) -> list[Any]:
        """Return the facts in the order that their vectors were added; their files have the newest first."""
        collections = _XMEMORY._Chroma.stores[self._config.chroma_persist_directory].values()
        order = {name: place for one in collections for place, name in enumerate(one._rows)}
        facts = self._memory._memory_system._semantic_repository.list_by_user(self._user)
        return sorted(facts, key=lambda fact: order[fact.memory_id])

    def _episodes(self) -> list[Any]:
        return self._memory._memory_system._episode_repository.list_by_user(self._user)

    def store(self) -> dict[str, Any]:
        """Return the episodes and facts in the form that parity runs compare."""
        episodes = self._episodes()
        places = {episode.episode_id: place for place, episode in enumerate(episodes)}
        return {
            "episodes": [
                {**_XMEMORY._episode(episode.to_dict()), **self._untold.get(episode.episode_id, {})}
                for episode in episodes
            ],
            "facts": [
                {
                    "text": fact.content,
                    "episode": [places[name] for name in fact.source_episodes],
                    "time": fact.created_at.isoformat(),
                }
                for fact in self._facts()
            ],
        }

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Answer a question as their driver does; the context is what the answer's prompt shows of the memory."""
        searcher = self._searcher
        found = searcher.search(self._memory, self._user, question["text"])
        searcher._hydrate_episode_results(self._memory, self._user, found["episodic"])
        searcher._hydrate_semantic_results(found["semantic"])
        lines = self._search.format_memory_lines
        context = "\n\n".join(
            (
                f"Episodic memories:\n{lines(found['episodic'], self._settings['raw_messages'])}",
                f"Semantic memories:\n{lines(found['semantic'], include_original_limit=0)}",
            )
        )
        return {"prediction": searcher.answer(question["text"], found), "context": context}


def _settled(base: type) -> type:
    """Return the authors' memory; its wait for facts ends when the last are stored."""

    class Settled(base):
        def wait_for_semantic(self, user_id: str, timeout: float = 30.0) -> bool:
            done = super().wait_for_semantic(user_id, timeout=timeout)
            self._memory_system._semantic_generation_executor.submit(lambda: None).result()
            return done

    return Settled
