"""The report page's data and its shell: the tables' own figures, nothing that runs or loads but what is meant to."""

import base64
import hashlib
import json
import os
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from eval.export import export_run
from eval.report.__main__ import main
from eval.report.cache import Cache, fingerprint
from eval.report.calls import read_ledger
from eval.report.config import PageConfig, load_config
from eval.report.data import collect, page_data
from eval.report.page import SCRIPTS, TEMPLATES, render_page, script_json
from eval.results.compare.rows import estimate
from eval.results.frame import read_run
from eval.results.stored_run import StoredRun
from eval.runs.exports import exported_runs
from eval.scoring.protocols import load_protocol
from memsys.errors import ConfigError, RunDirectoryError
from tests.support.fake_run import FakeRun, rewrite
from tests.support.report_page import data_in, data_of

CALL = {
    "conversation_id": "c", "role": "r", "key": "k", "attempt": 0, "prompt_tokens": 1, "completion_tokens": 1,
    "seconds": 0.1, "queue_seconds": 0.0, "finish_reason": "stop", "cache_hit": False, "malformed": False,
    "repaired": False, "transport_retries": 0, "request_hash": "h", "endpoint": "e",
}  # fmt: skip

HOSTILE = "</script><img src=x onerror=alert(1)><!-- \u2028 & ${alert(2)} \ud800"


def rendered(root: Path) -> str:
    return render_page(page_data(collect([root]), load_config()))


def stored(path: Path) -> StoredRun:
    run = read_run(path)
    assert isinstance(run, StoredRun)
    return run


def test_columns_in_which_no_run_has_anything_are_left_out(tmp_path: Path) -> None:
    """The first table of the committed results had seven columns of dashes beside three of figures."""
    FakeRun(mode="retrieval_only").write(tmp_path)
    (page,) = (page for page in data_of(tmp_path)["tables"] if page["kind"] == "Costs and evidence")
    (table,) = page["tables"]
    assert table["headings"][0] == "system" and "score" not in table["headings"] and "R@10" in table["headings"]
    assert all(len(row) == len(table["headings"]) for row in table["rows"])
    assert all(any(row[place] != "–" for row in table["rows"]) for place in range(len(table["headings"])))


@pytest.mark.parametrize(("mode", "shown"), [("answers", True), ("retrieval_only", False)])
def test_what_is_in_context_is_shown_where_a_reader_was_given_it(tmp_path: Path, mode: str, *, shown: bool) -> None:
    FakeRun(mode=mode, extra_metrics=("shown_recall", "recall_turns@10"), values=lambda number, metric: 0.5).write(
        tmp_path
    )
    names = [metric["name"] for metric in data_of(tmp_path)["metrics"]]
    assert names[names.index("recall_turns@10") + 1 :] == (["shown_recall"] if shown else [])


def test_an_interval_of_a_share_ends_at_100(tmp_path: Path) -> None:
    """Of one right answer in five the first view gave [-35.5, 75.5], and "All scores" the same."""
    FakeRun(conversations=("c",), questions_each=5, values=lambda number, metric: float(number == 0)).write(tmp_path)
    board = data_of(tmp_path)["groups"][0]["boards"]["f1_set"]["paper_trap"]
    assert board["figures"] == [[20.0, 0.0, pytest.approx(75.5, abs=0.1)]]


@pytest.mark.parametrize(("protocol", "treatment"), [("clag", "paper_trap"), ("xmemory", "exclude")])
def test_figures_are_those_of_the_comparison(tmp_path: Path, protocol: str, treatment: str) -> None:
    run = stored(FakeRun().write(tmp_path))
    expected = estimate(run, "f1_set", load_protocol(protocol))
    assert expected is not None and expected.interval is not None
    (found,) = data_of(tmp_path)["groups"][0]["boards"]["f1_set"][treatment]["figures"]
    assert found == pytest.approx([expected.value, expected.interval.low, expected.interval.high], abs=1e-4)


def test_figures_by_hand(tmp_path: Path) -> None:
    """Fooled in category 5, 0.25 elsewhere, never declining."""

    def share(number: int, metric: str) -> float:
        return 0.0 if metric == "abstained" else 1.0 if number % 5 == 4 else 0.25

    FakeRun(values=share).write(tmp_path)
    (group,) = data_of(tmp_path)["groups"]
    means = {five: board["figures"][0][0] for five, board in group["boards"]["f1_set"].items()}
    assert means == {"paper_trap": 40.0, "abstain": 20.0, "exclude": 25.0}
    assert group["means"]["rougeL"] == {"0": 25.0}
    categories = next(kind for kind in group["slices"]["kinds"] if kind["title"] == "category")
    assert [part["figures"][0][0] for part in categories["parts"]] == [25.0] * 4


def test_data_without_questions_that_have_no_answer_has_one_board(tmp_path: Path) -> None:
    FakeRun(categories=(4,)).write(tmp_path)
    boards = data_of(tmp_path)["groups"][0]["boards"]
    assert {tuple(own) for own in boards.values()} == {("exclude",)}


def test_questions_hold_what_each_system_did(tmp_path: Path) -> None:
    FakeRun(questions_each=5).write(tmp_path)
    FakeRun(questions_each=5, memory="amem").write(tmp_path)
    data = data_of(tmp_path)
    (overview,), ((first, second),) = data["questions"], data["texts"]
    assert overview["parts"] == ["conv-26", "conv-30"]
    assert (len(overview["questions"]), len(first["questions"]), len(second["questions"])) == (10, 5, 5)
    trap = next(question for question in overview["questions"] if question["category"] == 5)
    assert (trap["unanswerable"], trap["question"], trap["id"]) == (True, "secret question", "conv-26:4")
    whole = first["questions"]["conv-26:4"]
    assert whole["trap"] == "secret trap"
    assert whole["evidence"] == [["D1:1", first["texts"].index("secret evidence")]]
    assert set(whole["answers"]) == set(trap["runs"]) == {"0", "1"}
    scores, rank, _, _, answer = trap["runs"]["0"]
    assert (rank, answer, whole["answers"]["0"]["answer"]) == (1, "secret answer", "secret answer")
    assert whole["answers"]["0"]["hits"] == [[first["texts"].index("secret memory"), ["D1:1"]]] * 3
    assert set(scores) <= set(overview["scores"])
    assert first["questions"]["conv-26:0"]["trap"] is None


def test_an_exported_run_is_another_once_it_is_exported_again(tmp_path: Path) -> None:
    path = FakeRun().write(tmp_path / "runs")
    export_run(path, tmp_path / "summaries")
    (folder,) = (tmp_path / "summaries").iterdir()
    (run,) = exported_runs(folder)
    before = fingerprint(run)
    assert fingerprint(run) == before
    os.utime(folder / "scores.parquet", (1, 1))
    assert fingerprint(run) != before


def test_a_summary_gives_figures_but_no_question(tmp_path: Path) -> None:
    path = FakeRun().write(tmp_path / "runs")
    export_run(path, tmp_path / "summaries")
    data, whole = data_of(tmp_path / "summaries"), data_of(tmp_path / "runs")
    assert data["questions"] == []
    assert "secret" not in json.dumps(data)
    assert [one["boards"] for one in data["groups"]] == [one["boards"] for one in whole["groups"]]
    assert [run["hasTexts"] for run in data["cards"]] == [False]
    assert [run["hasTexts"] for run in data_of(tmp_path / "summaries", tmp_path / "runs")["cards"]] == [True]


def test_questions_can_be_left_out(tmp_path: Path) -> None:
    FakeRun().write(tmp_path / "runs")
    out = tmp_path / "report.html"
    assert main(["--runs", str(tmp_path / "runs"), "--no-questions", "--out", str(out)]) == 0
    assert "secret" not in json.dumps(data_in(out.read_text()))
    assert data_in(out.read_text())["questions"] == []


def test_our_own_tables_are_on_the_page(tmp_path: Path) -> None:
    target = {"memory": {"_target_": "memsys.clag.config.ClagConfig"}}
    FakeRun(memory="clag", parts=target).write(tmp_path)
    costs, roles, quality, method = data_of(tmp_path)["tables"][:4]
    kinds = ["Costs and evidence", "Calls by role", "What memories hold", "What methods did"]
    assert [one["kind"] for one in (costs, roles, quality, method)] == kinds
    assert method["title"] == "clag on locomo"
    assert costs["tables"][0]["rows"][0][0] == "clag"
    assert [row[:3] for row in roles["tables"][0]["rows"]] == [["clag", "answer", "default"], ["", "write", "analyse"]]
    (evidence,) = quality["tables"]  # none of the sizes of its memories: they are not known
    assert evidence["rows"][0][:3] == ["clag", "all", "20"] and evidence["left"] == 2
    assert "clag: there is no snapshot of its memories" in evidence["notes"]
    assert method["tables"][0]["rows"][0][:3] == ["clusters of a conversation", "3", "4.7 (tau 0.10)"]


def definitions(data: Any) -> list[Any]:
    return [page for page in data["tables"] if page["kind"] == "Other definitions"]


def test_a_retrieval_run_shows_its_query(tmp_path: Path) -> None:
    path = FakeRun(mode="retrieval_only").write(tmp_path)
    rewrite(path, "retrievals.jsonl", lambda number, row: row["trace"].update(query=f"query {number}"))
    data = data_of(tmp_path)
    question = data["questions"][0]["questions"][3]
    assert question["question"] == "query 3"
    assert question["runs"]["0"][-1] is None
    assert definitions(data) == []


def test_runs_on_other_questions_are_shown_without_definitions(tmp_path: Path) -> None:
    FakeRun(conversations=("a",)).write(tmp_path)
    FakeRun(conversations=("b",), memory="amem").write(tmp_path)
    (found,) = definitions(data_of(tmp_path))
    assert found["tables"] == []
    assert "no question in common" in found["legend"][0]


def test_presets_that_read_one_file_are_one_data_set(tmp_path: Path) -> None:
    FakeRun(dataset="locomo_clag").write(tmp_path)
    FakeRun(dataset="locomo", memory="amem").write(tmp_path)
    FakeRun(dataset="locomo", memory="amem", data_sha256="2" * 64).write(tmp_path / "other")
    data = data_of(tmp_path)
    names = {(run["preset"], run["dataset"], run["dataSha256"][0]) for run in data["cards"]}
    assert names == {
        ("locomo_clag", "locomo 000000", "0"),
        ("locomo", "locomo 000000", "0"),
        ("locomo", "locomo 222222", "2"),
    }
    assert {group["data"] for group in data["groups"]} == {"LoCoMo 000000", "LoCoMo 222222"}


def test_tables_lead_to_runs(tmp_path: Path) -> None:
    path = FakeRun(backbone="qwen3_06b").write(tmp_path)
    FakeRun(backbone="qwen3_06b", memory="bm25_turn").write(tmp_path)
    pages = [page for page in data_of(tmp_path)["tables"] if page["kind"] == "Printed and measured"]
    (rows,) = [page["tables"][0]["rows"] for page in pages if "Table 3" in page["title"]]
    printed, measured = (next(row for row in rows if row[1] == kind) for kind in ("printed", "measured"))
    assert (printed[0], printed[2]) == ("RAG", "6.11")
    assert measured[2][1] == f"fake/{path.name}"
    assert any(isinstance(row, str) and "2 of 10 conversations" in row for row in rows)
    assert "bm25" not in json.dumps(rows)  # the paper prints no such row: the first view has it


def test_hostile_text_stays_data(tmp_path: Path) -> None:
    path = FakeRun().write(tmp_path)
    rewrite(path, "answers.jsonl", lambda number, row: row.update(prediction=HOSTILE, question=HOSTILE))
    page = rendered(tmp_path)
    assert "onerror=alert(1)>" not in page
    assert page.count("</script>") == page.count("<script") == 2 + page.count('id="part-')
    assert data_in(page)["questions"][0]["questions"][0]["question"] == HOSTILE
    page.encode()  # a lone surrogate is escaped, or this fails


def test_script_json_is_ascii_without_markup() -> None:
    text = script_json({"a": HOSTILE})
    assert text.isascii()
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"a": HOSTILE}


def test_the_policy_lets_the_pages_own_scripts_run_and_nothing_else(tmp_path: Path) -> None:
    FakeRun().write(tmp_path)
    page = rendered(tmp_path)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    for tag in ("script", "style"):
        body = re.search(rf"<{tag}>(.*?)</{tag}>", page, flags=re.S)
        assert body is not None
        checksum = base64.b64encode(hashlib.sha256(body[1].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{checksum}'" in policy[1]


def test_the_page_reads_no_markup_and_loads_nothing() -> None:
    assert {path.name for path in TEMPLATES.glob("*.js")} == set(SCRIPTS)
    for path in TEMPLATES.iterdir():
        text = path.read_text()
        danger = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|srcdoc"
        assert re.search(danger, text) is None, path.name
        addresses = set(re.findall(r"https?://[^\s\"']+", text))
        assert addresses <= {"http://www.w3.org/2000/svg"}, path.name
        assert re.search(r"url\(|@import|fetch\(|XMLHttpRequest|<link|src=", text) is None, path.name


def test_same_runs_same_page(tmp_path: Path) -> None:
    FakeRun().write(tmp_path)
    assert rendered(tmp_path) == rendered(tmp_path)


def luminance(colour: str) -> float:
    parts = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [":root", ':root[data-theme="dark"]'])
def test_text_can_be_read_on_its_ground(theme: str) -> None:
    """WCAG 2: 4.5 to 1 for text, 3 to 1 for marks."""
    style = (TEMPLATES / "style.css").read_text()
    colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", style.split(f"{theme} {{", 1)[1].split("}", 1)[0]))

    def contrast(one: str, two: str) -> float:
        low, high = sorted((luminance(colours[one]), luminance(colours[two])))
        return (high + 0.05) / (low + 0.05)

    for text, ground in product(("ink", "faint", "accent", "good", "bad"), ("ground", "raised")):
        assert contrast(text, ground) >= 4.5, (text, ground)
    assert contrast("ink", "mark") >= 4.5
    for number in range(2):
        assert contrast(f"s{number}", "ground") >= 3


def test_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FakeRun().write(tmp_path / "runs")
    FakeRun(memory="amem", status="interrupted", summary=False).write(tmp_path / "runs")
    out = tmp_path / "report.html"
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(out)]) == 0
    assert out.read_text().startswith("<!doctype html>")
    shown = " ".join(capsys.readouterr().out.split())
    assert "1 runs" not in shown
    assert "1 run, 1 not ended or not scored)" in shown
    assert "not complete (interrupted)" in shown
    assert main(["--runs", str(tmp_path / "nothing"), "--out", str(out)]) == 2


def test_nothing_to_show_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="nothing to report"):
        collect([tmp_path])


def test_unknown_scores_are_refused() -> None:
    with pytest.raises(ConfigError, match="'f1_sets' is not a score"):
        PageConfig([], {"answers": ["f1_sets"]}, [], 8, "f1_set")
    with pytest.raises(ConfigError, match="'f1_sets' is not a score"):
        PageConfig([], {}, ["f1_sets"], 8, "f1_set")
    with pytest.raises(ConfigError, match="'f1_sets' is not a score"):
        PageConfig(["f1_sets"], {}, [], 8, "f1_set")


def test_seeds_of_one_system_are_one_row_and_each_keeps_its_texts(tmp_path: Path) -> None:
    for seed in (0, 1, 2):
        FakeRun(seed=seed, values=lambda n, metric, s=seed: 0.3 + 0.1 * s).write(tmp_path)  # type: ignore[misc]
    FakeRun(memory="amem", values=lambda n, metric: 0.1).write(tmp_path)
    found = data_of(tmp_path)
    (group,) = found["groups"]
    assert sorted(group["labels"].values()) == ["amem", "rag, seeds 0-2"] and len(group["systems"]) == 2
    board = group["boards"]["f1_set"]["exclude"]
    assert (
        sorted(figures[0] for figures in board["figures"]) == [10.0, 40.0]
        and sum(test is not None for test in board["tests"]) == 1
    )
    assert len(group["textLabels"]) == found["runs"] == 4


def test_a_call_about_a_turn_is_none_of_a_question_of_its_name(tmp_path: Path) -> None:
    calls = [{**CALL, "phase": phase, "item": "1"} for phase in ("prepare", "write", "retrieve", "answer")]
    (tmp_path / "calls.jsonl").write_text("".join(json.dumps(one) + "\n" for one in calls))
    ledger = read_ledger(tmp_path, ["1"])
    assert [one[0] for one in ledger.question("1")] == ["retrieve", "answer"]
    assert [call.phase for call in ledger.writing["c"]] == ["prepare", "write"]


@pytest.mark.usefixtures("unsigned")
def test_the_texts_of_another_run_of_one_id_are_not_shown(tmp_path: Path) -> None:
    first, second = (FakeRun(seed=seed).write(tmp_path / str(seed)) for seed in (0, 1))
    for path, status, started in ((first, "incomplete", "2026-01-01"), (second, "complete", "2026-01-02")):
        record = json.loads((path / "run.json").read_text())
        (path / "run.json").write_text(json.dumps({**record, "run_id": "run", "status": status, "started": started}))
    found = collect([tmp_path])
    assert [run.record["started"] for run in found.runs] == ["2026-01-02"]
    assert [run.path for run in found.runs] == [second]


def test_a_part_of_the_report_that_was_changed_is_computed_again(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for number in (25, 83):
        assert cache.get("part", [number], lambda mean=number: {"mean": mean}) == {"mean": number}
    first, second = tmp_path.iterdir()
    other = second.read_text()
    first.write_text(first.read_text().replace("25", "95").replace("83", "95"))
    assert [cache.get("part", [number], lambda mean=number: {"mean": mean})["mean"] for number in (25, 83)] == [25, 83]
    first.write_text(other)
    assert [cache.get("part", [number], lambda mean=number: {"mean": mean})["mean"] for number in (25, 83)] == [25, 83]
