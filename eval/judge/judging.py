"""Asking a judge: every answer of a run, or every item of the probe, as often as the judge repeats itself."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from eval.commands.counting import counted
from eval.judge.config import JudgeConfig
from eval.runs.records import JUDGING, AnswerRecord, ReferenceRecord
from eval.scoring.verdicts.store import AnswerVerdict, input_digest
from memsys.errors import MemsysError, first_error
from memsys.llm.contract import LanguageModel, Role
from memsys.llm.limiter import Limiter
from memsys.llm.scope import CallScope, call_scope


@dataclass(frozen=True, slots=True)
class JudgedItem:
    """One answer to judge, against one text.

    ``kind`` is that of the question; ``item`` the place of the text among those of the question.
    """

    item_id: str
    conversation_id: str
    question: str
    gold: str
    answer: str
    kind: str = ""
    item: int = 0

    @property
    def digest(self) -> str:
        """Checksum of what the judge sees."""
        return input_digest(self.question, self.gold, self.answer)


def items_of(
    config: JudgeConfig, references: Iterable[ReferenceRecord], answers: Iterable[AnswerRecord]
) -> list[JudgedItem]:
    """Return the answers of a run that the judge grades, in the order of the references."""
    given = {answer.question_id: answer for answer in answers}
    found = []
    for reference in references:
        answer = given.get(reference.question_id)
        if answer is None:
            continue
        name, conversation, kind = reference.question_id, reference.conversation_id, reference.kind
        for place, gold in enumerate(config.golds(reference)):
            found.append(JudgedItem(name, conversation, answer.question, gold, answer.prediction, kind, place))
    return found


def ungraded(
    config: JudgeConfig, items: Sequence[JudgedItem], done: Sequence[AnswerVerdict]
) -> list[tuple[JudgedItem, int]]:
    """Return what is to be graded, with the number of the repeat; verdicts on another text do not count as done."""
    known = {(verdict.question_id, verdict.item, verdict.repeat, verdict.input_sha256) for verdict in done}
    return [
        (item, repeat)
        for repeat in range(config.repeats)
        for item in items
        if (item.item_id, item.item, repeat, item.digest) not in known
    ]


def values_of(config: JudgeConfig, item: JudgedItem) -> Mapping[str, str]:
    """Return what fills the prompt of a verdict."""
    return {"question": item.question, "gold": item.gold, "answer": item.answer, "form": config.form}


async def all_done(title: str, steps: Sequence[Callable[[], Awaitable[None]]]) -> None:
    """Take all steps at once, and count those that are done under a title.

    Raises:
        MemsysError: one of them failed, often the backbone.
    """

    async def one(step: Callable[[], Awaitable[None]], done: Callable[[], None]) -> None:
        await step()
        done()

    with counted(title, len(steps)) as one_done:
        await together([partial(one, step, one_done) for step in steps])


async def together(steps: Iterable[Callable[[], Coroutine[Any, Any, None]]]) -> None:
    """Take all steps at once; one that fails cancels the others.

    Raises:
        MemsysError: one of them failed.
    """
    try:
        async with asyncio.TaskGroup() as group:
            for step in steps:
                group.create_task(step())
    except BaseExceptionGroup as group_error:  # not except*: what that raises may come out in a group again
        failed, others = group_error.split(MemsysError)
        if failed is None or others is not None:
            raise
        raise first_error(failed) from None


@dataclass(frozen=True, slots=True)
class JudgeAtWork:
    """A judge with the backbone that it asks.

    Attributes:
        config: how it asks.
        bind: gives the backbone as one conversation sees it.
        backbone: name of the backbone; part of the calls' keys, so that one ledger can hold several judges.
        in_flight: verdicts asked for at once.
        fresh: whether replies in the cache do not count.
    """

    config: JudgeConfig
    bind: Callable[[str], LanguageModel]
    backbone: str
    in_flight: int
    fresh: bool = False


class AnswerJudge(JudgeAtWork):
    """A judge that grades answers."""

    __slots__ = ()

    async def grade(
        self, items: Sequence[JudgedItem], done: Sequence[AnswerVerdict], on_verdict: Callable[[AnswerVerdict], None]
    ) -> None:
        """Get the verdicts that are not there yet; verdicts on another text of an answer do not count as there.

        Args:
            items: answers to grade.
            done: verdicts stored before; none of those that are to be asked for again.
            on_verdict: keeps a verdict; called as each comes.

        Raises:
            BackboneError: the backbone failed; all verdicts until then were kept.
        """
        roles = {kind: self.config.make_role(kind) for kind in {item.kind for item in items}}
        slots, wanted = Limiter(self.in_flight), ungraded(self.config, items, done)

        async def one(item: JudgedItem, repeat: int) -> None:
            async with slots.slot("judge"):
                on_verdict(await self._verdict(roles[item.kind], item, repeat))

        await all_done(f"verdicts of judge {self.config.name}", [partial(one, *each) for each in wanted])

    async def _verdict(self, role: Role, item: JudgedItem, repeat: int) -> AnswerVerdict:
        call_scope.set(CallScope(JUDGING, item.item_id, self.fresh))
        key = f"{self.backbone}:{item.item_id}:{repeat}" + (f":{item.item}" if item.item else "")
        reply = await self.bind(item.conversation_id).ask(role, values_of(self.config, item), key=key)
        if reply.value is None:
            return AnswerVerdict(item.item_id, repeat, None, reply.text, item.digest, item.item)
        verdict, reason = str(reply.value["verdict"]), str(reply.value.get("reason", ""))
        return AnswerVerdict(item.item_id, repeat, verdict, reason, item.digest, item.item)
