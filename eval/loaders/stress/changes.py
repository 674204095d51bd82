"""Changes that harm without meaning to: repetition, noise, lost dates and names, sessions out of order, long gaps."""

import re
from collections.abc import Callable
from dataclasses import replace

from eval.loaders.stress.making import Making
from memsys.turns import sessions_of
from memsys.vocabulary import Reference, Sample, Turn

#: Share of the turns without evidence that are said again; years of a long gap.
_REPEATED, _GAP = 0.25, 7
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
    for number, turn in enumerate(making.conversation.turns):
        if turn.turn_id not in gold and drawn[number] < _REPEATED:
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
    """Let seven years pass before the second half of the sessions; answers whose evidence is all there follow."""
    sessions = sessions_of(making.conversation.turns)
    early = {turn.turn_id for session in sessions[: (len(sessions) + 1) // 2] for turn in session}
    turns = tuple(
        turn if turn.turn_id in early else replace(turn, date_time=_later(turn.date_time))
        for turn in making.conversation.turns
    )
    references = {name: _moved(gold, early) for name, gold in making.sample.references.items()}
    return [replace(making.with_conversation(turns), references=references)]


def _moved(reference: Reference, early: set[str]) -> Reference:
    if not reference.evidence or early.intersection(reference.evidence):
        return reference
    return replace(reference, answers=tuple(map(_later, reference.answers)))


def _later(text: str) -> str:
    return _YEAR.sub(lambda year: str(int(year[0]) + _GAP), text)
