"""Measure how well a judge tells equal events from different ones, on pairs of events of BEAM's orders.

An event paired with its own copy is the same, one paired with an event of another chat is not. Both are as easy as they
can be, so that a judge which fails here is of no use for aligning, and one that passes may still take a neighbouring
event of the same chat for this one.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from eval.judge.aligner import OrderJudge
from eval.judge.expense import confirm_calls, of_orders
from eval.judge.judging import JudgedItem
from eval.judge.people import SAMPLE_SEED, KnownAnswer, figures_of
from eval.judge.work import JudgePlan, judge_backbone
from eval.metrics.ordering import ORDERED_ITEMS
from eval.scoring.verdicts.figures import OF_PAIRS, JudgeFigures
from eval.scoring.verdicts.orders import OrderedAnswer, PairVerdict
from eval.scoring.verdicts.store import AnswerVerdict
from eval.scoring.verdicts.values import CORRECT, SAME, WRONG
from memsys.errors import ConfigError
from memsys.vocabulary import Sample

#: Suffix of the id of a pair with an event of another chat.
_WITH_OTHER = ":beside_other"


def measure_by_pairs(plan: JudgePlan, size: int) -> list[JudgeFigures]:
    """Let a judge compare events of BEAM-100K with themselves and with those of other chats.

    Args:
        plan: what judges.
        size: events at the most; each is compared twice.

    Raises:
        BackboneError: the backbone failed.
        ConfigError: the judge aligns no order, or its costs were declined.
        DataError: the data set is not there.
    """
    from eval.loaders.beam import BeamConfig

    if plan.judge.order != "model":
        raise ConfigError(f"judge {plan.judge.name} aligns no order; judge.order=model lets it")
    pairs = pairs_of_events(BeamConfig().load().samples, size)
    confirm_calls(plan, of_orders(plan.judge, _ordered(pairs)))
    with TemporaryDirectory() as folder:
        verdicts = asyncio.run(_compare(plan, pairs, Path(folder)))
    found = figures_of(plan, OF_PAIRS, pairs, verdicts)
    return [replace(found, prompt_sha256=plan.judge.order_prompt_sha256)]


def pairs_of_events(samples: Sequence[Sample], size: int) -> list[KnownAnswer]:
    """Return events of orders paired with their own copy (right: the same) and with one of another chat (wrong).

    Args:
        samples: chats with their questions.
        size: events at the most, drawn from all orders. A smaller sample is a part of a larger.
    """
    events = _events(samples)
    found = []
    for number, one in enumerate(events):
        around = [*events[number + 1 :], *events[:number]]
        others = [each for each in around if each.conversation_id != one.conversation_id]
        other = next((each for each in others if not _alike(each.gold, one.gold)), None)
        if other is not None:
            found.append((one, other))
    places = random.Random(SAMPLE_SEED).sample(range(len(found)), len(found))
    known: list[KnownAnswer] = []
    for one, other in (found[place] for place in sorted(places[:size])):
        known.append(KnownAnswer(one, right=True))
        known.append(KnownAnswer(replace(one, item_id=one.item_id + _WITH_OTHER, answer=other.gold), right=False))
    return known


def _events(samples: Sequence[Sample]) -> list[JudgedItem]:
    """Return a pair of every event of every order with its own copy."""
    return [
        JudgedItem(
            f"{question.question_id}:{place}", question.conversation_id, question.text, event, event, question.kind
        )
        for sample in samples
        for question in sample.questions
        for place, event in enumerate(sample.references[question.question_id].extra.get(ORDERED_ITEMS, ()))
    ]


def _alike(one: str, other: str) -> bool:
    return one.casefold().strip() == other.casefold().strip()


def _ordered(pairs: Sequence[KnownAnswer]) -> list[OrderedAnswer]:
    """Return pairs as answers of one line to orders of one event."""
    items = [one.item for one in pairs]
    return [OrderedAnswer(one.item_id, one.conversation_id, (one.gold,), (one.answer,)) for one in items]


async def _compare(plan: JudgePlan, pairs: Sequence[KnownAnswer], log_dir: Path) -> list[AnswerVerdict]:
    """Judge pairs of events; a verdict that both are the same counts as a right answer."""
    said: list[PairVerdict] = []
    async with judge_backbone(plan, log_dir) as backbone:
        judge = OrderJudge(plan.judge, backbone.bind, plan.backbone.name, plan.in_flight)
        await judge.align(_ordered(pairs), [], said.append)
    return [AnswerVerdict(one.question_id, one.repeat, _grade(one), one.reply, one.input_sha256) for one in said]


def _grade(verdict: PairVerdict) -> str | None:
    if verdict.verdict is None:
        return None
    return CORRECT if verdict.verdict == SAME else WRONG
