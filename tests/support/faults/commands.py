"""The commands that read a run, started in a process of their own; what each says and writes."""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from tests.support.faults.bench import Bench
from tests.support.faults.forked import Ended, forked
from tests.support.faults.inside import start
from tests.support.faults.runs import small_plan

#: Command -> its arguments for a run and a folder for what it writes.
READERS: dict[str, Callable[[Path, Path], Sequence[str]]] = {
    "score": lambda run, out: [str(run)],
    "compare": lambda run, out: [str(run), "--out", str(out)],
    "export": lambda run, out: [str(run), "--out", str(out)],
    "lens": lambda run, out: [str(run), "--out", str(out / "lens.md")],
    "explain": lambda run, out: ["1", "RAG", "LoCoMo F1", "--runs", str(run)],
    "report": lambda run, out: ["--runs", str(run), "--out", str(out / "report.html")],
}
_MODULES = {"compare": "eval.compare", "lens": "eval.lens", "explain": "eval.explain",
            "report": "eval.report.__main__", "score": "eval.score", "export": "eval.export"}  # fmt: skip
#: Times of day and durations, which differ from one start to the next.
_TIMES = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\+\d\d:\d\d)?|\d+(\.\d+)? (calls|tokens)/s")


@dataclass(frozen=True)
class Said:
    """How a command ended and a digest of what it printed and wrote."""

    ended: Ended
    digest: str


def preload() -> None:
    """Import what the commands need, once, before processes are forked."""
    for name in (
        *_MODULES.values(),
        "eval.scoring.score_run",
        "eval.scoring.summary",
        "eval.results.figures.own",
        "eval.results.compare.report",
    ):
        import_module(name)
    for name in (
        "pandas",
        "nltk.translate.meteor_score",
        "rouge_score.rouge_scorer",
        "matplotlib.pyplot",
        "scipy.stats",
    ):
        import_module(name)
    resources = import_module("eval.metrics.resources")
    resources.wordnet()  # seconds for each forked command otherwise
    resources.punkt_words()


def read_with(command: str, bench: Bench, folder: Path) -> Said:
    """Let a command read the run in ``folder/run``."""
    out, run = folder / "out", folder / "run"
    out.mkdir(exist_ok=True)

    def act() -> int:
        main: Callable[[Sequence[str]], int] = import_module(_MODULES[command]).main
        return main(READERS[command](run, out))

    ended = forked(act, folder, bench.patience_s)
    written = [run / "scores.jsonl", run / "summary.json"] if command == "score" else sorted(out.rglob("*"))
    text = [ended.out.encode()] + [path.read_bytes() for path in written if path.suffix != ".png" and path.is_file()]
    return Said(ended, hashlib.sha256(_TIMES.sub(b"", b"\0".join(text))).hexdigest())


def run_again(bench: Bench, preset: str, folder: Path, score: bool = True) -> Ended:
    """Start the run in ``folder`` again."""
    plan = small_plan(preset, folder, bench.url, score=score)
    return forked(lambda: start(plan), folder, bench.patience_s)
