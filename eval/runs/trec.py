"""A run's evidence as TREC files, which retrieval tools read: a ranking of turns per question, and the gold turns.

``qrels``: ``question 0 turn 1``, a line per gold turn. ``run``: ``question Q0 turn rank score tag``. A memory may
come from several turns: they are one after the other at its place, each turn once. So a tool's recall at ten is
``recall_turns@10`` of a run, over the first ten turns; its ``recall@10`` counts the first ten memories. Tools order by
the score, so it falls by one from rank to rank; it is not the system's own. White space in ids, which separates the
columns, is written as in an URL (``%20``).
"""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from eval.metrics.evidence import ranked_turns
from eval.runs.files import write_atomic
from eval.runs.load import find_record, load_references, load_retrievals
from eval.runs.records import RetrievalRecord
from memsys.errors import RunDirectoryError

_NO_SEARCH = "its memory makes no search"
#: Characters that ids may hold as they are.
_SAFE = "!#$&'()*+,/:;<=>?@[]^`{|}~\""


def write_trec(run: Path, out: Path) -> tuple[Path, Path]:
    """Write ``<run's name>.run`` and ``<run's name>.qrels``.

    Args:
        run: the run directory.
        out: folder of the files.

    Returns:
        Paths of ranking and gold.

    Raises:
        RunDirectoryError: nothing was ranked, or the files cannot be written.
        ScoringError: the directory is not a run, or a row cannot be read.
    """
    references, retrievals = load_references(run), load_retrievals(run)
    ranked = [each for each in retrievals.values() if each.ranked]
    if not any(each.hits for each in ranked):
        recorded = bool((find_record(run) or {}).get("recorded"))
        why = "its answers were recorded elsewhere, without what was retrieved" if recorded else _NO_SEARCH
        raise RunDirectoryError(f"{run} holds no ranking: {why}, so there is nothing to write")
    name = run.resolve().name
    gold = [
        f"{_id(reference.question_id)} 0 {_id(turn)} 1"
        for reference in references.values()
        for turn in dict.fromkeys(reference.evidence)
    ]
    lines = [line for each in ranked for line in _ranking(each, name)]
    paths = out / f"{name}.run", out / f"{name}.qrels"
    for path, text in zip(paths, (lines, gold), strict=True):
        write_atomic(path, "".join(f"{line}\n" for line in text).encode())
    return paths


def _ranking(retrieval: RetrievalRecord, tag: str) -> Iterator[str]:
    turns = ranked_turns([hit.turn_ids for hit in retrieval.hits])
    for rank, turn in enumerate(turns, start=1):
        yield f"{_id(retrieval.question_id)} Q0 {_id(turn)} {rank} {len(turns) + 1 - rank} {_id(tag)}"


def _id(text: str) -> str:
    return quote(text, safe=_SAFE) if text.isascii() else "".join(quote(c) if c.isspace() else c for c in text)
