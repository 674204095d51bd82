"""The questions of BEAM: ten kinds, each with fields of its own, and the messages that they were made from."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set

from eval.loaders import question_types
from eval.loaders.jsonfile import JsonNode
from eval.metrics.ordering import ORDERED_ITEMS
from memsys.vocabulary import RUBRIC, Json, Question, Reference

#: Category number, of no other data set -> the data set's own name of it.
CATEGORIES: Mapping[int, str] = {
    31: "abstention",
    32: "contradiction_resolution",
    33: "event_ordering",
    34: "information_extraction",
    35: "instruction_following",
    36: "knowledge_update",
    37: "multi_session_reasoning",
    38: "preference_following",
    39: "summarization",
    40: "temporal_reasoning",
}
KINDS: Mapping[int, str] = {
    **CATEGORIES,
    31: question_types.ADVERSARIAL,
    36: question_types.KNOWLEDGE_UPDATE,
    37: question_types.MULTI_SESSION,
    38: question_types.PREFERENCE,
    40: question_types.TEMPORAL,
}
#: Name of a category -> field of its gold answer. Following an instruction or a preference has none: what is in
#: ``expected_compliance`` describes an answer.
_ANSWER_FIELDS: Mapping[str, str] = {
    "abstention": "ideal_response",
    "contradiction_resolution": "ideal_answer",
    "summarization": "ideal_summary",
    "instruction_following": "",
    "preference_following": "",
}
_SUBTYPES = (
    "abstention_type", "contradiction_type", "ordering_type", "question_type", "instruction_type", "update_type",
    "reasoning_type", "preference_type", "summarization_type", "temporal_type",
)  # fmt: skip
#: What the field of its described answer, and of what it tests, is called.
_TEXTS = ("expected_compliance", "instruction_being_tested", "preference_being_tested", "difficulty", *_SUBTYPES)


def read_questions(
    top: JsonNode, conversation_id: str, ids: Set[str], about: Mapping[str, Json], quirks: Counter[str]
) -> tuple[tuple[Question, ...], dict[str, Reference]]:
    """Read a file of questions, in the order of the file.

    Args:
        top: object of category name -> questions.
        conversation_id: of the chat; a question is called ``<chat>:<category>:<place from 0>``.
        ids: of the chat's turns.
        about: kept with every reference.
        quirks: counters to raise.

    Raises:
        DataError: an unknown category, or a field is missing or of another type.
    """
    questions: list[Question] = []
    references: dict[str, Reference] = {}
    numbers = {name: number for number, name in CATEGORIES.items()}
    for name, entries in top.members().items():
        if name not in numbers:
            raise entries.error(f"unknown kind of question; known are {', '.join(numbers)}")
        for place, node in enumerate(entries.elements()):
            key = f"{conversation_id}:{name}:{place}"
            text = node.get("question").text()
            questions.append(Question(key, conversation_id, text, numbers[name], KINDS[numbers[name]]))
            references[key] = _reference(key, name, node, ids, quirks, about)
    return tuple(questions), references


def _reference(
    key: str, name: str, node: JsonNode, ids: Set[str], quirks: Counter[str], about: Mapping[str, Json]
) -> Reference:
    field = _ANSWER_FIELDS.get(name, "answer")
    sources = _sources(node.find("source_chat_ids"), quirks)
    named = [item for items in sources.values() for item in items]
    unique = tuple(dict.fromkeys(named))
    evidence = tuple(item for item in unique if item in ids)
    unresolved = tuple(item for item in unique if item not in ids)
    quirks["repeated_source_ids"] += len(named) - len(unique)
    quirks["unresolved_source_ids"] += len(unresolved)
    quirks["questions_without_source"] += not named and name != "abstention"
    quirks["half_sources"] += len(sources) > 1 and not all(sources.values())
    return Reference(
        question_id=key,
        answers=(node.get(field).text(),) if field else (),
        evidence=evidence,
        unresolved_evidence=unresolved,
        extra={**about, **_extra(name, node), **({"sources": sources} if len(sources) > 1 else {})},
    )


def _extra(name: str, node: JsonNode) -> dict[str, Json]:
    rubric = node.get("rubric").texts()
    kept: dict[str, Json] = {RUBRIC: rubric}
    if name == "event_ordering":
        kept[ORDERED_ITEMS] = rubric
    return kept | {field: found.text() for field in _TEXTS if (found := node.find(field)) is not None}


def _sources(node: JsonNode | None, quirks: Counter[str]) -> dict[str, list[str]]:
    """Return the ids by the part of the question that they belong to (``original_info``, ...), or under ``""``."""
    if node is None:
        return {}
    if isinstance(node.value, dict):
        return {part: _ids(below, quirks) for part, below in node.members().items()}
    return {"": _ids(node, quirks)}


def _ids(node: JsonNode, quirks: Counter[str]) -> list[str]:
    """Return the message ids of a list, of nested lists, or of a text, as in some questions of the larger sizes."""
    found: list[str] = []
    waiting: list[JsonNode] = [node]
    nested = False
    while waiting:
        one = waiting.pop(0)
        if isinstance(one.value, list):
            nested = nested or one is not node
            waiting = [*one.elements(), *waiting]
        elif isinstance(one.value, str):
            numbers = _numbers(one.value)
            quirks["source_ids_as_text"] += not numbers
            found += numbers
        else:
            found.append(str(one.integer()))
    quirks["nested_source_ids"] += nested
    return found


def _numbers(text: str) -> Sequence[str]:
    cleaned = "".join(character if character in "0123456789" else " " for character in text)
    return [str(int(number)) for number in cleaned.split() if len(number) < 10]
