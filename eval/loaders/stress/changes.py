"""Changes that harm without meaning to: repetition, noise, lost dates and names, sessions out of order, long gaps."""

import re
from collections.abc import Callable, Mapping, Set
from dataclasses import replace

import numpy as np

from eval.loaders.question_types import TEMPORAL, kind_of
from eval.loaders.stress.making import Making
from memsys.turns import sessions_of
from memsys.vocabulary import Question, Reference, Sample, Turn

#: Share of the turns without evidence that are said again; years of a long gap, after which weekdays and leap years
#: are the same, so that "last Friday" names the day that the answer does.
_REPEATED, _GAP = 0.25, 28
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


def duplicates(making: Making) -> list[Sample]:
    """Let a quarter of the turns be said again at the end of their session; twin: something else is said there.

    Turns that are evidence are not repeated: what is found would then depend on which of the two counts.
    """
    return _said_again(making, lambda turn: turn.text)


def near_duplicates(making: Making) -> list[Sample]:
    """Let the same turns be said again in slightly other words."""
    return _said_again(making, lambda turn: making.text_of("again", text=turn.text))


def _said_again(making: Making, again: Callable[[Turn], str]) -> list[Sample]:
    last = {turn.session_id: place for place, turn in enumerate(making.conversation.turns)}
    added: dict[int, list[Turn]] = {}
    gold, drawn = making.gold, making.drawn.random(len(making.conversation.turns))  # the same in the twin
    others = [(number, turn) for number, turn in enumerate(making.conversation.turns) if turn.turn_id not in gold]
    for number, turn in [each for each in others if drawn[each[0]] < _REPEATED] or others[:1]:
        text = making.noise_text() if making.twin else again(turn)
        said = making.turn_after(turn, number, turn.speaker, text)
        added.setdefault(last[turn.session_id], []).append(said)
    return [making.with_turns(added)]


def noise(making: Making) -> list[Sample]:
    """Put ``amount`` turns about nothing after each turn."""
    return [_interspersed(making, making.noise_text)]


def other_scripts(making: Making) -> list[Sample]:
    """Put a turn in another script after each turn; twin: a turn about nothing in English."""
    return [_interspersed(making, making.noise_text if making.twin else lambda: making.text_of("other"))]


def _interspersed(making: Making, text: Callable[[], str]) -> Sample:
    speakers = making.speakers
    return making.with_turns(
        {
            place: [
                making.turn_after(turn, number, speakers[(place + number) % len(speakers)], text())
                for number in range(making.amount)
            ]
            for place, turn in enumerate(making.conversation.turns)
        }
    )


def shuffled_sessions(making: Making) -> list[Sample]:
    """Write the sessions in another order, each with its date."""
    sessions = sessions_of(making.conversation.turns)
    order = making.drawn.permutation(len(sessions))
    if (order == np.arange(len(sessions))).all():
        order = np.roll(order, 1)
    return [making.with_conversation(tuple(turn for place in order for turn in sessions[place]))]


def missing_dates(making: Making) -> list[Sample]:
    """Leave the dates out."""
    return [making.with_conversation(tuple(replace(turn, date_time="") for turn in making.conversation.turns))]


def swapped_speakers(making: Making) -> list[Sample]:
    """Swap the names of the first two speakers in half of the sessions, in what says who speaks alone."""
    first, second = (*making.speakers, "")[:2]
    names = {first: second, second: first} if second else {}
    sessions = sessions_of(making.conversation.turns)
    swapped = set(making.drawn.permutation(len(sessions))[: len(sessions) // 2].tolist())
    turns = (
        replace(turn, speaker=names.get(turn.speaker, turn.speaker)) if place in swapped else turn
        for place, session in enumerate(sessions)
        for turn in session
    )
    return [making.with_conversation(tuple(turns))]


def long_gaps(making: Making) -> list[Sample]:
    """Let 28 years pass before the second half of the sessions, whose answers follow, and before questions with a date.

    A year that the evidence states is left as it is. A question about time or numbers with evidence on both sides is
    left out: what lies between has changed.
    """
    sessions = sessions_of(making.conversation.turns)
    early = {turn.turn_id for session in sessions[: (len(sessions) + 1) // 2] for turn in session}
    turns = tuple(
        turn if turn.turn_id in early else replace(turn, date_time=_later(turn.date_time))
        for turn in making.conversation.turns
    )
    if turns == making.conversation.turns:
        return [making.sample]
    texts = {turn.turn_id: turn.text for turn in turns if turn.turn_id not in early}
    questions = tuple(
        replace(one, question_date=_later(one.question_date))
        for one in making.sample.questions
        if not _spans(one, making.sample.references[one.question_id], early)
    )
    references = {one.question_id: _moved(making.sample.references[one.question_id], texts) for one in questions}
    return [replace(making.with_conversation(turns), questions=questions, references=references)]


def _spans(question: Question, gold: Reference, early: Set[str]) -> bool:
    """Return whether an answer may be of the time between the first half of the sessions and the second."""
    in_early = {turn in early for turn in gold.evidence}
    of_time = kind_of(question.kind, question.category) == TEMPORAL or any(map(str.isdigit, "".join(gold.answers)))
    return len(in_early) == 2 and of_time


def _moved(reference: Reference, texts: Mapping[str, str]) -> Reference:
    """Return gold with its answers' years moved, where its evidence is among the turns of these texts."""
    if texts.keys().isdisjoint(reference.evidence):
        return reference
    stated = frozenset(_YEAR.findall(" ".join(texts.get(turn, "") for turn in reference.evidence)))
    return replace(reference, answers=tuple(_later(answer, stated) for answer in reference.answers))


def _later(text: str, stated: Set[str] = frozenset()) -> str:
    return _YEAR.sub(lambda year: year[0] if year[0] in stated else str(int(year[0]) + _GAP), text)
