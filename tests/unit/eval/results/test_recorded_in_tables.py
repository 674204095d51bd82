"""Answers that a paper's authors recorded, in the paper's tables: measured, with a verdict and where they come from."""

import json
from pathlib import Path

import pytest

from eval.audit.recorded.catalogue import PROTOCOL, load_catalogue
from eval.audit.recorded.importing import import_rows
from eval.audit.recorded.questions import QuestionSet, RecordedQuestion
from eval.audit.recorded.run_folder import Origin, write_run
from eval.explain import main as explain
from eval.export import export_run
from eval.results.frame import read_runs
from eval.results.tables.judges import judge_faults, judge_texts, without_unmeasured
from eval.results.tables.overview import index_page
from eval.results.tables.paper_page import paper_page
from eval.results.tables.paper_tables import build_tables
from eval.results.tables.run_groups import find_groups
from eval.runs.records import ReferenceRecord
from eval.runs.trec import write_trec
from eval.scoring.config import ScoringConfig
from eval.scoring.score_run import score_run
from eval.scoring.summary import summarise
from memsys.errors import RunDirectoryError

ROW = {"paper": "sage", "memory": "sage_code", "backbone": "gpt4o_mini"}


def _recorded(root: Path, name: str, row: dict[str, str], *, reference: bool = False) -> None:
    """Ten conversations with a question of each category; one answer in two is right, the judge says so."""
    asked = [
        RecordedQuestion(
            f"Who {c} {n}?", ReferenceRecord(f"c{n}:{c}", f"c{n}", c, ["blue car"], None, ["D1:1"], [], [""])
        )
        for n in range(10)
        for c in (1, 2, 3, 4)
    ]
    rows = [
        {"question": one.text, "response": "blue car" if place % 2 else "red", "category": str(one.category)}
        | {"llm_score": place % 2, "answer": "blue car"}
        for place, one in enumerate(asked)
    ]
    root.mkdir(exist_ok=True)
    path = root / f"{name}.json"
    path.write_text(json.dumps({str(n): rows[4 * n : 4 * n + 4] for n in range(10)}))
    questions = QuestionSet("locomo", "0" * 64, tuple(asked), tuple(f"c{n}" for n in range(10)), {})
    imported = import_rows([path], load_catalogue().shapes["mem0_eval"], questions)
    origin = Origin(
        "SAGE", "gpt-4o-mini", "them/code", "abcdef0123456789", "answers.json", row=row, reference=reference
    )
    write_run(imported, root / name, origin, PROTOCOL)
    score_run(root / name, ScoringConfig(metrics=("f1_set", "bleu1")))
    summarise(root / name)


def test_recorded_answers_from_gold_evidence_are_not_ranked(tmp_path: Path) -> None:
    """The report recommended them as the memory to use: their name is none of ours."""
    _recorded(tmp_path, "theirs", {})
    _recorded(tmp_path, "bound", {}, reference=True)
    runs, _ = read_runs([tmp_path])
    assert {run.run_id: run.reference for run in runs} == {"theirs": False, "bound": True}
    (group,) = find_groups(runs)
    assert [runs[number].run_id for number in group.systems] == ["theirs"]
    assert [runs[number].run_id for number in group.references] == ["bound"]
    entries = {entry.name: entry.origin.reference for entry in load_catalogue().runs()}
    assert entries["cognitive_memory_oracle"] and entries["wrong_vague"] and not entries["sage_mem0"]
    assert all(entries[name] for name in entries if "full_context" in name)


def test_recorded_answers_stand_in_the_row_that_they_gave(tmp_path: Path) -> None:
    _recorded(tmp_path, "theirs", ROW)
    _recorded(tmp_path, "others", {})
    runs, _ = read_runs([tmp_path])
    (table,), unused = build_tables("sage", runs, [1])
    assert unused == {"others": "recorded answers that match no row of SAGE's tables"}
    (row,) = [row for block in table.blocks for row in block.rows if row.measured]
    assert (row.label, row.key.backbone, row.key.system) == ("SAGE", "gpt4o_mini", "sage")
    by_column = {column.label: cell for column, cell in zip(table.columns, row.cells, strict=True)}
    judged, scored = by_column["Multi-hop J"].measured, by_column["Multi-hop F1"].measured
    assert judged is not None and scored is not None
    assert judged.value == 100 and scored.value == 100  # category 2: the second row of each conversation
    assert judged.repeats_exactly == "the verdicts that are recorded with the answers"
    assert scored.recorded == "them/code, answers.json at commit abcdef012345"
    assert by_column["Average J"].measured is not None
    assert by_column["Average J"].measured.caveats == ("40 of 1540 questions",)
    text = paper_page(table)
    assert "measured from the authors' answers: them/code, answers.json at commit abcdef012345" in text
    assert "| SAGE | answers published by the authors | 0 | 0 | 0 | 15 |" in index_page({"sage": [table]})
    assert build_tables("clag", runs, [1])[1].keys() == {"theirs", "others"}


def test_answers_that_others_recorded_stand_beside_the_number_and_are_not_held_against_it(tmp_path: Path) -> None:
    _recorded(tmp_path, "others", {**ROW, "differs": "run by them, 10 memories"})
    runs, _ = read_runs([tmp_path])
    (table,), unused = build_tables("sage", runs, [1])
    (row,) = [row for block in table.blocks for row in block.rows if row.measured]
    measured = [cell.measured for cell in row.cells if cell.measured]
    assert unused == {} and measured and all("run by them, 10 memories" in one.caveats for one in measured)
    text = paper_page(table)
    assert "measured from answers published by third parties: them/code, answers.json at commit abcdef012345" in text
    assert "| SAGE | answers published by third parties | 0 | 0 | 0 | 15 |" in index_page({"sage": [table]})


def test_the_catalogue_names_rows_that_the_tables_have() -> None:
    rows = {name: entry.row for name, entry in load_catalogue().entries.items() if entry.row}
    assert rows["sage_sage"] == ROW
    assert rows["sage_mem0"] == {**ROW, "memory": "mem0_in_sage"}
    others = {name: row for name, row in rows.items() if row.get("differs")}
    assert sorted(others) == [*(f"amem_k10_repeat{number}" for number in range(1, 6)), "human_labels"]
    assert {row["memory"] for row in others.values()} == {"amem", "mem0_pairs"}


def test_what_a_recorded_run_lacks_is_said_and_not_made_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _recorded(tmp_path, "theirs", ROW)
    assert explain(["sage:1", "SAGE", "Multi-hop J", "--worst", "1", "--runs", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "answers    recorded elsewhere: them/code, answers.json at commit abcdef012345" in told
    assert "metric     judge_recorded_recorded, category 2" in told
    assert "(what was retrieved is not recorded)" in told
    assert "worst questions:" in told
    assert not any(text in told for text in ("uncommitted", "seed  ", "settings", "not retrieved", "hardware unknown"))
    (run,), _ = read_runs([tmp_path])
    assert list(judge_texts([run]).values()) == ["verdicts recorded with the answers; not probed"]
    assert list(judge_faults([run]).values()) == [
        "no measurement of verdicts recorded with the answers on answers labelled by people and on wrong ones"
    ]
    (shown,), (note,) = without_unmeasured([run])
    assert judge_texts([shown]) == {} and "it cannot be asked again" in note
    with pytest.raises(RunDirectoryError, match="recorded elsewhere, without what was retrieved"):
        write_trec(tmp_path / "theirs", tmp_path / "trec")
    exported = export_run(tmp_path / "theirs", tmp_path / "summaries")
    assert "Who 1 0?" not in (exported.parent / "runs.jsonl").read_text()
    (again,), _ = read_runs([tmp_path / "summaries"])
    assert (again.recorded, again.recorded_row, len(again.rows)) == (run.recorded, ROW, 40)
