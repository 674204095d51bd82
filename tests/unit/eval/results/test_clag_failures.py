"""CLAG's failure patterns: one case per rule, order, eligibility, the command."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from eval.commands.commands import EXIT_ERROR
from eval.results.analysis import clag_failures
from eval.results.analysis.clag_failure_rules import (
    RESIDUAL,
    RULES,
    Case,
    FailureConfig,
    majority_speaker,
    names_in,
    pattern,
    place,
)
from eval.results.analysis.clag_failures import label_failures, load_config, main
from eval.runs.records import AnswerRecord, HitRecord, ReferenceRecord, RetrievalRecord
from eval.scoring.config import ScoringConfig
from eval.scoring.score_run import score_run
from memsys.errors import ConfigError, ScoringError

PROFILE = {"id": "cluster_0", "summary": "Ann talks of her pottery", "tags": ["pottery"], "size": 3}


def retrieval(*turn_ids: str, speaker: str = "Ann", profiles: list[dict[str, Any]] | None = None) -> RetrievalRecord:
    hits = [HitRecord(turn_id, f"{speaker}: hello", 0.5, (turn_id,)) for turn_id in turn_ids]
    shown = [PROFILE] if profiles is None else profiles
    trace = {"selected": [profile["id"] for profile in shown], "profiles": shown}
    return RetrievalRecord("q", "c", 4, hits, "", 0, None, trace)


def case(question: str, category: int = 4, **changes: Any) -> Case:
    base = Case("q", question, category, frozenset({"D2:1"}), retrieval("D2:1"), retrieval("D2:1"))
    return replace(base, **changes)


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (case("How is it going?", category=1), "compositional"),
        (case("What do both like?"), "compositional"),
        (case("What do both like?", clag=retrieval("D2:1", profiles=[PROFILE, {**PROFILE, "id": "x"}])), RESIDUAL),
        (case("When did it happen?"), "temporal"),
        (case("What happened?", category=2), "temporal"),
        (case("When?", clag=retrieval("D2:1", profiles=[{**PROFILE, "summary": "Plans for May 2023"}])), RESIDUAL),
        (case("Where is it?"), "location"),
        (case("How many pots?"), "numeric"),
        (case("How many pots?", clag=retrieval("D2:1", profiles=[{**PROFILE, "tags": ["three"]}])), RESIDUAL),
        (case("Is it new?", clag=retrieval("D1:4", "D1:2")), "stale"),
        (case("Is it new?", clag=retrieval("D3:1", "D1:2")), RESIDUAL),
        (case("Is it new?", clag=retrieval("D1:9", "D3:1")), "stale"),
        (case("What did Bob make?"), "entity"),
        (case("What did Ann's kiln do?"), RESIDUAL),
        (case("What did Ann make?", clag=retrieval("D2:1", speaker="Bob")), "entity"),
    ],
)
def test_patterns(failure: Case, expected: str) -> None:
    assert pattern(failure, load_config()) == expected


def test_every_rule_is_in_the_order_and_the_order_decides() -> None:
    config = load_config()
    assert sorted(config.order) == sorted(RULES)
    assert all(isinstance(word, str) for word in config.no_names)
    fits_two = case("When did Bob go?")
    assert pattern(fits_two, config) == "temporal"
    assert pattern(fits_two, replace(config, order=["entity", "temporal"])) == "entity"


@pytest.mark.parametrize("order", [["entity", "entity"], ["mood"]])
def test_a_wrong_order_is_refused(order: list[str]) -> None:
    with pytest.raises(ConfigError, match=order[0]):
        replace(load_config(), order=order)


def test_readings_of_the_records() -> None:
    assert place("D3:12") > place("D3:9") > place("D2:20")
    assert names_in("Does Ann’s sister know Bob in May?", load_config().no_names) == {"Ann", "Bob"}
    assert majority_speaker(retrieval("D1:1", "D1:2")) == "Ann"
    halves = replace(retrieval(), hits=[*retrieval("D1:1").hits, *retrieval("D1:2", speaker="Bob").hits])
    assert majority_speaker(halves) is None
    official = HitRecord("n", "Speaker Annsays : hi", 0.5, ("D1:1",))
    assert majority_speaker(replace(retrieval(), hits=[official])) == "Ann"


def write_run(folder: Path, predictions: dict[str, str]) -> Path:
    folder.mkdir()
    references = [ReferenceRecord(key, "c", 4, ("blue pot",), None, ("D2:1",), (), ()) for key in predictions]
    answers = [
        AnswerRecord(key, "c", 4, "What did Bob make?", text, text, False, (), 0.0, 0.0, False, 1, 1)
        for key, text in predictions.items()
    ]
    retrievals = [replace(retrieval("D2:1"), question_id=key) for key in predictions]
    for name, records in (("references", references), ("answers", answers), ("retrievals", retrievals)):
        lines = [json.dumps(asdict(record)) + "\n" for record in records]  # type: ignore[call-overload]
        (folder / f"{name}.jsonl").write_text("".join(lines))
    score_run(folder, ScoringConfig(metrics=("em_lower", "f1_set")))
    return folder


def runs(tmp_path: Path) -> tuple[Path, Path]:
    ours = write_run(tmp_path / "clag", {"right": "blue pot", "better": "blue", "equal": "no", "worse": "no"})
    theirs = write_run(tmp_path / "base", {"right": "no", "better": "no", "equal": "no", "worse": "pot"})
    return ours, theirs


def test_cases_are_wrong_answers_no_better_than_the_baselines(tmp_path: Path) -> None:
    result = label_failures(*runs(tmp_path), load_config())
    assert result["labels"] == {"equal": "entity", "worse": "entity"}
    assert result["patterns"]["entity"] == {"count": 2, "share": 1.0}
    assert (result["cases"], result["cases_searching_all_notes"]) == (2, 0)


def test_the_command_stores_and_shows_the_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours, theirs = runs(tmp_path)
    assert main([str(ours), str(theirs)]) == 0
    assert json.loads((ours / clag_failures.RESULT).read_text())["order"] == list(load_config().order)
    assert main([str(ours), str(tmp_path / "nowhere")]) == EXIT_ERROR


def test_runs_of_different_questions_are_refused(tmp_path: Path) -> None:
    ours, _ = runs(tmp_path)
    other = write_run(tmp_path / "other", {"right": "blue pot"})
    with pytest.raises(ScoringError, match="different questions"):
        label_failures(ours, other, load_config())


def test_runs_scored_otherwise_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScoringError, match="meteor"):
        label_failures(*runs(tmp_path), replace(load_config(), f1_metric="meteor"))


def test_an_unknown_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text("colour: red\n")
    with pytest.raises(ConfigError, match="colour"):
        load_config(path)
    with pytest.raises(ConfigError, match="does not exist"):
        load_config(tmp_path / "none.yaml")


def test_the_config_class_is_the_one_the_file_names() -> None:
    text = clag_failures.CONFIG.read_text(encoding="utf-8")
    assert f"_target_: {FailureConfig.__module__}.FailureConfig" in text
