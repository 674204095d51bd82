"""The words every part of the harness shares.

LoCoMo's words carry over to the other data sets: a passage, a sentence or a dialogue line is a turn.
All types are frozen; ids are strings and unique within their conversation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, get_args

#: A value that survives a round trip through JSON. ``Any`` because recursive aliases defeat most call sites.
Json = Any

#: Key of ``Reference.extra``: ids of turns that later turns overrule, where a question asks for what holds last.
OVERRULED = "overruled"
#: Key of ``Reference.extra``: what a judge checks one by one.
RUBRIC = "rubric"

#: A further list of a retrieval's hits whose evidence is scored besides that of all hits: ``named`` are those that the
#: memory's model names as the sources of the text in the context, ``searched`` those that were searched for, where
#: other hits are in the context without a search.
RankingName = Literal["named", "searched"]
RANKINGS: tuple[RankingName, ...] = get_args(RankingName)


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance (or one passage, sentence, dialogue line) of a conversation."""

    turn_id: str
    session_id: str
    speaker: str
    text: str
    date_time: str = ""
    caption: str = ""
    #: What the data set adds and no other field holds, e.g. ``{"img_url": True}`` in LoCoMo. ``record`` names the
    #: record (article, snippet, person, event) that the turn is a part of, where that is less than its session.
    extra: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)  # without slots, which leave no place for what is looked up once
class Conversation:
    """One memory's whole input: turns in the order they were said."""

    conversation_id: str
    turns: tuple[Turn, ...]
    speakers: tuple[str, ...] = ()

    @cached_property
    def speaking(self) -> tuple[str, ...]:
        """The speakers of the turns, each where it speaks first; they are looked up once, however many turns."""
        return tuple(dict.fromkeys(turn.speaker for turn in self.turns))

    @property
    def user(self) -> str:
        """Who counts as the user: the first of the named speakers, or who speaks first; empty without any."""
        return (*self.speakers, *self.speaking[:1], "")[0]


@dataclass(frozen=True, slots=True)
class Question:
    """A question. Carries nothing that a system should not know when it answers."""

    question_id: str
    conversation_id: str
    text: str
    #: The data set's own category number (LoCoMo: 1 multi-hop, 2 temporal, 3 open-domain, 4 single-hop, 5 adversarial).
    category: int
    #: What is asked, in words that all data sets share (``multi_hop``, ``temporal``, ``adversarial``); readers and
    #: protocols go by it. Empty: what the category meant before questions had kinds
    #: (:mod:`eval.loaders.question_types`).
    kind: str = ""
    #: When it is asked, as the data set writes it (LongMemEval); empty where it says nothing.
    question_date: str = ""


@dataclass(frozen=True, slots=True)
class Reference:
    """Gold of one question. Read by scoring, by the oracle baseline and, for category 5's false option, by the reader.

    ``answers`` are alternatives (empty where the data set gives none); ``adversarial_answer`` is LoCoMo's false
    answer of category 5. ``evidence`` holds resolved turn ids, ``unresolved_evidence`` the ids as written that name
    no turn.
    """

    question_id: str
    answers: tuple[str, ...]
    evidence: tuple[str, ...] = ()
    unresolved_evidence: tuple[str, ...] = ()
    adversarial_answer: str | None = None
    extra: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sample:
    """One conversation with its questions and their gold, as a loader yields it.

    ``updates`` is gold of the whole conversation, read by scoring alone: groups of turn ids that state the same thing
    again, each in order, of which the last holds and overrules the others. ``None`` where the data set does not say.
    """

    conversation: Conversation
    questions: tuple[Question, ...]
    references: Mapping[str, Reference]
    updates: tuple[tuple[str, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class Unit:
    """Input of one write: a turn for most systems, eight messages or a session for others.

    Attributes:
        unit_id: unique in its conversation.
        turns: in order.
        conversation: the conversation that it was cut from, for systems whose preparation needs to know more of it
            than the unit's turns: who speaks, or what comes before. ``None`` where nothing does.
    """

    unit_id: str
    turns: tuple[Turn, ...]
    conversation: Conversation | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Hit:
    """One retrieved memory. ``turn_ids`` are the turns it came from, through every rewriting and merging.

    None are named by a memory that is too short to say what each of its turns said, such as the summary of a day.

    ``text`` is the memory's content, which evidence metrics by substring look at; what the reader sees is
    :attr:`Retrieval.context`.
    """

    text: str
    score: float
    turn_ids: tuple[str, ...]
    memory_id: str = ""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The answer of a memory to one query: hits best first, and the exact context that the reader sees.

    ``trace`` holds the system's diagnostics as JSON values. The key ``spans`` maps a phase name (``keywords``,
    ``select``, ``embed``, ``search``, ``format``) to seconds. ``ranked`` is false where nothing was searched and the
    hits only name what is shown: then figures of a ranking do not apply. ``traced`` is false where the memory cannot
    say which turns a hit came from: then figures by turn ids do not apply. ``answer`` is the memory's own answer, which
    replaces the reader's; ``None`` for all that leave answering to the reader.

    ``shown`` says which hits the context was made of: indices into :attr:`hits`, ascending, each once; ``None``: all of
    them. A system whose context has a limit sets it for every question, also where everything had room. As evidence
    that the reader saw count those of them whose text is in the context.

    ``rankings`` are further lists of the hits, as indices into :attr:`hits`, best first; see :data:`RankingName`. A
    system that gives one gives it for every question, also where it is empty.

    ``also_shown`` are memories that the context shows besides the hits, such as notes that hits link to. Figures of
    what was found leave them out; those of what is in the context count them.

    Raises:
        ValueError: ``shown`` or a ranking names a hit that is not there, or ``shown`` is not ascending; a ranking has
            an unknown name, or names a hit twice.
    """

    hits: tuple[Hit, ...]
    context: str
    trace: Mapping[str, Json] = field(default_factory=dict)
    ranked: bool = True
    traced: bool = True
    answer: str | None = None
    shown: tuple[int, ...] | None = None
    rankings: Mapping[RankingName, tuple[int, ...]] = field(default_factory=dict)
    also_shown: tuple[Hit, ...] = ()

    def __post_init__(self) -> None:
        check_shown(self.shown, len(self.hits))
        check_rankings(self.rankings, len(self.hits))


def check_shown(shown: Sequence[int] | None, hits: int) -> None:
    """Check which hits a context shows; see :class:`Retrieval`.

    Raises:
        ValueError: one is not there, or they are not ascending.
    """
    if shown is None:
        return
    if any(later <= earlier for earlier, later in pairwise(shown)) or any(not 0 <= place < hits for place in shown):
        raise ValueError(f"shown={list(shown)} must be ascending indices into {hits} hits, each once")


def check_rankings(rankings: Mapping[RankingName, Sequence[int]], hits: int) -> None:
    """Check further lists of the hits; see :class:`Retrieval`.

    Raises:
        ValueError: one has an unknown name, or names a hit that is not there or that it named before.
    """
    for name, places in rankings.items():
        if name not in RANKINGS:
            raise ValueError(f"rankings.{name} is not a ranking; there are {', '.join(RANKINGS)}")
        if len(set(places)) < len(places) or any(not 0 <= place < hits for place in places):
            raise ValueError(f"rankings.{name}={list(places)} must be indices into {hits} hits, each once")


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """One generated token with its log-probability (natural log) and the alternatives the server gave."""

    token: str
    logprob: float
    top: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Completion:
    """One reply of a language model. ``seconds`` is service time, without the client's queue or retries.

    ``cached_tokens``: tokens at the prompt's beginning that the server did not compute again, since an earlier request
    began alike; ``None`` where the server does not say.
    ``tool_calls``: calls of tools that the model asks for, each with the name ``name`` and the text ``arguments``.
    ``estimated``: the server did not say how many tokens prompt or reply have, and they were counted here.
    ``refusal``: why the model, or a filter of the server, declined to reply, in their words.
    """

    text: str
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    finish_reason: str
    logprobs: tuple[TokenLogprob, ...] = ()
    cached_tokens: int | None = None
    tool_calls: tuple[Mapping[str, str], ...] = ()
    refusal: str = ""
    estimated: bool = False
