"""The memory protocol: what a memory system is, and what it is given.

A run makes one memory per conversation. The runner cuts the conversation into units, starts ``prepare`` for several
units ahead (any order, any concurrency), calls ``write`` strictly in order, then ``consolidate`` once, and only then
``retrieve``, for many questions at once. Results must not depend on how far ahead ``prepare`` ran.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from memsys.embedding.contract import Embedder
from memsys.llm.contract import LanguageModel
from memsys.turns import TurnFormat
from memsys.vocabulary import Conversation, Json, Retrieval, Unit

#: Result of ``prepare``; each system has its own type, which only its ``write`` reads.
Prepared = Any

#: Snapshot of a memory: JSON values, with numpy arrays allowed anywhere in the tree as leaves.
State = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts that the harness gives to a memory of one conversation.

    Attributes:
        conversation_id: names the conversation; part of every seed.
        llm: the backbone, already bound to this conversation (seeds, ledger, cache).
        embedder: shared by all conversations; batches across them.
        seed: the run's seed. Derive generators with :func:`memsys.seeding.generator`.
        turn_format: how a turn becomes text, the same for every system of a run.
        gold_evidence: question text -> gold turn ids; ``None`` unless the system's config says ``uses_gold: true``.
        log_dir: of the run, for what processes of the memory write; ``None`` where there is no run.
    """

    conversation_id: str
    llm: LanguageModel
    embedder: Embedder
    seed: int
    turn_format: TurnFormat = field(default_factory=TurnFormat)
    gold_evidence: Mapping[str, Sequence[str]] | None = None
    log_dir: Path | None = None


@runtime_checkable
class MemorySystem(Protocol):
    """A memory of one conversation."""

    def units(self, conversation: Conversation) -> Sequence[Unit]:
        """Cut the conversation into what one write ingests. Pure; called once before the first write."""

    async def prepare(self, unit: Unit) -> Prepared:
        """Do the work that depends on the unit alone: note construction, denoising, fact extraction."""

    async def write(self, unit: Unit, prepared: Prepared) -> None:
        """Do the work that depends on the store: routing, evolution, merging. Called strictly in order."""

    async def consolidate(self) -> None:
        """Finish once the stream has ended."""

    async def retrieve(self, query: str) -> Retrieval:
        """Find what helps to answer ``query``. Must not change what a later query sees."""

    def state(self) -> State:
        """Return the full snapshot: memories, vectors, links, counters, generators."""

    def load_state(self, state: State) -> None:
        """Restore a snapshot taken by :meth:`state`; afterwards both memories behave alike."""

    def statistics(self) -> Mapping[str, Json]:
        """Count what happened in this memory (sizes, causes, fallbacks), for the run's record."""


class MemoryConfig(Protocol):
    """Every preset of ``conf/memory`` instantiates to one of these: a frozen dataclass of hyperparameters."""

    @property
    def name(self) -> str:
        """Name of the preset, as tables show it."""

    @property
    def uses_gold(self) -> bool:
        """Whether the system is a reference that may see gold evidence (oracle)."""

    def build(self, parts: Parts) -> MemorySystem:
        """Make the empty memory of one conversation."""


@runtime_checkable
class NeedsAssets(Protocol):
    """A config whose memory needs more than the embedder and the backbone: asked before anything runs."""

    def check_assets(self) -> None:
        """Make sure that packages and models are there.

        Raises:
            AssetError: something is missing; says what, and how to get it.
        """


@runtime_checkable
class DeclaresEmbedding(Protocol):
    """A config that says whether its memory ever embeds a text; without it, the embedder's model is loaded."""

    @property
    def embeds(self) -> bool:
        """Whether the embedder's model has to be loaded."""


@runtime_checkable
class CountsTokens(Protocol):
    """A config that says whether its memory counts tokens with the backbone, which it then needs as one that calls."""

    @property
    def counts_tokens(self) -> bool:
        """Whether it does so, for any turn or question."""


@runtime_checkable
class MayAnswer(Protocol):
    """A config whose memory may answer questions itself (:attr:`memsys.vocabulary.Retrieval.answer`)."""

    @property
    def answers(self) -> bool:
        """Whether it does so; the reader is then asked only where the memory has no answer."""


@runtime_checkable
class ResumesSlowly(Protocol):
    """A memory for which restoring a snapshot is work, such as writing all of it again into a new process."""

    async def resume(self) -> None:
        """Do that work; called after :meth:`MemorySystem.load_state`, so that no step that is timed has to do it."""


async def resume_memory(memory: object) -> None:
    """Do what is left to do of restoring a memory, if there is anything."""
    if isinstance(memory, ResumesSlowly):
        await memory.resume()


@runtime_checkable
class HoldsResources(Protocol):
    """A memory that holds a process, a file or a connection."""

    async def close(self) -> None:
        """Give them back; called when the conversation is done, has failed, or the run is interrupted."""


async def close_memory(memory: object) -> None:
    """Close a memory, if there is anything to close."""
    if isinstance(memory, HoldsResources):
        await memory.close()


class BaseMemory:
    """Defaults for the parts of the protocol that most systems do not need."""

    def units(self, conversation: Conversation) -> Sequence[Unit]:
        """Return one unit per turn."""
        return [Unit(unit_id=turn.turn_id, turns=(turn,)) for turn in conversation.turns]

    async def prepare(self, unit: Unit) -> Prepared:
        """Do nothing by default: the system prepares no units."""
        return None

    async def consolidate(self) -> None:
        """Do nothing by default: the system has no final step."""

    def statistics(self) -> Mapping[str, Json]:
        """Return no statistics by default."""
        return {}
