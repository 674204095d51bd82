"""Verdicts next to a run: ``judgements/<judge>-<backbone>.jsonl``, one row per verdict, and what made them.

A column of scores, ``judge_<judge>_<backbone>``, is made of a complete set alone. A verdict that could not be read is
null: it counts as unscored, never as wrong.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eval.runs.load import SCORES_META, load_answers, load_json, load_references, load_settled
from eval.runs.manifest import check_file
from eval.runs.records import ScoreRow
from eval.runs.rows import read_rows
from eval.scoring.beam import has_questions, with_beam_scores
from eval.scoring.config import is_verdict
from eval.scoring.means import mean_or_none
from eval.scoring.verdicts.orders import JudgedOrders, judged_orders, order_path, ordered_answers, read_pairs
from eval.scoring.verdicts.values import PARTIAL, WORTH
from memsys.errors import RunDirectoryError, ScoringError

FOLDER = "judgements"
#: Key of what made the verdicts: how the judge was asked of an order's events, where it was.
ORDER = "order"
#: What verdicts depend on.
INPUTS = ("answers.jsonl", "references.jsonl")


def column_of(judge: str, backbone: str) -> str:
    """Return the name of a judge's column of scores, from the names of the judge and of its backbone."""
    return f"judge_{judge}_{backbone}"


@dataclass(frozen=True, slots=True)
class AnswerVerdict:
    """One verdict.

    Attributes:
        question_id: what was judged.
        repeat: which of the judge's repetitions, from 0.
        verdict: ``CORRECT``, ``WRONG``, of a rubric's item ``PARTIAL`` too, or ``None`` when the reply was not a
            verdict.
        reason: the judge's sentence, empty where none was asked for; the raw reply where it was not a verdict.
        input_sha256: of question, reference and answer as the judge saw them.
        item: which item of the question's rubric, from 0.
    """

    question_id: str
    repeat: int
    verdict: str | None
    reason: str
    input_sha256: str
    item: int = 0

    def __post_init__(self) -> None:
        if self.verdict is not None and self.verdict not in WORTH:
            raise ValueError(f"{self.verdict!r} is not a verdict")


@dataclass(frozen=True, slots=True)
class StoredVerdicts:
    """A complete set of verdicts on one run.

    ``meta`` is the file next to them (identity, probe, counts); ``orders`` are those that the judge aligned, where it
    did.
    """

    column: str
    meta: Mapping[str, Any]
    verdicts: tuple[AnswerVerdict, ...]
    orders: JudgedOrders | None = None

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings of the judge; empty for verdicts that were recorded elsewhere."""
        return (self.meta.get("identity") or {}).get("judge") or {}

    @property
    def by_rubric(self) -> bool:
        """Whether the items of rubrics were judged."""
        return bool(self.settings.get("unit") == "rubric")

    @property
    def halves(self) -> str:
        """The value of an item that is met in part, see :class:`eval.judge.config.JudgeConfig`."""
        return str(self.settings.get("halves", "count"))

    def shares(self) -> dict[str, float | None]:
        """Return question id -> mean value of its readable verdicts (``CORRECT`` 1, ``WRONG`` 0), or ``None``."""
        worth = {**WORTH, PARTIAL: 0.0} if self.halves == "cut" else WORTH
        return {name: share(own, worth) for name, own in self.by_question().items()}

    def by_question(self) -> dict[str, list[str | None]]:
        """Return the verdicts of each question, in the order of the repeats."""
        found: dict[str, list[str | None]] = defaultdict(list)
        for verdict in sorted(self.verdicts, key=lambda one: one.repeat):
            found[verdict.question_id].append(verdict.verdict)
        return dict(found)

    def by_repeat(self) -> list[dict[str, float | None]]:
        """Return question id -> mean value of its verdicts, for each repeat."""
        numbers = sorted({verdict.repeat for verdict in self.verdicts})
        return [
            StoredVerdicts(self.column, self.meta, tuple(one for one in self.verdicts if one.repeat == number)).shares()
            for number in numbers
        ]

    def changed(self) -> int:
        """Return the questions whose verdict, or that of an item, differs between repeats."""
        found: dict[tuple[str, int], set[str | None]] = defaultdict(set)
        for verdict in self.verdicts:
            found[verdict.question_id, verdict.item].add(verdict.verdict)
        return len({name for (name, _), said in found.items() if len(said) > 1})


def share(verdicts: Iterable[str | None], worth: Mapping[str, float] = WORTH) -> float | None:
    """Return the mean value of the readable verdicts: the share that is ``CORRECT``, where none is ``PARTIAL``."""
    return mean_or_none(worth[verdict] for verdict in verdicts if verdict is not None)


def input_digest(question: str, gold: str, answer: str) -> str:
    """Return the checksum of the judge's input; a verdict on any other input is stale."""
    return hashlib.sha256(json.dumps([question, gold, answer]).encode()).hexdigest()


def input_checksums(run_dir: Path) -> dict[str, str]:
    """Return the checksums of the files that verdicts depend on.

    Raises:
        ScoringError: one is missing.
    """
    missing = [name for name in INPUTS if not (run_dir / name).is_file()]
    if missing:
        raise ScoringError(
            f"{run_dir} was judged and has no {' and no '.join(missing)}; restore it, or delete {run_dir / FOLDER}"
        )
    return {name: hashlib.sha256((run_dir / name).read_bytes()).hexdigest() for name in INPUTS}


def verdict_paths(run_dir: Path, name: str) -> tuple[Path, Path]:
    """Return the files of a judge: verdicts and their metadata."""
    return run_dir / FOLDER / f"{name}.jsonl", run_dir / FOLDER / f"{name}.json"


def read_verdicts(path: Path) -> list[AnswerVerdict]:
    """Read verdicts as stored, complete or not.

    Raises:
        RunDirectoryError: a row is of another version.
    """
    return list(read_rows(path, AnswerVerdict, advice="delete the file and judge again"))


def load_judged(run_dir: Path) -> list[StoredVerdicts]:
    """Return the complete sets of verdicts on a run, by name; unfinished ones are left out.

    Raises:
        ScoringError: answers changed since.
        RunDirectoryError: verdicts are lost.
    """
    check_file(run_dir / FOLDER)
    found = []
    for path in sorted((run_dir / FOLDER).glob("*.json")):
        meta = read_meta(path)
        if meta["status"] != "complete":
            continue
        changed = [name for name, digest in input_checksums(run_dir).items() if digest != meta["inputs"].get(name)]
        if changed:
            raise ScoringError(
                f"{path}: {', '.join(changed)} changed since the verdicts; run `memsys judge {run_dir}` again "
                "with this judge, or delete its files"
            )
        verdicts = tuple(read_verdicts(path.with_suffix(".jsonl")))
        if len(verdicts) != meta.get("verdicts", len(verdicts)):
            raise RunDirectoryError(
                f"{path.with_suffix('.jsonl')} holds {len(verdicts)} of the {meta['verdicts']} verdicts that "
                f"{path.name} counts; restore it, or delete both files and judge again"
            )
        orders = _orders(run_dir, path, meta[ORDER]) if (meta.get(ORDER) or {}).get("status") == "complete" else None
        found.append(StoredVerdicts(meta["column"], meta, verdicts, orders))
    return found


def _orders(run_dir: Path, meta_path: Path, order: Mapping[str, Any]) -> JudgedOrders:
    answers = ordered_answers(load_references(run_dir).values(), load_answers(run_dir).values())
    return judged_orders(answers, order["repeats"], read_pairs(order_path(meta_path)))


def with_judgements(run_dir: Path, rows: Sequence[ScoreRow]) -> list[ScoreRow]:
    """Add a column per judge to rows of scores, and BEAM's score where it judged BEAM's rubrics.

    Raises:
        ScoringError: answers changed since the verdicts.
    """
    for judged in load_judged(run_dir):
        rows = with_judge(rows, judged)
        if judged.by_rubric and has_questions(rows):
            rows = with_beam_scores(rows, judged.column)
    return _with_wrong(run_dir, rows)


def _with_wrong(run_dir: Path, rows: Sequence[ScoreRow]) -> list[ScoreRow]:
    """Return the rows, with a verdict of 0 for questions closed without an answer where they count as wrong.

    No judge is asked about them.
    """
    meta, settled = run_dir / SCORES_META, load_settled(run_dir)
    chosen = (load_json(meta)["config"].get("unanswered") or {}) if settled and meta.is_file() else {}
    wrong = {name for name, row in settled.items() if chosen.get(row.outcome) == "wrong"}
    return [_judged_wrong(row) if row.question_id in wrong else row for row in rows]


def _judged_wrong(row: ScoreRow) -> ScoreRow:
    return replace(row, metrics={name: 0.0 if is_verdict(name) else value for name, value in row.metrics.items()})


def with_judge(rows: Sequence[ScoreRow], judged: StoredVerdicts) -> list[ScoreRow]:
    """Add a judge's column to rows of scores, and those of the orders that it aligned."""
    shares = judged.shares()
    orders = judged.orders.scores if judged.orders else {}
    return [
        replace(
            row,
            metrics={
                **row.metrics,
                judged.column: shares.get(row.question_id),
                **{f"{judged.column}@{name}": value for name, value in orders.get(row.question_id, {}).items()},
            },
        )
        for row in rows
    ]


def read_meta(path: Path) -> dict[str, Any]:
    """Return the metadata of a set of verdicts.

    Raises:
        RunDirectoryError: it is not a JSON object, or lacks a field.
    """
    check_file(path)
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise RunDirectoryError(f"{path} is not JSON ({error}); delete it and judge again") from error
    wanted = {
        "status": str, "inputs": dict, "column": str, "judge": str, "backbone": str, "identity": dict, "probe": dict,
    }  # fmt: skip
    wrong = [
        name for name, kind in wanted.items() if not isinstance(meta, dict) or not isinstance(meta.get(name), kind)
    ]
    order = meta.get(ORDER) if isinstance(meta, dict) else None
    if order and not (isinstance(order, dict) and {"status", "repeats", "prompt_sha256"} <= order.keys()):
        wrong.append(ORDER)
    if wrong:
        raise RunDirectoryError(f"{path} lacks {', '.join(wrong)} or holds another type there; delete it, judge again")
    return dict(meta)
