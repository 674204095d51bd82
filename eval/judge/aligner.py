"""Asking a judge which lines of an answer are which events of an order, pair by pair.

Within an answer a pair is asked of once the one before it is answered, as the authors do: an event that is found is
not asked of again, and what follows it for the same line is not asked of at all. Answers are asked of at the same time.
A line that an answer repeats is compared once with each event, since its verdict would be the same.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from eval.judge.judging import JudgeAtWork, all_done
from eval.metrics.ordering import aligning
from eval.runs.records import JUDGING
from eval.scoring.verdicts.orders import OrderedAnswer, PairKey, PairVerdict, advance, begin
from eval.scoring.verdicts.values import SAME
from memsys.llm.contract import Role
from memsys.llm.limiter import Limiter
from memsys.llm.scope import CallScope, call_scope


def unaligned(
    answers: Sequence[OrderedAnswer], repeats: int, done: Sequence[PairVerdict]
) -> Iterator[tuple[OrderedAnswer, int, int]]:
    """Yield the most pairs that can be left to ask of, as answer, place of the event and of the line.

    So many are left where none of them is the same; each pair that is spares others.
    """
    said = {verdict.key: verdict.verdict == SAME for verdict in done}
    for repeat in range(repeats):
        for answer in answers:
            known, walk = dict(said), aligning(answer.items, answer.lines)
            pair = begin(walk)
            while isinstance(pair, tuple):
                key = answer.key(*pair, repeat)
                if key not in known:
                    yield answer, *pair
                pair = advance(walk, same=known.setdefault(key, False))


def pair_values(answer: OrderedAnswer, item: int, line: int) -> Mapping[str, str]:
    """Return what fills the prompt of a verdict on a pair."""
    return {"item": answer.items[item], "line": answer.lines[line]}


class OrderJudge(JudgeAtWork):
    """A judge that aligns answers with orders."""

    __slots__ = ()

    async def align(
        self, answers: Sequence[OrderedAnswer], done: Sequence[PairVerdict], on_verdict: Callable[[PairVerdict], None]
    ) -> None:
        """Get the verdicts that are not there yet.

        Args:
            answers: what is aligned.
            done: verdicts stored before.
            on_verdict: keeps a verdict; called as each comes.

        Raises:
            BackboneError: the backbone failed; all verdicts until then were kept.
        """
        known = {verdict.key: verdict for verdict in done}
        role, slots = self.config.make_order_role(), Limiter(self.in_flight)

        async def said(answer: OrderedAnswer, repeat: int, item: int, line: int) -> bool:
            key = answer.key(item, line, repeat)
            if key not in known:
                async with slots.slot("judge"):
                    known[key] = await self._verdict(role, answer, key, item, line)
                on_verdict(known[key])
            return known[key].verdict == SAME

        async def one(answer: OrderedAnswer, repeat: int) -> None:
            walk = aligning(answer.items, answer.lines)
            pair = begin(walk)
            while isinstance(pair, tuple):
                pair = advance(walk, same=await said(answer, repeat, *pair))

        wanted = [partial(one, answer, repeat) for repeat in range(self.config.repeats) for answer in answers]
        await all_done(f"orders of judge {self.config.name}", wanted)

    async def _verdict(self, role: Role, answer: OrderedAnswer, key: PairKey, item: int, line: int) -> PairVerdict:
        question_id, repeat, digest = key
        call_scope.set(CallScope(JUDGING, question_id, self.fresh))
        values = pair_values(answer, item, line)
        called = f"{self.backbone}:{question_id}:{repeat}:{line}:{item}"
        reply = await self.bind(answer.conversation_id).ask(role, values, key=called)
        if reply.value is None:
            return PairVerdict(question_id, repeat, line, item, None, reply.text, digest)
        return PairVerdict(question_id, repeat, line, item, str(reply.value["verdict"]), "", digest)
