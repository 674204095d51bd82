"""A run as a retrieval task and result of MTEB: turns are the documents, questions with gold evidence the queries.

The folder holds a data set in MTEB's layout, a subset for each conversation, ``task.py`` with the task that reads it,
and ``results/memsys__SYSTEM/TASK.json`` with the scores of the run. It quotes the data set.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from eval.metrics.evidence import ndcg, rank_holding, ranked_turns, recall, reciprocal_rank
from eval.results.exchange.languages import language_of
from eval.results.stored_run import StoredRun
from eval.runs.files import write_atomic
from eval.runs.load import load_references, load_retrievals
from memsys.errors import RunDirectoryError
from memsys.vocabulary import Json, Question, Sample

#: Depths that MTEB scores at, as far as a run's rankings reach.
DEPTHS = (1, 3, 5, 10, 20)
MAIN = "ndcg_at_10"
_SPLIT = "test"


def write_mteb(run: StoredRun, samples: Sequence[Sample], latin: str, out: Path) -> Path:
    """Write data set, task and result.

    Args:
        run: complete and scored, in its folder.
        samples: the data set as the run read it.
        latin: ISO 639-3 code of its language where it is written in Latin letters.
        out: folder, made where it is missing.

    Returns:
        Path of the result.

    Raises:
        RunDirectoryError: nothing was ranked.
    """
    gold = {
        reference.question_id: frozenset(reference.evidence)
        for reference in load_references(run.path).values()
        if reference.evidence
    }
    ranked = {
        question: ranked_turns([hit.turn_ids for hit in each.hits])
        for question, each in load_retrievals(run.path).items()
        if each.ranked and question in gold
    }
    if not any(ranked.values()):
        raise RunDirectoryError(f"{run.path} holds no ranking of turns for questions with evidence: nothing to write")
    kept = [sample for sample in samples if any(question.question_id in ranked for question in sample.questions)]
    data = out / _folder(run, ranked)
    scores, languages = [], {}
    for sample in kept:
        asked = [question for question in sample.questions if question.question_id in ranked]
        _write_subset(data / _subset(sample), sample, asked, gold)
        measured = retrieval_scores([(ranked[each.question_id], gold[each.question_id]) for each in asked])
        languages[_subset(sample)] = [language_of((turn.text for turn in sample.conversation.turns), latin)]
        about = {"hf_subset": _subset(sample), "languages": languages[_subset(sample)]}
        scores.append({**measured, "main_score": measured[MAIN], **about})
    _write_task(run, languages, data)
    result = {
        "dataset_revision": run.data_sha256,
        "task_name": task_name(run),
        "mteb_version": None,
        "scores": {_SPLIT: scores},
        "evaluation_time": None,
    }
    path = out / "results" / f"memsys__{quote(run.memory, safe='')}" / f"{task_name(run)}.json"
    write_atomic(path, (json.dumps(result, indent=2, ensure_ascii=False) + "\n").encode())
    return path


def _folder(run: StoredRun, questions: Iterable[str]) -> str:
    """Return a name of the data set that no other one has: the package ``datasets`` keeps what it read by this name."""
    content = "\n".join([run.data_sha256, *sorted(questions)])
    return f"data-{hashlib.sha256(content.encode()).hexdigest()[:12]}"


def _subset(sample: Sample) -> str:
    """Return a conversation's id as a name of a folder."""
    return f"c-{quote(sample.conversation.conversation_id, safe='')}"


def task_name(run: StoredRun) -> str:
    """Return the task's name: MTEB's are words without spaces."""
    words = re.split(r"\W|_", run.dataset)
    return f"Memsys{''.join(word.capitalize() for word in words)}Retrieval"


def _write_subset(folder: Path, sample: Sample, asked: Sequence[Question], gold: Mapping[str, frozenset[str]]) -> None:
    """Write turns, questions and evidence of a conversation."""
    turns = sample.conversation.turns
    rows: dict[str, list[dict[str, Json]]] = {
        "corpus": [{"_id": turn.turn_id, "text": f"{turn.speaker}: {turn.text}"} for turn in turns],
        "queries": [{"_id": question.question_id, "text": question.text} for question in asked],
        "qrels": [
            {"query-id": question.question_id, "corpus-id": turn, "score": 1}
            for question in asked
            for turn in sorted(gold[question.question_id])
        ],
    }
    for part, values in rows.items():
        _write_lines(folder / f"{part}.jsonl", values)


def _write_task(run: StoredRun, languages: Mapping[str, Sequence[str]], data: Path) -> None:
    write_atomic(data / "README.md", _card(list(languages)).encode())
    template = files(__package__).joinpath("mteb_task.txt").read_text(encoding="utf-8")
    about = {"name": task_name(run), "subsets": languages, "revision": run.data_sha256, "data": data.name}
    write_atomic(data.parent / "task.py", template.replace("{about}", json.dumps(about)).encode())


def retrieval_scores(ranked: Sequence[tuple[Sequence[str], frozenset[str]]]) -> dict[str, float]:
    """Return means over questions of recall and nDCG at each depth, and of reciprocal ranks, under MTEB's names.

    Args:
        ranked: of each question the ranking of turns, best first, and its gold turns.
    """
    found: dict[str, float] = {}
    for depth in DEPTHS:
        rankings = [
            rank_holding([[turn == one for one in gold] for turn in turns[:depth]], len(gold)) for turns, gold in ranked
        ]
        found[f"recall_at_{depth}"] = _mean([recall(each, depth) for each in rankings])
        found[f"ndcg_at_{depth}"] = _mean([ndcg(each, depth) for each in rankings])
        found[f"mrr_at_{depth}"] = _mean([reciprocal_rank(each) for each in rankings])
    return found


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 5)


def _write_lines(path: Path, rows: Sequence[Mapping[str, Json]]) -> None:
    write_atomic(path, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode())


def _card(subsets: Sequence[str]) -> str:
    """Return the head of the data set's README, by which the package ``datasets`` finds the files."""
    configs: list[dict[str, Any]] = [
        {
            "config_name": f"{subset}-{part}",
            "data_files": [{"split": _SPLIT, "path": f"{subset}/{part}.jsonl"}],
        }
        for subset in subsets
        for part in ("corpus", "queries", "qrels")
    ]
    return f"---\n{json.dumps({'configs': configs}, indent=1)}\n---\n"
