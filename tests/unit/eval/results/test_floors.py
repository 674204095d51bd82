"""Constant answers: hand-worked scores, expected values, and that tables show them."""

import json
from pathlib import Path

import pytest

from eval.floors import PRESETS, floor_row, main, policies_of
from eval.loaders.custom import CustomConfig
from eval.results.frame import read_runs
from eval.results.stored_run import StoredRun
from eval.results.tables.paper_tables import build_tables
from eval.runs.exports import exported_runs, read_export
from eval.runs.records import ReferenceRecord
from eval.scoring.answers import DECLINED, in_known_words
from eval.scoring.estimates import mean_value
from eval.scoring.protocols import load_protocol

ABSTENTION = "Not mentioned in the conversation"


def reference(category: int, answer: str | None, trap: str | None = None) -> ReferenceRecord:
    return ReferenceRecord(f"c:{category}", "c", category, answers=[answer] if answer else [], adversarial_answer=trap,
                           evidence=[], unresolved_evidence=[], evidence_texts=[])  # fmt: skip


def test_abstaining_by_hand() -> None:
    """One of five words shared with a reference of two: P 1/5, R 1/2."""
    metrics = floor_row("always_abstain", reference(4, "the park"), ABSTENTION).metrics
    assert metrics["f1_set"] == pytest.approx(2 * 0.2 * 0.5 / 0.7, abs=1e-6)
    assert metrics["abstained"] == 1.0
    assert metrics["trapped"] is None


def test_the_trap_is_taken_in_category_5_alone() -> None:
    trapped = floor_row("always_trap", reference(5, None, "a red car"), ABSTENTION).metrics
    assert (trapped["f1_set"], trapped["bleu1"], trapped["trapped"], trapped["abstained"]) == (1.0, 1.0, 1.0, 0.0)
    assert trapped["locomo_official"] == 0.0
    declined = floor_row("always_abstain", reference(5, None, "a red car"), ABSTENTION).metrics
    assert (declined["f1_set"], declined["locomo_official"], declined["trapped"]) == (0.0, 1.0, 0.0)
    plain = reference(1, "a red car")
    assert floor_row("always_trap", plain, ABSTENTION) == floor_row("always_abstain", plain, ABSTENTION)


@pytest.mark.parametrize("question", [reference(5, None, "a red car"), reference(2, "7 May 2023")])
def test_the_coin_has_the_expected_value(question: ReferenceRecord) -> None:
    sides = [floor_row(side, question, ABSTENTION).metrics for side in ("always_abstain", "always_trap")]
    coin = floor_row("coin_flip", question, ABSTENTION).metrics
    for name, value in coin.items():
        heads, tails = sides[0][name], sides[1][name]
        assert value == (None if heads is None or tails is None else pytest.approx((heads + tails) / 2, abs=1e-6))


def test_a_question_without_gold_has_no_score() -> None:
    assert floor_row("always_abstain", reference(4, None), ABSTENTION).metrics["f1_set"] is None


def test_without_a_false_answer_there_is_one_policy() -> None:
    assert policies_of([reference(4, "x")]) == ("always_abstain",)
    assert policies_of([reference(4, "x"), reference(5, None, "y")]) == ("always_abstain", "always_trap", "coin_flip")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "dataset='nope' is unknown"),
        (["locomo_sample", "--reader", "no"], "reader='no'"),
        (["custom"], "dataset=custom needs dataset.data_dir=FOLDER"),
        (["custom", "folder=x"], "dataset custom has no setting folder"),
    ],
)
def test_one_clear_error(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--out", str(tmp_path)]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_floors_of_the_sample_are_written_the_same_twice_and_hold_no_text(tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert main(["locomo_sample", "--out", str(tmp_path / name)]) == 0
    files = sorted(path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file())
    assert len(files) == 3
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    rows = read_export(tmp_path / "a" / "floors" / "always_trap-locomo_sample").rows
    values = [value for row in rows for value in row.metrics.values()]
    assert all(value is None or isinstance(value, float) for value in values)


@pytest.mark.parametrize("asked", [["custom", "data_dir=HERE"], ["dataset=custom", "dataset.data_dir=HERE"]])
def test_floors_of_ones_own_data_stand_beside_its_runs(
    asked: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`memsys floors custom` could not be given a folder."""
    turn = {"conversation": "c", "session": "1", "id": "1", "text": "My cat is called Pixel."}
    ask = {"conversation": "c", "id": "q", "question": "What is it called?", "answers": ["Pixel"]}
    for name, row in (("turns", turn), ("questions", ask)):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    out = tmp_path / "out"
    assert main([*(word.replace("HERE", str(tmp_path)) for word in asked), "--out", str(out)]) == 0
    [folder] = exported_runs(out / "floors")
    assert folder.name.startswith("always_abstain-custom-") and str(folder) in capsys.readouterr().out
    record = read_export(folder).record
    assert record["data"]["sha256"] == CustomConfig(data_dir=str(tmp_path)).load().sha256
    assert record["config"]["dataset"] == {"name": "custom"} and str(tmp_path) not in json.dumps(record)


def test_a_place_that_git_tracks_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Floors of one's own data were written into results/summaries, which git tracks, without a word of it."""
    monkeypatch.setattr("eval.floors.write_floors", lambda *_: [])
    assert main(["locomo_sample"]) == 0
    assert "results/summaries is tracked by git" in " ".join(capsys.readouterr().out.split())
    assert main(["locomo_sample", "--out", str(tmp_path)]) == 0
    assert "git" not in capsys.readouterr().out


def test_settings_belong_to_one_data_set(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["sample=true"], ["custom", "locomo", "sample=true"]):
        with pytest.raises(SystemExit):
            main(words)
        assert "sample= is a setting of one data set" in " ".join(capsys.readouterr().err.split())


def committed() -> dict[str, StoredRun]:
    from eval.runs.folders import SUMMARIES

    return {run.run_id: run for run in read_runs([SUMMARIES / "floors"])[0]}


def test_never_reading_beats_printed_systems() -> None:
    """On CLAG's own terms the false answer alone scores above CLAG's 20.99, a coin above RAG's 12.9."""
    runs, protocol = committed(), load_protocol("clag")
    means = {name: mean_value(run.rows, "f1_set", None, protocol) or 0.0 for name, run in runs.items()}
    assert 0.248 < means["floors/always_trap-locomo"] < 0.249
    assert 0.139 < means["floors/coin_flip-locomo"] < 0.140
    assert 0.030 < means["floors/always_abstain-locomo"] < 0.031


def test_floors_stand_in_a_block_of_their_own() -> None:
    tables, unused = build_tables("clag", list(committed().values()), [1])
    block = tables[0].blocks[-1]
    assert block.label.startswith("no backbone")
    assert [row.key.system for row in block.rows] == ["always_abstain", "coin_flip", "always_trap"]
    elsewhere = (
        "-beam_100k",
        "-realtalk",
        "-factconsolidation",
        "-longmemeval_sample",
    )  # sets that no paper's table has
    assert not [run for run in unused if not str(run).endswith(elsewhere)]
    _, left_out = build_tables("xmemory", list(committed().values()), [1])
    assert "they exclude category 5" in left_out["floors/coin_flip-locomo"]


def test_every_data_set_with_a_floor_has_it_committed() -> None:
    names = {name.rpartition("-")[2] for name in committed()}
    assert set(PRESETS) <= names
    assert "longmemeval_sample" in PRESETS


def test_the_floor_of_longmemevals_sample_is_that_of_the_sample(tmp_path: Path) -> None:
    from eval.runs.folders import SUMMARIES

    assert main(["longmemeval_sample", "--reader", "longmemeval", "--out", str(tmp_path)]) == 0
    name = "always_abstain-longmemeval_sample"
    assert read_export(tmp_path / "floors" / name) == read_export(SUMMARIES / "floors" / name)


@pytest.mark.real_data
def test_committed_floors_are_those_of_the_data(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (data_dir / "hotpot_200.json").is_file():
        pytest.skip("no HotpotQA-20 file")
    monkeypatch.setenv("MEMSYS_DATA", str(data_dir))
    assert main(["hotpotqa20_clag", "--out", str(tmp_path)]) == 0
    from eval.runs.folders import SUMMARIES

    for written in exported_runs(tmp_path / "floors"):
        assert read_export(written) == read_export(SUMMARIES / "floors" / written.name)


def test_a_reader_that_starts_from_another_one_has_its_abstention(tmp_path: Path) -> None:
    """It ended with a KeyError."""
    assert main(["locomo_sample", "--reader", "clag_small", "--out", str(tmp_path)]) == 0
    record = read_export(tmp_path / "floors" / "always_abstain-locomo_sample").record
    assert record["config"]["reader"] == {"name": "clag_small", "abstention": "Not mentioned in the conversation"}


def test_a_readers_own_words_for_an_abstention_are_one() -> None:
    row = floor_row("always_abstain", reference(5, None, "Paris"), "The facts do not say")
    assert (row.metrics["abstained"], row.metrics["trapped"], row.metrics["locomo_official"]) == (1.0, 0.0, 1.0)
    assert in_known_words("the facts do not say.", ("The facts do not say", "Paris"), "Paris") == DECLINED
    assert in_known_words("Paris", ("The facts do not say", "Paris"), "Paris") == "Paris"
    assert in_known_words("The facts do not say", (), None) == "The facts do not say"
