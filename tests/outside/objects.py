"""Real objects of LangChain, LlamaIndex and Mem0, each over the models that memsys lends."""

import os
import tempfile
from typing import Any

from openai import OpenAI


def vectors(base_url: str, texts: list[str]) -> list[list[float]]:
    """Vectors of texts by the run's embedder."""
    client = OpenAI(base_url=base_url, api_key="unused")
    return [one.embedding for one in client.embeddings.create(model="memsys", input=texts).data]


def langchain(base_url: str) -> Any:
    """A vector store of LangChain."""
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    class Lent(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return vectors(base_url, texts)

        def embed_query(self, text: str) -> list[float]:
            return vectors(base_url, [text])[0]

    return InMemoryVectorStore(Lent())


def llama_index(base_url: str) -> Any:
    """An index of LlamaIndex."""
    from llama_index.core import VectorStoreIndex
    from llama_index.core.embeddings import BaseEmbedding

    class Lent(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return vectors(base_url, [text])[0]

        def _get_query_embedding(self, query: str) -> list[float]:
            return vectors(base_url, [query])[0]

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_query_embedding(query)

    return VectorStoreIndex.from_documents([], embed_model=Lent())


def mem0(base_url: str, dimension: int) -> Any:
    """A memory of Mem0 over Qdrant in this process."""
    os.environ["MEM0_TELEMETRY"] = "False"
    folder = tempfile.mkdtemp(prefix="memsys-mem0-")
    os.environ["MEM0_DIR"] = folder
    from mem0 import Memory

    access = {"model": "memsys", "api_key": "unused", "openai_base_url": base_url}
    store = {"embedding_model_dims": dimension, "path": f"{folder}/qdrant", "collection_name": "memories"}
    return Memory.from_config(
        {
            "llm": {"provider": "openai", "config": {**access, "temperature": 0.0, "max_tokens": 300}},
            "embedder": {"provider": "openai", "config": {**access, "embedding_dims": dimension}},
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": f"{folder}/history.db",
        }
    )
