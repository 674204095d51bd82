"""Synthetic run directories: the files of a real run with made-up numbers, for tables, comparison and export."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from eval.results.frame import Skipped, read_run
from eval.results.stored_run import StoredRun
from eval.runs.identity import identity_hash
from eval.runs.load import checksums
from eval.runs.records import (
    SCHEMA_VERSION,
    AnswerRecord,
    ConversationRecord,
    HitRecord,
    ReferenceRecord,
    RetrievalRecord,
)
from eval.runs.row_checksums import CHECKSUM
from eval.runs.run_json import RunRecord
from eval.runs.signing import sign_folder
from memsys.llm.ledger import CallRecord
from memsys.seeding import generator

CATEGORIES = (1, 2, 3, 4, 5)
SHARES = ("f1_set", "bleu1", "meteor", "rougeL", "em_lower", "abstained", "trapped")
EVIDENCE = ("e_precision", "e_recall", "e_f1", "recall@5", "recall@10", "ndcg@10_retrieved", "ndcg@10", "hit_rate")

#: (question number, metric) -> value, for runs whose numbers a test knows.
Values = Callable[[int, str], float | None]


@dataclass(frozen=True)
class FakeRun:
    """What to make; the defaults are a small, complete run of RAG on LoCoMo in CLAG's turn format."""

    memory: str = "rag"
    backbone: str = "smollm2_135m"
    dataset: str = "locomo_clag"
    reader: str = "clag"
    conversations: Sequence[str] = ("conv-26", "conv-30")
    questions_each: int = 10
    categories: Sequence[int] = CATEGORIES
    seed: int = 0
    status: str = "complete"
    mode: str = "answers"
    timing: str = "throughput"
    settings: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)
    gpus: Sequence[str] = ()
    finished: str = "2026-01-02T00:00:00+00:00"
    experiment: str = "fake"
    bertscore_model: str = "roberta-large"
    extra_metrics: Sequence[str] = ()
    values: Values | None = None
    summary: bool = True
    data_sha256: str = "0" * 64

    @property
    def name(self) -> str:
        settings = identity_hash(self._identity())
        return f"{self.memory}-{self.backbone}-s{self.seed}-{settings}"

    def _identity(self) -> dict[str, Any]:
        return {**{k: v for k, v in asdict(self).items() if k not in ("values", "summary", "status", "finished")}}

    def write(self, root: Path) -> Path:
        """Write the run under ``root`` and return its directory."""
        path = root / self.experiment / self.name
        path.mkdir(parents=True)
        _dump(path / "run.json", asdict(self._record()))
        numbers = range(len(self.conversations) * self.questions_each)
        _lines(path / "references.jsonl", [asdict(self._reference(number)) for number in numbers])
        _lines(path / "retrievals.jsonl", [asdict(self._retrieval(number)) for number in numbers])
        if self.mode == "answers":
            _lines(path / "answers.jsonl", [asdict(self._answer(number)) for number in numbers])
            _lines(path / "calls.jsonl", [asdict(call) for number in numbers for call in self._calls(number)])
        _lines(path / "conversations.jsonl", [asdict(_conversation(name)) for name in self.conversations])
        _lines(path / "scores.jsonl", [self._scores(number) for number in numbers])
        config = {"name": "default", "bertscore_model": self.bertscore_model, "bertscore_rescaled": False}
        meta = {"config": config, "models": {}, "packages": {}, "counts": self._counts(), "inputs": checksums(path)}
        _dump(path / "scores_meta.json", meta)
        if self.status == "complete":
            sign_folder(path)
        if self.summary:
            from eval.scoring.summary import summarise

            summarise(path)
        return path

    def _record(self) -> RunRecord:
        named = ("memory", "backbone", "dataset", "reader")
        config: dict[str, Any] = {part: {"name": getattr(self, part)} for part in named}
        config["memory"] |= self.settings
        for part, settings in self.parts.items():
            config[part] = {**config.get(part, {}), **settings}
        config |= {"timing": self.timing, "mode": self.mode, "seed": self.seed, "protocol": {"name": "clag"}}
        sizes = {"conversations": len(self.conversations), "questions": len(self.conversations) * self.questions_each}
        return RunRecord(
            run_id=f"{self.experiment}/{self.name}",
            experiment=self.experiment,
            seed=self.seed,
            mode=self.mode,
            config=config,
            identity={**config, "data_sha256": self.data_sha256},
            data={"name": self.dataset, "sha256": self.data_sha256, "notes": dict(self.notes), **sizes},
            model={"file": "/somewhere/models/model.gguf", "sha256": "1" * 64},
            commit="abcdef0123456789",
            dirty=False,
            packages={"numpy": "2"},
            hardware={"cpu": "some cpu", "gpus": list(self.gpus)},
            started="2026-01-01T00:00:00+00:00",
            status=self.status,  # type: ignore[arg-type]
            finished=self.finished,
        )

    def _counts(self) -> dict[str, int]:
        total = len(self.conversations) * self.questions_each
        answered = total if self.mode == "answers" else 0
        return {"questions": total, "answered": answered, "retrieved": total, "malformed": 0, "rows": total}

    def _where(self, number: int) -> dict[str, Any]:
        conversation = self.conversations[number // self.questions_each]
        category = self.categories[number % len(self.categories)]
        question_id = f"{conversation}:{number % self.questions_each}"
        return {"question_id": question_id, "conversation_id": conversation, "category": category}

    def _reference(self, number: int) -> ReferenceRecord:
        where = self._where(number)
        trap = "secret trap" if where["category"] == 5 else None
        return ReferenceRecord(**where, answers=["secret gold"], adversarial_answer=trap, evidence=["D1:1"],
                               unresolved_evidence=[], evidence_texts=["secret evidence"])  # fmt: skip

    def _retrieval(self, number: int) -> RetrievalRecord:
        hits = [HitRecord(f"m{rank}", "secret memory", 1.0 - rank / 10, ["D1:1"]) for rank in range(3)]
        trace = {"mode": "global", "keywords": f"secret keywords {number}", "spans": {"keywords": 0.25, "search": 0.01}}
        return RetrievalRecord(**self._where(number), hits=hits, context="secret context", context_chars=14,
                               context_tokens=3, trace=trace)  # fmt: skip

    def _answer(self, number: int) -> AnswerRecord:
        return AnswerRecord(**self._where(number), question="secret question", prediction="secret answer", raw="{}",
                            malformed=number % 7 == 0, options=[], retrieve_seconds=0.5 + number / 1000,
                            answer_seconds=0.125, measured=self.timing == "latency", prompt_tokens=100,
                            completion_tokens=5)  # fmt: skip

    def _calls(self, number: int) -> list[CallRecord]:
        conversation = self.conversations[number // self.questions_each]
        shared = {"conversation_id": conversation, "attempt": 0, "seconds": 0.1, "queue_seconds": 0.0,
                  "finish_reason": "stop", "cache_hit": False, "repaired": False, "transport_retries": 0,
                  "endpoint": "http://node17:8000/v1", "item": str(number)}  # fmt: skip
        calls = [("write", "analyse", 40, 20), ("answer", "default", 100 + 5 * len(self.memory), 5)]
        return [
            CallRecord(phase=phase, role=role, key=f"{role}:{number}", prompt_tokens=prompt, completion_tokens=reply,
                       malformed=phase == "write" and number % 5 == 0, request_hash=f"{role}{number}", **shared)
            for phase, role, prompt, reply in calls
        ]  # fmt: skip

    def _scores(self, number: int) -> dict[str, Any]:
        shares = SHARES if self.mode == "answers" else ()
        names = (*shares, *EVIDENCE, *(f"{name}_substring" for name in EVIDENCE), *self.extra_metrics)
        rng = generator("fake run", self.memory, self.backbone, self.seed, number)
        drawn = {name: round(float(rng.beta(0.5, 2.0)), 6) for name in names}
        if self.values is not None:
            known = {name: self.values(number, name) for name in names}
            drawn = {name: value if value is not None else drawn[name] for name, value in known.items()}
        hits = {"hit_chars": 1350.0 + number, "shown_chars": 1350.0 + number, "hits": 10.0}
        sizes = {"context_chars": 1600.0, "context_tokens": 300.0 + number, **hits}
        return {**self._where(number), "metrics": {**drawn, **sizes}}


def rewrite(path: Path, name: str, change: Callable[[int, dict[str, Any]], None]) -> None:
    """Change the rows of one file of a run, which stays a scored one: ``change`` gets number and row."""
    rows = [json.loads(line) for line in (path / name).read_text(encoding="utf-8").splitlines()]
    for number, row in enumerate(rows):
        row.pop(CHECKSUM, None)
        change(number, row)
    _lines(path / name, rows)
    meta = json.loads((path / "scores_meta.json").read_text(encoding="utf-8"))
    (path / "scores_meta.json").write_text(json.dumps({**meta, "inputs": checksums(path)}))
    sign_folder(path)


def stored(path: Path) -> StoredRun:
    """Read a run that can be read."""
    run = read_run(path)
    assert not isinstance(run, Skipped), run.reason
    return run


def _conversation(name: str) -> ConversationRecord:
    return ConversationRecord(name, 20, 20, 3.0, [0.1] * 20, [0.05] * 20, 0.2, {"notes": 20, "clusters": 3})


def _dump(path: Path, value: Any) -> None:
    path.write_text(json.dumps({"schema_version": SCHEMA_VERSION, **value}, indent=2, sort_keys=True))


def _lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
