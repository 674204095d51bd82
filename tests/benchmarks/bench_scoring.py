"""Time of scoring a run of LoCoMo's size with all lexical metrics: `python tests/benchmarks/bench_scoring.py`.

The answers are synthetic: as many as LoCoMo has questions, of its answers' and turns' lengths.
"""

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from eval.runs.records import AnswerRecord, HitRecord, ReferenceRecord, RetrievalRecord  # noqa: E402
from eval.scoring.score_run import score_run  # noqa: E402
from eval.scoring.summary import summarise  # noqa: E402

CATEGORIES = {1: 282, 2: 321, 3: 96, 4: 841, 5: 446}
LIMIT_SECONDS = 20.0


def _words(generator: random.Random, low: int, high: int) -> str:
    vocabulary = ["running", "pottery", "doctor", "camping,", "1,000", "May", "2023", "sister's", "friends", "adopted"]
    # Rare words keep the caches from answering everything.
    return " ".join(
        generator.choice(vocabulary) if generator.random() < 0.5 else f"w{generator.randrange(20_000)}ing"
        for _ in range(generator.randint(low, high))
    )


def _write(path: Path, rows: list[object]) -> None:
    path.write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows), encoding="utf-8")  # type: ignore[call-overload]


def make_run(run_dir: Path) -> int:
    """Write a run of LoCoMo's size; returns its number of questions."""
    generator = random.Random(0)
    turns = [f"Speaker Anasays : {_words(generator, 10, 40)}" for _ in range(600)]
    answers: list[object] = []
    retrievals: list[object] = []
    references: list[object] = []
    for category, count in CATEGORIES.items():
        for index in range(count):
            question_id, gold = f"c{category}q{index}", _words(generator, 1, 12)
            prediction = gold if generator.random() < 0.2 else _words(generator, 1, 25)
            chosen = generator.sample(range(600), 10)
            hits = [HitRecord(f"m{turn}", turns[turn], 0.5, [f"D1:{turn}"]) for turn in chosen]
            answers.append(
                AnswerRecord(question_id, "c", category, "q", prediction, "", False, [], 0.1, 0.2, True, 1000, 20)
            )
            retrievals.append(RetrievalRecord(question_id, "c", category, hits, "x" * 1400, 1400, 350, {}))
            evidence = [f"D1:{chosen[3]}", "D1:599"]
            texts = [turns[chosen[3]], turns[599]]
            trap = gold if category == 5 else None
            references.append(ReferenceRecord(question_id, "c", category, [gold], trap, evidence, [], texts, {}))
    _write(run_dir / "answers.jsonl", answers)
    _write(run_dir / "retrievals.jsonl", retrievals)
    _write(run_dir / "references.jsonl", references)
    return len(references)


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Wall seconds and processor seconds."""
    wall, busy = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - busy


def main() -> int:
    """Print the times; exit code 1 when scoring keeps the processor busy for longer than the limit."""
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder)
        questions = make_run(run_dir)
        wall, busy = _timed(lambda: score_run(run_dir))
        again, _ = _timed(lambda: score_run(run_dir))
        summary, _ = _timed(lambda: summarise(run_dir))
    sys.stdout.write(
        f"scoring {questions} answers, all lexical and evidence metrics: {wall:.1f} s, {busy:.1f} s of processor "
        f"(limit {LIMIT_SECONDS:.0f} s); with warm caches {again:.1f} s; summary {summary:.1f} s\n"
    )
    return int(busy > LIMIT_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
