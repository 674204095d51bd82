"""Measurement of a judge of rubrics on gold answers, by their own question's rubric and by another's.

By its own rubric a gold answer is right, by that of a question of the same kind on another chat it is wrong: what a
judge calls right there it would call right of anything. Wrong answers are easy to tell, so that a judge that passes
is no more than usable; one that fails is not. Items that both rubrics have are left out of the second (two of the four
of BEAM's contradictions are the same everywhere). Following an instruction or a preference has no gold answer.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from eval.judge.judging import JudgedItem
from eval.judge.people import SAMPLE_SEED, KnownAnswer, measure_on
from eval.judge.work import JudgePlan
from eval.scoring.verdicts.figures import OF_GOLD, JudgeFigures
from memsys.errors import ConfigError
from memsys.vocabulary import RUBRIC, Question, Sample

#: Ends the id of a gold answer that is judged by another question's rubric.
_BY_OTHER = ":by_other"


@dataclass(frozen=True, slots=True)
class _Gold:
    """A question with its gold answer and its rubric."""

    question: Question
    answer: str
    rubric: tuple[str, ...]

    def judged(self, answer: str, items: Sequence[str], *, right: bool) -> list[KnownAnswer]:
        """Return an answer with the items of this question's rubric."""
        one = self.question
        name = one.question_id if right else one.question_id + _BY_OTHER
        return [
            KnownAnswer(JudgedItem(name, one.conversation_id, one.text, item, answer, one.kind, place), right)
            for place, item in enumerate(items)
        ]


def measure_by_rubrics(plan: JudgePlan, size: int) -> list[JudgeFigures]:
    """Let a judge grade gold answers of BEAM-100K by their own rubrics and by others.

    Args:
        plan: what judges.
        size: questions at the most; each is judged with its own gold answer and with another's.

    Raises:
        BackboneError: the backbone failed.
        ConfigError: the judge does not ask for a rubric.
        DataError: the data set is not there.
    """
    from eval.loaders.beam import BeamConfig

    if plan.judge.unit != "rubric":
        raise ConfigError(f"judge {plan.judge.name} grades whole answers; --people measures it")
    return measure_on(plan, {OF_GOLD: gold_by_rubrics(BeamConfig().load().samples, size)})


def gold_by_rubrics(samples: Sequence[Sample], size: int) -> list[KnownAnswer]:
    """Return the gold answers by items of their own rubric (right) and of another question's (wrong).

    Args:
        samples: chats with their questions.
        size: questions at the most, drawn from all kinds. A smaller sample is a part of a larger.
    """
    found = [
        (one, other)
        for one, others in _with_others(_golds(samples))
        if (other := next((each for each in others if _own_items(one, each)), None)) is not None
    ]
    places = random.Random(SAMPLE_SEED).sample(range(len(found)), len(found))
    known: list[KnownAnswer] = []
    for one, other in (found[place] for place in sorted(places[:size])):
        known += one.judged(one.answer, one.rubric, right=True)
        known += one.judged(other.answer, _own_items(one, other), right=False)
    return known


def _golds(samples: Sequence[Sample]) -> list[_Gold]:
    found = []
    for sample in samples:
        for question in sample.questions:
            reference = sample.references[question.question_id]
            rubric = tuple(str(item) for item in reference.extra.get(RUBRIC, ()))
            if reference.answers and rubric:
                found.append(_Gold(question, " | ".join(reference.answers), rubric))
    return found


def _with_others(golds: Sequence[_Gold]) -> list[tuple[_Gold, list[_Gold]]]:
    """Pair each rubric with those of its kind in other chats, the next chat first."""
    found = []
    for place, one in enumerate(golds):
        around = [*golds[place + 1 :], *golds[:place]]
        same = [each for each in around if each.question.category == one.question.category]
        chat = one.question.conversation_id
        found.append((one, [each for each in same if each.question.conversation_id != chat]))
    return found


def _own_items(one: _Gold, other: _Gold) -> list[str]:
    """Return the items of a rubric that the other's does not have."""
    theirs = {item.casefold().strip() for item in other.rubric}
    return [item for item in one.rubric if item.casefold().strip() not in theirs]
