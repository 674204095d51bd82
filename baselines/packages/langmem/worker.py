"""langmem 0.0.30 as a worker: https://github.com/langchain-ai/langmem, `create_memory_store_manager` in memory.

Settings:
    message: how a turn is shown to the manager, with {date} and {line}; ``message_undated`` with {line} alone.
    llm: temperature, and max_tokens of a reply.
    query_limit: memories that the manager is shown besides the new messages.
    inserts, deletes: what the manager may do besides updates.
    max_steps: rounds in which it may change memories.

Every memory is changed by a tool call, so that the backbone has to be served with tools: one that never calls a tool
leaves the memory empty. What a write did is found by the keys of the store, which are LangMem's own ids.
"""

import asyncio
import json
import os
from importlib.metadata import version

NAMESPACE = ("memories",)
#: Of clients: the run itself waits and tries again.
PATIENT = {"timeout": None, "max_retries": 0}


class Worker:
    """One ``MemoryStoreManager`` and its ``InMemoryStore``."""

    lineage = "changes"

    def __init__(self, opening):
        os.environ["LANGSMITH_TRACING"] = "false"
        self._settings = opening["settings"]
        self._loop = asyncio.new_event_loop()
        self._store, self._manager = self._loop.run_until_complete(_open(opening))

    def describe(self):
        """Name and version."""
        return {"package": "langmem", "version": version("langmem")}

    def add(self, unit):
        """Let the manager read the turns; memories are compared with those before."""
        before = self._stored()
        messages = [{"role": "user", "content": self._message(turn)} for turn in unit["turns"]]
        given = {"messages": messages, "max_steps": self._settings["max_steps"]}
        self._loop.run_until_complete(self._manager.ainvoke(given, {"max_concurrency": 1}))
        after = self._stored()
        changes = [(key, "update" if key in before else "add") for key in after if after[key] != before.get(key)]
        changes += [(key, "delete") for key in before if key not in after]
        return [{"memory_id": key, "change": change} for key, change in changes]

    def _message(self, turn):
        form = self._settings["message"] if turn["date"] else self._settings["message_undated"]
        return form.format(date=turn["date"], line=turn["line"])

    def _stored(self):
        """Return values by key, in the order in which they came."""
        return {item.key: item.value for item in self._store.search(NAMESPACE, limit=1_000_000)}

    def retrieve(self, query, k):
        """Search the store; nothing is found for an empty query."""
        if not query.strip():
            return []
        found = self._loop.run_until_complete(self._store.asearch(NAMESPACE, query=query, limit=k))
        return [{"memory_id": item.key, "text": _text(item.value), "score": item.score, "date": ""} for item in found]

    def export(self):
        """Return all memories."""
        return [
            {"memory_id": key, "text": _text(value), "kind": value["kind"]} for key, value in self._stored().items()
        ]


def _text(value):
    """Return the content of a memory; that of LangMem's own schema is one text."""
    content = value["content"]
    return content["content"] if set(content) == {"content"} else json.dumps(content, ensure_ascii=False)


async def _open(opening):
    """Open the store and the manager, which use the run's backbone and embedder."""
    from langchain_core.embeddings import Embeddings
    from langchain_openai import ChatOpenAI, OpenAIEmbeddings
    from langgraph.store.memory import InMemoryStore
    from langmem import create_memory_store_manager

    class OneByOne(Embeddings):
        """Memories that are written together come into the store in the order of the writes, in a replay as well."""

        def __init__(self, embeddings):
            self._embeddings, self._lock = embeddings, asyncio.Lock()

        async def aembed_documents(self, texts):
            async with self._lock:
                return await self._embeddings.aembed_documents(texts)

        async def aembed_query(self, text):
            async with self._lock:
                return await self._embeddings.aembed_query(text)

        def embed_documents(self, texts):
            return self._embeddings.embed_documents(texts)

        def embed_query(self, text):
            return self._embeddings.embed_query(text)

    served, settings = opening["llm"], opening["settings"]
    access = {"model": served["model"], "base_url": served["base_url"], "api_key": served["api_key"], **PATIENT}
    vectors = OpenAIEmbeddings(check_embedding_ctx_length=False, **access)  # texts, not token ids of another model
    store = InMemoryStore(index={"dims": opening["embedder"]["dimension"], "embed": OneByOne(vectors)})
    manager = create_memory_store_manager(
        ChatOpenAI(**settings["llm"], **access),
        enable_inserts=settings["inserts"],
        enable_deletes=settings["deletes"],
        query_limit=settings["query_limit"],
        namespace=NAMESPACE,
        store=store,
    )
    return store, manager
