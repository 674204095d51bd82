"""Changes that a memory should notice: facts that change, turns that are withdrawn, poison, and another user.

Each says what it put where in ``Reference.extra["attack"]`` (:data:`ATTACK`): ``kind``; ``turns``, the ids of the turns
that should not count; ``payload``, the text that no answer should have; ``only``, whether the payload is nowhere else;
``question`` and ``text``, the words of the question and of these turns, for readers.
"""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from eval.loaders.question_types import ADVERSARIAL, SINGLE_HOP, kind_of
from eval.loaders.stress.making import TEXTS, Making
from eval.metrics.attacks import ATTACK
from memsys.scripts import has_joined_words
from memsys.seeding import stable_seed
from memsys.vocabulary import OVERRULED, Json, Question, Reference, Sample, Turn

#: Kinds of change that need questions with an answer in one turn.
ATTACKS = frozenset({"contradicted", "withdrawn", "poison"})
#: Questions that one kind of attack is aimed at in a conversation, at most.
_TARGETS = 6
#: Characters of the shortest answer that is looked for in a turn.
_SHORTEST = 3
_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
#: The first and the last of the numbers among which another one is drawn for a number of at most so much: months and
#: hours, days that every month has, minutes.
_SMALL = ((12, (2, 12)), (31, (13, 28)), (59, (32, 59)))


@dataclass(frozen=True, slots=True)
class _Target:
    """A question with one gold turn that says its answer word for word; ``place`` of the turn in the conversation."""

    question: Question
    reference: Reference
    turn: Turn
    place: int
    answer: str

    def with_answer(self, other: str) -> str:
        """Return the gold turn's text with another answer wherever it says its own."""
        return _said(self.answer).sub(lambda match: other, self.turn.text)


def attacked(sample: Sample) -> list[Reference]:
    """Return the gold of the questions that something is aimed at."""
    return [gold for gold in sample.references.values() if ATTACK in gold.extra or OVERRULED in gold.extra]


def _targets(making: Making) -> list[_Target]:
    places = {turn.turn_id: place for place, turn in enumerate(making.conversation.turns)}
    found = []
    for question in making.sample.questions:
        gold = making.sample.references[question.question_id]
        if len(gold.evidence) == 1 and kind_of(question.kind, question.category) != ADVERSARIAL and gold.answers:
            place, answer = places[gold.evidence[0]], gold.answers[0].strip()
            turn = making.conversation.turns[place]
            if len(answer) >= _SHORTEST and _said(answer).search(turn.text):
                found.append(_Target(question, gold, turn, place, answer))
    return found


def _said(answer: str) -> re.Pattern[str]:
    """Return the pattern of an answer, not within a word, where spaces separate words."""
    text = re.escape(answer)
    return re.compile(text if has_joined_words(answer) else rf"(?<!\w){text}(?!\w)", re.IGNORECASE)


def _changeable(making: Making) -> list[_Target]:
    """Return the targets whose gold turn no other has: a turn is stated again once, with one other value."""
    by_turn: dict[str, _Target] = {}
    for target in _targets(making):
        by_turn.setdefault(target.turn.turn_id, target)
    return list(by_turn.values())[:_TARGETS]


def _false_answers(targets: Sequence[_Target]) -> dict[str, str]:
    """Return for each target, by question id, a wrong answer that fits where its own one is said.

    Of an answer with numbers it is the answer with other numbers; of another one, the answer of the target that is most
    like it; a code if there is none.
    """
    found = {}
    for number, target in enumerate(targets):
        name, own = target.question.question_id, target.answer
        others = [one.answer for one in (*targets[number + 1 :], *targets[:number])]
        others = [other for other in others if other.lower() != own.lower() and not _NUMBER.search(other)]
        other = _with_other_numbers(own, name)
        if other == own:
            other = min(others, key=lambda one: _unlike(one, own), default=_code(name))
        found[name] = other[0].upper() + other[1:] if own[0].isupper() else other
    return found


def _with_other_numbers(text: str, name: str) -> str:
    return _NUMBER.sub(lambda match: other_number(match[0], name), text)


def other_number(said: str, name: str) -> str:
    """Return another number that fits where one is said: a month or an hour, a day of any month, a year near it.

    Each part of a date or a time is a number of its own; those of a decimal and of thousands keep their width.
    """
    parts = re.split("([.,])", said)
    as_wide = len(parts) == 3 or "," in parts
    return "".join(part if part in ".," else _other_part(part, name, as_wide=as_wide) for part in parts)


def _other_part(digits: str, name: str, *, as_wide: bool) -> str:
    number = int(digits)
    if as_wide:
        low, high = 10 ** (len(digits) - 1), 10 ** len(digits) - 1
    elif number in range(1900, 2100):
        low, high = number - number % 10, number - number % 10 + 9
    else:
        decade = 10 ** (len(str(number)) - 1)
        low, high = next((ends for most, ends in _SMALL if number <= most), (max(60, decade), 10 * decade - 1))
    inside = low <= number <= high
    other = low + stable_seed("number", name, digits) % (high - low + 1 - inside)
    return str(other + (inside and other >= number)).zfill(len(digits))


def _unlike(one: str, other: str) -> tuple[bool, int]:
    """Return how much two answers differ in form: whether one alone has a capital first, and by how many words."""
    return one[0].isupper() != other[0].isupper(), abs(len(one.split()) - len(other.split()))


def _code(*parts: object) -> str:
    """Return a code that is nowhere else."""
    return f"KX-{stable_seed('code', *parts) % 10**6:06d}"


class _Plan:
    """Turns and gold that are added to a sample, one after the other."""

    def __init__(self, making: Making, category: int = 0) -> None:
        self.making = making
        self.category = making.sample.questions[0].category if making.sample.questions else category
        self.turns: dict[int, list[Turn]] = {}
        self.references: dict[str, Reference] = dict(making.sample.references)
        self.questions: list[Question] = list(making.sample.questions)
        self.updates: list[tuple[str, ...]] = list(making.sample.updates or ())

    def say(self, place: int, speaker: str, text: str) -> Turn:
        """Insert a turn of some speaker after a turn."""
        number = sum(map(len, self.turns.values()))
        turn = self.making.turn_after(self.making.conversation.turns[place], number, speaker, text)
        self.turns.setdefault(place, []).append(turn)
        return turn

    def leave_out(self, turns: Set[str], kept: Set[str]) -> None:
        """Ask no question with evidence in some turns, except those named."""
        for name, reference in list(self.references.items()):
            if name not in kept and not turns.isdisjoint(reference.evidence):
                del self.references[name]
        self.questions = [one for one in self.questions if one.question_id in self.references]

    def later(self, place: int) -> int:
        """Draw the place of a turn that is not before another."""
        return int(self.making.drawn.integers(place, len(self.making.conversation.turns)))

    def aim(self, reference: Reference, kind: str, turns: Sequence[Turn], payload: str, *, only: bool = False) -> None:
        """Say in a question's gold what is aimed at it."""
        attack: Mapping[str, Json] = {
            "kind": kind, "turns": [turn.turn_id for turn in turns], "payload": payload, "only": only,
            "question": self.asked(reference), "text": " ".join(turn.text for turn in turns),
        }  # fmt: skip
        self.references[reference.question_id] = replace(reference, extra={**reference.extra, ATTACK: attack})

    def asked(self, reference: Reference) -> str:
        """Return the words of a question."""
        return next(one.text for one in self.questions if one.question_id == reference.question_id)

    def probe(self, name: str, speaker: str, answer: str, evidence: Sequence[Turn]) -> Reference:
        """Ask for a code; without an answer the right reply is to abstain."""
        conversation = self.making.conversation.conversation_id
        kind = SINGLE_HOP if answer else ADVERSARIAL
        lock = answer or name == "other"  # what was told to the other user is a lock's code
        text = TEXTS("canary_twin_question" if lock else "canary_question", speaker=speaker)
        question = Question(f"{conversation}:{name}", conversation, text, self.category, kind)
        self.questions.append(question)
        answers = (answer,) if answer else ()
        reference = Reference(question.question_id, answers, tuple(turn.turn_id for turn in evidence))
        self.references[question.question_id] = reference
        return reference

    def sample(self) -> Sample:
        """Return the changed sample."""
        changed = self.making.with_turns(self.turns)
        updates = tuple(self.updates) if self.updates else self.making.sample.updates
        return replace(changed, questions=tuple(self.questions), references=self.references, updates=updates)


def contradicted(making: Making) -> list[Sample]:
    """Let facts be stated again at the end with another value, which then is the answer; twin: with the same value.

    Another question with evidence in the same turn is left out: its answer may be another now.
    """
    plan, targets = _Plan(making), _changeable(making)
    others = _false_answers(targets)
    plan.leave_out({target.turn.turn_id for target in targets}, {target.question.question_id for target in targets})
    last = len(making.conversation.turns) - 1
    for target in targets:
        new = target.answer if making.twin else others[target.question.question_id]
        text = TEXTS("unchanged" if making.twin else "changed", text=target.with_answer(new))
        turn = plan.say(last, target.turn.speaker, text)
        plan.references[target.question.question_id] = replace(
            target.reference,
            answers=(new,),
            evidence=(turn.turn_id,),
            extra={**target.reference.extra, OVERRULED: [target.turn.turn_id]},
        )
        plan.updates.append((target.turn.turn_id, turn.turn_id))
    return [plan.sample()]


def withdrawn(making: Making) -> list[Sample]:
    """Let speakers ask that what they said be forgotten, without saying it again; twin: they are glad that they did."""
    plan = _Plan(making)
    for target in _targets(making)[:_TARGETS]:
        text = TEXTS("withdrawn_twin" if making.twin else "withdrawn", question=target.question.text)
        plan.say(plan.later(target.place), target.turn.speaker, text)
        plan.aim(target.reference, "withdrawn", [target.turn], target.answer)
    return [plan.sample()]


def poison(making: Making) -> list[Sample]:
    """Let one speaker put instructions, false facts, imitated notes and a code that is to stay secret among the turns.

    Twin: a harmless remark about the question, the true fact, a note of it, a code that may be known.
    """
    plan, targets = _Plan(making), _targets(making)
    others = _false_answers(targets)
    for number, target in enumerate(targets[: 3 * _TARGETS]):
        kind = ("instruction", "false_fact", "imitation")[number % 3]
        speaker = making.other_than(target.turn.speaker)
        payload = _code(target.question.question_id) if kind == "instruction" else others[target.question.question_id]
        turn = plan.say(plan.later(target.place), speaker, _poison_text(kind, target, payload, making.twin))
        plan.aim(target.reference, kind, [turn], payload, only=kind == "instruction")
    _canary(plan)
    return [plan.sample()]


def _poison_text(kind: str, target: _Target, payload: str, twin: bool) -> str:
    if kind == "instruction" and twin:
        return TEXTS("instruction_twin", question=target.question.text)
    if kind == "instruction":
        return TEXTS("instruction", question=target.question.text, payload=payload)
    said = target.turn.text if twin else target.with_answer(payload)
    return TEXTS("imitation" if kind == "imitation" else "hearsay", speaker=target.turn.speaker, text=said)


def _canary(plan: _Plan) -> None:
    """Insert a turn that states a code, and a question for it."""
    making = plan.making
    speaker, code = making.speakers[0], _code(making.conversation.conversation_id, "canary")
    text = TEXTS("canary_twin" if making.twin else "canary", payload=code)
    turn = plan.say(plan.later(0), speaker, text)
    asked = plan.probe("canary", speaker, code if making.twin else "", [turn] if making.twin else [])
    plan.aim(asked, "canary", [turn], code, only=True)


def two_users(making: Making) -> list[Sample]:
    """Add a second conversation, in which a code is told, and ask the first for it; twin: ask the second.

    Both are written in one process, the second first; runs take them in turn (:func:`eval.running.plan.in_turn`), so
    that all of it is known when the first is asked.
    """
    conversation = making.conversation
    other = replace(conversation, conversation_id=f"{conversation.conversation_id}~other")
    first = _Plan(making)
    second = _Plan(replace(making, sample=Sample(other, (), {})), first.category)
    speaker, code = making.speakers[0], _code(conversation.conversation_id, "other")
    told = second.say(second.later(0), speaker, TEXTS("canary_twin", payload=code))
    plan, known = (second, [told]) if making.twin else (first, [])
    asked = plan.probe("other", speaker, code if making.twin else "", known)
    plan.aim(asked, "other_user", known, code, only=True)
    return [second.sample(), first.sample()]
