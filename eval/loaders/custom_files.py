"""Reading, checking and writing the two files of one's own data; format: ``datasets/custom/schema.json``."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.loaders.jsonfile import JsonNode, read_json_lines, type_name
from eval.loaders.kinds import ADVERSARIAL, SINGLE_HOP
from memsys.assets.paths import shipped
from memsys.errors import DataError
from memsys.vocabulary import Conversation, Json, Question, Reference, Sample, Turn

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

TURNS, QUESTIONS = "turns.jsonl", "questions.jsonl"
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


def read_custom(folder: Path) -> tuple[list[ReadSample], dict[str, str]]:
    """Read a folder.

    Returns:
        The conversations in the order in which they begin, and the sha256 of each file.

    Raises:
        DataError: a file is missing or no JSON Lines; or lists what is wrong with file, line and field.
    """
    turns, turns_sha256 = read_json_lines(folder / TURNS)
    questions, questions_sha256 = read_json_lines(folder / QUESTIONS)
    _refuse([*_shape_problems(turns, "turn"), *_shape_problems(questions, "question")])
    if not turns:
        raise DataError(f"{TURNS}: holds no turn; write one a line, as in datasets/custom/sample/{TURNS}")
    _refuse([*_turn_problems(turns), *_question_problems(questions, turns)])
    by_conversation = {name: list(nodes) for name, nodes in _grouped(turns).items()}
    asked = _grouped(questions)
    if not asked:
        raise DataError(f"{QUESTIONS}: holds no question; write one a line, as in datasets/custom/sample/{QUESTIONS}")
    samples = [_sample(name, nodes, asked.get(name, [])) for name, nodes in by_conversation.items()]
    return samples, {TURNS: turns_sha256, QUESTIONS: questions_sha256}


def write_custom(samples: Iterable[Sample], folder: Path) -> tuple[int, int]:
    """Write conversations and questions as the two files; returns the numbers of turns and of questions."""
    kept = list(samples)
    turns = [
        _turn_row(sample.conversation.conversation_id, turn) for sample in kept for turn in sample.conversation.turns
    ]
    asked = [_question_row(ask, sample.references[ask.question_id]) for sample in kept for ask in sample.questions]
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in ((TURNS, turns), (QUESTIONS, asked)):
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / name).write_text(lines, encoding="utf-8")
    return len(turns), len(asked)


def _turn_row(conversation: str, turn: Turn) -> dict[str, Json]:
    optional = {"speaker": turn.speaker, "date": turn.date_time, "caption": turn.caption}
    needed = {"conversation": conversation, "session": turn.session_id, "id": turn.turn_id, "text": turn.text}
    return {**needed, **_filled(optional)}


def _question_row(question: Question, reference: Reference) -> dict[str, Json]:
    optional = {
        "evidence": list(reference.evidence),
        "kind": question.kind,
        "date": question.question_date,
        "false_answer": reference.adversarial_answer,
    }
    needed = {"conversation": question.conversation_id, "id": question.question_id, "question": question.text}
    return {**needed, "answers": list(reference.answers), **_filled(optional)}


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


def _shape_problems(nodes: Iterable[JsonNode], kind: str) -> list[DataError]:
    check = _validator(kind)
    return [problem for node in nodes for found in check.iter_errors(node.value) for problem in _said(node, found)]


def _said(node: JsonNode, found: "ValidationError") -> Iterator[DataError]:
    """Say a fault of the schema's in the words that all loaders use."""
    place = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in found.absolute_path).lstrip(".")
    value: Any = found.instance
    rule: Any = found.validator_value
    at = JsonNode(value, place, node.file)
    if found.validator == "required":
        lacking = next(key for key in rule if key not in value and repr(key) in found.message)
        yield JsonNode(None, lacking, node.file).error("missing field")
    elif found.validator == "additionalProperties":
        shape: Any = found.schema
        known = shape["properties"]
        for key in value.keys() - known.keys():
            yield JsonNode(None, key, node.file).error(f"unknown field; known are {', '.join(known)}")
    elif found.validator == "type":
        yield at.error(f"expected {rule}, found {type_name(value)}")
    elif rule == _NOT_BLANK:
        yield at.error("is empty")
    else:
        yield at.error(f"{value!r} must be small letters, digits and _, such as knowledge_update")


def _turn_problems(turns: Sequence[JsonNode]) -> list[DataError]:
    """Turns in which nothing is said, ids used twice, and sessions that go on after another began."""
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


def _question_problems(questions: Sequence[JsonNode], turns: Sequence[JsonNode]) -> list[DataError]:
    known: dict[str, set[str]] = {}
    for node in turns:
        known.setdefault(node.value["conversation"], set()).add(node.value["id"])
    seen: set[str] = set()
    problems = []
    for node in questions:
        question_id = node.value["id"]
        if question_id in seen:
            problems.append(node.get("id").error(f"duplicate question id {question_id!r}"))
        seen.add(question_id)
        problems += _reference_problems(node, known)
    return problems


def _reference_problems(node: JsonNode, known: Mapping[str, set[str]]) -> Iterator[DataError]:
    conversation = node.value["conversation"]
    if conversation not in known:
        yield node.get("conversation").error(f"{TURNS} has no conversation {conversation!r}")
        return
    evidence = node.find("evidence")
    for named in evidence.elements() if evidence else []:
        if named.value not in known[conversation]:
            yield named.error(f"conversation {conversation!r} has no turn {named.value!r}")
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
        conversation=Conversation(name, said, tuple(dict.fromkeys(turn.speaker for turn in said if turn.speaker))),
        questions=tuple(question for question, _ in asked),
        references={question.question_id: reference for question, reference in asked},
    )


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
    )
    return question, reference
