"""Scores of every recorded run, by question; kept in the cache until the file, its shape or a definition changes."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from eval.audit.config import AuditConfig
from eval.audit.recorded.catalogue import CatalogueEntry, import_entry, load_catalogue, paths_of
from eval.audit.recorded.importing import Imported
from eval.loaders.label_problems import LABEL_PROBLEM, answer_is_doubtful
from eval.loaders.locomo_corrections import corrected_answers
from eval.loaders.trees import read_tree
from eval.metrics.locomo import CATEGORY_5, abstains
from eval.metrics.registry import find_metric
from eval.metrics.resources import wordnet
from eval.metrics.text import squad_tokens
from eval.runs.files import write_atomic
from eval.runs.records import ReferenceRecord
from eval.scoring.answers import gold_answers, score_answer
from eval.scoring.config import STORED_DECIMALS
from eval.scoring.labels import doubtful_adversarial
from memsys.cores import usable_cores

#: Raised when the same file would give other values.
VERSION = 4


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """One answered question.

    Attributes:
        metrics: score against the printed gold; against the false answer in category 5.
        corrected: score against the audit's answer, where it has one.
        verdicts: judge -> share of its verdicts that call the answer right.
        words: words of the answer.
        holds_gold: the gold answer is in the answer, and further words.
        digest: of the question and the answer without case and punctuation: equal answers have equal ones.
        rerun: the file says that this question was run again.
    """

    question_id: str
    conversation_id: str
    category: int
    metrics: Mapping[str, float]
    corrected: Mapping[str, float]
    verdicts: Mapping[str, float]
    doubtful: bool
    abstained: bool
    words: int
    holds_gold: bool
    digest: str
    rerun: bool


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """A run of the catalogue with its scores; ``counts`` and ``categories`` say how its rows fit."""

    entry: CatalogueEntry
    counts: Mapping[str, int]
    categories: Mapping[str, Mapping[str, int]]
    answers: tuple[AnsweredQuestion, ...]

    @property
    def judges(self) -> tuple[str, ...]:
        """Judges with a verdict in the file."""
        return tuple(sorted({name for answer in self.answers for name in answer.verdicts}))


#: What is done with a run right after it was scored, in the process that scored it.
AfterScoring = Callable[[ScoredRun, AuditConfig, Path], object]


def score_all(
    entries: Sequence[CatalogueEntry], config: AuditConfig, cache: Path, workers: int, then: AfterScoring | None = None
) -> Iterator[ScoredRun]:
    """Score runs, from the cache where nothing changed.

    Args:
        entries: of the catalogue.
        config: which metrics.
        cache: folder.
        workers: processes.
        then: what else is computed and kept of a run that was scored now; a function that can be pickled.

    Yields:
        The runs as they are done.

    Raises:
        DataError: a file is missing or damaged.
    """
    waiting = []
    for entry in entries:
        path = cache_path(entry, config, cache)
        stored = _stored(entry, path)
        if stored is None:
            waiting.append((entry, path))
        else:
            yield stored
    if not waiting:
        return
    waiting.sort(key=lambda one: -sum(path.stat().st_size for path in paths_of(one[0])))
    if workers < 2 or len(waiting) == 1:
        for entry, path in waiting:
            yield _scored(entry, path, config, cache, then)
        return
    _load_corpora(config.metrics)
    with ProcessPoolExecutor(min(workers, len(waiting))) as pool:
        tasks = [pool.submit(_scored, entry, path, config, cache, then) for entry, path in waiting]
        for task in as_completed(tasks):
            yield task.result()


def _scored(
    entry: CatalogueEntry, path: Path, config: AuditConfig, cache: Path, then: AfterScoring | None
) -> ScoredRun:
    """Score a run and keep it, with what follows from it alone: all of it in the process that does the work."""
    run = _kept(score_entry(entry, config.metrics), path)
    if then is not None:
        then(run, config, cache)
    return run


def _load_corpora(metrics: Sequence[str]) -> None:
    """Load once what every process needs, before they part: a process that forks has it then."""
    if any("wordnet" in find_metric(name).needs for name in metrics):
        wordnet()


def default_workers() -> int:
    """Return the number of processes: the cores that this process may use, at most four."""
    return min(4, usable_cores())


def cache_path(entry: CatalogueEntry, config: AuditConfig, cache: Path, kind: str = "scores") -> Path:
    """Return the cache file of an entry's scores, which changes with anything that can change them."""
    more = sorted(doubtful_adversarial()) if kind == "leaderboard" else []
    return cache / f"{entry.name}-{kind}-{_key(entry, config, more)}.json"


def _key(entry: CatalogueEntry, config: AuditConfig, more: Sequence[str]) -> str:
    """Return everything that can change the scores of an entry."""
    shape = asdict(load_catalogue().shapes[entry.shape])
    parts: list[Any] = [
        VERSION,
        dict(entry.files),
        shape,
        entry.dataset,
        entry.reruns,
        list(config.metrics),
    ]
    parts += [corrected_answers() is not None, list(more)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _stored(entry: CatalogueEntry, path: Path) -> ScoredRun | None:
    if not path.is_file():
        return None
    try:
        row = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return None  # a cut cache file is written again
    return ScoredRun(entry, row["counts"], row["categories"], tuple(AnsweredQuestion(**one) for one in row["answers"]))


def _kept(run: ScoredRun, path: Path) -> ScoredRun:
    row = {
        "counts": run.counts,
        "categories": run.categories,
        "answers": [{name: getattr(one, name) for name in AnsweredQuestion.__slots__} for one in run.answers],
    }
    write_atomic(path, json.dumps(row).encode())
    return run


def score_entry(entry: CatalogueEntry, metrics: Sequence[str]) -> ScoredRun:
    """Import and score one run."""
    _check(entry)
    imported = import_entry(entry)
    reruns = _reruns(entry)
    corrections = (corrected_answers() or {}) if entry.dataset == "locomo" else {}
    references = {one.question_id: one for one in imported.references()}
    answers = [
        _answered(imported, references[name], metrics, corrections.get(name), reruns)
        for name in references
        if name in imported.alignment.rows
    ]
    return ScoredRun(entry, imported.counts(), imported.category_labels(), tuple(answers))


def _check(entry: CatalogueEntry) -> None:
    """Refuse a file that is not the published one.

    Raises:
        DataError: its checksum differs.
    """
    from eval.loaders.fetch import is_there

    for file, path in zip(entry.pinned, paths_of(entry), strict=True):
        is_there(file, path)


def _reruns(entry: CatalogueEntry) -> frozenset[str]:
    if not entry.reruns:
        return frozenset()
    node: Any = read_tree(paths_of(entry)[0])
    for key in entry.reruns.split("."):
        node = node[key]
    return frozenset(node.split(",") if isinstance(node, str) else node)


def _answered(
    imported: Imported,
    gold: ReferenceRecord,
    metrics: Sequence[str],
    correction: str | None,
    reruns: frozenset[str],
) -> AnsweredQuestion:
    row = imported.alignment.rows[gold.question_id]
    prediction, answers = row.prediction or "", gold_answers(gold)
    verdicts = {}
    for judge, own in row.verdicts.items():
        readable = [verdict for verdict in own if verdict is not None]
        if readable:
            verdicts[judge] = sum(readable) / len(readable)
    return AnsweredQuestion(
        question_id=gold.question_id,
        conversation_id=gold.conversation_id,
        category=gold.category,
        metrics=_scores(metrics, prediction, answers, gold.category),
        corrected={} if correction is None else _scores(metrics, prediction, (correction,), gold.category),
        verdicts=verdicts,
        doubtful=answer_is_doubtful(gold.extra.get(LABEL_PROBLEM)),
        abstained=abstains(prediction),
        words=len(prediction.split()),
        holds_gold=_holds(prediction, answers[0] if answers else ""),
        digest=_digest(gold.question_id, prediction),
        rerun=row.question_id in reruns,
    )


def _scores(metrics: Sequence[str], prediction: str, answers: Sequence[str], category: int) -> dict[str, float]:
    if not answers:
        return {}
    found = {name: _score(name, prediction, tuple(answers), category) for name in metrics}
    return {name: round(value, STORED_DECIMALS) for name, value in found.items() if value is not None}


@lru_cache(maxsize=1 << 18)
def _score(metric: str, prediction: str, answers: tuple[str, ...], category: int) -> float | None:
    """Score one answer, cached: systems often give the same answer, and METEOR and ROUGE are slow."""
    known = find_metric(metric)
    if known.rule is not None and category > CATEGORY_5:
        return None  # LoCoMo's rules are for its own categories
    return score_answer(known, prediction, answers, category)


def _holds(prediction: str, gold: str) -> bool:
    words, own = squad_tokens(gold), squad_tokens(prediction)
    return bool(words) and len(own) > len(words) and f" {' '.join(words)} " in f" {' '.join(own)} "


def _digest(question_id: str, prediction: str) -> str:
    text = f"{question_id}\n{' '.join(squad_tokens(prediction))}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]
