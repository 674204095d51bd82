"""Measurement of a judge on answers that people labelled, and on intentionally wrong answers.

A judge of rubrics, which these answers lack, is measured on gold answers instead (:mod:`eval.judge.gold`).
The figures are kept (:mod:`eval.scoring.verdicts.figures`). Answers quote the data set and are not kept.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from eval.judge.expense import confirm_calls, of_items
from eval.judge.judging import AnswerJudge, JudgedItem
from eval.judge.work import JudgePlan, judge_backbone, take
from eval.metrics.locomo import CATEGORY_5
from eval.scoring.verdicts.agreement import cohen_kappa, majority
from eval.scoring.verdicts.figures import BY_PEOPLE, ON_PURPOSE, JudgeFigures, settings_that_change_verdicts
from eval.scoring.verdicts.store import AnswerVerdict, StoredVerdicts
from eval.scoring.verdicts.values import CORRECT, WRONG
from memsys.errors import ConfigError

#: Seed of the samples: every judge sees the same answers.
SAMPLE_SEED = 0


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """An answer and whether it is right, by people or by construction."""

    item: JudgedItem
    right: bool


def known_answers(name: str, size: int) -> list[KnownAnswer]:
    """Return a sample of an entry's answers of categories 1 to 4; smaller samples are parts of larger ones.

    Args:
        name: of the entry. Answers of kind ``wrong`` are wrong; of others the verdicts in the file are people's.
        size: answers at the most.

    Raises:
        DataError: the entry's files are not there.
    """
    from eval.audit.recorded.catalogue import find_entry, import_entry

    entry = find_entry(name)
    imported = import_entry(entry)
    found = []
    for one in imported.questions:
        row = imported.alignment.rows.get(one.question_id)
        labels = [] if row is None else [label for own in row.verdicts.values() for label in own if label is not None]
        if row is None or one.category == CATEGORY_5 or not (one.answers and labels):
            continue
        gold, answer = " | ".join(one.answers), row.prediction or ""
        item = JudgedItem(one.question_id, one.conversation_id, one.text, gold, answer, one.reference.kind)
        found.append(KnownAnswer(item, entry.kind != "wrong" and labels[0]))
    places = random.Random(SAMPLE_SEED).sample(range(len(found)), len(found))
    return [found[place] for place in sorted(places[:size])]


def measure_judge(plan: JudgePlan, size: int) -> list[JudgeFigures]:
    """Let a judge grade both samples.

    Args:
        plan: what judges.
        size: answers of each.

    Raises:
        BackboneError: the backbone failed.
        ConfigError: the judge asks for a rubric, which these questions lack.
        DataError: the files of the answers are not there.
    """
    from eval.audit.config import load_config

    if plan.judge.unit != "answer":
        raise ConfigError(
            f"judge {plan.judge.name} grades rubrics; the labelled answers have none, and --known measures it"
        )
    config = load_config()
    return measure_on(
        plan, {BY_PEOPLE: known_answers(config.people, size), ON_PURPOSE: known_answers(config.wrong, size)}
    )


def measure_on(plan: JudgePlan, sets: Mapping[str, Sequence[KnownAnswer]]) -> list[JudgeFigures]:
    """Let a judge grade answers whose grade is known, by what they are.

    Raises:
        BackboneError: the backbone failed.
        ConfigError: it costs money, which was declined.
    """
    items = [[answer.item for answer in answers] for answers in sets.values()]
    confirm_calls(plan, chain.from_iterable(of_items(plan.judge, own) for own in items))
    with TemporaryDirectory() as folder:
        return asyncio.run(_measure(plan, sets, Path(folder)))


async def _measure(plan: JudgePlan, sets: Mapping[str, Sequence[KnownAnswer]], log_dir: Path) -> list[JudgeFigures]:
    verdicts: dict[str, list[AnswerVerdict]] = {name: [] for name in sets}
    async with judge_backbone(plan, log_dir) as backbone:
        judge = AnswerJudge(plan.judge, backbone.bind, plan.backbone.name, plan.in_flight)
        items = {name: [answer.item for answer in answers] for name, answers in sets.items()}
        await take(plan, [partial(judge.grade, items[name], [], verdicts[name].append) for name in sets])
    return [figures_of(plan, name, answers, verdicts[name]) for name, answers in sets.items()]


def figures_of(
    plan: JudgePlan, name: str, answers: Sequence[KnownAnswer], verdicts: Sequence[AnswerVerdict]
) -> JudgeFigures:
    """Return the figures of one set; of several verdicts on an answer the majority counts.

    An answer judged by a rubric is called right where more than half of it is met; items met in part count half,
    whatever the judge makes of halves elsewhere.
    """
    shares = StoredVerdicts("", {}, tuple(verdicts)).shares()
    said = majority(shares)
    if plan.judge.unit == "rubric":
        said = {name: CORRECT if value > 0.5 else WRONG for name, value in shares.items() if value is not None}
    rights = {one.item.item_id: one.right for one in answers}  # a rubric has several items for one answer
    pairs = [(said[name] == CORRECT, right) for name, right in rights.items() if name in said]
    right = [label for _, label in pairs]
    accepted = [called for called, label in pairs if not label]
    share = _share(right)
    low, high = _wilson(sum(accepted), len(accepted))
    kappa = cohen_kappa([called for called, _ in pairs], right)
    return JudgeFigures(
        judge=plan.judge.name,
        backbone=plan.backbone.name,
        answers_of=name,
        answers=len(pairs),
        unreadable=len(rights) - len(pairs),
        right=share,
        called_right=_share([called for called, _ in pairs]),
        accuracy=_share([called == label for called, label in pairs]),
        one_verdict=None if share is None else max(share, 100 - share),
        kappa=kappa if any(right) else None,
        wrong_accepted=_share(accepted),
        wrong_accepted_low=low,
        wrong_accepted_high=high,
        right_rejected=_share([not called for called, label in pairs if label]),
        prompt_sha256=plan.judge.prompt_sha256,
        model=plan.backbone.model,
    )


def _share(flags: Sequence[bool]) -> float | None:
    return 100 * sum(flags) / len(flags) if flags else None


def _wilson(count: int, total: int) -> tuple[float | None, float | None]:
    if not total:
        return None, None
    from scipy.stats import binomtest

    interval = binomtest(count, total).proportion_ci(method="wilson")
    return 100 * float(interval.low), 100 * float(interval.high)


def check_name_is_its_own(plan: JudgePlan) -> None:
    """Refuse to measure a judge under the name of a preset that asks otherwise: its figures are kept by that name.

    Raises:
        ConfigError: names what differs.
    """
    if changed := settings_that_change_verdicts(plan.settings["judge"]):
        named = ", ".join(f"{key}={value}" for key, value in changed.items())
        raise ConfigError(
            f"judge {plan.judge.name} is measured as its preset asks; with {named} give it a name of its own "
            "(judge.name=...), here and where it judges"
        )
