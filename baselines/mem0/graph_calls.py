"""Mem0g's calls (entities of a text, their relations, relations that a text contradicts) and its search."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from baselines.mem0.graph import Edge, EntityGraph, EntityGraphRules, Triple, entity_name, relation_name
from baselines.mem0.roles import TEXTS
from memsys.embedding.contract import Embedder, Vectors
from memsys.facts.batches import subject
from memsys.index.bm25 import BM25Index
from memsys.index.words import warn_of_joined_words, words
from memsys.llm.contract import LanguageModel, Reply, Role
from memsys.seeding import question_key
from memsys.turns import TurnFormat
from memsys.vocabulary import Json, Unit


@dataclass(frozen=True, slots=True)
class ExtractedTriples:
    """Statements of a batch for one scope.

    Attributes:
        text: its messages without roles.
        kinds: type by name of entity.
        triples: relations.
        vectors: embedding (d,) by name, of every entity and of both ends of every relation.
        replies: by role, for the counts.
    """

    text: str
    kinds: Mapping[str, str]
    triples: tuple[Triple, ...]
    vectors: Mapping[str, Vectors]
    replies: Mapping[str, Reply]


@dataclass(frozen=True, slots=True)
class GraphCalls:
    """Asks for what one scope's graph needs. A malformed reply counts as an empty one, as in Mem0."""

    llm: LanguageModel
    embedder: Embedder
    roles: Mapping[str, Role]
    owner: str

    async def stated(self, unit: Unit, turn_format: TurnFormat) -> ExtractedTriples:
        """List a batch's entities and relations with two calls, which depend on the batch alone."""
        text, key = "\n".join(turn_format.render(turn) for turn in unit.turns), f"{unit.unit_id}:{self.owner}"
        kinds, entities = await self._entities(text, key)
        values = {"owner": subject(self.owner), "entities": ", ".join(kinds) or TEXTS("nothing"), "text": text}
        relations = await self.llm.ask(self.roles["relations"], values, key=key)
        triples = triples_of(relations.value["entities"] if relations.value is not None else [])
        ends = (name for triple in triples for name in (triple.source, triple.destination))
        names = list(dict.fromkeys((*kinds, *ends)))
        vectors = dict(zip(names, await self.embedder.embed(names), strict=True))
        return ExtractedTriples(text, kinds, triples, vectors, {"entities": entities, "relations": relations})

    async def contradicted(
        self, edges: Sequence[Edge], stated: ExtractedTriples, key: str
    ) -> tuple[tuple[Triple, ...], Reply]:
        """Ask which relations a batch contradicts, also where there is none that it could."""
        lines = "\n".join(edge.triple.text for edge in edges) or TEXTS("nothing")
        values = {"owner": subject(self.owner), "relations": lines, "text": stated.text}
        reply = await self.llm.ask(self.roles["delete"], values, key=key)
        return triples_of(reply.value["relations"] if reply.value is not None else []), reply

    async def found(
        self, graph: EntityGraph, question: str, rules: EntityGraphRules
    ) -> tuple[list[tuple[Edge, float]], bool]:
        """Find the relations for a question, best first, with one call; returns whether its reply was malformed."""
        key = f"{question_key(question)}:{self.owner}"
        kinds, reply = await self._entities(question, key)
        vectors = await self.embedder.embed(list(kinds))
        return ranked(graph.around(vectors, invalid=rules.include_invalid), question, rules), reply.malformed

    async def _entities(self, text: str, key: str) -> tuple[dict[str, str], Reply]:
        reply = await self.llm.ask(self.roles["entities"], {"owner": subject(self.owner), "text": text}, key=key)
        items = reply.value["entities"] if reply.value is not None else []
        named = {entity_name(item["entity"]): entity_name(item["entity_type"]) for item in items}
        return {name: kind for name, kind in named.items() if name}, reply


def triples_of(items: Sequence[Mapping[str, Json]]) -> tuple[Triple, ...]:
    """Read relations; those that lack a name are left out."""
    triples = (
        Triple(entity_name(item["source"]), relation_name(item["relationship"]), entity_name(item["destination"]))
        for item in items
    )
    return tuple(triple for triple in triples if triple.source and triple.relation and triple.destination)


def ranked(edges: Sequence[Edge], question: str, rules: EntityGraphRules) -> list[tuple[Edge, float]]:
    """Rank relations by BM25 over their three names and keep the best; ties in the order given.

    Source: mem0 ``graph_memory.py``, ``search``; there ties come in the order of a sort that is not stable.
    """

    def tokens(text: str) -> list[str]:
        if rules.split_underscores:
            return words(text.replace("_", " "))
        warn_of_joined_words("mem0's graph search, which memory.graph.split_underscores=false takes over", text)
        return text.split()

    index = BM25Index(tokenise=tokens)
    texts = [" ".join((edge.source, edge.relation, edge.destination)) for edge in edges]
    index.add([str(place) for place in range(len(edges))], texts)
    return [(edges[int(place)], score) for place, score in index.search(question, rules.results)]


@dataclass(frozen=True, slots=True)
class GraphWrite:
    """Effect of a write on a graph: the reply about contradictions, relations taken back, and named but absent ones."""

    reply: Reply
    removed: int
    unknown: int


async def write_graph(graph: EntityGraph, calls: GraphCalls, stated: ExtractedTriples, unit: Unit) -> GraphWrite:
    """Take back what a batch contradicts (one call), then store what it states."""
    near = graph.around(stated.vectors[name] for name in stated.kinds)
    triples, reply = await calls.contradicted(near, stated, f"{unit.unit_id}:{calls.owner}")
    removed = sum([graph.remove(triple, unit) for triple in triples])
    for triple in stated.triples:
        graph.merge(triple, stated.kinds, stated.vectors, unit)
    return GraphWrite(reply, removed, len(triples) - removed)
