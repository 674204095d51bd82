"""Reading, checking and writing the two files of one's own data; format: ``datasets/custom/schema.json``."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.loaders.jsonfile import JsonNode, array_error, read_whole_lines, type_name
from eval.loaders.question_types import ADVERSARIAL, KINDS, SINGLE_HOP
from eval.metrics.sessions import EVIDENCE_SESSIONS, session_of
from memsys.assets.hints import of_source
from memsys.assets.paths import shipped
from memsys.dates import parse_date
from memsys.errors import DataError
from memsys.vocabulary import Conversation, Json, Question, Reference, Sample, Turn

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

TURNS, QUESTIONS = "turns.jsonl", "questions.jsonl"
#: What explains the format.
PAGE = of_source("docs/your_own_data.md")
#: Pattern of the schema for texts that must say something.
_NOT_BLANK = r"\S"
#: Problems that one message lists, and characters of each.
_LISTED, _LONGEST = 5, 300


@dataclass(frozen=True, slots=True)
class ReadSample:
    """A conversation with its questions, whose kinds have no numbers yet."""

    conversation: Conversation
    questions: tuple[Question, ...]
    references: Mapping[str, Reference]

    def numbered(self, numbers: Mapping[str, int]) -> Sample:
        """Give the questions their category numbers."""
        questions = tuple(replace(question, category=numbers[question.kind]) for question in self.questions)
        return Sample(self.conversation, questions, self.references)


@cache
def schema() -> dict[str, Json]:
    """Return the JSON schema of a line of each file, under ``$defs``."""
    found: dict[str, Json] = json.loads(shipped("datasets", "custom", "schema.json").read_text(encoding="utf-8"))
    return found


def read_custom(
    folder: Path, questions_needed: bool = True
) -> tuple[list[ReadSample], dict[str, str], dict[str, Json]]:
    """Read a folder.

    Args:
        folder: of the two files.
        questions_needed: refuse a file of questions without one, and a folder without that file.

    Returns:
        The conversations in the order in which they begin, the sha256 of each file, and what was not read: dates that
        no system can compare, each with its line, and fields that the format lacks. Either is absent where empty.

    Raises:
        DataError: a file is missing or no JSON Lines; or lists what is wrong with file, line and field.
    """
    turns, turn_faults, turns_sha256 = _shaped(folder / TURNS, "turn")
    questions, question_faults, questions_sha256 = _shaped(folder / QUESTIONS, "question", questions_needed)
    if not turns and not turn_faults:
        raise DataError(f"{TURNS}: holds no turn; write one a line, as in datasets/custom/sample/{TURNS}")
    # What a question names may be in a line of turns that cannot be used: that comes first.
    checked = _question_problems(questions, None if turn_faults else turns)
    _refuse([*turn_faults, *_turn_problems(turns), *question_faults, *checked])
    by_conversation = _grouped(turns)
    asked = _grouped(questions)
    if questions_needed and not asked:
        raise DataError(f"{QUESTIONS}: holds no question; write one a line, as in datasets/custom/sample/{QUESTIONS}")
    samples = [_sample(name, nodes, asked.get(name, [])) for name, nodes in by_conversation.items()]
    hashes = {TURNS: turns_sha256, QUESTIONS: questions_sha256}
    read = {name: sha256 for name, sha256 in hashes.items() if sha256}
    unread = {
        "unread_dates": _unread_dates([*turns, *questions]),
        "unread_fields": [
            f"{name}: {field}"
            for name, nodes, kind in ((TURNS, turns, "turn"), (QUESTIONS, questions, "question"))
            for field in unread_fields(nodes, kind)
        ],
    }
    return samples, read, {name: found for name, found in unread.items() if found}


def _shaped(path: Path, kind: str, needed: bool = True) -> tuple[list[JsonNode], list[DataError], str]:
    """Return the well-formed lines, the problems of the others, and the file's sha256; empty for an absent file."""
    if not path.exists():
        if needed:
            raise DataError(
                f"{path}: no such file; write one {kind} a line ({PAGE}), or let `memsys convert_data` "
                "make it of a table or an export"
            )
        return [], [], ""
    nodes, faults, sha256 = read_whole_lines(path)
    if len(nodes) == 1 and not faults and _objects(nodes[0]):
        return [], [array_error(path)], sha256
    found = [(node, _shape_problems(node, kind)) for node in (_as_schema(node, kind) for node in nodes)]
    faults += [problem for _, problems in found for problem in problems]
    return [node for node, problems in found if not problems], faults, sha256


#: Names of OpenAI's messages for fields of a turn.
_OTHER_NAMES = {"role": "speaker", "content": "text"}
#: Fields of ids, of which numbers are taken as their digits.
_IDS = ("conversation", "session", "id")
_ID_LISTS = ("evidence", "evidence_sessions")
#: Likeness (difflib) from which a name is taken for a misspelling.
_ALIKE = 0.8


def _as_schema(node: JsonNode, kind: str) -> JsonNode:
    """Write ids that are whole numbers as texts, and OpenAI's ``role`` and ``content`` of a turn as the schema does.

    A field that need not be there may be null.
    """
    if not isinstance(node.value, dict):
        return node
    needed = schema()["$defs"][kind]["required"]
    row = {key: value for key, value in node.value.items() if value is not None or key in needed}
    for other, name in _OTHER_NAMES.items() if kind == "turn" else ():
        if other in row and name not in row:
            row[name] = row.pop(other)
    row |= {key: _id_text(row[key]) for key in _IDS if key in row}
    row |= {key: list(map(_id_text, row[key])) for key in _ID_LISTS if isinstance(row.get(key), list)}
    return JsonNode(row, node.path, node.file)


def _id_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def unread_fields(nodes: Iterable[JsonNode], kind: str) -> list[str]:
    """Name the fields that are not part of the format, in the order in which they come."""
    known = schema()["$defs"][kind]["properties"]
    return list(dict.fromkeys(key for node in nodes for key in node.value if key not in known))


def _objects(node: JsonNode) -> bool:
    """Return whether a value is an array of objects, or an empty one."""
    return isinstance(node.value, list) and all(isinstance(one, dict) for one in node.value)


def _unread_dates(nodes: Iterable[JsonNode]) -> list[str]:
    """Return the lines whose date :mod:`memsys.dates` cannot parse: shown as written, but not ordered."""
    dated = ((node.file, node.value.get("date", "")) for node in nodes)
    unread = [f"{line}: date {date!r}"[:_LONGEST] for line, date in dated if date.strip() and not parse_date(date)]
    more = [f"and {len(unread) - _LISTED} more"] if len(unread) > _LISTED else []
    return [*unread[:_LISTED], *more]


def write_custom(samples: Iterable[Sample], folder: Path) -> tuple[int, int]:
    """Write conversations and questions as the two files; returns the numbers of turns and of questions."""
    kept = list(samples)
    turns = [
        _turn_row(sample.conversation.conversation_id, turn) for sample in kept for turn in sample.conversation.turns
    ]
    asked = [_question_row(ask, sample) for sample in kept for ask in sample.questions]
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in ((TURNS, turns), (QUESTIONS, asked)):
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / name).write_text(lines, encoding="utf-8")
    return len(turns), len(asked)


def _turn_row(conversation: str, turn: Turn) -> dict[str, Json]:
    optional = {"speaker": turn.speaker, "date": turn.date_time, "caption": turn.caption}
    needed = {"conversation": conversation, "session": turn.session_id, "id": turn.turn_id, "text": turn.text}
    return {**needed, **_filled(optional)}


def _question_row(question: Question, sample: Sample) -> dict[str, Json]:
    reference = sample.references[question.question_id]
    sessions = {turn.session_id for turn in sample.conversation.turns}
    gold_sessions = reference.extra.get(EVIDENCE_SESSIONS)
    optional = {
        "evidence": list(reference.evidence),
        "kind": question.kind,
        "date": question.question_date,
        "false_answer": reference.adversarial_answer,
    }
    needed = {"conversation": question.conversation_id, "id": question.question_id, "question": question.text}
    row = {**needed, "answers": list(reference.answers), **_filled(optional)}
    if gold_sessions is not None:  # an empty list says that there are figures by session, and none of this question
        row["evidence_sessions"] = [name for name in gold_sessions if name in sessions]
    return row


def _filled(fields: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in fields.items() if value}


def _refuse(problems: Sequence[DataError]) -> None:
    """Raise the problems as one message."""
    if problems:
        more = [f"and {len(problems) - _LISTED} more"] if len(problems) > _LISTED else []
        shown = [str(problem)[:_LONGEST] for problem in problems[:_LISTED]]
        raise DataError("\n  ".join([*shown, *more]))


@cache
def _validator(kind: str) -> "Draft202012Validator":
    from jsonschema import Draft202012Validator

    return Draft202012Validator(schema()["$defs"][kind])


def _shape_problems(node: JsonNode, kind: str) -> list[DataError]:
    said = [problem for found in _validator(kind).iter_errors(node.value) for problem in _said(node, found)]
    return [*said, *_misspellings(node, kind)] if isinstance(node.value, dict) else said


def _misspellings(node: JsonNode, kind: str) -> Iterator[DataError]:
    """Yield the unknown fields whose name is close to a known one."""
    known = schema()["$defs"][kind]["properties"]
    for key in unread_fields([node], kind):
        for meant in get_close_matches(key, known.keys() - node.value.keys(), n=1, cutoff=_ALIKE):
            yield JsonNode(None, key, node.file).error(f"unknown field; did you mean {meant}?")


def _said(node: JsonNode, found: "ValidationError") -> Iterator[DataError]:
    """Say a fault of the schema's in the words that all loaders use."""
    place = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in found.absolute_path).lstrip(".")
    value: Any = found.instance
    rule: Any = found.validator_value
    at = JsonNode(value, place, node.file)
    if found.validator == "required":
        lacking = next(key for key in rule if key not in value and repr(key) in found.message)
        yield JsonNode(None, lacking, node.file).error("missing field")
    elif found.validator == "type":
        yield at.error(f"expected {rule}, found {type_name(value)}")
    elif rule == _NOT_BLANK:
        yield at.error("is empty")
    else:
        yield at.error(f"{value!r} must be small letters, digits and _, such as knowledge_update")


def _turn_problems(turns: Sequence[JsonNode]) -> list[DataError]:
    """Return blank turns, ids used twice, and sessions that continue after another began."""
    seen: set[tuple[str, str]] = set()
    ended: set[tuple[str, str]] = set()
    last: dict[str, str] = {}
    problems = []
    for node in turns:
        conversation, session, turn_id = (node.value[key] for key in ("conversation", "session", "id"))
        if (conversation, turn_id) in seen:
            problems.append(node.get("id").error(f"duplicate turn id {turn_id!r} in conversation {conversation!r}"))
        seen.add((conversation, turn_id))
        if not (node.value["text"] + node.value.get("caption", "")).strip():
            problems.append(node.get("text").error("is empty; a turn has a text or a caption, else leave its line out"))
        if last.get(conversation, session) != session:
            ended.add((conversation, last[conversation]))
        if (conversation, session) in ended:
            problems.append(
                node.get("session").error(f"session {session!r} ended before; keep the lines of a session together")
            )
        last[conversation] = session
    return problems


def _question_problems(questions: Sequence[JsonNode], turns: Sequence[JsonNode] | None) -> list[DataError]:
    """Return ids used twice, answers that the category does not allow and, where turns are given, unknown turn ids."""
    known = None if turns is None else _known(turns)
    seen: set[str] = set()
    problems = []
    for node in questions:
        question_id = node.value["id"]
        if question_id in seen:
            problems.append(node.get("id").error(f"duplicate question id {question_id!r}"))
        seen.add(question_id)
        if known is not None:
            problems += _evidence_problems(node, known)
        problems += [*_answer_problems(node), *_kind_problems(node)]
    return problems


def _kind_problems(node: JsonNode) -> Iterator[DataError]:
    """Yield the user's categories whose name is close to one with a meaning; a longer name is another."""
    kind = node.value.get("kind", SINGLE_HOP)
    for meant in get_close_matches(kind, KINDS, n=1, cutoff=_ALIKE):
        if kind != meant and not kind.startswith(f"{meant}_"):
            yield node.get("kind").error(f"{kind!r} is hardly a kind of its own; did you mean {meant}?")


def _known(turns: Sequence[JsonNode]) -> dict[str, dict[str, str]]:
    """Return the session of every turn by conversation."""
    found: dict[str, dict[str, str]] = {}
    for node in turns:
        found.setdefault(node.value["conversation"], {})[node.value["id"]] = node.value["session"]
    return found


def _evidence_problems(node: JsonNode, known: Mapping[str, Mapping[str, str]]) -> Iterator[DataError]:
    conversation = node.value["conversation"]
    if conversation not in known:
        yield node.get("conversation").error(f"{TURNS} has no conversation {conversation!r}")
        return
    sessions = known[conversation]
    evidence, gold_sessions = node.find("evidence"), node.find("evidence_sessions")
    for named in evidence.elements() if evidence else []:
        if named.value not in sessions:
            yield named.error(f"conversation {conversation!r} has no turn {named.value!r}")
    for named in gold_sessions.elements() if gold_sessions else []:
        if named.value not in sessions.values():
            yield named.error(f"conversation {conversation!r} has no session {named.value!r}")
    # Figures by session are computed from the ids of retrieved turns alone.
    odd = next((turn for turn, session in sessions.items() if session_of(turn) != session), None)
    if gold_sessions and odd is not None:
        yield gold_sessions.error(f"needs turns that are called SESSION:PLACE; turn {odd!r} is not")


def _answer_problems(node: JsonNode) -> Iterator[DataError]:
    adversarial = node.value.get("kind") == ADVERSARIAL
    if not adversarial and not node.value["answers"]:
        yield node.get("answers").error(f"is empty; a question without an answer has kind {ADVERSARIAL}")
    if not adversarial and "false_answer" in node.value:
        yield node.get("false_answer").error(f"belongs to questions of kind {ADVERSARIAL} alone")


def _grouped(nodes: Sequence[JsonNode]) -> dict[str, list[JsonNode]]:
    found: dict[str, list[JsonNode]] = {}
    for name, group in groupby(nodes, key=lambda node: str(node.value["conversation"])):
        found.setdefault(name, []).extend(group)
    return found


def _sample(name: str, turns: Sequence[JsonNode], questions: Sequence[JsonNode]) -> ReadSample:
    said = tuple(_turn(node.value) for node in turns)
    asked = [_question(node.value) for node in questions]
    return ReadSample(
        conversation=Conversation(name, said, _speakers(said)),
        questions=tuple(question for question, _ in asked),
        references={question.question_id: reference for question, reference in asked},
    )


#: Roles of a chat's messages that are not a speaker's; some systems take the first speaker for the user.
_NO_SPEAKERS = ("system", "tool")


def _speakers(said: Sequence[Turn]) -> tuple[str, ...]:
    """Return speakers in order of appearance; of chat roles ``user`` is first, ``system`` and ``tool`` are last."""
    found = dict.fromkeys(turn.speaker for turn in said if turn.speaker)
    return tuple(sorted(found, key=lambda name: (name in _NO_SPEAKERS, name != "user" and "user" in found)))


def _turn(row: Mapping[str, str]) -> Turn:
    return Turn(
        turn_id=row["id"],
        session_id=row["session"],
        speaker=row.get("speaker", ""),
        text=row["text"],
        date_time=row.get("date", ""),
        caption=row.get("caption", ""),
    )


def _question(row: Mapping[str, Json]) -> tuple[Question, Reference]:
    question = Question(
        question_id=row["id"],
        conversation_id=row["conversation"],
        text=row["question"],
        category=0,
        kind=row.get("kind", SINGLE_HOP),
        question_date=row.get("date", ""),
    )
    reference = Reference(
        question_id=row["id"],
        answers=tuple(row["answers"]),
        evidence=tuple(dict.fromkeys(row.get("evidence", ()))),
        adversarial_answer=row.get("false_answer"),
        extra={EVIDENCE_SESSIONS: row["evidence_sessions"]} if "evidence_sessions" in row else {},
    )
    return question, reference
