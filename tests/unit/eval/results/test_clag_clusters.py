"""CLAG's clusters against gold labels, and their coherence."""

import json
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from eval.results.analysis.clag_clusters import agreement, analyse, main, question_labels, silhouette
from eval.runs.records import ReferenceRecord
from eval.runs.snapshot import save_snapshot
from memsys.errors import ScoringError


def test_clusters_that_are_the_topics_agree_wholly() -> None:
    home = {f"n{number}": number // 5 for number in range(20)}
    found = agreement(home, {note: f"topic {cluster}" for note, cluster in home.items()})
    assert found is not None
    assert (found.notes, found.labels, found.purity, found.together) == (20, 4, 1.0, 1.0)
    assert found.purity_chance < 0.8 and found.together_chance < 0.8


def test_one_cluster_keeps_all_together_and_is_as_pure_as_chance() -> None:
    home = dict.fromkeys("abcd", 0)
    found = agreement(home, {"a": "x", "b": "x", "c": "y", "d": "y"})
    assert found is not None
    assert (found.purity, found.purity_chance, found.together, found.together_chance) == (0.5, 0.5, 1.0, 1.0)


def test_a_note_of_each_own_cluster_is_pure_and_apart() -> None:
    home = {note: place for place, note in enumerate("abcd")}
    found = agreement(home, {"a": "x", "b": "x", "c": "y", "d": "y"})
    assert found is not None
    assert (found.purity, found.purity_chance, found.together) == (1.0, 1.0, 0.5)
    assert agreement(home, dict.fromkeys("abcd", "x")) is None


def test_evidence_of_several_questions_has_no_label() -> None:
    references: Any = [
        SimpleNamespace(question_id="q1", evidence=["t1", "t2"]),
        SimpleNamespace(question_id="q2", evidence=["t2", "t3", "lost"]),
    ]
    assert question_labels(references, {"t1": "n1", "t2": "n2", "t3": "n3"}) == {"n1": "q1", "n3": "q2"}


def test_two_tight_clusters_have_a_silhouette_near_one() -> None:
    near, far = np.array([[1, 0.01], [1, 0.0]]), np.array([[0.0, 1], [0.01, 1]])
    value = silhouette([near, far])
    assert value is not None and value > 0.98
    assert silhouette([near]) is None


def test_a_runs_snapshots_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ScoringError, match="no stored clusters"):
        analyse(tmp_path)
    notes = [{"note_id": f"n{i}", "timestamp": f"day {i // 2}", "turn_ids": [f"n{i}"]} for i in range(4)]
    clusters = [
        {"index": {"ids": ["n0", "n1", "n2"], "vectors": np.eye(4)[:3]}},
        {"index": {"ids": ["n3"], "vectors": np.eye(4)[3:]}},
    ]
    tree = {"conversation_id": "c", "memory": {"notes": notes, "clusters": clusters}}
    (tmp_path / "snapshots").mkdir()
    save_snapshot(tmp_path / "snapshots" / "c.npz", tree)
    reference = ReferenceRecord("q", "c", 1, ["a"], None, ["n0"], [], ["text"])
    (tmp_path / "references.jsonl").write_text(json.dumps(asdict(reference)) + "\n")
    (found,) = analyse(tmp_path)
    assert found.sizes == (3, 1) and found.questions is None
    assert found.sessions is not None and found.sessions.purity == 0.75
    assert main([str(tmp_path)]) == 0
    assert "2 sessions" in capsys.readouterr().out
