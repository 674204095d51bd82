"""Scoring, averaging and summarising a small stored run whose numbers are worked out by hand."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from eval.loaders.question_types import ADVERSARIAL
from eval.runs.load import load_scores
from eval.runs.records import AnswerRecord, ConversationRecord, HitRecord, ReferenceRecord, RetrievalRecord, ScoreRow
from eval.score import main
from eval.scoring.aggregate import aggregate, mean_of, score_name
from eval.scoring.call_costs import calls_by_role
from eval.scoring.config import ScoringConfig
from eval.scoring.latency import measured_latencies
from eval.scoring.protocols import Protocol, load_protocol, protocol_names
from eval.scoring.score_run import score_run
from eval.scoring.summary import summarise
from memsys.errors import ConfigError, MemsysError, RunDirectoryError, ScoringError
from memsys.llm.ledger import CallRecord

CONFIG = ScoringConfig(metrics=("f1_set", "f1_squad", "locomo_official", "em_lower"))
OPTIONS = ("Not mentioned in the conversation", "a red car")


def _reference(question_id: str, category: int, **changes: Any) -> ReferenceRecord:
    plain = ReferenceRecord(question_id, "c1", category, ["blue car"], None, ["D1:1"], [], ["The car is blue."], {})
    return replace(plain, **changes)


def _answer(question_id: str, category: int, prediction: str, **changes: Any) -> AnswerRecord:
    plain = AnswerRecord(question_id, "c1", category, "?", prediction, prediction, False, [], 0.3, 0.5, True, 10, 2)
    return replace(plain, **changes)


def _retrieval(question_id: str, category: int, turn_ids: list[str], **changes: Any) -> RetrievalRecord:
    hits = [HitRecord(f"m{turn_id}", f"Ana: text of {turn_id}.", 0.9, [turn_id]) for turn_id in turn_ids]
    spans = {"spans": {"keywords": 0.1, "search": 0.05}, "mode": "cluster", "share": 0.5}
    plain = RetrievalRecord(question_id, "c1", category, hits, "some context", 12, 3, spans)
    return replace(plain, **changes)


REFERENCES = [
    _reference("q1", 4),
    _reference("q2", 1, answers=["blue car", "azure car"], evidence=["D1:1", "D1:2"]),
    _reference("q3", 5, answers=[], adversarial_answer="red car"),
    _reference("q4", 3, answers=[], evidence=[], evidence_texts=[]),
    _reference("q5", 2),
    _reference("q6", 5, answers=["No"], adversarial_answer="red car"),
]
ANSWERS = [  # q5 stays unanswered; stored out of order, as they finish
    _answer("q6", 5, "(a)", options=OPTIONS),
    _answer("q2", 1, "azure car", malformed=True),
    _answer("q1", 4, "car"),
    _answer("q3", 5, "a red car"),
    _answer("q4", 3, "anything", measured=False, retrieve_seconds=99.0),
]
RETRIEVALS = [
    _retrieval("q1", 4, ["D1:2", "D1:1"]),
    _retrieval("q2", 1, ["D1:1"]),
    _retrieval("q3", 5, []),
    _retrieval("q4", 3, ["D1:1"]),
    _retrieval("q6", 5, ["D1:1"]),
]


def _write(path: Path, rows: list[Any]) -> None:
    path.write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows), encoding="utf-8")


def _call(phase: str, role: str, **changes: Any) -> CallRecord:
    plain = CallRecord(
        "c1", phase, role, "k", "i", 0, 100, 10, 1.0, 0.0, "stop", False, False, False, 0, "hash", "http://x"
    )
    return replace(plain, **changes)


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    _write(tmp_path / "references.jsonl", REFERENCES)
    _write(tmp_path / "answers.jsonl", ANSWERS)
    _write(tmp_path / "retrievals.jsonl", RETRIEVALS)
    conversations = [
        ConversationRecord("c1", 4, 4, 2.0, [0.1] * 4, [0.2] * 4, 0.3, {"notes": 10, "clusters": {"sizes": [1, 3]}}),
        ConversationRecord("c2", 8, 8, 4.0, [0.1] * 8, [0.2] * 8, 0.3, {"notes": 20, "clusters": {"sizes": [8]}}),
    ]
    _write(tmp_path / "conversations.jsonl", conversations)
    calls = [
        _call("prepare", "analyse", malformed=True, cached_tokens=0),
        _call("prepare", "analyse", attempt=1, repaired=True, finish_reason="length", cached_tokens=90),
        _call("answer", "answer", cache_hit=True),
        _call("retrieve", "keywords"),
    ]
    _write(tmp_path / "calls.jsonl", calls)
    return tmp_path


def _by_id(rows: list[ScoreRow]) -> dict[str, dict[str, float | None]]:
    return {row.question_id: dict(row.metrics) for row in rows}


def test_equal_requests_of_a_package_are_no_second_attempts() -> None:
    own = [_call("write", "chat", attempt=number) for number in range(3)]
    again = [_call("write", "facts", malformed=True), _call("write", "facts", attempt=1)]
    total: Any = calls_by_role([*own, *again])
    assert (total["total"]["calls"], total["total"]["second_attempts"]) == (5, 1)


def test_rows_follow_the_references_and_skip_the_unanswered(run_dir: Path) -> None:
    rows = score_run(run_dir, CONFIG)
    assert [row.question_id for row in rows] == ["q1", "q2", "q3", "q4", "q6"]
    assert load_scores(run_dir) == rows
    assert json.loads((run_dir / "scores_meta.json").read_text())["counts"] == {
        "questions": 6, "answered": 5, "retrieved": 5, "unanswered": 1, "malformed": 1, "rows": 5,
        "outcomes": {"malformed": 1},
    }  # fmt: skip


def test_answer_scores_by_hand(run_dir: Path) -> None:
    scores = _by_id(score_run(run_dir, CONFIG))
    assert scores["q1"]["f1_set"] == pytest.approx(2 / 3, abs=1e-6)
    assert scores["q2"]["f1_squad"] == 1.0  # the better of two answers
    assert scores["q2"]["f1_set"] == 1.0
    assert scores["q1"]["trapped"] is None
    assert scores["q1"]["abstained"] == 0.0


def test_category_5_both_ways(run_dir: Path) -> None:
    scores = _by_id(score_run(run_dir, CONFIG))
    fooled, declined = scores["q3"], scores["q6"]
    assert fooled["f1_set"] == pytest.approx(0.8)  # "a red car" against the false answer
    assert (fooled["trapped"], fooled["abstained"], fooled["locomo_official"]) == (1.0, 0.0, 0.0)
    # The letter is the abstaining option. The false answer is the reference although an answer is given.
    assert (declined["f1_set"], declined["trapped"], declined["abstained"]) == (0.0, 0.0, 1.0)
    assert declined["locomo_official"] == 1.0


def test_what_cannot_be_scored_is_null(run_dir: Path) -> None:
    scores = _by_id(score_run(run_dir, CONFIG))["q4"]
    assert scores["f1_set"] is None and scores["e_recall"] is None and scores["e_recall_substring"] is None
    assert scores["context_chars"] == 12.0


def test_evidence_scores_by_hand(run_dir: Path) -> None:
    scores = _by_id(score_run(run_dir, CONFIG))
    assert (scores["q1"]["e_precision"], scores["q1"]["e_recall"], scores["q1"]["mrr"]) == (0.5, 1.0, 0.5)
    assert (scores["q2"]["e_precision"], scores["q2"]["e_recall"]) == (1.0, 0.5)
    assert scores["q3"]["e_recall"] == 0.0  # nothing retrieved
    assert scores["q1"]["e_recall_substring"] == 0.0  # the memories hold other words
    assert (scores["q2"]["pool_recall"], scores["q2"]["pool_hit_rate"]) == (0.5, 1.0)
    assert scores["q3"]["pool_recall"] == scores["q1"]["pool_recall_substring"] == 0.0
    assert scores["q1"]["hit_chars"] == 2 * len("Ana: text of D1:1.")


def test_a_ranking_of_some_hits_is_scored_beside_all(run_dir: Path) -> None:
    """Of q1's hits D1:2 and D1:1 the second is gold."""
    rankings = {"named": [1], "searched": []}
    _write(run_dir / "retrievals.jsonl", [replace(RETRIEVALS[0], rankings=rankings), *RETRIEVALS[1:]])
    scores = _by_id(score_run(run_dir, CONFIG))
    first = scores["q1"]
    assert (first["e_precision"], first["e_precision_named"], first["mrr_named"]) == (0.5, 1.0, 1.0)
    assert (first["e_f1_searched"], first["recall@10_searched"]) == (0.0, 0.0)
    assert "e_f1_named" not in scores["q2"], "this retrieval has no such list"
    _write(run_dir / "retrievals.jsonl", [replace(RETRIEVALS[0], rankings=rankings, traced=False), *RETRIEVALS[1:]])
    assert _by_id(score_run(run_dir, CONFIG))["q1"]["e_f1_named"] is None


def test_what_is_shown_unranked_has_coverage_alone(run_dir: Path) -> None:
    """A context that was not searched for: of q2's two gold turns it shows one."""
    hits = [HitRecord("", "", 0.0, ["D1:2", "D1:3"])]
    shown = [replace(retrieval, ranked=False, hits=hits) for retrieval in RETRIEVALS]
    _write(run_dir / "retrievals.jsonl", shown)
    scores = _by_id(score_run(run_dir, CONFIG))
    assert scores["q2"]["pool_recall"] == 0.5
    assert scores["q2"]["pool_hit_rate"] == 1.0
    for name in ("e_f1", "e_precision", "recall@10", "ndcg@10", "mrr", "hit_rate", "recall@10_substring"):
        assert scores["q2"][name] is None
    assert scores["q2"]["pool_recall_substring"] is None


def test_a_retrieval_only_run_has_evidence_alone(run_dir: Path) -> None:
    (run_dir / "answers.jsonl").unlink()
    rows = score_run(run_dir, ScoringConfig(metrics=("all",)))
    assert len(rows) == 5
    assert "f1_set" not in rows[0].metrics and rows[0].metrics["e_recall"] == 1.0
    summary = summarise(run_dir)
    assert summary["latency"] is None
    assert summary["protocols"]["clag"]["overall"]["F1"] == {"mean": None, "scored": 0, "unscored": 5}


def test_empty_predictions_score_zero(run_dir: Path) -> None:
    blanks = [replace(answer, prediction=blank) for answer, blank in zip(ANSWERS, ["", " ", "\n", "", ""], strict=True)]
    _write(run_dir / "answers.jsonl", blanks)
    for scores in _by_id(score_run(run_dir)).values():
        assert scores["f1_set"] in (0.0, None)
        assert {scores[name] for name in ("bleu1", "meteor", "rougeL", "em_lower")} <= {0.0, None}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda run: _write(run / "answers.jsonl", [*ANSWERS, ANSWERS[0]]), "q6 occurs twice"),
        (lambda run: _write(run / "answers.jsonl", [replace(ANSWERS[0], question_id="zz")]), "zz is not in references"),
        (lambda run: _write(run / "answers.jsonl", [replace(ANSWERS[0], category=4)]), "two runs"),
        (lambda run: _write(run / "retrievals.jsonl", RETRIEVALS[1:]), "1 answered questions have no retrieval"),
        (lambda run: (run / "references.jsonl").unlink(), "no references.jsonl"),
        (lambda run: (run / "answers.jsonl").write_text('{"question_id": "q1"}\n'), "does not fit this version"),
        (lambda run: [(run / name).unlink() for name in ("answers.jsonl", "retrievals.jsonl")], "neither answers nor"),
    ],
)
def test_files_that_do_not_fit_are_refused(run_dir: Path, spoil: Callable[[Path], Any], message: str) -> None:
    spoil(run_dir)
    with pytest.raises(ScoringError, match=message):
        score_run(run_dir, CONFIG)
    assert not (run_dir / "scores.jsonl").exists()


def test_a_cut_last_line_is_no_answer_and_a_broken_middle_is_an_error(run_dir: Path) -> None:
    path = run_dir / "answers.jsonl"
    whole = path.read_text()
    path.write_text(whole[:-20])
    assert len(score_run(run_dir, CONFIG)) == 4
    path.write_text("{broken\n" + whole)
    with pytest.raises(RunDirectoryError, match=r"answers\.jsonl:1 is not JSON"):
        score_run(run_dir, CONFIG)


def test_stale_scores_are_refused(run_dir: Path) -> None:
    score_run(run_dir, CONFIG)
    _write(run_dir / "answers.jsonl", ANSWERS[:2])
    with pytest.raises(ScoringError, match=r"answers\.jsonl changed since"):
        summarise(run_dir)


def test_scoring_twice_gives_the_same_bytes(run_dir: Path) -> None:
    score_run(run_dir)
    summarise(run_dir)
    first = [(run_dir / name).read_bytes() for name in ("scores.jsonl", "scores_meta.json", "summary.json")]
    _write(run_dir / "answers.jsonl", ANSWERS)
    score_run(run_dir)
    summarise(run_dir)
    assert first == [(run_dir / name).read_bytes() for name in ("scores.jsonl", "scores_meta.json", "summary.json")]


def _rows() -> list[ScoreRow]:
    values: list[tuple[int, float | None, float]] = [(1, 1.0, 0.0), (1, 0.0, 0.0), (4, 0.5, 0.0), (4, None, 0.0)]
    values += [(5, 1.0, 0.0), (5, 0.25, 1.0)]
    return [
        ScoreRow(f"q{index}", "c", category, {"f1_set": f1, "abstained": abstained})
        for index, (category, f1, abstained) in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("adversarial", "weighting", "overall"),
    [
        ("paper_trap", "question_mean", (1.0 + 0.0 + 0.5 + 1.0 + 0.25) / 5),
        ("paper_trap", "category_mean", (0.5 + 0.5 + 0.625) / 3),
        ("abstain", "question_mean", (1.0 + 0.0 + 0.5 + 0.0 + 1.0) / 5),
        ("exclude", "question_mean", 0.5),
    ],
)
def test_protocols_average_differently(adversarial: Any, weighting: Any, overall: float) -> None:
    labels = {"multi_hop": "multi-hop", "single_hop": "single-hop", "adversarial": "adversarial"}
    protocol = Protocol(adversarial, weighting, "p", "here", labels, {"F1": "f1_set"})
    means = aggregate(_rows(), protocol)
    assert means.overall["F1"].value == pytest.approx(overall)
    assert means.overall["F1"].unscored == 1
    assert means.without_adversarial["F1"].value == pytest.approx(0.5)
    assert means.left_out == (2 if adversarial == "exclude" else 0)
    assert [category.label for category in means.categories][:2] == ["multi-hop", "single-hop"]


def test_a_category_of_a_new_data_set_counts_and_is_labelled_by_its_kind() -> None:
    """Its 5 is not an adversarial category; protocols that leave adversarial questions out leave out its own."""
    rows = [
        ScoreRow("q1", "c", 5, {"f1_set": 1.0}, "knowledge_update"),
        ScoreRow("q2", "c", 3, {"f1_set": 0.0}, "temporal"),
        ScoreRow("q3", "c", 9, {"f1_set": 0.5}, "adversarial"),
    ]
    means = aggregate(rows, load_protocol("sage"))
    assert [(part.category, part.label) for part in means.categories] == [(3, "temporal"), (5, "knowledge update")]
    assert means.overall["F1"].value == 0.5 and means.left_out == 1


def test_a_row_without_a_kind_has_the_one_that_its_category_meant() -> None:
    assert [ScoreRow("q", "c", number, {}).kind for number in (1, 4, 5, 6, 8)] == [
        "multi_hop", "single_hop", "adversarial", "list", "social_relationship"
    ]  # fmt: skip


def test_an_abstention_is_no_retrieval() -> None:
    rows = [ScoreRow("q", "c", 5, {"f1_set": 0.0, "abstained": 1.0, "e_recall": 0.25})]
    means = aggregate(rows, replace(load_protocol("locomo"), columns={"F1": "f1_set", "E-Recall": "e_recall"}))
    assert (means.overall["F1"].value, means.overall["E-Recall"].value) == (1.0, 0.25)


def test_nothing_scored_has_no_mean() -> None:
    assert mean_of([None, None]).value is None
    rows = [ScoreRow("q", "c", 4, {"f1_set": None})]
    assert aggregate(rows, load_protocol("sage")).overall["F1"].value is None


def test_shipped_protocols() -> None:
    named = ("beam", "clag", "locomo", "longmemeval", "memfly", "sage", "xmemory")
    treatments = {name: load_protocol(name).adversarial for name in named}
    assert set(named) <= set(protocol_names())
    assert treatments == {
        "clag": "paper_trap", "memfly": "paper_trap", "locomo": "abstain", "sage": "exclude", "xmemory": "exclude",
        "beam": "abstain", "longmemeval": "abstain",
    }  # fmt: skip
    sage = load_protocol("sage")
    kinds = ("multi_hop", "temporal", "open_domain", "single_hop")
    assert [sage.label(kind) for kind in kinds] == ["multi-hop", "temporal", "open-domain", "single-hop"]
    assert [sage.printed_label(kind) for kind in kinds] == ["single-hop", "multi-hop", "temporal", "open-domain"]
    assert sage.weighting == "category_mean"


def test_wrong_protocols_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="choose one of beam, clag, "):
        load_protocol("clagg")
    with pytest.raises(ConfigError, match="adversarial='trap'"):
        replace(load_protocol("clag"), adversarial="trap")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"labels names \[1\]; name kinds of questions"):
        replace(load_protocol("clag"), labels={1: "multi-hop"})  # type: ignore[dict-item]
    with pytest.raises(ConfigError, match="did you mean f1_set"):
        replace(load_protocol("clag"), columns={"F1": "f1_setx"})
    (tmp_path / "odd.yaml").write_text("name: odd\nweights: 3\n")
    with pytest.raises(ConfigError, match="weights"):
        load_protocol("odd", tmp_path)


def test_summary_by_hand(run_dir: Path) -> None:
    score_run(run_dir, CONFIG)
    summary = summarise(run_dir)
    assert json.loads((run_dir / "summary.json").read_text()) == summary
    assert summary["adversarial"] == {
        "questions": 2, "abstained": 0.5, "trapped": 0.5, "declined_answerable": 0.0
    }  # fmt: skip
    # Four measured questions, 300 ms to retrieve of which 100 ms for keywords, 500 ms to answer.
    assert summary["latency"]["retrieval_ms"] == pytest.approx(
        {"mean": 200.0, "std": 0.0, "median": 200.0, "min": 200.0, "max": 200.0, "count": 4}
    )
    assert summary["latency"]["end_to_end_ms"]["mean"] == pytest.approx(800.0)
    assert summary["latency"]["spans_ms"]["search"]["mean"] == pytest.approx(50.0)
    analyse = summary["calls"]["by_phase"]["prepare"]["by_role"]["analyse"]
    assert (analyse["calls"], analyse["malformed"], analyse["repaired"], analyse["cut_short"]) == (2, 1, 1, 1)
    # 90 of the 200 prompt tokens of the two calls that say so; the reply from our own cache and the keywords do not.
    assert (analyse["cached_tokens"], analyse["cached_share"]) == (90, 0.45)
    keywords = summary["calls"]["by_phase"]["retrieve"]["by_role"]["keywords"]
    assert (keywords["cached_tokens"], keywords["cached_share"]) == (None, None)
    assert summary["calls"]["total"]["cached_share"] == 0.45
    assert summary["calls"]["total"]["cache_hits"] == 1
    assert summary["calls"]["total"]["fresh_seconds"] == 3.0
    assert summary["cost"]["read_per_question"] == {"calls": 0.4, "prompt_tokens": 40.0, "completion_tokens": 4.0}
    assert summary["cost"]["write_per_conversation"]["calls"] == 1.0
    notes = summary["memory"]["statistics"]["notes"]
    assert (notes["mean"], notes["std"], notes["sum"], notes["count"]) == (15.0, 5.0, 30.0, 2)
    assert summary["memory"]["statistics"]["clusters.sizes[]"]["count"] == 3
    assert summary["trace"]["values"]["mode"] == {"cluster": 5}
    assert summary["trace"]["numbers"]["share"]["mean"] == 0.5
    assert summary["context"]["context_tokens"]["mean"] == 3.0
    assert summary["counts"]["by_category"]["2"] == {"questions": 1, "rows": 0, "malformed": 0}
    evidence = summary["evidence"]
    assert evidence["all"]["e_recall"] == {"mean": 0.625, "scored": 4, "unscored": 1}
    assert evidence["without_adversarial"]["e_recall"] == {"mean": 0.75, "scored": 2, "unscored": 1}


def test_spans_that_are_no_times_do_not_stop_the_scoring(run_dir: Path) -> None:
    """A memory of somebody else's that wrote null for its spans ended the summary in a traceback."""
    traces: list[Any] = [{"spans": None}, {"spans": {"search": "fast", "keywords": 0.1}}, {}]
    changed = [replace(row, trace=trace) for row, trace in zip(RETRIEVALS, traces, strict=False)]
    _write(run_dir / "retrievals.jsonl", [*changed, *RETRIEVALS[3:]])
    score_run(run_dir, CONFIG)
    found = summarise(run_dir)["latency"]
    assert (found["retrieval_ms"]["min"], found["retrieval_ms"]["max"]) == (200.0, 300.0)
    assert found["spans_ms"]["search"]["count"] == 1
    clocks = measured_latencies(run_dir)
    assert {question: row["retrieval_ms"] for question, row in clocks.items()} == {
        "q1": 300.0, "q2": 200.0, "q3": 300.0, "q6": 200.0
    }  # fmt: skip
    assert {row["end_to_end_ms"] for row in clocks.values()} == {800.0}


@pytest.mark.parametrize("damage", [{"config": None}, {"inputs": []}, {"models": 3}])
def test_damaged_scores_are_made_again(run_dir: Path, damage: Mapping[str, Any]) -> None:
    score_run(run_dir)
    path = run_dir / "scores_meta.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **damage}))
    rows = [json.loads(line) for line in (run_dir / "scores.jsonl").read_text().splitlines()]
    lines = [json.dumps({**row, "metrics": {**row["metrics"], "sbert": 0.5}}) for row in rows]
    (run_dir / "scores.jsonl").write_text("\n".join(lines) + "\n")
    assert "sbert" not in score_run(run_dir, CONFIG)[0].metrics
    (run_dir / "scores.jsonl").write_text('{"question_id": "q1", "metrics": ["f1_set"]}\n')
    assert score_run(run_dir, CONFIG) == load_scores(run_dir)


def test_latency_is_null_unless_measured(run_dir: Path) -> None:
    _write(run_dir / "answers.jsonl", [replace(answer, measured=False) for answer in ANSWERS])
    score_run(run_dir, CONFIG)
    assert summarise(run_dir)["latency"] is None


def test_missing_models_are_an_error(run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSYS_MODELS", str(tmp_path / "none"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    for name, metric in (("BERTScore", "bert_f1"), ("SBERT", "sbert")):
        config = ScoringConfig(metrics=(metric,), bertscore_model="no-model", sbert_model="no-model")
        with pytest.raises(ScoringError, match=f"{name}: model 'no-model' is not on this machine"):
            score_run(run_dir, config)
    assert not (run_dir / "scores.jsonl").exists()


@pytest.mark.real_model
def test_neural_scores_name_their_model(run_dir: Path) -> None:
    from memsys.assets.catalog import asset_path
    from memsys.errors import AssetError

    try:
        asset_path("all_minilm_l6_v2")
    except AssetError as error:
        pytest.skip(str(error))
    _write(run_dir / "answers.jsonl", [*ANSWERS[1:], replace(ANSWERS[0], prediction="")])
    config = ScoringConfig(metrics=("neural",), bertscore_model="all-MiniLM-L6-v2")
    scores = _by_id(score_run(run_dir, config))
    # A-Mem's rule for an empty prediction: F1 is 0, precision and recall do not exist.
    assert (scores["q6"]["bert_f1"], scores["q6"]["bert_precision"], scores["q6"]["sbert"]) == (0.0, None, 0.0)
    assert scores["q4"]["bert_f1"] is None
    assert scores["q1"]["bert_f1"] is not None and 0.5 < scores["q1"]["bert_f1"] < 1
    models = json.loads((run_dir / "scores_meta.json").read_text())["models"]
    assert models["bertscore"]["model"] == models["sbert"]["model"] == "all-MiniLM-L6-v2"
    assert len(models["bertscore"]["weights_sha256"]) == 64
    with pytest.raises(ScoringError, match="no baseline"):
        score_run(run_dir, replace(config, bertscore_rescaled=True))
    with pytest.raises(ScoringError, match="out of range"):
        score_run(run_dir, replace(config, bertscore_layers=7))


def test_metrics_that_a_run_has_no_more_are_named(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Scored again without a word, a run lost the metrics of models."""
    path = run_dir / "scores_meta.json"
    assert main([str(run_dir)]) == 0
    assert "no longer scored" not in capsys.readouterr().out
    meta = json.loads(path.read_text())
    changed = {**meta, "metrics": [*meta["metrics"], "sbert", "of_a_former_version"]}
    path.write_text(json.dumps({**changed, "config": {**meta["config"], "name": "minilm"}}))
    assert main([str(run_dir)]) == 0
    assert "no longer scored: sbert; the last time was with --preset minilm" in capsys.readouterr().out
    for damaged in ("{", "{}", json.dumps({"config": {"name": "x"}, "metrics": None})):
        path.write_text(damaged)
        assert main([str(run_dir)]) == 0
        assert "no longer scored" not in capsys.readouterr().out


def test_command_line(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(run_dir), str(run_dir), "--metrics", "f1_set", "locomo_official"]) == 0
    shown = capsys.readouterr().out
    assert "5 of 6 questions answered, 1 malformed" in shown
    assert "multi-hop" in shown and "lineage" in shown
    assert (run_dir / "summary.json").is_file()
    assert main(["--list"]) == 0
    assert "f1_set" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{run}/nothing"], "no references.jsonl"),
        (["{run}", "--metrics", "f1"], "unknown"),
        (["{run}", "--preset", "zzz"], "choose one of default, full, minilm"),
        ([], "name at least one run directory"),
    ],
)
def test_command_line_errors_are_one_line(
    run_dir: Path, arguments: list[str], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([argument.format(run=run_dir) for argument in arguments]) == 2
    complaint = capfd.readouterr().err
    assert message in " ".join(complaint.split())
    assert "Traceback" not in complaint


def test_bad_scoring_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="unknown"):
        ScoringConfig(metrics=("f2",))
    with pytest.raises(ConfigError, match="batch_size=0"):
        ScoringConfig(batch_size=0)
    assert issubclass(ScoringError, MemsysError)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [("f1_set", "abstained"), ("recall@10", "recall@10"), ("judge_x", "judge_x"), ("retrieve_ms", "retrieve_ms")],
)
def test_abstention_stands_for_scores_of_answers_alone(metric: str, expected: str) -> None:
    assert score_name(metric, ADVERSARIAL, "abstain") == expected
    assert score_name(metric, "single_hop", "abstain") == score_name(metric, ADVERSARIAL, "paper_trap") == metric
