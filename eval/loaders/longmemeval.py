"""LongMemEval (Wu et al., ICLR 2025): 500 questions, each on a history of sessions of its own with a chat assistant.

Source: github.com/xiaowu0162/LongMemEval; the files S (about 40 sessions a question), M (about 500) and oracle (the
evidence sessions alone) have one format. Every question is a conversation, so every question has a memory of its own.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.loaders import question_types
from eval.loaders.contract import DatasetInfo, LoadedData, PinnedFile
from eval.loaders.jsonfile import JsonNode, read_json
from eval.loaders.locate import find_source, sample_path
from eval.loaders.records import read_speaker
from eval.loaders.selection import Selection, check_name, count
from eval.metrics.sessions import EVIDENCE_SESSIONS, SESSION_SEPARATOR
from memsys.dates import in_order
from memsys.vocabulary import Conversation, Question, Reference, Sample, Turn

#: Category number, of no other data set -> the data set's own name of it.
CATEGORIES: Mapping[int, str] = {
    21: "single-session-user",
    22: "single-session-assistant",
    23: "single-session-preference",
    24: "multi-session",
    25: "knowledge-update",
    26: "temporal-reasoning",
    27: "abstention",
}
ABSTENTION = 27
#: Ends the id of a question that cannot be answered.
ABSTENTION_SUFFIX = "_abs"
_HUB = "https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned/resolve/main"
_FILES = ("longmemeval_s_cleaned.json", "longmemeval_m_cleaned.json", "longmemeval_oracle.json")

LONGMEMEVAL = DatasetInfo(
    key="longmemeval",
    title="LongMemEval",
    homepage="https://github.com/xiaowu0162/LongMemEval",
    licence="MIT (the repository)",
    citation="Wu et al., LongMemEval: Benchmarking Chat Assistants on Long-Term Interactive Memory, ICLR 2025",
    files=tuple(PinnedFile(name, sha256="", size=0, url=f"{_HUB}/{name}") for name in _FILES),
    category_names=CATEGORIES,
    kinds={
        21: "single_session_user",
        22: "single_session_assistant",
        23: question_types.PREFERENCE,
        24: question_types.MULTI_SESSION,
        25: question_types.KNOWLEDGE_UPDATE,
        26: question_types.TEMPORAL,
        ABSTENTION: question_types.ADVERSARIAL,
    },
    floor_preset="longmemeval_sample",  # the published files could not be had
    question_counts={21: 64, 22: 56, 23: 30, 24: 121, 25: 72, 26: 127, ABSTENTION: 30},
    note_meanings={
        "number_answers": "answers that are numbers; written out",
        "empty_sessions": "sessions without a message",
        "repeated_sessions": "session ids that occur twice in one history; the second gets a suffix",
        "unsorted_histories": "histories with sessions not ordered by date; sorted",
        "answer_sessions_missing": "evidence sessions that are not in the history",
        "questions_without_evidence_turn": "answerable questions without a marked message in the history",
        "evidence_turns_by_assistant": "marked messages of the assistant; the paper counts the user's alone",
    },
)


@dataclass(frozen=True, kw_only=True)
class LongmemevalConfig(Selection):
    """Settings of the LongMemEval loader; see :class:`eval.loaders.selection.Selection` for the rest.

    Attributes:
        name: the preset's name.
        file: name of the file in the data folder.
    """

    name: str = "longmemeval_s"
    file: str = _FILES[0]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_name("file", self.file, "a file")

    @property
    def info(self) -> DatasetInfo:
        """Facts of LongMemEval."""
        return LONGMEMEVAL

    def load(self) -> LoadedData:
        """Read the file or the sample, and select."""
        path = (
            sample_path("longmemeval") if self.sample else find_source(LONGMEMEVAL, self.file, self.path, self.data_dir)
        )
        everything, quirks, sha256 = read_longmemeval(path)
        samples = self.apply(everything, CATEGORIES)
        return LoadedData(
            samples=samples,
            sha256=sha256,
            source_name=path.name,
            category_names=CATEGORIES,
            counts=count(samples),
            notes={"pinned": False, "sample": self.sample, **dict(sorted(quirks.items()))},
        )


def read_longmemeval(path: Path) -> tuple[list[Sample], Counter[str], str]:
    """Read a file of LongMemEval's format.

    Returns:
        A sample per question, how often each irregularity was met, and the file's sha256.

    Raises:
        DataError: a field is missing or of another type, or the three lists of a history differ in length.
    """
    top, sha256 = read_json(path)
    quirks: Counter[str] = Counter()
    return [read_sample(node, quirks) for node in top.elements()], quirks, sha256


def read_sample(node: JsonNode, quirks: Counter[str]) -> Sample:
    """Read one question with its history; ``quirks`` counts what is irregular.

    Raises:
        DataError: as :func:`read_longmemeval`.
    """
    question_id = node.get("question_id").text()
    history = _history(node, quirks)
    turns = tuple(turn for session in history for turn in session.turns)
    if not turns:
        raise node.get("haystack_sessions").error("no message in any session")
    category = _category(node, question_id)
    question = Question(
        question_id=question_id,
        conversation_id=question_id,
        text=node.get("question").text(),
        category=category,
        kind=LONGMEMEVAL.kinds[category],
        question_date=node.get("question_date").text(),
    )
    reference = _reference(node, question, history, quirks)
    conversation = Conversation(question_id, turns, speakers=("User", "Assistant"))
    return Sample(conversation, (question,), {question_id: reference})


def _category(node: JsonNode, question_id: str) -> int:
    kind = node.get("question_type")
    numbers = {name: number for number, name in CATEGORIES.items() if number != ABSTENTION}
    if kind.text() not in numbers:
        raise kind.error(f"unknown question type {kind.value!r}; known are {', '.join(numbers)}")
    return ABSTENTION if question_id.endswith(ABSTENTION_SUFFIX) else numbers[kind.text()]


@dataclass(frozen=True, slots=True)
class _Session:
    """One session of a history: its id as published, its turns, and which of them are marked as evidence."""

    published_id: str
    session_id: str
    date: str
    turns: tuple[Turn, ...]
    evidence: tuple[Turn, ...]


def _history(node: JsonNode, quirks: Counter[str]) -> list[_Session]:
    """Return the sessions sorted by date; sessions of one date keep the file's order."""
    ids, dates = (node.get(f"haystack_{name}").texts() for name in ("session_ids", "dates"))
    bodies = node.get("haystack_sessions").elements()
    if not len(ids) == len(dates) == len(bodies):
        lengths = f"{len(ids)} ids, {len(dates)} dates, {len(bodies)} sessions"
        raise node.get("haystack_sessions").error(f"a history needs as many ids and dates as sessions: {lengths}")
    seen: Counter[str] = Counter()
    sessions = []
    for name, date, body in zip(ids, dates, bodies, strict=True):
        seen[name] += 1
        quirks["repeated_sessions"] += seen[name] > 1
        unique = name if seen[name] == 1 else f"{name}#{seen[name]}"
        sessions.append(_session(name, unique, date, body, quirks))
    ordered = sorted(sessions, key=lambda session: in_order(session.date))
    quirks["unsorted_histories"] += ordered != sessions
    return ordered


def _session(published_id: str, session_id: str, date: str, body: JsonNode, quirks: Counter[str]) -> _Session:
    turns, evidence = [], []
    for place, message in enumerate(body.elements(), start=1):
        speaker = read_speaker(message)
        text = message.get("content").text()
        turn = Turn(f"{session_id}{SESSION_SEPARATOR}{place}", session_id, speaker, text, date)
        turns.append(turn)
        if _is_evidence(message):
            evidence.append(turn)
            quirks["evidence_turns_by_assistant"] += speaker == "Assistant"
    quirks["empty_sessions"] += not turns
    return _Session(published_id, session_id, date, tuple(turns), tuple(evidence))


def _is_evidence(message: JsonNode) -> bool:
    """Return whether a message is marked as holding the answer.

    Raises:
        DataError: the mark is neither true, false nor null.
    """
    mark = message.find("has_answer")
    if mark is None or mark.value is None:
        return False
    if not isinstance(mark.value, bool):
        raise mark.error("must be true or false")
    return mark.value


def _reference(node: JsonNode, question: Question, history: Sequence[_Session], quirks: Counter[str]) -> Reference:
    """Read the gold.

    What leads to an abstention is not evidence of an answer, and is kept apart; so are sessions none of whose messages
    is marked, which the paper's retrieval scores leave out.
    """
    answer = node.get("answer")
    quirks["number_answers"] += not isinstance(answer.value, str)
    gold_sessions = list(dict.fromkeys(node.get("answer_session_ids").texts()))
    there = {session.published_id for session in history}
    missing = [name for name in gold_sessions if name not in there]
    quirks["answer_sessions_missing"] += len(missing)
    turns = [turn.turn_id for session in history for turn in session.evidence]
    named = [session.session_id for session in history if session.published_id in gold_sessions]
    abstention = question.category == ABSTENTION
    quirks["questions_without_evidence_turn"] += not turns and not abstention
    extra = {"question_type": node.get("question_type").text()}
    if abstention or not turns:
        return Reference(
            question.question_id,
            (answer.text_or_number(),),
            unresolved_evidence=() if abstention else tuple(missing),
            extra={**extra, "related_sessions": named},
        )
    return Reference(
        question_id=question.question_id,
        answers=(answer.text_or_number(),),
        evidence=tuple(turns),
        unresolved_evidence=tuple(missing),
        extra={**extra, EVIDENCE_SESSIONS: named},
    )
