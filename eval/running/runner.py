"""The runner: one event loop that ingests every conversation, answers every question and books every call.

The questions of a conversation start once its memory is consolidated; conversations and questions share the backbone's
slots, which are limited in the client alone. Nothing here depends on timing, so workers and look-ahead cannot move a
result.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from eval.running.context_budget import within_budget
from eval.running.faults import AtWork
from eval.running.ingestion import ConversationIngestion
from eval.running.progress import ProgressListener
from eval.running.prompt_recording import PromptRecordingModel
from eval.running.question_result import QuestionResult, answer_record, retrieval_record
from eval.running.reader import Reader, own_answer
from eval.running.schedule import Schedule
from eval.running.settling import OF_ONE_QUESTION, Settling
from eval.running.timing import Clock, ConversationClock
from eval.running.unanswered import UNANSWERED
from eval.runs.rundir import RunDirectory
from eval.runs.snapshots import Snapshots
from memsys.embedding.contract import Embedder
from memsys.errors import BackboneError, BackboneUnusableError, WorkerError, first_error
from memsys.llm.contract import LanguageModel
from memsys.llm.limiter import Limiter
from memsys.llm.scope import CallScope, call_scope
from memsys.protocol import MemoryConfig, MemorySystem, Parts, close_memory
from memsys.protocol_checks import build_memory, check_retrieval, finished
from memsys.turns import TurnFormat
from memsys.vocabulary import Question, Sample


@dataclass(slots=True)
class RunOutcome:
    """Result of a run: failed conversations, with their messages."""

    failures: dict[str, str] = field(default_factory=dict)


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
    failures_in_a_row: int = UNANSWERED.failures_in_a_row
    context_budget: int | None = None
    clock: Clock = time.perf_counter
    save_prompts: Callable[[], None] = lambda: None


class _AskedConversation:
    """A conversation whose memory is ready to be asked, with the backbone that is bound to it."""

    def __init__(self, sample: Sample, memory: MemorySystem, llm: LanguageModel) -> None:
        self.sample, self.memory, self.llm = sample, memory, llm
        self.turn_ids = frozenset(turn.turn_id for turn in sample.conversation.turns)


class Runner:
    """Runs samples into a run directory."""

    def __init__(
        self, resources: RunResources, schedule: Schedule, directory: RunDirectory, progress: ProgressListener
    ) -> None:
        self._resources, self._schedule = resources, schedule
        self._directory, self._progress = directory, progress
        latency = schedule.latency
        self._questions = Limiter(1 if latency else schedule.questions_in_flight)
        self._conversations = Limiter(1 if latency else schedule.conversations_in_flight or 1_000_000)
        self._warmup_left = schedule.warmup if latency else 0
        self._done = directory.finished_questions("retrieval_only" if resources.reader is None else "answers")
        self._ingested = directory.ingested_conversations()
        self._settling = Settling(directory, resources.failures_in_a_row, len(self._done - directory.settled.keys()))

    async def run(self, samples: Sequence[Sample]) -> RunOutcome:
        """Work through all samples.

        A conversation whose backbone or worker fails is given up, the others continue; the run is then incomplete and
        can be resumed. A question that is withheld, refused, or fails however often it is asked is settled, see
        :class:`eval.running.settling.Settling`. A backbone that can answer no call of the run, any other error, and
        cancellation stop everything.
        """
        outcome = RunOutcome()
        snapshots = self._directory.snapshots([sample.conversation.conversation_id for sample in samples])
        snapshots.check_earlier()
        try:
            async with asyncio.TaskGroup() as group:
                for sample in samples:
                    group.create_task(self._guarded(sample, snapshots, outcome))
        except* BackboneUnusableError as errors:  # the others were cancelled
            outcome.failures["the run"] = str(first_error(errors))
        outcome.failures |= self._settling.close()
        return outcome

    async def _guarded(self, sample: Sample, snapshots: Snapshots, outcome: RunOutcome) -> None:
        async with self._conversations.slot("write"):
            try:
                with AtWork("conversation", sample.conversation.conversation_id):
                    await self._conversation(sample, snapshots)
            except* BackboneUnusableError:
                raise
            except* (BackboneError, WorkerError) as errors:
                outcome.failures[sample.conversation.conversation_id] = str(first_error(errors))

    async def _conversation(self, sample: Sample, snapshots: Snapshots) -> None:
        conversation_id = sample.conversation.conversation_id
        left = [question for question in sample.questions if question.question_id not in self._done]
        if not left and conversation_id in self._ingested and not snapshots.lacks(conversation_id):
            return
        llm = self._resources.bind(conversation_id)
        memory = build_memory(self._resources.memory, self._parts(sample, llm))
        try:
            await self._ingest(sample, memory, snapshots)
            asked = _AskedConversation(sample, memory, llm)
            async with asyncio.TaskGroup() as group:
                for question in left:
                    group.create_task(self._answered_or_settled(asked, question))
        finally:
            await close_memory(memory)

    def _parts(self, sample: Sample, llm: LanguageModel) -> Parts:
        resources = self._resources
        gold = None
        if resources.memory.uses_gold:
            gold = gold_by_text(sample)
        return Parts(
            conversation_id=sample.conversation.conversation_id,
            llm=self._recording(llm, resources.memory.name),
            embedder=resources.embedder,
            seed=resources.seed,
            turn_format=resources.turn_format,
            gold_evidence=gold,
            log_dir=self._directory.path / "logs",
        )

    def _recording(self, llm: LanguageModel, group: str) -> PromptRecordingModel:
        return PromptRecordingModel(llm, self._resources.prompts, group, self._resources.save_prompts)

    async def _ingest(self, sample: Sample, memory: MemorySystem, snapshots: Snapshots) -> None:
        clock = self._resources.clock
        ingest = ConversationIngestion(sample, memory, self._schedule, snapshots, self._progress, clock)
        record = await ingest.run()
        if record.conversation_id not in self._ingested:
            self._directory.add_conversation(record)
            self._ingested.add(record.conversation_id)

    async def _answered_or_settled(self, of: _AskedConversation, question: Question) -> None:
        """Answer a question; one that the server does not answer stops no other."""
        try:
            await self._question(of, question)
        except OF_ONE_QUESTION as error:
            self._settling.failed(question, error)

    async def _question(self, of: _AskedConversation, question: Question) -> None:
        async with self._questions.slot("answer"):
            with AtWork("question", question.question_id):
                warm_up = self._warmup_left > 0
                if warm_up:
                    self._warmup_left -= 1
                    await self._ask(of, question, warm_up=True)
                asked = await self._ask(of, question)
                tokens = await self._context_tokens(of.llm, asked.retrieval.context)
            # what was asked before finds its prompt in the server's cache of prefixes, so its time is not a measurement
            self._store(question, asked, tokens, measured=self._schedule.latency and not warm_up)
        self._progress.answered(asked.answer_seconds)

    async def _ask(self, of: _AskedConversation, question: Question, *, warm_up: bool = False) -> QuestionResult:
        resources, fresh = self._resources, self._schedule.latency
        call_scope.set(CallScope("warm_up" if warm_up else "retrieve", question.question_id, fresh=fresh))
        with ConversationClock(resources.clock).operation() as watch:
            given = await finished(of.memory, "retrieve", of.memory.retrieve(question.text))
            retrieve_seconds = watch.seconds()
        retrieval = check_retrieval(resources.memory.name, given, of.turn_ids, question.question_id)
        if resources.context_budget is not None:
            retrieval = within_budget(retrieval, resources.context_budget)
        self._progress.retrieved(retrieve_seconds)
        retrieved = resources.clock()
        answer = None
        if resources.reader is not None and retrieval.answer is not None:
            answer = own_answer(retrieval.answer)
        elif resources.reader is not None:
            call_scope.set(CallScope("warm_up" if warm_up else "answer", question.question_id, fresh=fresh))
            reference = of.sample.references[question.question_id]
            answer = await resources.reader.answer(
                self._recording(of.llm, "reader"), question, reference, retrieval.context
            )
        return QuestionResult(retrieval, answer, retrieve_seconds, resources.clock() - retrieved)

    async def _context_tokens(self, llm: LanguageModel, context: str) -> int | None:
        return await llm.count_tokens(context) if self._resources.count_context else None

    def _store(self, question: Question, asked: QuestionResult, tokens: int | None, *, measured: bool) -> None:
        self._directory.add_retrieval(retrieval_record(question, asked.retrieval, tokens))
        answer = asked.answer
        if answer is not None and answer.outcome == "withheld":
            self._settling.withheld(question, answer.outcome, answer.reason)
            return
        self._settling.answered()
        if answer is not None:
            self._directory.add_answer(answer_record(question, asked, measured=measured))


def gold_by_text(sample: Sample) -> dict[str, tuple[str, ...]]:
    """Return the gold turns by question text, all that a memory sees; equal texts share the turns of all."""
    found: dict[str, tuple[str, ...]] = {}
    for question in sample.questions:
        evidence = sample.references[question.question_id].evidence
        found[question.text] = tuple(dict.fromkeys((*found.get(question.text, ()), *evidence)))
    return found
