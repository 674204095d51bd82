"""The report's first view: groups, common questions, the sentence, judges that mean nothing, cache, progress."""

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval.report.__main__ import main
from eval.report.cache import Cache, fingerprint
from eval.report.calls import first_difference
from eval.report.config import load_config
from eval.report.data import collect, page_data
from eval.report.progress import unfinished
from eval.report.slices import distances
from eval.report.verdict import Side, verdict
from eval.report.watch import watch
from eval.runs.memories import Memories, parse_date
from eval.runs.records import ReferenceRecord
from eval.runs.snapshot import save_snapshot
from eval.runs.snapshots import Snapshot, Snapshots
from eval.runs.stored import load_calls
from eval.scoring.several import Several, SystemDifference, compare_all
from memsys.errors import RunDirectoryError
from tests.support.fake_run import FakeRun, rewrite


def data_of(*roots: Path, cache: Cache | None = None) -> Any:
    return page_data(collect(roots), load_config(), cache=cache)


def fixed_score(share: float, jitter: float = 0.0) -> Any:
    return lambda number, metric: min(1.0, max(0.0, share + jitter * (number % 3 - 1)))


def write(root: Path, scores: dict[str, float], **settings: Any) -> None:
    for memory, share in scores.items():
        FakeRun(memory=memory, values=fixed_score(share), conversations=("c",), questions_each=20, **settings).write(
            root
        )


def sentence(root: Path, metric: str = "f1_set", five: str = "exclude") -> str:
    return str(data_of(root)["groups"][0]["boards"][metric][five]["sentence"])


def test_a_real_difference_is_called_real_and_held_against_no_memory(tmp_path: Path) -> None:
    write(tmp_path, {"rag": 0.75, "amem": 0.25, "no_memory": 0.1})
    found = sentence(tmp_path)
    assert found.startswith("Use rag: 75.0, +50.0 [50.0, 50.0] over amem, and the difference is real;")
    assert "rag is measurably better than no_memory (+65.0 [65.0, 65.0])" in found
    assert "16 questions that all 3 runs answered, those without an answer left out; one conversation only" in found
    assert "exploratory" not in found


def test_the_sentence_says_in_what_the_runs_differ_besides_the_memory(tmp_path: Path) -> None:
    write(tmp_path, {"rag": 0.75}, parts={"dataset": {"turn_style": "plain"}})
    write(tmp_path, {"amem": 0.25}, parts={"dataset": {"turn_style": "clag"}})
    found = sentence(tmp_path)
    assert "left out; some of them differ in dataset too, so a difference need not be the memory's alone;" in found


def test_answers_that_two_readers_asked_for_are_not_ranked_together(tmp_path: Path) -> None:
    write(tmp_path, {"rag": 0.75})
    write(tmp_path, {"amem": 0.25}, reader="xmemory")
    data = data_of(tmp_path)
    assert {one["reader"]: [*one["labels"].values()] for one in data["groups"]} == {
        "clag": ["rag"],
        "xmemory": ["amem"],
    }
    assert {run["board"] for run in data["runs"]} == {
        "smollm2_135m, reader clag, 20 questions", "smollm2_135m, reader xmemory, 20 questions"
    }  # fmt: skip


def test_a_run_that_comes_while_the_page_is_made_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``--watch`` ended with a KeyError: the folders were listed twice, and the second list had one more."""
    write(tmp_path, {"rag": 0.75})
    looked = unfinished

    def arrives(folders: Any) -> Any:
        write(tmp_path, {"amem": 0.25})
        return looked(folders)

    monkeypatch.setattr("eval.report.data.unfinished", arrives)
    assert sorted(run.memory for run in collect([tmp_path]).runs) == ["amem", "rag"]


def test_only_the_comparison_named_in_advance_decides(tmp_path: Path) -> None:
    """Twelve boards were each called real after a correction for their own tests alone."""
    write(tmp_path, {"rag": 0.75, "amem": 0.25})
    boards = data_of(tmp_path)["groups"][0]["boards"]
    others = [(name, five) for name, fives in boards.items() for five in fives if (name, five) != ("f1_set", "exclude")]
    assert len(others) > 3
    for metric, five in others:
        found = boards[metric][five]["sentence"]
        assert "is real" not in found
        assert "exploratory, what decides is f1_set, questions without an answer left out)." in found


def test_equal_systems_have_no_winner_and_the_cheapest_is_named(tmp_path: Path) -> None:
    write(tmp_path, {"rag": 0.5, "amem": 0.5})
    found = sentence(tmp_path)
    assert found.startswith("No clear winner")
    assert "of these rag takes the fewest tokens per question" in found
    assert "there is no run without memory" in found


def test_references_are_not_ranked_however_high(tmp_path: Path) -> None:
    write(tmp_path, {"rag": 0.25, "oracle": 1.0, "full_context": 0.9, "no_memory": 0.3})
    data = data_of(tmp_path)
    board = data["groups"][0]["boards"]["f1_set"]["exclude"]
    assert len(board["tiers"]) == 1
    assert board["sentence"].startswith("rag is the only memory system here: 25.0;")
    assert "measurably worse than no_memory" in board["sentence"]


def test_the_cheapest_pays_for_its_writing_too(tmp_path: Path) -> None:
    """A memory was called the cheapest that takes a few tokens less per question, and many more for every turn."""
    write(tmp_path, {"rag": 0.5, "amemory": 0.5})
    for path in tmp_path.rglob("rag-*/summary.json"):
        summary = json.loads(path.read_text())
        for phase in summary["calls"]["by_phase"].values():
            phase["total"]["prompt_tokens"] += 10**6
        path.write_text(json.dumps(summary))
    assert "of these amemory takes the fewest tokens per question (200 with its share of the writing)" in sentence(
        tmp_path
    )


def test_the_cheapest_is_one_that_is_near_the_best() -> None:
    """After Holm's correction over many pairs a memory that stores nothing was "not told apart", and so recommended."""
    sides = [Side("good", 50.0, True, 600.0), Side("near", 48.0, True, 500.0), Side("far", 20.0, True, 80.0)]
    differences = (
        SystemDifference(0, 1, 2.0, -4.0, 8.0, 1.0, 5, 4),
        SystemDifference(0, 2, 30.0, 3.0, 57.0, 0.06, 9, 1),
        SystemDifference(1, 2, 28.0, 2.0, 54.0, 0.07, 8, 1),
    )
    several = Several((50.0, 48.0, 20.0), (None, None, None), differences, "question", 20)
    found = verdict(sides, several, "f1_set on x")
    assert "chance may explain its lead over near, far" in found
    assert "of those whose interval to it includes 0, near takes the fewest tokens per question (500 with" in found


def test_runs_are_ranked_on_equal_terms_in_all_scores_too(tmp_path: Path) -> None:
    """All runs on a data set had one ranking, whatever the backbone, the prompts and the questions."""
    write(tmp_path, {"rag": 0.5, "amem": 0.25})
    FakeRun(memory="clag", conversations=("c",), questions_each=5).write(tmp_path)
    FakeRun(memory="clag", conversations=("c",), questions_each=20, backbone="qwen3_06b").write(tmp_path)
    boards = sorted((card["system"], card["board"]) for card in data_of(tmp_path)["runs"])
    assert boards == [
        ("amem", "smollm2_135m, 20 questions"),
        ("clag", "qwen3_06b, 20 questions"),
        ("clag", "smollm2_135m, 5 questions"),
        ("rag", "smollm2_135m, 20 questions"),
    ]


def test_places_of_runs_can_be_named_one_by_one(tmp_path: Path) -> None:
    """Of `--runs A --runs B` the last was taken and the others left out without a word."""
    for name in ("rag", "amem"):
        FakeRun(memory=name).write(tmp_path / name)
    out = tmp_path / "page.html"
    places = ["--runs", str(tmp_path / "rag"), "--runs", str(tmp_path / "amem")]
    assert main([*places, "--out", str(out), "--no-questions", "--no-cache"]) == 0
    assert {name in out.read_text() for name in ("fake/rag-", "fake/amem-")} == {True}


def test_other_answer_prompts_are_a_group_of_their_own(tmp_path: Path) -> None:
    """They were ranked with the others, and a memory that ran with them alone did not even say so."""
    write(tmp_path, {"rag": 0.5, "amem": 0.25})
    write(tmp_path / "before", {"full_context": 0.75, "clag": 0.75}, parts={"reader": {"prompt_set": "clag"}})
    for path in (tmp_path / "before").rglob("run.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "prompts": {"reader.default": "0" * 64}}))
    first, second = data_of(tmp_path)["groups"]
    assert [sorted(one["labels"].values()) for one in (first, second)] == [["amem", "rag"], ["clag", "full_context"]]
    assert (first["prompts"], second["prompts"]) == ("", "other answer prompts")
    assert "(f1_set on locomo_clag, 16 questions" in first["boards"]["f1_set"]["exclude"]["sentence"]
    assert "on locomo_clag with other answer prompts, 16" in second["boards"]["f1_set"]["exclude"]["sentence"]


def test_only_common_questions_count(tmp_path: Path) -> None:
    FakeRun(memory="rag", conversations=("c",), questions_each=20, values=fixed_score(0.5)).write(tmp_path)
    FakeRun(memory="amem", conversations=("c",), questions_each=10, values=fixed_score(0.5)).write(tmp_path)
    group = data_of(tmp_path)["groups"][0]
    assert (group["common"], group["asked"]) == (10, 20)
    assert group["boards"]["f1_set"]["exclude"]["questions"] == 8
    assert group["boards"]["f1_set"]["paper_trap"]["questions"] == 10


def test_another_part_of_the_data_is_another_group(tmp_path: Path) -> None:
    for turns, memory in ((92, "rag"), (419, "amem")):
        path = FakeRun(memory=memory).write(tmp_path)
        record = json.loads((path / "run.json").read_text())
        record["data"]["turns"] = turns
        (path / "run.json").write_text(json.dumps(record))
    assert [group["systems"] for group in data_of(tmp_path)["groups"]] == [[0], [1]]


def test_a_judge_no_better_than_a_constant_gives_no_ranking() -> None:
    sides = [Side("rag", 100.0, True, None), Side("amem", 0.0, True, None)]
    several = compare_all(np.array([[100.0, 0.0]] * 20), ["c"] * 20)
    found = verdict(sides, several, "judge on x, 20 questions", "judge is no better than a constant on its probe")
    assert found.startswith("These scores cannot tell which memory is better: judge is no better than a constant")
    assert "Use" not in found


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
    assert data_of(tmp_path / "runs", cache=cache)["scores"][0]["f1_set"]["1"][0] == 100.0


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
    assert (data["groups"], data["runs"], len(data["unfinished"])) == ([], [], 1)
    assert main(["--runs", str(tmp_path), "--out", str(tmp_path / "page.html"), "--no-cache"]) == 0


def test_watching_writes_again_after_a_change_and_waits_out_a_torn_file(tmp_path: Path) -> None:
    path = FakeRun().write(tmp_path)
    built: list[int] = []
    looks = iter(range(6))

    def build() -> None:
        built.append(len(built))
        if len(built) == 2:
            raise RunDirectoryError("torn")

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

    watch([runs], 1, lambda: built.append("page"), pause)
    assert built == ["page"] and capsys.readouterr().out.count("not there yet") == 1


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
