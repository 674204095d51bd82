"""Measurement of a judge on answers whose grade is known (``probe.yaml``)."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.judge.judging import JudgedItem
from eval.scoring.means import mean_or_none
from eval.scoring.verdicts.store import AnswerVerdict
from eval.scoring.verdicts.values import CORRECT, WRONG
from memsys.errors import ConfigError
from memsys.vocabulary import Json

FILE = Path(__file__).parent / "probe.yaml"
#: Stands for the conversation of the probe's calls.
CONVERSATION = "probe"


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """One answer with its known grade; ``kind`` says what is special about it."""

    item: JudgedItem
    kind: str
    grade: str


def load_probe(path: Path = FILE) -> tuple[ProbeAnswer, ...]:
    """Read the probe set.

    Raises:
        ConfigError: an item lacks a field or has an invalid grade.
    """
    import yaml

    found = []
    for number, entry in enumerate(yaml.safe_load(path.read_text(encoding="utf-8"))):
        try:
            texts = (entry["question"], entry["reference"], entry["answer"])
            probe = ProbeAnswer(JudgedItem(f"probe-{number:02}", CONVERSATION, *texts), entry["kind"], entry["grade"])
        except KeyError as error:
            raise ConfigError(f"{path}: item {number} lacks {error}") from error
        if probe.grade not in (CORRECT, WRONG) or not all(isinstance(text, str) for text in texts):
            raise ConfigError(f"{path}: item {number}: grade is {CORRECT} or {WRONG}, everything else is text")
        found.append(probe)
    return tuple(found)


def probe_sha256() -> str:
    """Return the checksum of the probe set."""
    return hashlib.sha256(FILE.read_bytes()).hexdigest()


def judge_accuracy(probes: Sequence[ProbeAnswer], verdicts: Sequence[AnswerVerdict]) -> dict[str, Json]:
    """Return how often the judge is right; unreadable verdicts are counted separately.

    An item met in part is not called right.

    Returns:
        ``items``, ``verdicts`` (readable ones), ``unscored``, ``accuracy`` over the readable ones; ``false_accept``
        (wrong answers called right) and ``false_reject``; ``always`` (accuracy of calling everything by the commoner
        grade); ``by_kind``.
    """
    grades = {probe.item.item_id: probe for probe in probes}
    readable = [verdict for verdict in verdicts if verdict.verdict is not None]
    kinds: dict[str, list[bool]] = defaultdict(list)
    by_grade: dict[str, list[bool]] = defaultdict(list)
    for verdict in readable:
        probe = grades[verdict.question_id]
        right = (verdict.verdict == CORRECT) == (probe.grade == CORRECT)
        kinds[probe.kind].append(right)
        by_grade[probe.grade].append(right)
    commonest = max(Counter(probe.grade for probe in probes).values())
    return {
        "items": len(probes),
        "verdicts": len(readable),
        "unscored": len(verdicts) - len(readable),
        "accuracy": mean_or_none([right for own in by_grade.values() for right in own]),
        "false_accept": _complement(mean_or_none(by_grade[WRONG])),
        "false_reject": _complement(mean_or_none(by_grade[CORRECT])),
        "always": commonest / len(probes),
        "by_kind": {kind: mean_or_none(kinds[kind]) for kind in dict.fromkeys(probe.kind for probe in probes)},
    }


def _complement(value: float | None) -> float | None:
    return None if value is None else 1 - value
