"""The runner: one event loop that ingests every conversation, answers every question and books every call.

Within a conversation ``prepare`` runs ahead of ``write`` within a bound, writes stay in order, and questions start
once the memory is consolidated; conversations and questions share the backbone's slots, which are limited in the
client alone. Nothing here depends on timing, so workers and look-ahead cannot move a result.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eval.running.clocks import Clock, ConversationClock
from eval.running.progress import ProgressListener
from eval.running.reader import Answer, Reader
from eval.runs.records import AnswerRecord, ConversationRecord, HitRecord, RetrievalRecord
from eval.runs.rundir import RunDirectory
from eval.runs.snapshots import Snapshot, Snapshots
from memsys.embedding.contract import Embedder
from memsys.errors import BackboneError, RunDirectoryError, WorkerError
from memsys.llm.client import CompletedAttempt
from memsys.llm.contract import LanguageModel, Reply, Role
from memsys.llm.foreign import ForeignCall, complete
from memsys.llm.scope import CallScope, call_scope
from memsys.protocol import MemoryConfig, MemorySystem, Parts, close_memory
from memsys.settings import check_minimum
from memsys.turns import TurnFormat
from memsys.vocabulary import Question, Reference, Retrieval, Sample, Unit


@dataclass(frozen=True, slots=True)
class Schedule:
    """How the work is spread; none of it changes a result.

    Attributes:
        conversations_in_flight: conversations worked on at once; 0 for all.
        questions_in_flight: questions of the whole run worked on at once.
        prepare_ahead: units of a conversation whose ``prepare`` may run before their turn to be written.
        checkpoint_every: units between two memory snapshots; 0 for a snapshot at the end alone.
        latency: one request at a time, fresh replies for questions, the first ``warmup`` questions asked once before.
        warmup: questions whose first, discarded round warms server and embedder.
    """

    conversations_in_flight: int = 0
    questions_in_flight: int = 64
    prepare_ahead: int = 32
    checkpoint_every: int = 100
    latency: bool = False
    warmup: int = 3

    def __post_init__(self) -> None:
        """Refuse what is no number of things, and what would never begin a question.

        Raises:
            ConfigError: names the setting.
        """
        check_minimum(self, "schedule", conversations_in_flight=0, questions_in_flight=1)
        check_minimum(self, "schedule", prepare_ahead=0, checkpoint_every=0, warmup=0)


@dataclass(slots=True)
class RunOutcome:
    """What came of a run: conversations that failed, with the message of each."""

    failures: dict[str, str] = field(default_factory=dict)


class PromptRecordingModel:
    """The backbone as memory and reader see it; notes each role's prompt so that the run can name it.

    Raises ``RunDirectoryError`` when a resumed run meets a role whose prompt is not the one it began with.
    """

    def __init__(self, llm: LanguageModel, prompts: dict[str, str], group: str) -> None:
        self._llm, self._prompts, self._group = llm, prompts, group

    @property
    def context_length(self) -> int:
        """See :class:`memsys.llm.contract.LanguageModel`."""
        return self._llm.context_length

    async def ask(self, role: Role, values: Mapping[str, str], *, key: str) -> Reply:
        """Note the role's prompt, then ask."""
        name = f"{self._group}.{role.name}"
        known = self._prompts.setdefault(name, role.prompt.sha256)
        if known != role.prompt.sha256:
            raise RunDirectoryError(
                f"the prompt of role {name} is not the one this run began with; restore it or choose another run_dir"
            )
        return await self._llm.ask(role, values, key=key)

    async def complete(self, call: ForeignCall) -> CompletedAttempt:
        """Pass on a call whose request another program wrote; see :meth:`memsys.llm.client.BoundModel.complete`."""
        return await complete(self._llm, call)

    async def count_tokens(self, text: str) -> int:
        """See :class:`memsys.llm.contract.LanguageModel`."""
        return await self._llm.count_tokens(text)


@dataclass(frozen=True, slots=True)
class RunResources:
    """The parts of a run that hold resources or settings; made by :mod:`eval.running.experiment`."""

    memory: MemoryConfig
    embedder: Embedder
    turn_format: TurnFormat
    seed: int
    bind: Callable[[str], LanguageModel]
    reader: Reader | None  # None: retrieval only
    prompts: dict[str, str]
    count_context: bool = True
    clock: Clock = time.perf_counter


class Runner:
    """Runs samples into a run directory."""

    def __init__(
        self, resources: RunResources, schedule: Schedule, directory: RunDirectory, progress: ProgressListener
    ) -> None:
        self._resources, self._schedule = resources, schedule
        self._directory, self._progress = directory, progress
        latency = schedule.latency
        self._questions = asyncio.Semaphore(1 if latency else schedule.questions_in_flight)
        self._conversations = asyncio.Semaphore(1 if latency else schedule.conversations_in_flight or 1_000_000)
        self._warmup_left = schedule.warmup if latency else 0
        self._done = directory.finished_questions("retrieval_only" if resources.reader is None else "answers")
        self._ingested = directory.ingested_conversations()

    async def run(self, samples: Sequence[Sample]) -> RunOutcome:
        """Work through all samples.

        A conversation whose backbone or worker fails is given up, the others go on; the run is then incomplete and can
        be resumed. Any other error, and cancellation, stops everything.
        """
        outcome = RunOutcome()
        snapshots = self._directory.snapshots([sample.conversation.conversation_id for sample in samples])
        snapshots.check_earlier()
        async with asyncio.TaskGroup() as group:
            for sample in samples:
                group.create_task(self._guarded(sample, snapshots, outcome))
        return outcome

    async def _guarded(self, sample: Sample, snapshots: Snapshots, outcome: RunOutcome) -> None:
        async with self._conversations:
            try:
                await self._conversation(sample, snapshots)
            except* (BackboneError, WorkerError) as errors:
                outcome.failures[sample.conversation.conversation_id] = str(first_error(errors))

    async def _conversation(self, sample: Sample, snapshots: Snapshots) -> None:
        conversation_id = sample.conversation.conversation_id
        left = [question for question in sample.questions if question.question_id not in self._done]
        if not left and conversation_id in self._ingested and not snapshots.lacks(conversation_id):
            return
        llm = self._resources.bind(conversation_id)
        memory = self._resources.memory.build(self._parts(sample, llm))
        try:
            await self._ingest(sample, memory, snapshots)
            async with asyncio.TaskGroup() as group:
                for question in left:
                    reference = sample.references[question.question_id]
                    group.create_task(self._question(memory, llm, question, reference))
        finally:
            await close_memory(memory)

    def _parts(self, sample: Sample, llm: LanguageModel) -> Parts:
        resources = self._resources
        gold = None
        if resources.memory.uses_gold:
            gold = {q.text: sample.references[q.question_id].evidence for q in sample.questions}
        return Parts(
            conversation_id=sample.conversation.conversation_id,
            llm=PromptRecordingModel(llm, resources.prompts, resources.memory.name),
            embedder=resources.embedder,
            seed=resources.seed,
            turn_format=resources.turn_format,
            gold_evidence=gold,
            log_dir=self._directory.path / "logs",
        )

    async def _ingest(self, sample: Sample, memory: MemorySystem, snapshots: Snapshots) -> None:
        clock = ConversationClock(self._resources.clock)
        ingest = ConversationIngestion(sample, memory, self._schedule, snapshots, self._progress, clock)
        record = await ingest.run()
        if record.conversation_id not in self._ingested:
            self._directory.add_conversation(record)
            self._ingested.add(record.conversation_id)

    async def _question(
        self, memory: MemorySystem, llm: LanguageModel, question: Question, reference: Reference
    ) -> None:
        async with self._questions:
            if self._warmup_left:
                self._warmup_left -= 1
                await self._ask(memory, llm, question, reference)
            asked = await self._ask(memory, llm, question, reference)
            tokens = await self._context_tokens(llm, asked.retrieval.context)
            self._store(question, asked, tokens)
        self._progress.answered(asked.answer_seconds)

    async def _ask(
        self, memory: MemorySystem, llm: LanguageModel, question: Question, reference: Reference
    ) -> "QuestionResult":
        resources, fresh = self._resources, self._schedule.latency
        call_scope.set(CallScope("retrieve", question.question_id, fresh=fresh))
        with ConversationClock(resources.clock).operation() as watch:
            retrieval = await memory.retrieve(question.text)
            retrieve_seconds = watch.seconds()
        self._progress.retrieved(retrieve_seconds)
        retrieved = resources.clock()
        answer = None
        if resources.reader is not None:
            call_scope.set(CallScope("answer", question.question_id, fresh=fresh))
            watched = PromptRecordingModel(llm, resources.prompts, "reader")
            answer = await resources.reader.answer(watched, question, reference, retrieval.context)
        return QuestionResult(retrieval, answer, retrieve_seconds, resources.clock() - retrieved)

    async def _context_tokens(self, llm: LanguageModel, context: str) -> int | None:
        return await llm.count_tokens(context) if self._resources.count_context else None

    def _store(self, question: Question, asked: "QuestionResult", tokens: int | None) -> None:
        self._directory.add_retrieval(retrieval_record(question, asked.retrieval, tokens))
        if asked.answer is not None:
            self._directory.add_answer(answer_record(question, asked, measured=self._schedule.latency))


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """One question's retrieval and answer with the wall time of both steps."""

    retrieval: Retrieval
    answer: Answer | None
    retrieve_seconds: float
    answer_seconds: float


class ConversationIngestion:
    """Writes one conversation into one memory, from its last snapshot on. Its seconds are without loading."""

    def __init__(
        self,
        sample: Sample,
        memory: MemorySystem,
        schedule: Schedule,
        snapshots: Snapshots,
        progress: ProgressListener,
        clock: ConversationClock,
    ) -> None:
        self._conversation = sample.conversation
        self._memory, self._schedule, self._progress = memory, schedule, progress
        self._snapshots = snapshots
        self._prepare_seconds: list[float] = []
        self._write_seconds: list[float] = []
        self._seconds_before = self._consolidate_seconds = 0.0
        self._clock = clock

    async def run(self) -> ConversationRecord:
        """Ingest what the snapshot does not hold yet, and consolidate."""
        units = self._memory.units(self._conversation)
        position, consolidated = self._restore()
        self._progress.restored(sum(len(unit.turns) for unit in units[:position]))
        await self._write_all(units, position)
        if not consolidated:
            call_scope.set(CallScope("consolidate"))
            with self._clock.operation() as watch:
                await self._memory.consolidate()
                self._consolidate_seconds = watch.seconds()
            self._save(len(units), consolidated=True)
        return self._record(len(units))

    def _restore(self) -> tuple[int, bool]:
        snapshot = self._snapshots.load(self._conversation.conversation_id)
        if snapshot is None:
            return 0, False
        self._memory.load_state(snapshot.memory)
        self._prepare_seconds = list(snapshot.prepare_seconds)
        self._write_seconds = list(snapshot.write_seconds)
        self._consolidate_seconds = snapshot.consolidate_seconds
        self._seconds_before = snapshot.ingest_seconds
        return snapshot.position, snapshot.consolidated

    def _save(self, position: int, *, consolidated: bool) -> None:
        snapshot = Snapshot(
            position=position,
            consolidated=consolidated,
            memory=dict(self._memory.state()),
            prepare_seconds=self._prepare_seconds[:position],
            write_seconds=self._write_seconds,
            consolidate_seconds=self._consolidate_seconds,
            ingest_seconds=self._seconds(),
        )
        self._snapshots.save(self._conversation.conversation_id, snapshot)

    def _seconds(self) -> float:
        return self._seconds_before + self._clock.seconds()

    async def _write_all(self, units: Sequence[Unit], position: int) -> None:
        ahead: deque[asyncio.Task[tuple[Any, float]]] = deque()
        upcoming = iter(units[position:])
        try:
            for done, unit in enumerate(units[position:], start=position + 1):
                while len(ahead) < max(self._schedule.prepare_ahead, 1) and (following := next(upcoming, None)):
                    ahead.append(asyncio.create_task(self._prepare(following)))
                prepared, seconds = await ahead.popleft()
                self._prepare_seconds.append(seconds)
                await self._write(unit, prepared)
                every = self._schedule.checkpoint_every
                if every and done % every == 0 and done < len(units):
                    self._save(done, consolidated=False)
        finally:
            for task in ahead:
                task.cancel()
            await asyncio.gather(*ahead, return_exceptions=True)

    async def _prepare(self, unit: Unit) -> tuple[Any, float]:
        call_scope.set(CallScope("prepare", unit.unit_id))
        with self._clock.operation() as watch:
            prepared = await self._memory.prepare(unit)
            seconds = watch.seconds()
        return prepared, seconds

    async def _write(self, unit: Unit, prepared: Any) -> None:
        call_scope.set(CallScope("write", unit.unit_id))
        with self._clock.operation() as watch:
            await self._memory.write(unit, prepared)
            self._write_seconds.append(watch.seconds())
        self._progress.wrote(len(unit.turns), self._write_seconds[-1])

    def _record(self, units: int) -> ConversationRecord:
        return ConversationRecord(
            conversation_id=self._conversation.conversation_id,
            turns=len(self._conversation.turns),
            units=units,
            ingest_seconds=self._seconds(),
            prepare_seconds=_rounded(self._prepare_seconds),
            write_seconds=_rounded(self._write_seconds),
            consolidate_seconds=self._consolidate_seconds,
            statistics=dict(self._memory.statistics()),
        )


def retrieval_record(question: Question, retrieval: Retrieval, tokens: int | None) -> RetrievalRecord:
    """Make the stored form of a retrieval."""
    hits = [HitRecord(hit.memory_id, hit.text, float(hit.score), list(hit.turn_ids)) for hit in retrieval.hits]
    return RetrievalRecord(
        question_id=question.question_id,
        conversation_id=question.conversation_id,
        category=question.category,
        hits=hits,
        context=retrieval.context,
        context_chars=len(retrieval.context),
        context_tokens=tokens,
        trace=dict(retrieval.trace),
        ranked=retrieval.ranked,
        traced=retrieval.traced,
    )


def answer_record(question: Question, asked: QuestionResult, *, measured: bool) -> AnswerRecord:
    """Make the stored form of an answer."""
    answer = asked.answer
    if answer is None:
        raise ValueError("a retrieval-only question has no answer to store")
    return AnswerRecord(
        question_id=question.question_id,
        conversation_id=question.conversation_id,
        category=question.category,
        question=question.text,
        prediction=answer.prediction,
        raw=answer.raw,
        malformed=answer.malformed,
        options=list(answer.options),
        retrieve_seconds=asked.retrieve_seconds,
        answer_seconds=asked.answer_seconds,
        measured=measured,
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
    )


def _rounded(seconds: Sequence[float]) -> list[float]:
    return [round(value, 6) for value in seconds]


def first_error(error: BaseException) -> BaseException:
    """Return the first plain error inside nested groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
