"""Processor time of the audit's definitions: `python tests/benchmarks/bench_audit.py [--answers 1540]`.

The answers are synthetic: two runs that answer the same questions, one in few words and one in sentences, so that gold
texts come back and answers do not. Printed: seconds of processor by definition and for thirty runs of 1,540 answers,
and how METEOR, ROUGE-L and BLEU-1 compare with the packages that define them. A busy machine changes none of it.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from eval.audit.config import load_config  # noqa: E402
from eval.metrics import ngrams, resources  # noqa: E402
from eval.metrics.registry import find_metric  # noqa: E402
from eval.scoring.answers import score_answer  # noqa: E402

#: Answers of a run, and seconds of processor that thirty runs may take: a minute on two cores.
RUN, LIMIT = 1540, 120.0
_COMMON = [
    "the",
    "a",
    "she",
    "went",
    "to",
    "running",
    "pottery",
    "doctor",
    "camping,",
    "May",
    "2023",
    "sister's",
    "friends",
]


def texts(answers: int) -> list[tuple[str, str]]:
    """Answers with their gold: short ones, then sentences."""
    generator = random.Random(0)

    def words(low: int, high: int) -> str:
        found = []
        for _ in range(generator.randint(low, high)):
            rare = generator.random() < 0.3
            found.append(f"w{generator.randrange(9_000)}ing" if rare else generator.choice(_COMMON))
        return " ".join(found)

    golds = [words(1, 12) for _ in range(answers // 2)]
    return [(words(low, high), gold) for low, high in ((1, 8), (15, 45)) for gold in golds]


def busy(work: Callable[[str, str], object], pairs: Sequence[tuple[str, str]]) -> float:
    """Processor seconds of a function over all answers."""
    start = time.process_time()
    for prediction, gold in pairs:
        work(prediction, gold)
    return time.process_time() - start


def packages() -> dict[str, Callable[[str, str], object]]:
    """What the packages compute, fed as the harness feeds them."""
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
    from nltk.translate.meteor_score import single_meteor_score
    from rouge_score.rouge_scorer import RougeScorer

    smoothing, scorer = SmoothingFunction().method1, RougeScorer(["rougeL"], use_stemmer=True)
    reader, cut = resources.wordnet().reader, ngrams.punkt_tokens
    return {
        "bleu1": lambda p, g: sentence_bleu([cut(g)], cut(p), weights=(1, 0, 0, 0), smoothing_function=smoothing),
        "rougeL": lambda p, g: scorer.score(g, p),
        "meteor": lambda p, g: single_meteor_score(g.split(), p.split(), wordnet=reader),
    }


def main() -> int:
    """Print the times; exit code 1 when thirty runs would take longer than the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=RUN)
    pairs = texts(parser.parse_args().answers)
    resources.wordnet()
    seconds = {}
    for name in load_config().metrics:
        metric = find_metric(name)
        seconds[name] = busy(lambda p, g, metric=metric: score_answer(metric, p, (g,), 4), pairs)
    for name, work in packages().items():
        theirs = busy(work, pairs)
        sys.stdout.write(f"{name}: {theirs / max(seconds[name], 1e-9):.1f} times as fast as its package\n")
    thirty = sum(seconds.values()) * 30 * RUN / len(pairs)
    by_name = ", ".join(f"{name} {value:.2f}" for name, value in seconds.items())
    sys.stdout.write(f"{len(pairs)} answers, seconds of processor: {by_name}\n")
    sys.stdout.write(f"thirty runs of {RUN}: {thirty:.0f} s of processor (limit {LIMIT:.0f} s)\n")
    return int(thirty > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
