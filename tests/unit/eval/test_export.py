"""What is kept of a run: enough for the same tables, no text of the data set, no place of a machine."""

import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from eval.export import export_run, main
from eval.results.exchange.languages import language_of
from eval.results.frame import Skipped, read_run
from eval.running.composed import compose_plan
from eval.running.experiment import run_experiment
from eval.runs.exports import ExportedRun, exported_runs, read_export, write_export
from eval.runs.folders import find_run_folders
from eval.runs.machine_paths import without_places
from eval.runs.records import ScoreRow
from eval.runs.signing import sign_folder
from eval.scoring.summary import summarise
from eval.tables import main as tables
from memsys.errors import RunDirectoryError
from tests.support.fake_run import FakeRun, rewrite

TEN = tuple(f"conv-{number}" for number in range(10))


def test_tables_from_the_export_are_those_from_the_run(tmp_path: Path) -> None:
    FakeRun(backbone="qwen3_06b", conversations=TEN).write(tmp_path / "runs")
    FakeRun(backbone="qwen3_06b", conversations=TEN, seed=1).write(tmp_path / "runs")
    FakeRun(memory="clag", backbone="qwen3_06b", timing="latency", gpus=("NVIDIA A100",)).write(tmp_path / "runs")
    assert main([str(tmp_path / "runs"), "--out", str(tmp_path / "summaries")]) == 0
    for source in ("runs", "summaries"):
        assert tables(["--runs", str(tmp_path / source), "--out", str(tmp_path / f"from_{source}")]) == 0
    for path in (tmp_path / "from_runs").iterdir():
        assert path.read_bytes() == (tmp_path / "from_summaries" / path.name).read_bytes()


@pytest.mark.parametrize("command", ["eval.export", "eval.compare", "eval.lens"])
def test_a_folder_without_runs_is_refused(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "notes.txt").write_text("nothing here")
    FakeRun().write(tmp_path / "runs")
    before = sorted(tmp_path.rglob("*"))
    assert import_module(command).main([str(tmp_path / "runs"), str(tmp_path / "empty")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"no run in {tmp_path / 'empty'}, nor below; name run directories that `memsys run` wrote" in said
    assert sorted(tmp_path.rglob("*")) == before


def test_run_and_export_count_once(tmp_path: Path) -> None:
    path = FakeRun().write(tmp_path / "runs")
    export_run(path, tmp_path / "summaries")
    both = [str(tmp_path / "runs"), str(tmp_path / "summaries")]
    assert tables(["--runs", *both, "--out", str(tmp_path / "both")]) == 0
    assert tables(["--runs", both[0], "--out", str(tmp_path / "one")]) == 0
    assert (tmp_path / "both" / "clag_table01.md").read_text() == (tmp_path / "one" / "clag_table01.md").read_text()


def test_an_export_that_lost_rows_is_left_out_by_name(tmp_path: Path) -> None:
    target = export_run(FakeRun(conversations=("conv-26",)).write(tmp_path / "runs"), tmp_path / "summaries")
    whole = read_export(target)
    write_export(target, replace(whole, rows=whole.rows[:-3]))
    left_out = read_run(target)
    assert isinstance(left_out, Skipped)
    assert f"scores.parquet has {len(whole.rows) - 3} of its {len(whole.rows)} rows; restore it" in left_out.reason


def test_an_export_comes_back_as_it_was(tmp_path: Path) -> None:
    """Values to the last bit, those that are not there, those that are null, and the order of the rows."""
    rows = [
        ScoreRow("q2", "c", 1, {"f1": 0.1 + 0.2, "only": None}, "single_hop"),
        ScoreRow("q1", "c", 5, {"f1": 1 / 3}, "adversarial"),
        ScoreRow("q3", "d", 1, {}, "single_hop"),
    ]
    first = ExportedRun({"run_id": "e/b", "n": 1}, {"config": {}}, {"means": [0.1]}, rows)
    second = ExportedRun({"run_id": "e/a"}, {}, {}, [ScoreRow("q1", "c", 1, {"other": 2.0}, "single_hop")])
    for name, run in (("b", first), ("a", second), ("b", first)):
        write_export(tmp_path / "e" / name, run)
    assert exported_runs(tmp_path / "e") == [tmp_path / "e" / "a", tmp_path / "e" / "b"]
    assert (read_export(tmp_path / "e" / "b"), read_export(tmp_path / "e" / "a")) == (first, second)


@pytest.mark.parametrize("name", ["runs.jsonl", "scores.parquet"])
def test_a_damaged_export_is_one_message(name: str, tmp_path: Path) -> None:
    target = export_run(FakeRun(conversations=("conv-26",)).write(tmp_path / "runs"), tmp_path / "summaries")
    file = target.parent / name
    whole = file.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", b"[1]\n"):
        file.write_bytes(damaged)
        with pytest.raises(RunDirectoryError, match=name):
            for path in find_run_folders([target.parent]) or [target]:
                read_run(path)
            read_run(target)


def test_no_text_and_no_place_is_kept(tmp_path: Path) -> None:
    """Every text of the synthetic run says "secret"; its model lies in /somewhere, its server on node17."""
    path = FakeRun(conversations=("conv-26",)).write(tmp_path / "runs")
    before = "".join(file.read_text() for file in path.iterdir())
    assert all(word in before for word in ("secret", "/somewhere", "node17"))
    target = export_run(path, tmp_path / "summaries")
    assert sorted(file.name for file in target.parent.iterdir()) == ["manifest.json", "runs.jsonl", "scores.parquet"]
    text = (target.parent / "runs.jsonl").read_text() + str(read_export(target))
    assert not any(word in text for word in ("secret", "/somewhere", "node17"))
    assert read_export(target).summary["trace"]["values"] == {"mode": {"global": 10}}


def test_keywords_of_one_word_are_text_too(tmp_path: Path) -> None:
    """Of a run on a few questions single keywords stood in the summary, as names of a method's ways do."""
    path = FakeRun(conversations=("conv-26",)).write(tmp_path / "runs")
    traced = {"keywords": "Pixel", "query": "Pixel", "mode": "global"}
    rewrite(path, "retrievals.jsonl", lambda n, row: row.update(trace=traced))
    summarise(path)
    kept = read_export(export_run(path, tmp_path / "out")).summary["trace"]["values"]
    assert kept == {"mode": {"global": 10}}


@pytest.mark.parametrize("trec", [[], ["--to", "trec"]])
def test_runs_of_one_name_do_not_overwrite_each_other(
    trec: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last of them was kept, and both were said to be exported."""
    paths = []
    for day in ("01", "02"):
        path = FakeRun().write(tmp_path / day)
        record = json.loads((path / "run.json").read_text())
        (path / "run.json").write_text(json.dumps({**record, "started": f"2026-01-{day}T00:00:00+00:00"}))
        sign_folder(path)
        paths.append(str(path))
    out = tmp_path / "out"
    assert main([*paths, *trec, "--out", str(out)]) == 2
    assert "would both be written to" in " ".join(capsys.readouterr().err.split())
    assert not out.exists()
    assert main([paths[0], paths[0], *trec, "--out", str(out)]) == 0
    if not trec:
        assert main([paths[0], str(out), "--out", str(tmp_path / "again")]) == 0  # the run and its summary


def test_provenance_is_kept(tmp_path: Path) -> None:
    record = read_export(export_run(FakeRun().write(tmp_path / "runs"), tmp_path / "out")).record
    for key in (
        "run_id",
        "experiment",
        "seed",
        "config",
        "data",
        "commit",
        "packages",
        "hardware",
        "model",
        "settings",
    ):
        assert record[key] is not None
    assert record["model"]["sha256"] == "1" * 64
    assert "problems" not in record
    assert "identity" not in record


def test_places() -> None:
    tree = {"a": ["/data/x", "~/y", "http://h:1/v1", "C:\\z", "\\\\host\\share"], "b": {"c": "a/b", "d": 1, "e": None}}
    assert without_places(tree) == {"a": ["<place>"] * 5, "b": {"c": "a/b", "d": 1, "e": None}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"status": "incomplete"}, "not complete"), ({"summary": False}, "memsys score")],
)
def test_only_complete_and_scored_runs(changes: dict[str, object], message: str, tmp_path: Path) -> None:
    path = FakeRun(**changes).write(tmp_path / "runs")  # type: ignore[arg-type]
    with pytest.raises(RunDirectoryError, match=message):
        export_run(path, tmp_path / "out")
    assert main([str(path), "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()


def test_exporting_twice_changes_nothing(tmp_path: Path) -> None:
    path = FakeRun().write(tmp_path / "runs")
    target = export_run(path, tmp_path / "out")
    before = {file.name: file.read_bytes() for file in target.parent.iterdir()}
    export_run(path, tmp_path / "out")
    assert before == {file.name: file.read_bytes() for file in target.parent.iterdir()}
    again = export_run(target, tmp_path / "again")
    assert (again.parent / "scores.parquet").read_bytes() == before["scores.parquet"]


def test_a_loaders_notes_are_counted_where_they_quote_the_data(tmp_path: Path) -> None:
    unread = 'turns.jsonl: line 7: date "the day after the surgery"'
    notes = {"unread_dates": [unread], "per_pool": [3, 4], "pinned": True}
    target = export_run(FakeRun(notes=notes).write(tmp_path / "runs"), tmp_path / "summaries")
    kept = read_export(target).record["data"]["notes"]
    assert kept == {"unread_dates": 1, "per_pool": [3, 4], "pinned": True}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My cat is Pixel.", "eng-Latn"),
        ("Моя кошка", "und-Cyrl"),
        ("我的灰猫叫 Pixel，它睡在沙发上。", "zho-Hani"),
        ("私の猫はピクセルです", "jpn-Jpan"),
        ("내 고양이", "kor-Kore"),
        ("1998", "und-Zyyy"),
    ],
)
def test_the_language_is_told_by_the_letters(text: str, expected: str) -> None:
    assert language_of([text], "eng") == expected


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [("locomo_sample", "eng-Latn"), ("perltqa_zh_sample", "zho-Hani"), ("custom_sample", "und-Latn")],
)
def test_a_task_of_mteb_names_the_language_of_its_texts(dataset: str, expected: str, tmp_path: Path) -> None:
    settings = [f"dataset={dataset}", "memory=bm25_turn", "mode=retrieval_only", "embedder=hashing", "progress=lines"]
    run = run_experiment(compose_plan([*settings, f"run_dir={tmp_path / 'run'}"])).path
    assert main([str(run), "--to", "mteb", "--out", str(tmp_path / "out")]) == 0
    (path,) = (tmp_path / "out" / "results").rglob("*.json")
    assert {language for row in json.loads(path.read_text())["scores"]["test"] for language in row["languages"]} == {
        expected
    }
    assert expected in (tmp_path / "out" / "task.py").read_text()
