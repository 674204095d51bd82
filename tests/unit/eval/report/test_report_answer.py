"""The report's first view: groups, common questions, the sentence, judges that mean nothing, cache, progress."""

import argparse
import json
import os
import re
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval.report.__main__ import build, main
from eval.report.cache import Cache, fingerprint
from eval.report.calls import first_difference
from eval.report.config import load_config
from eval.report.data import collect, page_data
from eval.report.live import unfinished
from eval.report.slices import distances
from eval.report.watch import watch
from eval.results.compare.model import make_report
from eval.runs.load import load_calls
from eval.runs.memories import Memories, parse_date
from eval.runs.records import ReferenceRecord
from eval.runs.snapshot import save_snapshot
from eval.runs.snapshots import Snapshot, Snapshots
from eval.scoring.protocols import load_protocol
from memsys.errors import RunDirectoryError
from tests.support.fake_run import FakeRun, rewrite
from tests.support.report_page import data_in, data_of, whole


def fixed_score(share: float, jitter: float = 0.0) -> Any:
    return lambda number, metric: min(1.0, max(0.0, share + jitter * (number % 3 - 1)))


def write(root: Path, scores: dict[str, float], **settings: Any) -> None:
    for memory, share in scores.items():
        FakeRun(memory=memory, values=fixed_score(share), conversations=("c",), questions_each=20, **settings).write(
            root
        )


def sentence(root: Path, metric: str = "f1_set", five: str = "exclude") -> str:
    board = data_of(root)["groups"][0]["boards"][metric][five]
    return f"{board['sentence']} ({board['setting']}.)"


def verdicts(board: Any) -> dict[str, str]:
    return {board["runs"][place]: test["verdict"] for place, test in enumerate(board["tests"]) if test}


def test_one_conversation_gets_no_verdict(tmp_path: Path) -> None:
    write(tmp_path, {"rag": 0.75, "amem": 0.25, "no_memory": 0.1})
    found = sentence(tmp_path)
    assert found.startswith(
        "On 16 questions of one conversation rag has 50.0 points more F1 answerable here than amem;"
    )
    assert "16 of 20 questions, those that all 3 runs answered, without those that have no answer" in found
    assert "exploratory" not in found
    board = data_of(tmp_path)["groups"][0]["boards"]["f1_set"]["exclude"]
    assert set(verdicts(board).values()) == {""}


@pytest.mark.parametrize("seed", range(12))
def test_sentence_mark_and_table_say_what_a_comparison_says(tmp_path: Path, seed: int) -> None:
    """The page said of one group "rag is not measurably better than no_memory (+32.0 [20.4, 43.7])", and of another
    the opposite of README: it tested every two runs as one family, a comparison all against one baseline."""
    rng = np.random.default_rng(seed)
    names = ["rag", "amem", "clag", "no_memory", "bm25_turn"][: 2 + seed % 4]
    for name in names:
        mean, spread = rng.uniform(0.2, 0.8), rng.uniform(0.0, 0.4)
        scores = np.clip(mean + spread * rng.standard_normal(200), 0, 1).round(2).tolist()
        conversations = tuple(f"c{number}" for number in range(1 if seed % 5 == 4 else 10))
        FakeRun(memory=name, values=lambda n, metric, own=scores: own[n % 200], conversations=conversations).write(
            tmp_path
        )
    collected = collect([tmp_path])
    page = page_data(collected, load_config())
    group = whole(page.first, page.parts)["groups"][0]
    report = make_report(collected.runs, load_protocol("clag"))
    labels = {number: label for number, label in group["labels"].items()}
    for five, column in (("paper_trap", "F1"), ("exclude", "F1 answerable")):
        board = group["boards"]["f1_set"][five]
        expected = {pair.system: pair for pair in report.pairs if pair.column == column}
        assert labels[str(board["runs"][board["against"]])] == report.baseline
        for number, test in zip(board["runs"], board["tests"], strict=True):
            if test is not None:
                pair = expected[labels[str(number)]]
                assert (test["verdict"], test["adjusted"], test["p"]) == (
                    pair.verdict,
                    pair.adjusted,
                    pair.result.p_value,
                )
                assert test["value"] == pytest.approx(pair.result.difference, abs=1e-4)
        consistent(board, labels)
    assert report.conclusion.startswith(
        group["boards"]["f1_set"]["paper_trap"]["sentence"].partition(" On the questions that have an answer ")[0]
    )


def consistent(board: Any, labels: dict[str, str]) -> None:
    """The sentence claims a lead just where the row that it is about has such a mark, and denies nothing twice."""
    sentence = board["sentence"]
    said = re.search(r"conversations? (.+?) (?:leads (.+?) by|has \S+ points more .+? here than (.+?);)", sentence)
    assert said is not None, sentence
    leader, other = said[1], said[2] or said[3]
    row = {labels[str(number)]: test for number, test in zip(board["runs"], board["tests"], strict=True)}
    test = row[leader] or row[other]
    ahead = "above" if test is row[leader] else "below"
    assert ("so the lead holds" in sentence) == (test["verdict"] == ahead)
    assert ("no verdict" in sentence) == (not test["verdict"])
    assert sentence.count("no difference can be claimed") == (test["verdict"] == "not confirmed")
    confirmed = [test for test in row.values() if test and test["verdict"] in ("above", "below")]
    assert all(test["adjusted"] < 0.05 and test["low"] * test["high"] > 0 for test in confirmed)
    assert all((test["value"] > 0) == (test["verdict"] == "above") for test in confirmed)
    assert not re.search(r"\bnot\b[^.;]*\b(not|no)\b", sentence)


def test_the_sentence_says_in_what_the_runs_differ_besides_the_memory(tmp_path: Path) -> None:
    write(tmp_path, {"rag": 0.75}, parts={"dataset": {"turn_style": "plain"}})
    write(tmp_path, {"amem": 0.25}, parts={"dataset": {"turn_style": "clag"}})
    found = sentence(tmp_path)
    assert "no answer; some of them also differ in dataset, so a difference need not be the memory's alone." in found


def test_answers_that_two_readers_asked_for_are_not_ranked_together(tmp_path: Path) -> None:
    write(tmp_path, {"rag": 0.75})
    write(tmp_path, {"amem": 0.25}, reader="xmemory")
    data = data_of(tmp_path)
    assert {one["reader"]: [*one["labels"].values()] for one in data["groups"]} == {
        "clag": ["rag"],
        "xmemory": ["amem"],
    }


def test_a_run_that_comes_while_the_page_is_made_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``--watch`` ended with a KeyError: the folders were listed twice, and the second list had one more."""
    write(tmp_path, {"rag": 0.75})
    looked = unfinished

    def arrives(folders: Any) -> Any:
        write(tmp_path, {"amem": 0.25})
        return looked(folders)

    monkeypatch.setattr("eval.report.data.unfinished", arrives)
    assert sorted(run.memory for run in collect([tmp_path]).runs) == ["amem", "rag"]


def test_only_the_comparisons_named_in_advance_decide(tmp_path: Path) -> None:
    """Twelve boards were each called real after a correction for their own tests alone."""
    ten = tuple(f"c{number}" for number in range(10))
    for name, share in (("rag", 0.75), ("amem", 0.25)):
        FakeRun(memory=name, values=fixed_score(share, 0.1), conversations=ten).write(tmp_path)
    boards = data_of(tmp_path)["groups"][0]["boards"]
    declared = {("f1_set", "exclude"), ("f1_set", "paper_trap")}
    assert all(set(verdicts(boards[name][five]).values()) == {"below"} for name, five in declared)
    others = [(name, five) for name, fives in boards.items() for five in fives if (name, five) not in declared]
    assert len(others) > 3
    for metric, five in others:
        assert set(verdicts(boards[metric][five]).values()) == {"exploratory"}
        assert "so no difference can be claimed" in boards[metric][five]["sentence"]
        assert "exploratory, what decides is F1 and F1 answerable" in boards[metric][five]["setting"]


def test_references_are_not_ranked_however_high(tmp_path: Path) -> None:
    write(tmp_path, {"rag": 0.25, "oracle": 1.0, "full_context": 0.9, "no_memory": 0.3})
    board = data_of(tmp_path)["groups"][0]["boards"]["f1_set"]["exclude"]
    assert board["ranked"] == 1
    assert "no_memory has 5.0 points more" not in board["sentence"]
    assert len(verdicts(board)) == 3


def test_the_page_opens_on_most_conversations(tmp_path: Path) -> None:
    """It opened on 39 of 55 questions about one, because most runs were asked these."""
    for name in ("rag", "amem", "clag"):
        FakeRun(memory=name, conversations=("c1",), questions_each=30).write(tmp_path)
    for name in ("rag", "amem"):
        FakeRun(memory=name, conversations=("c1", "c2"), questions_each=5, backbone="qwen3_06b").write(tmp_path)
    assert [one["conversations"] for one in data_of(tmp_path)["groups"]] == [2, 1]


@pytest.mark.usefixtures("unsigned")
def test_runs_of_one_name_are_called_by_words(tmp_path: Path) -> None:
    """68 runs were named by hashes; what tells two runs apart has a name: their prompts, processor, data, seed."""
    for processor in ("AMD EPYC", "Intel Xeon"):
        path = FakeRun(memory="rag").write(tmp_path / processor.split()[0])
        record = json.loads((path / "run.json").read_text())
        record["hardware"] = {"cpu": processor, "gpus": []}
        record["model"] = {"engine": {"engine": "llamacpp", "version": "1"}}
        record["run_id"] += processor[:1]
        (path / "run.json").write_text(json.dumps(record))
    labels = [*data_of(tmp_path)["groups"][0]["labels"].values()]
    assert sorted(labels) == ["rag, AMD EPYC", "rag, Intel Xeon"]


def test_places_of_runs_can_be_named_one_by_one(tmp_path: Path) -> None:
    """Of `--runs A --runs B` the last was taken and the others left out without a word."""
    for name in ("rag", "amem"):
        FakeRun(memory=name).write(tmp_path / name)
    out = tmp_path / "page.html"
    places = ["--runs", str(tmp_path / "rag"), "--runs", str(tmp_path / "amem")]
    assert main([*places, "--out", str(out), "--no-questions", "--no-cache"]) == 0
    assert sorted(run["id"].split("-")[0] for run in data_in(out.read_text())["cards"]) == ["fake/amem", "fake/rag"]


@pytest.mark.usefixtures("unsigned")
def test_other_answer_prompts_are_a_group_of_their_own(tmp_path: Path) -> None:
    """They were ranked with the others, and a memory that ran with them alone did not even say so."""
    write(tmp_path, {"rag": 0.5, "amem": 0.25})
    write(tmp_path / "before", {"full_context": 0.75, "clag": 0.75}, parts={"reader": {"prompt_set": "clag"}})
    for path in (tmp_path / "before").rglob("run.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "prompts": {"reader.default": "0" * 64}}))
    first, second = data_of(tmp_path)["groups"]
    assert [sorted(one["labels"].values()) for one in (first, second)] == [["amem", "rag"], ["clag", "full_context"]]
    assert (first["prompts"], second["prompts"]) == ("", "other answer prompts")


def test_only_common_questions_count(tmp_path: Path) -> None:
    FakeRun(memory="rag", conversations=("c",), questions_each=20, values=fixed_score(0.5)).write(tmp_path)
    FakeRun(memory="amem", conversations=("c",), questions_each=10, values=fixed_score(0.5)).write(tmp_path)
    group = data_of(tmp_path)["groups"][0]
    assert (group["questions"], group["asked"]) == (10, 20)
    assert group["boards"]["f1_set"]["exclude"]["questions"] == 8
    assert group["boards"]["f1_set"]["paper_trap"]["questions"] == 10


@pytest.mark.usefixtures("unsigned")
def test_another_part_of_the_data_is_another_group(tmp_path: Path) -> None:
    for turns, memory in ((92, "rag"), (419, "amem")):
        path = FakeRun(memory=memory).write(tmp_path)
        record = json.loads((path / "run.json").read_text())
        record["data"]["turns"] = turns
        (path / "run.json").write_text(json.dumps(record))
    assert [group["members"] for group in data_of(tmp_path)["groups"]] == [[0], [1]]


def test_the_cache_gives_the_same_page_and_notices_changes(tmp_path: Path) -> None:
    path = FakeRun().write(tmp_path / "runs")
    cache = Cache(tmp_path / "cache")
    assert data_of(tmp_path / "runs") == data_of(tmp_path / "runs", cache=cache)
    made = {entry.name for entry in (tmp_path / "cache").iterdir()}
    assert data_of(tmp_path / "runs", cache=cache) == data_of(tmp_path / "runs")
    assert {entry.name for entry in (tmp_path / "cache").iterdir()} == made
    before = fingerprint(path)
    rewrite(path, "scores.jsonl", lambda number, row: row["metrics"].update(f1_set=1.0))
    assert fingerprint(path) != before
    board = data_of(tmp_path / "runs", cache=cache)["groups"][0]["boards"]["f1_set"]["exclude"]
    assert board["figures"][0][0] == 100.0


def test_a_damaged_entry_is_made_again_and_old_ones_go(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    assert cache.get("x", [1], lambda: {"a": 1}) == {"a": 1}
    (entry,) = tmp_path.iterdir()
    entry.write_text("{")
    assert cache.get("x", [1], lambda: {"a": 2}) == {"a": 2}
    os.utime(entry, (0, 0))
    cache.prune()
    assert not list(tmp_path.iterdir())


def test_a_run_on_its_way_is_shown_with_its_progress_and_enters_no_figure(tmp_path: Path) -> None:
    path = FakeRun(status="running").write(tmp_path)
    lines = (path / "answers.jsonl").read_text().splitlines(keepends=True)
    (path / "answers.jsonl").write_text("".join(lines[:7]) + lines[7][:20])
    (one,) = unfinished([path])
    assert (one.answered, one.asked, one.status) == (7, 20, "running")
    data = data_of(tmp_path)
    assert (data["groups"], data["runs"], len(data["unfinished"])) == ([], 0, 1)
    (shown,) = data["unfinished"]
    assert {(one["answer"], one["gold"]) for one in shown["newest"]} == {("secret answer", "secret gold")}
    assert len(shown["newest"]) == 7 and shown["score"] == pytest.approx(50.0)  # one word of two
    assert main(["--runs", str(tmp_path), "--out", str(tmp_path / "page.html"), "--no-cache"]) == 0


def test_watching_writes_again_after_a_change_and_waits_out_a_torn_file(tmp_path: Path) -> None:
    path = FakeRun().write(tmp_path)
    built: list[int] = []
    looks = iter(range(6))

    def build(last: bool) -> bool:
        built.append(len(built))
        if len(built) == 2:
            raise RunDirectoryError("torn")
        return last

    def pause(_: float) -> None:
        look = next(looks)
        if look == 1:
            (path / "calls.jsonl").write_text("")
        if look == 4:
            raise KeyboardInterrupt

    watch([tmp_path], 1, build, pause)
    assert len(built) == 3  # first, after the change, and again because that one failed


@pytest.mark.parametrize("looks", [0, 1])
def test_a_file_that_vanishes_while_a_run_is_read_ends_no_watching(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: int
) -> None:
    """A run writes ``.run.json.1a2b.tmp`` and renames it: between two looks at it, watching ended in a traceback."""
    (tmp_path / "run.json").write_text("{}")
    before = fingerprint(tmp_path)
    (tmp_path / ".run.json.1a2b.tmp").write_text("{")
    assert fingerprint(tmp_path) == before
    (tmp_path / "gone.jsonl").write_text("")
    stat, left = Path.stat, [looks]

    def vanishing(path: Path, **options: bool) -> os.stat_result:
        if path.name == "gone.jsonl":
            left[0] -= 1
            if left[0] < 0:
                raise FileNotFoundError(path)
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", vanishing)
    assert [row[0] for row in fingerprint(tmp_path)[1:]] == [*["gone.jsonl"][:looks], "run.json"]


def test_watching_waits_for_a_sweep_that_has_not_begun(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs, built, looks = tmp_path / "runs", [], iter(range(4))

    def pause(_: float) -> None:
        look = next(looks)
        if look == 1:
            FakeRun().write(runs)
        if look == 3:
            raise KeyboardInterrupt

    watch([runs], 1, lambda last: bool(built.append("page")), pause)
    assert built == ["page"] and capsys.readouterr().out.count("not there yet") == 1


def test_watching_ends_with_the_runs_and_the_last_page_loads_itself_no_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, runs = tmp_path / "page.html", tmp_path / "runs"
    FakeRun(status="running").write(runs)
    options = argparse.Namespace(out=page, no_cache=True, no_questions=False, unmeasured_judges=False)
    refresh, looks = [], iter(range(99))

    def build_it(last: bool) -> bool:
        refresh.append(None if last else 5)
        return build(options, [runs], refresh=refresh[-1])

    def pause(_: float) -> None:
        if next(looks) == 2:
            shutil.rmtree(runs)
            FakeRun().write(runs)

    watch([runs], 5, build_it, pause)
    assert refresh == [5, 5, None] and next(looks) == 3 + 12  # a minute, in which the next run of a sweep may begin
    assert '"refresh": null' in page.read_text("utf-8") or '"refresh":null' in page.read_text("utf-8")
    said = capsys.readouterr().out
    assert said.count("written: ") == 1 and "the runs have ended" in said


def test_memories_of_a_turn_and_its_distance(tmp_path: Path) -> None:
    entries = [
        {"turn_ids": [f"D{n}:1"], "text": f"note {n}", "date_time": f"1:56 pm on {n} May, 2023", "vector": np.zeros(2)}
        for n in (1, 2, 10)
    ]
    save_snapshot(tmp_path / "snapshots" / "c.npz", {"memory": {"notes": entries}})
    memories = Memories(tmp_path)
    assert memories.of("c", "D2:1") == (["turn_ids: D2:1\ntext: note 2\ndate_time: 1:56 pm on 2 May, 2023"], 0)
    assert memories.of("c", "D3:1") == ([], 0)
    reference = ReferenceRecord("q", "c", 1, ["x"], None, ["D2:1", "D10:1"], [], ["", ""])
    assert distances({"q": reference}, [memories]) == ({"q": 1}, {"q": 8.0})
    assert distances({"q": reference}, []) == ({}, {})


def test_memories_are_found_by_an_id_that_is_no_plain_name(tmp_path: Path) -> None:
    """A snapshot's file is named by its conversation's id in another spelling, ``%43hat%201.npz`` here."""
    snapshot = Snapshot(1, True, {"notes": [{"turn_ids": ["D1:1"], "text": "note"}]}, [0.1], [0.1], 0.1, 1.0)
    Snapshots(tmp_path / "snapshots", "run", ["Chat 1"]).save("Chat 1", snapshot)
    memories = Memories(tmp_path)
    assert memories.known("Chat 1") and memories.turns("Chat 1") == {"D1:1"}
    assert memories.of("Chat 1", "D1:1") == (["turn_ids: D1:1\ntext: note"], 0)


def test_dates_that_are_none() -> None:
    assert parse_date("1:56 pm on 8 May, 2023") == datetime(2023, 5, 8, 13, 56)  # noqa: DTZ001 - LoCoMo's dates have no zone
    assert parse_date("2023-05-08T13:56:00+00:00") == datetime(2023, 5, 8, 13, 56)  # noqa: DTZ001 - LoCoMo's dates have no zone
    assert [parse_date(value) for value in ("99:99 pm on 8 May, 2023", "yesterday", 3, None)] == [None] * 4


def test_the_first_call_that_differs(tmp_path: Path) -> None:
    one, other = (load_calls(FakeRun(seed=seed).write(tmp_path)) for seed in (0, 1))
    assert first_difference(one, other) == ""
    assert first_difference(one, other[2:]) == "call 1: write analyse about analyse:0 was made by the first run alone"
    assert first_difference(one[:2], other[:4]) == "write analyse about analyse:1 was made by the second run alone"


@pytest.mark.parametrize("every", ["0", "soon", "1.5"])
def test_a_wrong_pause_is_refused(every: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--watch", "--every", every])
    assert "cannot be used; give a whole number from 1 to 3600" in capsys.readouterr().err
