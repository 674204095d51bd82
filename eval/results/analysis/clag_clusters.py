"""Clusters of CLAG's runs: ``python -m eval.results.analysis.clag_clusters RUN [RUN ...]``.

Sizes (CLAG's Table 12), and what its review asks for: coherence and agreement with gold topics. Coherence is the
silhouette of the stored vectors by cosine, from -1 to 1. Agreement takes labels of notes: the session that a note was
said in, and, where each sentence of a pool belongs to one question (HotpotQA-20, BioASQ-20), that question. *Purity* is
the share of notes whose cluster mostly has their label, *kept together* the share whose label is mostly in their
cluster: what a router with gold topics would reach is 100 percent. Both are set against the same labels in random
order, since small clusters are pure by chance. LoCoMo has no gold topics.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import fsum
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from eval.commands.commands import explains_errors, start
from eval.commands.rendering.table import DASH, Cell, Table, columns
from eval.commands.rendering.terminal import show
from eval.runs.files import write_json
from eval.runs.load import load_references
from eval.runs.records import ReferenceRecord
from eval.runs.snapshot import load_snapshot
from memsys.errors import ScoringError

RESULT = "clag_clusters.json"
#: Random orders of the labels that chance is averaged over, and the seed they are drawn with.
_ORDERS, _SEED = 20, 0
_SIZES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of clusters with labels, as shares of the labelled notes, and by chance."""

    notes: int
    labels: int
    purity: float
    purity_chance: float
    together: float
    together_chance: float


@dataclass(frozen=True, slots=True)
class Clusters:
    """Clusters of one conversation.

    Attributes:
        conversation: its id.
        sizes: notes of each cluster, the largest first.
        silhouette: mean over the notes; ``None`` with one cluster, or with one note in each.
        sessions: agreement with the sessions; ``None`` where there is one.
        questions: agreement with the questions that sentences belong to; ``None`` where they belong to none.
    """

    conversation: str
    sizes: tuple[int, ...]
    silhouette: float | None
    sessions: Agreement | None
    questions: Agreement | None


def analyse(run: Path) -> list[Clusters]:
    """Describe the stored clusters of a run, conversation by conversation.

    Raises:
        ScoringError: it has no snapshot with clusters.
    """
    trees = list(_trees(run))
    if not trees:
        raise ScoringError(f"{run} has no stored clusters; name a finished run of CLAG with its snapshots")
    references = load_references(run).values()
    return [_clusters(tree, references) for tree in trees]


def _trees(run: Path) -> Iterator[Mapping[str, Any]]:
    for path in sorted((run / "snapshots").glob("*.npz")):
        tree = load_snapshot(path)
        if tree and "clusters" in tree["memory"]:
            yield tree


def _clusters(tree: Mapping[str, Any], references: Iterable[ReferenceRecord]) -> Clusters:
    memory, conversation = tree["memory"], str(tree["conversation_id"])
    indexes = [cluster["index"] for cluster in memory["clusters"]]
    home = {note: place for place, index in enumerate(indexes) for note in index["ids"]}
    sessions = {note["note_id"]: note["timestamp"] for note in memory["notes"]}
    turns = {turn: note["note_id"] for note in memory["notes"] for turn in note["turn_ids"]}
    own = [each for each in references if each.conversation_id == conversation]
    return Clusters(
        conversation,
        tuple(sorted((len(index["ids"]) for index in indexes), reverse=True)),
        silhouette([np.asarray(index["vectors"]) for index in indexes]),
        agreement(home, sessions),
        agreement(home, question_labels(own, turns)),
    )


def silhouette(clusters: Sequence[np.ndarray[Any, Any]]) -> float | None:
    """Return the mean silhouette by cosine distance of vectors (n, d) of each cluster."""
    from sklearn.metrics import silhouette_score

    labels = [place for place, vectors in enumerate(clusters) for _ in vectors]
    if not 2 <= len(set(labels)) < len(labels):
        return None
    return float(silhouette_score(np.concatenate([each for each in clusters if len(each)]), labels, metric="cosine"))


def question_labels(references: Sequence[ReferenceRecord], turns: Mapping[str, str]) -> dict[str, str]:
    """Return the question that each note is evidence of; notes of none or of several are left out."""
    found: dict[str, set[str]] = defaultdict(set)
    for reference in references:
        for turn in reference.evidence:
            if turn in turns:
                found[turns[turn]].add(reference.question_id)
    return {note: min(questions) for note, questions in found.items() if len(questions) == 1}


def agreement(home: Mapping[str, int], labels: Mapping[str, str]) -> Agreement | None:
    """Compare clusters with labels.

    Args:
        home: cluster of each note.
        labels: of some of them.
    """
    notes = [note for note in labels if note in home]
    clusters, named = [home[note] for note in notes], [labels[note] for note in notes]
    if len(set(named)) < 2:
        return None
    generator, chance = Random(_SEED), []
    for _ in range(_ORDERS):
        shuffled = generator.sample(named, len(named))
        chance.append((_majority(clusters, shuffled), _majority(shuffled, clusters)))
    purity_chance, together_chance = (fsum(values) / _ORDERS for values in zip(*chance, strict=True))
    return Agreement(
        len(notes),
        len(set(named)),
        _majority(clusters, named),
        purity_chance,
        _majority(named, clusters),
        together_chance,
    )


def _majority(groups: Sequence[Any], values: Sequence[Any]) -> float:
    """Return the share of items that have the most frequent value of their group."""
    by_group: dict[Any, Counter[Any]] = defaultdict(Counter)
    for group, value in zip(groups, values, strict=True):
        by_group[group][value] += 1
    return sum(max(counts.values()) for counts in by_group.values()) / len(groups)


_HEADINGS = ("conversation", "notes", "clusters", "largest", "silhouette", "labels", "labelled notes", "purity, %",
             "by chance", "kept together, %", "by chance ")  # fmt: skip


def table(run: str, found: Sequence[Clusters]) -> Table:
    """Return a line for each conversation and kind of label."""
    rows: list[list[Cell]] = []
    for each in found:
        sizes = ", ".join(map(str, each.sizes[:_SIZES_SHOWN]))
        closeness = DASH if each.silhouette is None else f"{each.silhouette:.3f}"
        first: list[Cell] = [each.conversation, sum(each.sizes), len(each.sizes), sizes, closeness]
        for name, agreed in (("sessions", each.sessions), ("questions", each.questions)):
            if agreed is not None:
                shares = (agreed.purity, agreed.purity_chance, agreed.together, agreed.together_chance)
                rows.append([*first, f"{agreed.labels} {name}", agreed.notes, *(f"{100 * one:.1f}" for one in shares)])
        if each.sessions is each.questions is None:
            rows.append([*first, *[DASH] * 6])
    return Table(f"Clusters of {run}", columns(_HEADINGS, left=1), rows)


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Describe the clusters of runs, store each result next to its run's scores and show it."""
    parser = argparse.ArgumentParser(prog="python -m eval.results.analysis.clag_clusters", description=main.__doc__)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="folder of a finished run of CLAG")
    for run in parser.parse_args(arguments).runs:
        found = analyse(run)
        write_json(run / RESULT, [asdict(each) for each in found])
        show(table(run.name, found))
    return 0


if __name__ == "__main__":
    start(main)
