"""The graph of Mem0g: entities of one scope, and the relations between them that texts have stated."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar

from baselines.mem0.roles import TEXTS
from memsys.embedding.contract import Vectors
from memsys.facts.batches import batch_date, batch_turn_ids
from memsys.index.vector import SCORE_DECIMALS, VectorIndex
from memsys.scripts import without_punctuation
from memsys.settings import check_choices, check_cosines, check_flags, check_minimum
from memsys.vocabulary import Hit, Json, Unit

GraphUse = Literal["none", "written", "read"]
Removal = Literal["soft", "hard"]

#: Type of an entity that a relation names and the entity extraction does not.
UNTYPED = "__User__"

T = TypeVar("T", "Entity", "Edge")


@dataclass(frozen=True, slots=True)
class EntityGraphRules:
    """Settings of writing and reading the graph.

    Attributes:
        use: ``none`` for Mem0; ``written`` keeps a graph that no question reads (SAGE's runs of Mem0g); ``read`` shows
            its relations to the reader too.
        search_similarity: least cosine of an entity's name and a node's, for the node's edges to be found.
        merge_similarity: least cosine at which a name is taken for the nearest node's.
        near_edges: edges found around one name.
        results: relations shown per scope.
        removal: ``soft`` marks a contradicted edge as no longer valid (paper), ``hard`` removes it (code up to 1.0).
        include_invalid: whether questions find edges that are no longer valid.
        split_underscores: whether the ranking of relations sees the words of a name; else, as in the code, a name is
            one token, the question is split at its blanks, and most relations tie.
    """

    use: GraphUse
    search_similarity: float
    merge_similarity: float
    near_edges: int
    results: int
    removal: Removal
    include_invalid: bool
    split_underscores: bool

    def __post_init__(self) -> None:
        check_choices(self, "memory.graph", use=GraphUse, removal=Removal)
        check_minimum(self, "memory.graph", near_edges=1, results=1)
        check_flags(self, "memory.graph", "include_invalid", "split_underscores")
        check_cosines(self, "memory.graph", "search_similarity", "merge_similarity")

    @property
    def kept(self) -> bool:
        """Whether there is a graph."""
        return self.use != "none"


def entity_name(text: str) -> str:
    """Write an entity's name or type as the graph does: lower case, an underscore for blanks."""
    return "_".join(text.lower().split())


def relation_name(text: str) -> str:
    """Write a relation's name as the graph does: letters, digits and underscores."""
    return re.sub(r"\s+", "_", without_punctuation(text.lower()).strip()).strip("_")


@dataclass(frozen=True, slots=True)
class Triple:
    """A relation that a text states, all names as the graph writes them."""

    source: str
    relation: str
    destination: str

    @property
    def text(self) -> str:
        """One line."""
        return f"{self.source} -- {self.relation} -- {self.destination}"


@dataclass(slots=True)
class Entity:
    """An entity. ``mentions`` counts the stated relations that named it."""

    name: str
    kind: str
    created: str
    mentions: int = 0


@dataclass(slots=True)
class Edge:
    """A relation with the dates of the batches that stated it first and last and that contradicted it."""

    source: str
    relation: str
    destination: str
    created: str
    updated: str
    turn_ids: tuple[str, ...]
    mentions: int = 0
    invalidated: str = ""
    valid: bool = True

    @property
    def triple(self) -> Triple:
        """The relation alone."""
        return Triple(self.source, self.relation, self.destination)

    @property
    def line(self) -> str:
        """The relation as the reader sees it."""
        text = self.triple.text
        return text if self.valid else TEXTS("invalid", relation=text, date=self.invalidated or TEXTS("unknown_time"))

    def hit(self, owner: str, score: float) -> Hit:
        """Return the relation as a retrieved memory."""
        text = self.triple.text
        return Hit(text=text, score=score, turn_ids=self.turn_ids, memory_id=f"{owner}#{text}")


class EntityGraph:
    """Nodes by name and edges by triple, both oldest first; one vector, of its name, per node.

    Args:
        dimension: length of a vector.
        rules: see :class:`EntityGraphRules`.
    """

    def __init__(self, dimension: int, rules: EntityGraphRules) -> None:
        self._rules = rules
        self._index = VectorIndex(dimension)
        self.nodes: dict[str, Entity] = {}
        self.edges: dict[Triple, Edge] = {}
        #: edges of a node: those that leave it, then those that reach it
        self._out: dict[str, dict[Triple, None]] = {}
        self._in: dict[str, dict[Triple, None]] = {}

    def around(self, vectors: Iterable[Vectors], *, invalid: bool = False) -> list[Edge]:
        """Find the edges of the nodes that are like any of the names.

        Args:
            vectors: embeddings (d,) of the names.
            invalid: whether edges that are no longer valid are found too.

        Returns:
            Each edge once, in the order it is first seen: name by name, nearest node first.
        """
        found: dict[Triple, Edge] = {}
        for vector in vectors:
            rows = [
                self.edges[triple]
                for name, _ in self._like(vector, self._rules.search_similarity, len(self._index))
                for triple in (*self._out[name], *self._in[name])
                if invalid or self.edges[triple].valid
            ]
            found.update((edge.triple, edge) for edge in rows[: self._rules.near_edges])
        return list(found.values())

    def merge(self, triple: Triple, kinds: Mapping[str, str], vectors: Mapping[str, Vectors], unit: Unit) -> None:
        """Store a stated relation: its entities are the nodes nearest to them, if near enough, or new ones.

        An edge that is there already is mentioned once more, and is valid again.

        Args:
            triple: the relation.
            kinds: type by name.
            vectors: embedding (d,) by name.
            unit: the batch.
        """
        ends = [self._resolved(name, vectors[name]) for name in (triple.source, triple.destination)]
        for name, stated in zip(ends, (triple.source, triple.destination), strict=True):
            if name not in self.nodes:
                self._index.add([name], vectors[stated][None])
                self.nodes[name] = Entity(name, kinds.get(stated, UNTYPED), batch_date(unit))
                self._out[name], self._in[name] = {}, {}
            self.nodes[name].mentions += 1
        self._state_edge(Triple(ends[0], triple.relation, ends[1]), unit)

    def remove(self, triple: Triple, unit: Unit) -> bool:
        """Take a relation back, as a batch contradicts it; returns whether there was one that held."""
        edge = self.edges.get(triple)
        if edge is None or not edge.valid:
            return False
        if self._rules.removal == "soft":
            edge.valid, edge.invalidated = False, batch_date(unit)
        else:
            del self.edges[triple], self._out[triple.source][triple], self._in[triple.destination][triple]
        return True

    def _state_edge(self, triple: Triple, unit: Unit) -> None:
        date, turn_ids = batch_date(unit), batch_turn_ids(unit)
        edge = self.edges.get(triple)
        if edge is None:
            edge = Edge(triple.source, triple.relation, triple.destination, date, date, turn_ids)
            self._link(edge)
        edge.mentions += 1
        edge.updated, edge.valid, edge.invalidated = date, True, ""
        edge.turn_ids = tuple(dict.fromkeys((*edge.turn_ids, *turn_ids)))

    def _link(self, edge: Edge) -> None:
        self.edges[edge.triple] = edge
        self._out[edge.source][edge.triple] = None
        self._in[edge.destination][edge.triple] = None

    def _resolved(self, name: str, vector: Vectors) -> str:
        near = self._like(vector, self._rules.merge_similarity, 1)
        return near[0][0] if near else name

    def _like(self, vector: Vectors, least: float, count: int) -> list[tuple[str, float]]:
        found = self._index.search(vector, count)
        return [(name, score) for name, score in found if round(score - least, SCORE_DECIMALS) >= 0]

    def sizes(self) -> dict[str, Json]:
        """Count nodes and edges."""
        invalid = sum(not edge.valid for edge in self.edges.values())
        return {"nodes": len(self.nodes), "edges": len(self.edges) - invalid, "invalid_edges": invalid}

    def state(self) -> dict[str, Any]:
        """Return the snapshot."""
        return {
            "nodes": [_row(node) for node in self.nodes.values()],
            "edges": [_row(edge) for edge in self.edges.values()],
            "index": self._index.state(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a snapshot."""
        self.nodes = {entry["name"]: Entity(**entry) for entry in state["nodes"]}
        self._out, self._in = {name: {} for name in self.nodes}, {name: {} for name in self.nodes}
        self.edges = {}
        for entry in state["edges"]:
            self._link(Edge(**{**entry, "turn_ids": tuple(entry["turn_ids"])}))
        self._index.load_state(state["index"])


def _row(item: T) -> dict[str, Json]:
    row = {each.name: getattr(item, each.name) for each in fields(item)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in row.items()}
