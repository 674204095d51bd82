"""Memory quality without a reader: hand-worked funnels and counts of a made-up run, and what a run does not say."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.export import export_run
from eval.results.drawing.draw import draw_sheet
from eval.results.figures.funnel import funnel_sheets
from eval.results.figures.own import groups as plot_groups
from eval.results.frame import read_run
from eval.results.own.memory_quality import (
    evidence_table,
    quality_groups,
    quality_page,
)
from eval.results.own.rankings import ranking_remarks
from eval.results.own.stages import EvidenceFunnel, MeanScore, evidence_funnels, reaches
from eval.results.stored_run import StoredRun
from eval.runs.load import load_scores
from eval.runs.records import AnswerRecord, ConversationRecord, HitRecord, ReferenceRecord, RetrievalRecord, ScoreRow
from eval.runs.snapshot import save_snapshot
from eval.runs.snapshots import snapshot_name
from eval.scoring.columns import columns_of
from eval.scoring.entry_places import EntryPlace, entry_places, reach
from eval.scoring.score_run import score_run
from eval.scoring.storage import EntryCounts, read_entries
from eval.scoring.stored_turns import stored_share
from eval.scoring.summary import summarise
from memsys.errors import ConfigError, ScoringError
from memsys.vocabulary import OVERRULED, Hit, Retrieval
from tests.support.fake_run import FakeRun

pytestmark = pytest.mark.usefixtures("unsigned")

GOLDEN = Path(__file__).parents[3] / "golden" / "memory_quality.md"
RAG = {"memory": {"_target_": "baselines.rag.config.RagConfig"}}

#: Question -> category, gold turns, turns of each hit, answer; the gold answer is "sea".
QUESTIONS: Mapping[str, tuple[int, list[str], list[list[str]], str]] = {
    "q0": (4, ["t1"], [["t1"]], "sea"),  # in the context
    "q1": (4, ["t1", "t2", "t2"], [["t1"]], "the sea"),  # one of two gold turns; F1 2/3
    "q2": (4, ["t2"], [["t1"]], "cake"),  # stored, not retrieved
    "q3": (1, ["t9"], [["t1"]], "sea"),  # never stored, right all the same
    "q4": (1, ["t2", "t9"], [*[["t1"]] * 5, ["t2"]], "cake"),  # the sixth hit: in R@10, not in R@5
    "q5": (1, [], [["t1"]], "sea"),  # no gold evidence: in no share
}
PASSAGES = [("t1", "by the sea"), ("t2", "a boat"), ("t3", "a boat")]


def made(
    root: Path, *, snapshot: bool = True, updates: bool = True, parts: Mapping[str, Any] = RAG, **changes: Any
) -> Path:
    """Write a run whose memory holds turns t1 to t3 of t1 to t9, scored and summarised; t2 overrules t3, t9 t1."""
    path = FakeRun(conversations=("c",), questions_each=len(QUESTIONS), parts=parts, **changes).write(root)
    records = [_records(name, *given) for name, given in QUESTIONS.items()]
    for number, name in enumerate(("references", "retrievals", "answers")):
        rows = [json.dumps(asdict(one[number])) + "\n" for one in records]
        (path / f"{name}.jsonl").write_text("".join(rows))
    (path / "conversations.jsonl").write_text(json.dumps(asdict(ConversationRecord("c", 9, 9, 1, [], [], 0))) + "\n")
    if updates:
        row = {"conversation_id": "c", "updates": [["t3", "t2"], ["t1", "t9"]]}
        (path / "updates.jsonl").write_text(json.dumps(row) + "\n")
    if snapshot:
        entries = [{"passage_id": turn, "turn_ids": [turn], "lines": [text]} for turn, text in PASSAGES]
        (path / "snapshots").mkdir()
        save_snapshot(path / "snapshots" / snapshot_name("c"), {"memory": {"passages": entries}})
    (path / "scores.jsonl").unlink()
    score_run(path)
    summarise(path)
    return path


def _records(
    name: str, category: int, gold: Sequence[str], hits: Sequence[Sequence[str]], answer: str
) -> tuple[ReferenceRecord, RetrievalRecord, AnswerRecord]:
    where: dict[str, Any] = {"question_id": name, "conversation_id": "c", "category": category}
    extra = {OVERRULED: ["t3"]} if name == "q2" else {}
    found = [HitRecord(str(rank), "text", 1.0, list(turns)) for rank, turns in enumerate(hits)]
    return (
        ReferenceRecord(**where, answers=["sea"], adversarial_answer=None, evidence=gold, unresolved_evidence=[],
                        evidence_texts=[], extra=extra),
        RetrievalRecord(**where, hits=found, context="text".ljust(40, "x"), context_chars=40, context_tokens=10),
        AnswerRecord(**where, question="?", prediction=answer, raw="", malformed=False, options=[],
                     retrieve_seconds=None, answer_seconds=None, measured=False, prompt_tokens=1, completion_tokens=1),
    )  # fmt: skip


def stored(path: Path) -> StoredRun:
    run = read_run(path)
    assert isinstance(run, StoredRun)
    return run


def test_the_funnel_by_hand(tmp_path: Path) -> None:
    everything, multi, single = evidence_funnels(stored(made(tmp_path)))
    assert [one.label for one in (everything, multi, single)] == ["all", "multi-hop", "single-hop"]
    # Single-hop: stored 1, 1, 1; retrieved 1, 1/2, 0; F1 1, 2/3, 0.
    assert single == EvidenceFunnel(
        "single-hop", 3, 100.0, 50.0, 50.0, 50.0, pytest.approx(500 / 9, abs=1e-4),
        {"whole": MeanScore(1, 100.0), "part": MeanScore(1, pytest.approx(200 / 3, abs=1e-4)),
         "stored": MeanScore(1, 0.0)},
        {"stored": MeanScore(3, pytest.approx(500 / 9, abs=1e-4)), "at_5": MeanScore(1, 100.0),
         "at_10": MeanScore(1, 100.0)},
    )  # fmt: skip
    # Multi-hop: q3 0 of 1 stored, q4 1 of 2 stored and retrieved sixth; F1 1 and 0.
    assert multi == EvidenceFunnel(
        "multi-hop", 2, 25.0, 0.0, 25.0, 25.0, 50.0, {"part": MeanScore(1, 0.0), "not stored": MeanScore(1, 100.0)},
        dict.fromkeys(("stored", "at_5", "at_10"), MeanScore(0, None)),
    )  # fmt: skip
    assert (everything.questions, everything.stored, everything.at_5) == (5, 70.0, 30.0)
    assert (everything.at_10, everything.shown) == (40.0, 40.0)
    assert {reach: found.questions for reach, found in everything.reached.items()} == {
        "whole": 1, "part": 2, "stored": 1, "not stored": 1,
    }  # fmt: skip


def test_what_is_stored_by_hand(tmp_path: Path) -> None:
    path = made(tmp_path)
    kinds = {"passages": {"entries": 3, "characters": 22, "duplicates": 1, "overruled": 2, "origins": 3}}
    assert summarise(path)["storage"] == {
        "conversations": 1, "turns": 9, "kinds": kinds, "judged": True, "hits": 11, "hits_naming_turns": 11,
        "context_turns": pytest.approx(7 / 6),
    }  # fmt: skip
    sizes = quality_groups([stored(path)])[0].systems[0].sizes
    assert sizes is not None
    # Contexts of 40 characters have 10 tokens: 22 characters are 5.5.
    assert (sizes.total, sizes.tokens, sizes.duplicates, sizes.overruled) == (3, 5.5, 1, 2)


def test_overruled_turns_that_no_question_asks_for_count(tmp_path: Path) -> None:
    """They counted as fresh: the question's reference names those of its own subject alone."""
    scores = {row.question_id: row.metrics for row in load_scores(made(tmp_path))}
    assert (scores["q2"]["staleness"], scores["q2"]["staleness_of_question"]) == (1.0, 0.0)
    assert "staleness" not in scores["q1"]


def test_a_run_that_does_not_say_what_is_overruled_has_a_dash(tmp_path: Path) -> None:
    path = made(tmp_path, updates=False)
    scores = {row.question_id: row.metrics for row in load_scores(path)}
    assert (scores["q2"]["staleness"], scores["q2"]["staleness_of_question"]) == (None, 0.0)
    sizes = quality_groups([stored(path)])[0].systems[0].sizes
    assert sizes is not None and sizes.overruled is None
    (path / "updates.jsonl").write_text('{"conversation_id": "c", "updates": []}\n')
    with pytest.raises(ScoringError, match=r"updates\.jsonl changed since"):
        load_scores(path)


def test_summaries_of_older_versions_have_a_dash_for_overruled_entries(tmp_path: Path) -> None:
    """They counted those that the questions name."""
    run = stored(made(tmp_path))
    kinds = {"passages": {"entries": 3, "characters": 22, "duplicates": 1, "stale": 1, "origins": 3}}
    earlier = replace(run, summary={**run.summary, "storage": {**run.summary["storage"], "kinds": kinds}})
    sizes = quality_groups([earlier])[0].systems[0].sizes
    assert sizes is not None and sizes.overruled is None


def test_the_page_is_the_golden_one(tmp_path: Path) -> None:
    runs = [stored(made(tmp_path)), stored(made(tmp_path, memory="amem", snapshot=False))]
    page = quality_page(quality_groups(runs)).files["memory_quality.md"]
    assert page == GOLDEN.read_text(encoding="utf-8")


def test_an_export_gives_the_same_tables_and_quotes_nothing(tmp_path: Path) -> None:
    path = made(tmp_path / "runs")
    target = export_run(path, tmp_path / "summaries")
    assert not any(text in (target.parent / "runs.jsonl").read_text() for text in ("by the sea", "a boat"))
    from_run, from_summary = (quality_groups([stored(folder)]) for folder in (path, target))
    assert quality_page(from_run).files == quality_page(from_summary).files
    assert all("70.0" in text for text in quality_page(from_run).files.values())


def test_what_a_run_does_not_say_is_a_dash_with_a_reason(tmp_path: Path) -> None:
    lacking = made(tmp_path, snapshot=False, memory="a")
    foreign = made(tmp_path, parts={"memory": {"_target_": "somebody.else.Memory"}}, memory="b")
    run = stored(made(tmp_path, memory="c"))
    earlier = replace(run, summary={key: value for key, value in run.summary.items() if key != "storage"})
    wordless = replace(run, summary={**run.summary, "storage": {**run.summary["storage"], "hits_naming_turns": 0}})
    recorded = replace(run, record={**run.record, "recorded": {"repository": "r", "path": "p"}}, summary={}, rows=())
    for shown, reason in (
        (stored(lacking), "there is no snapshot of its memories"),
        (stored(foreign), "does not declare where a snapshot stores its entries"),
        (earlier, "scored before storage was counted: run memsys score on the run"),
        (wordless, "its memories do not name the turns they came from"),
        (recorded, "recorded elsewhere"),
    ):
        page = quality_page(quality_groups([shown])).files["memory_quality.md"]
        assert reason in page and "| – |" in page
    for unknown in (evidence_funnels(stored(lacking))[0], evidence_funnels(stored(foreign))[0]):
        assert (unknown.stored, unknown.at_10) == (None, 40.0)
        assert unknown.reached["not in context"] == MeanScore(2, 50.0)
    assert load_scores(foreign)[0].metrics["stored_recall"] is None, "named, so that no earlier figure is kept"
    data = quality_page(quality_groups([wordless])).files["memory_quality.csv"]
    assert evidence_funnels(wordless) == [] and "0.0" not in data.split("hits")[0]
    assert "–" in quality_page(quality_groups([stored(lacking)])).files["memory_quality.tex"]


def test_a_run_that_times_questions_has_no_row(tmp_path: Path) -> None:
    run = stored(made(tmp_path))
    timed = replace(run, record={**run.record, "config": {**run.record["config"], "timing": "latency"}})
    assert timed.times_questions and not run.times_questions
    assert quality_groups([timed]) == [] and plot_groups([timed]) == []
    assert quality_groups([run, timed])[0].systems[0].run == run and plot_groups([run, timed])[0].runs == (run,)


def test_systems_without_snapshots_of_their_own_have_their_hosts(tmp_path: Path) -> None:
    host = {"_target_": "baselines.amem.config.AmemConfig"}
    gate = {"_target_": "memsys.gate.config.GatedConfig", "host": host}
    assert [place.at for place in entry_places(gate) or ()] == [("host", "notes", "*")]
    assert entry_places({**gate, "host": {"_target_": "no.such.System"}}) is None
    assert entry_places({}) is None


def test_facts_come_from_the_turns_of_their_episode() -> None:
    state = {
        "episodes": [{"id": "e0", "messages": [{"turn_id": "t1", "line": "a"}, {"turn_id": "t2", "line": "bc"}]}],
        "facts": [{"text": "one", "id": "e0"}, {"text": "two", "id": "e7"}],
        "summaries": {"x": "short"},
    }
    places = (
        EntryPlace("facts", ("facts", "*"), ((("text",),),), "id"),
        EntryPlace("episodes", ("episodes", "*"), ((("messages", "*", "line"),),)),
        EntryPlace("summaries", ("summaries", "*"), ()),
    )
    found = [(one.kind, one.text, one.characters, sorted(one.turns)) for one in read_entries(state, places)]
    assert found == [
        ("facts", ("one",), 3, ["t1", "t2"]), ("facts", ("two",), 3, []), ("episodes", ("a", "bc"), 3, ["t1", "t2"]),
        ("summaries", ("short",), 5, []),
    ]  # fmt: skip
    assert list(reach({"a": [{"b": 1}, {}, 3]}, ("a", "*", "b"))) == [1]


def test_relations_of_one_source_are_no_repetitions_of_each_other() -> None:
    places = entry_places({"_target_": "baselines.mem0.config.Mem0Config"}) or ()
    said = [("Ann", "likes", "tea"), ("Ann", "likes", "tea"), ("Ann", "likes", "jam"), ("Bo", "likes", "tea")]
    edges = [dict(zip(("source", "relation", "destination"), one, strict=True)) for one in said]
    counts = EntryCounts()
    counts.add(read_entries({"scopes": {"a": {"memories": [], "graph": {"edges": edges}}}}, places), {})
    assert (counts.entries, counts.duplicates, counts.characters) == (4, 1, 11 + 11 + 11 + 10)


@pytest.mark.parametrize("text", ["notes: 3", "notes: {text: [a]}", "notes: {at: a, colour: b}", "notes: {at: [a]}"])
def test_a_broken_file_of_entries_is_named(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "entries.yaml"
    file.write_text(text)
    monkeypatch.setattr("eval.scoring.entry_places.system_of", lambda *_: ("x", file))
    with pytest.raises(ConfigError, match=r"entries\.yaml: notes"):
        entry_places({"_target_": "x.y.Z"})


TURNS = st.lists(st.sampled_from("abcdef"), max_size=4)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(TURNS, st.lists(TURNS, max_size=12)), min_size=1, max_size=5),
    st.frozensets(st.sampled_from("abcdef")),
)
def test_no_stage_holds_more_than_the_one_before(
    questions: Sequence[tuple[list[str], list[list[str]]]], kept: frozenset[str]
) -> None:
    from eval.metrics.evidence import evidence_scores, pool_scores, rank_by_lineage

    rows = []
    for number, (gold, hits) in enumerate(questions):
        metrics = evidence_scores(rank_by_lineage(hits, gold)) | pool_scores(rank_by_lineage(hits, gold, len(hits)))
        share = stored_share(gold, kept, [turn for hit in hits for turn in hit])
        metrics["shown_recall"] = metrics["pool_recall"]  # a context that shows all that was retrieved
        scores = {**metrics, "stored_recall": share, "f1_set": 0.5, "hits": float(len(hits)), "context_chars": 9.0}
        rows.append(ScoreRow(str(number), "c", 4, scores))
    record = {"run_id": "x", "config": {"memory": {"name": "rag"}, "dataset": {"name": "locomo"}}, "mode": "answers"}
    for one in evidence_funnels(StoredRun(record, {}, {}, tuple(rows))):
        shares = (one.at_5, one.at_10, one.shown, one.stored)
        assert all(share is not None and 0 <= share <= 100 + 1e-9 for share in shares)
        assert all(low <= high + 1e-9 for low, high in pairwise(shares))  # type: ignore[operator]
        assert sum(found.questions for found in one.reached.values()) == one.questions
    reached = np.logical_or.reduce(list(reaches(columns_of(rows)).values()))
    assert reached.tolist() == [bool(gold) for gold, _ in questions]


def test_one_panel_for_each_system_with_its_values(tmp_path: Path) -> None:
    runs = [stored(made(tmp_path)), stored(made(tmp_path, memory="amem", snapshot=False))]
    [sheet] = funnel_sheets(runs)
    drawn = draw_sheet(sheet, tmp_path)
    text = drawn.read_text()
    assert all(f">{word}<" in text for word in ("rag", "amem", "stored", "in context", "70.0", "40.0", "–", "F1"))
    # Of the first alone it is known what is stored: F1 of q0 to q2; of both, of q0, which is retrieved and shown.
    assert text.count(">55.6<") == 1 and text.count(">100.0<") == 6
    assert funnel_sheets([replace(run, record={**run.record, "mode": "retrieval_only"}) for run in runs]) == []


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "retrievals.jsonl").read_text().splitlines()]


def _changed(path: Path, **fields: Any) -> None:
    """Change a run's retrievals, and score it again."""
    found = [{**row, **{key: make(row) for key, make in fields.items()}} for row in rows_of(path)]
    (path / "retrievals.jsonl").write_text("".join(json.dumps(row) + "\n" for row in found))
    (path / "scores.jsonl").unlink()
    score_run(path)
    summarise(path)


def test_what_had_no_room_in_the_context_is_not_in_it(tmp_path: Path) -> None:
    """Of q4 the sixth hit, which alone holds gold, is cut: shown are 0 of its 2 gold turns, of all hits 1."""
    path = made(tmp_path)
    _changed(path, shown=lambda row: list(range(min(len(row["hits"]), 5))), trace=lambda _: {"left_out": 1})
    metrics = {row.question_id: row.metrics for row in load_scores(path)}
    assert (metrics["q4"]["shown_recall"], metrics["q4"]["pool_recall"]) == (0.0, 0.5)
    everything, multi, _ = evidence_funnels(stored(path))
    # 1, 1/2, 0, 0 and 0 of five questions; without the cut q4 had 1/2.
    assert (everything.at_10, everything.shown) == (40.0, 30.0)
    assert multi.reached["stored"] == MeanScore(1, 0.0) and "part" not in multi.reached
    # Distinct turns in a context: one for each question; without the cut q4's has two.
    assert summarise(path)["storage"]["context_turns"] == 1.0


def test_a_text_written_from_memories_shows_none_of_them(tmp_path: Path) -> None:
    """GAM's reader sees what was written from its pages; the pages were counted as in the context."""
    path = made(tmp_path)
    _changed(path, context=lambda row: "ivy grows", shown=lambda row: list(range(len(row["hits"]))))
    metrics = [row.metrics for row in load_scores(path)]
    assert [row["shown_recall"] for row in metrics] == [row["shown_chars"] for row in metrics] == [None] * len(metrics)
    assert [row["pool_recall"] for row in metrics if row["pool_recall"] is not None]
    run = stored(path)
    assert evidence_funnels(run)[0].shown is None and summarise(path)["storage"]["context_turns"] is None
    [group] = quality_groups([run])
    assert any("written by a model from the retrieved memories" in text for text in group.systems[0].remarks)


def test_of_memories_some_of_which_are_in_the_prompt_these_count(tmp_path: Path) -> None:
    """Of q4 the sixth hit alone holds gold; a context without its text does not show it, whatever the memory says."""
    path = made(tmp_path)
    _changed(path, hits=lambda row: [{**hit, "text": f"fact {place}"} for place, hit in enumerate(row["hits"])])
    _changed(path, context=lambda row: "\n".join(f"- {hit['text']}" for hit in row["hits"][:5]))
    metrics = {row.question_id: row.metrics for row in load_scores(path)}
    assert (metrics["q0"]["shown_recall"], metrics["q4"]["shown_recall"], metrics["q4"]["pool_recall"]) == (1, 0, 0.5)


def test_the_size_of_the_context_s_memories_leaves_out_those_that_had_no_room(tmp_path: Path) -> None:
    path = made(tmp_path)
    texts = {row["question_id"]: [hit["text"] for hit in row["hits"]] for row in rows_of(path)}
    _changed(path, shown=lambda row: list(range(min(len(row["hits"]), 1))))
    for row in load_scores(path):
        assert row.metrics["hit_chars"] == sum(map(len, texts[row.question_id]))
        assert row.metrics["shown_chars"] == sum(map(len, texts[row.question_id][:1]))


def test_old_rows_whose_trace_counts_what_was_left_out_have_no_share(tmp_path: Path) -> None:
    path = made(tmp_path)
    _changed(path, trace=lambda row: {"dropped": int(row["question_id"] == "q1")})
    shares = {row.question_id: row.metrics["shown_recall"] for row in load_scores(path)}
    assert shares == {"q0": 1.0, "q1": None, "q2": 0.0, "q3": 0.0, "q4": 0.5, "q5": None}
    assert summarise(path)["storage"]["context_turns"] is None
    assert evidence_funnels(stored(path))[0].shown is None


def test_rows_that_do_not_say_what_a_context_shows_have_a_dash(tmp_path: Path) -> None:
    """An export of an earlier version; of an empty context it is known all the same."""
    run = stored(made(tmp_path))
    metrics = [{name: value for name, value in row.metrics.items() if name != "shown_recall"} for row in run.rows]
    earlier = replace(run, rows=tuple(replace(row, metrics=own) for row, own in zip(run.rows, metrics, strict=True)))
    for one, before in zip(evidence_funnels(earlier), evidence_funnels(run), strict=True):
        assert one == replace(before, shown=None, reached={})
    [group] = quality_groups([earlier])
    assert group.systems[0].sizes is not None and group.systems[0].sizes.context_turns is None
    assert any("unknown which memories are in the context" in text for text in group.systems[0].remarks)
    line = next(line for line in quality_page([group]).files["memory_quality.md"].splitlines() if "| all |" in line)
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    # R@10, in context, F1 (1, 2/3, 0, 1 and 0), F1 by stage (q0 to q2 are stored, q0 is retrieved), and F1 by reach.
    assert cells[-10:-4] == ["40.0", "–", "53.3", "55.6 (3)", "100.0 (1)", "100.0 (1)"]
    assert cells[-4:] == ["–", "–", "–", "–"]
    empty = replace(
        earlier, rows=tuple(replace(row, metrics={**row.metrics, "context_chars": 0.0}) for row in earlier.rows)
    )
    assert evidence_funnels(empty)[0].shown == 0.0


@pytest.mark.parametrize("shown", [[0, 0], [1, 0], [7], [-1]])
def test_shown_names_hits_in_order(shown: list[int], tmp_path: Path) -> None:
    path = made(tmp_path)
    with pytest.raises(ScoringError, match="ascending"):
        _changed(path, shown=lambda row: shown if row["question_id"] == "q4" else None)
    with pytest.raises(ValueError, match="ascending"):
        Retrieval((Hit("", 0.0, ()), Hit("", 0.0, ())), "", shown=tuple(shown))


def test_a_note_has_the_evidence_of_a_part_of_the_hits(tmp_path: Path) -> None:
    """Of q4 the sixth hit is named, which holds one of two gold turns; of the others the only one."""
    path = made(tmp_path)
    _changed(path, rankings=lambda row: {"named": [len(row["hits"]) - 1]})
    notes = evidence_table(quality_groups([stored(path)])[0]).notes
    # Precision 1, 1, 0, 0, 1; recall 1, 1/2, 0, 0, 1/2; F1 1, 2/3, 0, 0, 2/3.
    named = "evidence of the first 10 hits that its model names as sources of the context"
    assert notes[0] == f"rag: {named}: precision 60.0, recall 40.0, F1 46.7"
    assert not ranking_remarks(replace(stored(path), rows=stored(made(tmp_path / "without")).rows))
