"""PerLTQA's question file: questions by character and section, each naming the memory that holds its answer."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eval.loaders.jsonfile import JsonNode, literal
from eval.loaders.perltqa_memory import Character, clean, entries
from eval.metrics.items import EVIDENCE_ITEMS, LENIENT_ITEMS
from memsys.scripts import parts
from memsys.vocabulary import Json, Question, Reference

#: The set numbers no categories. Stored runs number the sections from 7; the name is also the kind of question.
SECTIONS = {7: "profile", 8: "social_relationship", 9: "events", 10: "dialogues"}
_FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a about after also an and are as at be because been before but by did do does for from had has have "
        "he her his how i in into is it its of on or she so such that the their them they this to was were "
        "what when where which who will with would ",
    )
)


@dataclass(frozen=True, slots=True)
class QuestionEntry:
    """One question as written, with its place."""

    section: str
    group: str
    position: int
    question: str
    answer: str
    reference: str


def by_character(top: JsonNode) -> Iterator[tuple[str, JsonNode]]:
    """Yield (name, sections) of a question file, an object by name or an array of objects with one name each."""
    for name, node in entries(top):
        yield clean(name), node


def read_entries(node: JsonNode) -> list[QuestionEntry]:
    """Read one character's questions; the profile's are a plain array, the others are grouped by memory id."""
    out: list[QuestionEntry] = []
    known = {*SECTIONS.values(), *(section.replace("_", " ") for section in SECTIONS.values())}
    for name, section_node in node.members().items():
        if name not in known:
            raise section_node.error(f"unknown section {name!r}; known are {', '.join(SECTIONS.values())}")
    for section in SECTIONS.values():
        for group, questions in _groups(node, section):
            out += [_entry(section, group, n, item) for n, item in enumerate(questions.elements())]
    return out


def _groups(node: JsonNode, section: str) -> list[tuple[str, JsonNode]]:
    """Return the questions of a section by memory id.

    Raises:
        DataError: the section, or a memory id in it, is there twice: two questions would have one id.
    """
    names = dict.fromkeys((section, section.replace("_", " ")))
    found = [part for part in map(node.find, names) if part is not None]
    if len(found) > 1:
        raise found[1].error(f"duplicate section; {section} is there too")
    groups = [group for part in found for group in _by_memory(part, section)]
    seen: set[str] = set()
    for group, questions in groups:
        if group in seen:
            raise questions.error(f"duplicate memory id {group!r}")
        seen.add(group)
    return groups


def _by_memory(node: JsonNode, section: str) -> list[tuple[str, JsonNode]]:
    return [("-", node)] if section == "profile" else list(entries(node))


def _entry(section: str, group: str, position: int, node: JsonNode) -> QuestionEntry:
    reference = node.get("Reference Memory")
    return QuestionEntry(
        section=section,
        group=group,
        position=position,
        question=clean(node.get("Question").text()),
        answer=clean(node.get("Answer").text_or_number()),
        reference=str([item.text_or_number() for item in reference.elements()])
        if isinstance(reference.value, list)
        else reference.text().strip(),
    )


def ask(
    character: Character, read: Sequence[QuestionEntry], quirks: Counter[str]
) -> tuple[list[Question], list[Reference]]:
    """Make a character's questions and their gold; questions without answer are left out and counted."""
    category_of = {name: number for number, name in SECTIONS.items()}
    twins = Counter((entry.section, entry.group, entry.question) for entry in read)
    questions: list[Question] = []
    references: list[Reference] = []
    for entry in read:
        if not entry.answer or not entry.question:
            quirks["questions_without_answer_dropped"] += 1
            continue
        question_id = f"{character.name}|{entry.section}|{entry.group}|{entry.position}"
        questions.append(
            Question(question_id, character.name, entry.question, category_of[entry.section], entry.section)
        )
        same = twins[(entry.section, entry.group, entry.question)] > 1
        quirks["repeated_questions"] += same
        others = [other.answer for other in read if same and _twins(entry, other)]
        references.append(_reference(question_id, entry, character, others, quirks))
    return questions, references


def _twins(one: QuestionEntry, other: QuestionEntry) -> bool:
    return (one.section, one.group, one.question) == (other.section, other.group, other.question)


def _reference(
    question_id: str, entry: QuestionEntry, character: Character, same_question: Sequence[str], quirks: Counter[str]
) -> Reference:
    named = referenced_items(entry, quirks)
    known = [item for item in named if item in character.turns_of]
    unknown = tuple(item for item in named if item not in character.turns_of)
    quirks["unresolved_references"] += len(unknown)
    extra: dict[str, Json] = {"section": entry.section}
    if known:
        extra[EVIDENCE_ITEMS] = {item: list(character.turns_of[item]) for item in known}
        extra[LENIENT_ITEMS] = _with_retellings(known, character)
        extra["support"] = support(entry, " ".join(character.texts[item] for item in known))
    if same_question:
        extra["answers_of_same_question"] = list(same_question)
    return Reference(
        question_id=question_id,
        answers=(entry.answer,),
        evidence=tuple(turn_id for item in known for turn_id in character.turns_of[item]),
        unresolved_evidence=unknown,
        extra=extra,
    )


def _with_retellings(items: Sequence[str], character: Character) -> dict[str, list[str]]:
    """Return the events of these items, each with its turns and those of all dialogues that retell it."""
    events = {item.partition("#")[0] for item in items}
    found: dict[str, list[str]] = {}
    for item, turns in character.turns_of.items():
        event = item.partition("#")[0]
        if event in events:
            found.setdefault(event, []).extend(turns)
    return found


def referenced_items(entry: QuestionEntry, quirks: Counter[str]) -> list[str]:
    """Read ``Reference Memory``: a profile field, the text of a Python list of ids, or plain ids."""
    if entry.section == "profile":
        return [f"profile:{entry.reference}"]
    if entry.reference.startswith("["):
        value = literal(entry.reference)
        if not isinstance(value, list):
            quirks["unreadable_references"] += 1
            return [entry.reference]
        return list(dict.fromkeys(str(item).strip() for item in value))
    return list(dict.fromkeys(part.strip() for part in entry.reference.split(",") if part.strip()))


def support(entry: QuestionEntry, text: str) -> float:
    """Return the share of the answer's new words that the referenced memory contains; 1 without new words.

    Counted in content words, of Chinese in characters. The v2 dialogues were rewritten after their questions were: a
    low value marks an answer that is no longer there.
    """
    wanted = _words(entry.answer) - _words(entry.question) - _FUNCTION_WORDS
    return round(len(wanted & _words(text)) / len(wanted), 3) if wanted else 1.0


def _words(text: str) -> set[str]:
    return set(parts(text))
