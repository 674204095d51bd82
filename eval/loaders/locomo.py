"""LoCoMo (Maharana et al., ACL 2024): ten long conversations between two people, with 1,986 questions.

Source: github.com/snap-research/locomo, ``data/locomo10.json``. The file is irregular in known places (see
``datasets/locomo/README.md``); each is repaired by a rule below and counted in ``LoadedData.notes``.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from eval.loaders import question_types
from eval.loaders.contract import DatasetInfo, LoadedData, PinnedFile
from eval.loaders.jsonfile import JsonNode, read_json
from eval.loaders.locate import find_source, sample_path
from eval.loaders.locomo_category5 import read_category5
from eval.loaders.locomo_labels import Labels, apply_audit, mark_adversarial, read_audit
from eval.loaders.question_types import MULTI_HOP, OPEN_DOMAIN, SINGLE_HOP, TEMPORAL
from eval.loaders.records import read_question
from eval.loaders.selection import Selection, check_choice, count
from eval.metrics.locomo import CATEGORY_5
from memsys.turns import ImageQueries
from memsys.vocabulary import Conversation, Json, Question, Reference, Sample, Turn

LOCOMO = DatasetInfo(
    key="locomo",
    title="LoCoMo (locomo10)",
    homepage="https://github.com/snap-research/locomo",
    licence="CC BY-NC 4.0",
    citation="Maharana et al., Evaluating Very Long-Term Conversational Memory of LLM Agents, ACL 2024",
    files=(
        PinnedFile(
            name="locomo10.json",
            sha256="79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4",
            size=2_805_274,
            url="https://raw.githubusercontent.com/snap-research/locomo/main/data/locomo10.json",
        ),
    ),
    category_names={1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"},
    kinds={1: MULTI_HOP, 2: TEMPORAL, 3: OPEN_DOMAIN, 4: SINGLE_HOP, 5: question_types.ADVERSARIAL},
    question_counts={1: 282, 2: 321, 3: 96, 4: 841, 5: 446},
    floor_preset="locomo",
    note_meanings={
        "label_problems": "questions with a published label that an audit found wrong, by kind",
        "adversarial_with_answer": "category 5 with a true answer next to the false one",
        "adversarial_without_answer": "category 5 with the false answer alone",
        "dates_without_session": "dates of sessions that do not exist",
        "empty_sessions": "sessions without a turn",
        "evidence_ids_unresolved": "ids in evidence strings that name no turn",
        "evidence_repeated": "ids that a question names twice",
        "evidence_strings": "entries in the questions' evidence lists",
        "evidence_strings_irregular": "of these, not the id of a turn as written",
        "evidence_strings_repaired": "of these, ids found by pattern",
        "number_answers": "answers that are numbers; written out",
        "questions_without_evidence": "in the whole file",
        "repeated_questions": "questions that occur twice with the same answer and evidence; all asked",
    },
)

_SESSION_KEY = re.compile(r"session_(\d+)(_date_time)?")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
_TURN_ID = re.compile(r"D:?([0-9]{1,9}):([0-9]{1,9})(?![0-9])")


@dataclass(frozen=True, kw_only=True)
class LocomoConfig(Selection):
    """Settings of the LoCoMo loader; see :class:`eval.loaders.selection.Selection`.

    Attributes:
        name: the preset's name.
        file: name of the file in the data folder, of LoCoMo's format: the published one, or a part of it.
        labels: ``as_published``, or ``audited`` to leave out what an audit found wrong; the numbers of the two are not
            comparable.
        turn_queries: see :class:`memsys.turns.TurnFormat`.
    """

    name: str = "locomo"
    file: str = LOCOMO.files[0].name
    labels: Labels = "as_published"
    turn_queries: ImageQueries = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "turn_format", replace(self.turn_format, queries=self.turn_queries))
        check_choice("labels", self.labels, get_args(Labels))

    @property
    def info(self) -> DatasetInfo:
        """Facts of LoCoMo."""
        return LOCOMO

    def load(self) -> LoadedData:
        """Read the file or the sample, and select."""
        pin = LOCOMO.files[0]
        info = (
            LOCOMO
            if self.file == pin.name
            else replace(LOCOMO, how_to_get="The preset in conf/dataset says where it comes from.")
        )
        path = sample_path("locomo") if self.sample else find_source(info, self.file, self.path, self.data_dir)
        everything, quirks, sha256 = read_locomo(path)
        problems = read_audit(sha256)
        if sha256 == pin.sha256:
            everything = mark_adversarial(everything, read_category5())
        samples = self.apply(apply_audit(everything, problems, self.labels), LOCOMO.category_names)
        return LoadedData(
            samples=samples,
            sha256=sha256,
            source_name=path.name,
            category_names=LOCOMO.category_names,
            counts=count(samples),
            notes={
                "pinned": sha256 == pin.sha256,
                "sample": self.sample,
                "label_problems": dict(sorted(Counter(problems.values()).items())),
                **dict(sorted(quirks.items())),
            },
        )


def read_locomo(path: Path) -> tuple[list[Sample], Counter[str], str]:
    """Read a file of LoCoMo's format.

    Returns:
        All samples, how often each irregularity was met, and the file's sha256.
    """
    top, sha256 = read_json(path)
    quirks: Counter[str] = Counter()
    samples = [_sample(node, quirks) for node in top.elements()]
    ids = Counter(sample.conversation.conversation_id for sample in samples)
    for node, sample in zip(top.elements(), samples, strict=True):
        if ids[sample.conversation.conversation_id] > 1:
            raise node.get("sample_id").error(f"duplicate id {sample.conversation.conversation_id!r}")
    return samples, quirks, sha256


def _sample(node: JsonNode, quirks: Counter[str]) -> Sample:
    conversation = _conversation(node, quirks)
    turn_ids = {_canonical(turn.turn_id): turn.turn_id for turn in conversation.turns}
    questions: list[Question] = []
    references: dict[str, Reference] = {}
    for position, item in enumerate(node.get("qa").elements()):
        question_id = f"{conversation.conversation_id}:q{position:03d}"
        question = read_question(item, question_id, conversation.conversation_id, LOCOMO)
        questions.append(question)
        references[question_id] = _reference(item, question, turn_ids, quirks)
    asked = Counter((one.text, one.category, _gold_of(references[one.question_id])) for one in questions)
    quirks["repeated_questions"] += asked.total() - len(asked)
    return Sample(conversation=conversation, questions=tuple(questions), references=references)


def _gold_of(reference: Reference) -> tuple[Any, ...]:
    return reference.answers, reference.adversarial_answer, reference.evidence


def _conversation(node: JsonNode, quirks: Counter[str]) -> Conversation:
    """Read the sessions that are there, in numeric order; a date without a session is counted and left."""
    body = node.get("conversation")
    members = body.members()
    numbers, dated = _numbers(body, dates=False), _numbers(body, dates=True)
    quirks["dates_without_session"] += len(dated - numbers)
    turns: list[Turn] = []
    seen: set[str] = set()
    for number in sorted(numbers):
        session = members[f"session_{number}"].elements()
        quirks["empty_sessions"] += not session
        date_time = body.get(f"session_{number}_date_time").text() if session else ""
        for item in session:
            turn = _turn(item, f"session_{number}", date_time)
            if turn.turn_id in seen:
                raise item.get("dia_id").error(f"duplicate turn id {turn.turn_id!r}")
            seen.add(turn.turn_id)
            turns.append(turn)
    if not turns:
        raise body.error("no session with turns (keys session_<number>)")
    return Conversation(
        conversation_id=node.get("sample_id").text(),
        turns=tuple(turns),
        speakers=(body.get("speaker_a").text(), body.get("speaker_b").text()),
    )


def _numbers(body: JsonNode, *, dates: bool) -> set[int]:
    """Return the numbers of the sessions, or of their dates, that a conversation has.

    Raises:
        DataError: a number is written otherwise than ``session_1``: ``session_01`` could be the same session again.
    """
    found = set()
    for key, node in body.members().items():
        match = _SESSION_KEY.fullmatch(key)
        if match is None or bool(match[2]) != dates:
            continue
        if not _NUMBER.fullmatch(match[1]):
            raise node.error("a session's number is written with 1 to 9 digits 0-9 and without leading zeros")
        found.add(int(match[1]))
    return found


def _turn(node: JsonNode, session_id: str, date_time: str) -> Turn:
    caption, query = node.find("blip_caption"), node.find("query")
    extra: dict[str, Json] = {"img_url": True} if node.find("img_url") else {}
    return Turn(
        turn_id=node.get("dia_id").text(),
        session_id=session_id,
        speaker=node.get("speaker").text(),
        text=node.get("text").text(),
        date_time=date_time,
        caption=caption.text() if caption else "",
        extra={**extra, "image_query": query.text()} if query else extra,
    )


def _reference(node: JsonNode, question: Question, turn_ids: Mapping[str, str], quirks: Counter[str]) -> Reference:
    """Read the gold. Category 5 has a false answer, and only twice in the published file a true one as well."""
    adversarial = node.get("adversarial_answer") if question.category == CATEGORY_5 else None
    answer = node.find("answer") if adversarial else node.get("answer")
    quirks["number_answers"] += bool(answer and not isinstance(answer.value, str))
    if adversarial:
        quirks["adversarial_with_answer" if answer else "adversarial_without_answer"] += 1
    evidence, unresolved = resolve_evidence(node.get("evidence").texts(), turn_ids, quirks)
    return Reference(
        question_id=question.question_id,
        answers=(answer.text_or_number(),) if answer else (),
        evidence=evidence,
        unresolved_evidence=unresolved,
        adversarial_answer=adversarial.text_or_number() if adversarial else None,
    )


def resolve_evidence(
    strings: Sequence[str], turn_ids: Mapping[str, str], quirks: Counter[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Turn evidence strings into turn ids.

    A string may hold several ids, leading zeros or a stray colon. Ids are taken by pattern, so that ``"D8:6; D9:17"``
    gives two, ``"D30:05"`` gives ``D30:5`` and ``"D:11:26"`` gives ``D11:26``.

    Args:
        strings: as written in the file.
        turn_ids: canonical id -> id of the conversation's turns.
        quirks: counters to raise.

    Returns:
        The ids of existing turns without repetition, and what names no turn, as written.
    """
    resolved: dict[str, None] = {}
    unresolved: list[str] = []
    for string in strings:
        quirks["evidence_strings"] += 1
        if string in turn_ids:
            quirks["evidence_repeated"] += turn_ids[string] in resolved
            resolved[turn_ids[string]] = None
            continue
        quirks["evidence_strings_irregular"] += 1
        found = list(_TURN_ID.finditer(string))
        known = [turn_ids[_canonical(match[0])] for match in found if _canonical(match[0]) in turn_ids]
        resolved |= dict.fromkeys(known)
        quirks["evidence_strings_repaired"] += bool(known)
        unresolved += [match[0] for match in found if _canonical(match[0]) not in turn_ids] or [string] * (not found)
    quirks["evidence_ids_unresolved"] += len(unresolved)
    quirks["questions_without_evidence"] += not resolved
    return tuple(resolved), tuple(unresolved)


def _canonical(turn_id: str) -> str:
    match = _TURN_ID.fullmatch(turn_id)
    return f"D{int(match[1])}:{int(match[2])}" if match else turn_id
