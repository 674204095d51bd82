"""A memory of one's own conversation, for programs with an event loop."""

import asyncio
import logging
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from eval.api.parts import MemoryParts, choose
from eval.running.backbones import Opening, open_backbone
from eval.running.ingestion import ConversationIngestion
from eval.running.reader import Answer, ReaderConfig, own_answer
from eval.running.schedule import Schedule
from memsys.dates import parse_date
from memsys.embedding.contract import Embedder
from memsys.errors import ConfigError
from memsys.llm.config import BackboneConfig
from memsys.llm.contract import LanguageModel
from memsys.llm.ledger import CallRecord
from memsys.llm.none import NoBackbone
from memsys.llm.scope import CallScope, call_scope
from memsys.protocol import MemoryConfig, MemorySystem, NeedsAssets, Parts, close_memory
from memsys.protocol_checks import build_memory, check_retrieval, finished
from memsys.vocabulary import Conversation, Question, Reference, Retrieval, Sample, Turn

logger = logging.getLogger(__name__)

#: A turn as a program has it: a :class:`Turn`, ``(speaker, text)``, ``(speaker, text, date)``, or a message of a chat.
TurnLike = Turn | Sequence[str] | Mapping[str, str]

#: What is said to a program that asks before ``with`` opens the memory, or after it is closed.
NOT_OPEN = "the memory is not open; use it in `with open_memory(...) as memory`, before that block ends"

_CONVERSATION = "conversation"
#: LoCoMo's number of a plain question about one thing that was said.
_PLAIN_QUESTION = 4


class AsyncMemory:
    """One memory over one conversation: ``async with open_async_memory("rag", backbone=None) as memory``.

    The memory is built when it is first asked. Turns that are added afterwards make it build again over the whole
    conversation: a system is defined by what it does with a conversation from its beginning.

    Attributes:
        calls: every call of the backbone so far.
    """

    def __init__(self, chosen: MemoryParts, *, seed: int = 0, cache_dir: str | Path | None = None) -> None:
        self.calls: list[CallRecord] = []
        self._chosen, self._seed, self._cache_dir = chosen, seed, Path(cache_dir) if cache_dir else None
        self._stack = AsyncExitStack()
        self._logs: Path | None = None
        self._llm: LanguageModel | None = None
        self._turns: list[Turn] = []
        self._sessions = self._questions = 0
        self._built: MemorySystem | None = None
        self._turns_built = 0
        self._building = asyncio.Lock()
        self._users: Counter[int] = Counter()  # questions under way, by the memory's id
        self._reader = chosen.reader.build(seed)

    async def __aenter__(self) -> "AsyncMemory":
        """Open the backbone, whose settings follow what its server takes, as in a run.

        Raises:
            MemsysError: a model is missing, a server cannot be reached or does not take a setting that was given.
        """
        if isinstance(self._chosen.memory, NeedsAssets):
            self._chosen.memory.check_assets()
        self._logs = logs = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="memsys-logs-")))
        self._llm = await self._open_backbone(logs)
        self._stack.push_async_callback(self._close_built)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the memory and the backbone."""
        self._llm = None
        await self._stack.aclose()

    def add(self, turns: Iterable[TurnLike]) -> None:
        """Add turns to the end of the conversation; those of one call are one session.

        Args:
            turns: each a ``Turn``, a sequence of speaker, text and, if known, date and time, or a message of a chat:
                ``{"role": "user", "content": "..."}``. A date that cannot be read is warned of.

        Raises:
            ConfigError: a turn has another form, or its id is taken.
        """
        if isinstance(turns, str | bytes | Mapping) or not isinstance(turns, Iterable) or _is_one_turn(turns):
            raise ConfigError(f"add() takes a list of turns, such as [('Ann', 'My cat is Pixel.')], not {turns!r}")
        known = {turn.turn_id for turn in self._turns}
        added = []
        for number, given in enumerate(turns, start=1):
            turn = given if isinstance(given, Turn) else _turn(given, self._sessions + 1, number)
            if turn.turn_id in known:
                raise ConfigError(f"turn id {turn.turn_id!r} is taken; ids are unique in a conversation")
            known.add(turn.turn_id)
            added.append(turn)
        if unread := sorted(
            {turn.date_time for turn in added if turn.date_time and parse_date(turn.date_time) is None}
        ):
            logger.warning(
                "dates that cannot be parsed, such as %r, are shown as written and not used for ordering; write "
                "2024-05-08T13:56", unread[0],
            )  # fmt: skip
        self._turns += added
        self._sessions += 1

    async def retrieve(self, query: str) -> Retrieval:
        """Find what helps to answer a query: memories best first, and the text that a reader would see.

        Raises:
            MemsysError: the query is not text, the memory needs a backbone and has none, or the backbone failed.
        """
        if not isinstance(query, str) or not query.strip():
            raise ConfigError(f"a question or query must be a non-empty text, not {query!r}")
        async with self._borrowed() as memory:
            call_scope.set(CallScope("retrieve", query))
            given = await finished(memory, "retrieve", memory.retrieve(query))
            return check_retrieval(self._chosen.memory.name, given, {turn.turn_id for turn in self._turns}, repr(query))

    async def answer(self, question: str) -> Answer:
        """Answer a question from the memory; the reader is asked unless the memory answers itself, as in a run.

        Raises:
            MemsysError: there is no backbone, or it failed.
        """
        if self._chosen.backbone is None:
            raise ConfigError("answers need a backbone: name one in open_memory(..., backbone=...), or use retrieve()")
        retrieval = await self.retrieve(question)
        self._questions += 1
        if retrieval.answer is not None:
            return own_answer(retrieval.answer)
        asked = Question(f"q{self._questions}", _CONVERSATION, question, _PLAIN_QUESTION)
        call_scope.set(CallScope("answer", asked.question_id))
        assert self._llm is not None
        return await self._reader.answer(self._llm, asked, Reference(asked.question_id, ()), retrieval.context)

    async def statistics(self) -> Mapping[str, Any]:
        """Return the statistics of building the memory: sizes, causes, fallbacks."""
        async with self._borrowed() as memory:
            return memory.statistics()

    async def _memory(self) -> MemorySystem:
        if self._llm is None:
            raise ConfigError(NOT_OPEN)
        if not self._turns:
            raise ConfigError("the conversation is empty; add turns before asking")
        async with self._building:  # one memory is built at a time: who asks meanwhile waits
            if self._built is None or self._turns_built != len(self._turns):
                await self._close_built()
                await self._build(self._llm)
            assert self._built is not None
            return self._built

    @asynccontextmanager
    async def _borrowed(self) -> AsyncIterator[MemorySystem]:
        """Give the memory of the turns so far; a replaced one is closed when its last question ends."""
        memory = await self._memory()
        self._users[id(memory)] += 1
        try:
            yield memory
        finally:
            self._users[id(memory)] -= 1
            if memory is not self._built and not self._users[id(memory)]:
                await close_memory(memory)

    async def _close_built(self) -> None:
        """Close the memory of the turns so far, which may be a process of its own, unless a question is asked of it."""
        memory, self._built = self._built, None
        if memory is not None and not self._users[id(memory)]:
            await close_memory(memory)

    async def _build(self, llm: LanguageModel) -> None:
        chosen = self._chosen
        parts = Parts(_CONVERSATION, llm, chosen.embedder, self._seed, log_dir=self._logs)
        memory = build_memory(chosen.memory, parts)
        self._built, self._turns_built = memory, 0
        turns = tuple(self._turns)  # of now: more may be added while they are written
        speakers = tuple(dict.fromkeys(turn.speaker for turn in turns))
        sample = Sample(Conversation(_CONVERSATION, turns, speakers), (), {})
        nothing: Any = _Nothing()
        await ConversationIngestion(
            sample, memory, Schedule(checkpoint_every=0), nothing, nothing, time.perf_counter
        ).run()
        self._turns_built = len(turns)

    async def _open_backbone(self, logs: Path) -> LanguageModel:
        backbone = self._chosen.backbone
        if backbone is None:
            return NoBackbone(self._chosen.memory.name)
        if not isinstance(backbone, BackboneConfig):
            return backbone
        from memsys.llm.cache import ReplyCache

        engine, folder = backbone.engine.build(), self._cache_dir
        self._stack.callback(engine.stop)
        opening = Opening(
            seed=self._seed,
            log_dir=logs,
            on_call=self.calls.append,
            make_cache=lambda: ReplyCache(folder, shared=True) if folder else None,
            known_servers=folder or logs,
            tell=logger.info,
        )
        opened, _ = await self._stack.enter_async_context(open_backbone(backbone, engine, opening))
        return opened.bind(_CONVERSATION)


class _Nothing:
    """No snapshots, no display."""

    def load(self, conversation_id: str) -> None:
        """Return nothing: no snapshot was stored."""

    def save(self, conversation_id: str, snapshot: object) -> None:
        """Do nothing: no snapshot is stored."""

    def restored(self, turns: int) -> None:
        """Do nothing: no progress is shown."""

    def wrote(self, turns: int, seconds: float) -> None:
        """Do nothing: no progress is shown."""


def open_async_memory(
    memory: str | MemoryConfig,
    *,
    backbone: str | BackboneConfig | LanguageModel | None,
    embedder: str | Embedder = "minilm",
    reader: str | ReaderConfig = "sage",
    settings: Sequence[str] = (),
    cache_dir: str | Path | None = None,
) -> AsyncMemory:
    """Make a memory that is opened by ``async with``.

    Args:
        memory: a preset of ``conf/memory``, as ``memory=`` takes it, or a config object.
        backbone: a preset of ``conf/backbone``, settings as :func:`endpoint` makes them, an open model, or ``None``
            for memories that need none.
        embedder: a preset of ``conf/embedder``, or an object.
        reader: a preset of ``conf/reader``, or settings: how :meth:`AsyncMemory.answer` asks.
        settings: as on the command line, for instance ``["memory.k=5", "seed=1"]``.
        cache_dir: folder of replies and of what servers take, so that nothing is asked twice; ``None`` keeps none.

    Raises:
        ConfigError: a name or a setting does not exist; says what may have been meant.
    """
    if cache_dir is not None and Path(cache_dir).is_file():
        raise ConfigError(f"cache_dir={cache_dir} is a file; name a folder")
    chosen = choose(memory, backbone, embedder, reader, settings)
    return AsyncMemory(chosen, seed=_seed(settings), cache_dir=cache_dir)


def _seed(settings: Sequence[str]) -> int:
    given = [text.partition("=")[2] for text in settings if text.startswith("seed=")]
    if given and not given[-1].isdigit():
        raise ConfigError(f"seed={given[-1]!r} must be a whole number")
    return int(given[-1]) if given else 0


def _is_one_turn(turns: object) -> bool:
    return isinstance(turns, tuple) and bool(turns) and isinstance(turns[0], str)


def _turn(given: Sequence[str] | Mapping[str, str], session: int, number: int) -> Turn:
    if isinstance(given, Mapping) and {"role", "content"} <= given.keys():
        given = (given["role"], given["content"])
    fits = isinstance(given, list | tuple) and 2 <= len(given) <= 3 and all(isinstance(part, str) for part in given)
    if not fits:
        raise ConfigError(
            "a turn is (speaker, text), (speaker, text, date) or {'role': speaker, 'content': text}, all of them "
            f"texts, not {given!r}"
        )
    assert not isinstance(given, Mapping)
    if not given[1].strip():
        raise ConfigError(f"turn {number} of what is added, {given!r}, has no text; leave it out")
    turn = Turn(f"S{session}:{number}", f"S{session}", given[0], given[1])
    return replace(turn, date_time=given[2]) if len(given) == 3 else turn
