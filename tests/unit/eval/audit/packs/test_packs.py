"""Packs: what they hold and withhold, and what is found in one that was changed."""

import json
import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eval.audit.packs import files
from eval.audit.packs.checking import check_pack
from eval.audit.packs.files import opened_pack, write_pack
from eval.pack import main as pack
from eval.runs.exports import ExportedRun, read_export, write_exports
from eval.runs.manifest import MANIFEST
from eval.verify import main as verify
from memsys.errors import DataError, RunDirectoryError
from tests.support.fake_run import FakeRun
from tests.support.sample_run import retrieval_run

Change = Callable[[dict[str, bytes]], None]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return retrieval_run(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def packed(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("packs") / "rag.zip"
    assert pack([str(run), "--out", str(out)]) == 0
    return out


def said(path: Path, state: str, run: Path | None = None) -> list[str]:
    return [f"{one.what}: {one.text}" for one in check_pack(path, run) if one.state == state]


def with_run(path: Path, out: Path, change: Callable[[ExportedRun], ExportedRun]) -> Path:
    """Forge a pack: its run is changed, and all digests are made again."""
    with opened_pack(path) as opened:
        write_exports(opened.run.parent, {opened.run.name: change(read_export(opened.run))})
        contents = {place.name: place.read_bytes() for place in (*opened.run.parent.iterdir(), *opened.rows.iterdir())}
        write_pack(out, opened.manifest, {name: one for name, one in contents.items() if name != MANIFEST})
    return out


def rezipped(path: Path, out: Path, change: Change) -> Path:
    """Change the members of a pack, digests left as they are."""
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    change(contents)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return out


def test_a_pack_of_a_sample_is_checked_in_every_part(packed: Path) -> None:
    assert said(packed, "does not fit") == []
    checked = said(packed, "checked")
    assert any(one.startswith("data: 6 questions with gold are those of locomo_sample") for one in checked)
    assert any(one.startswith("evidence: scored again from turn ids: ") for one in checked)
    assert any("that this memory, model and code gave" in one for one in said(packed, "claimed"))


def test_the_same_run_gives_the_same_bytes(run: Path, packed: Path, tmp_path: Path) -> None:
    assert pack([str(run), "--out", str(tmp_path / "again.zip")]) == 0
    assert (tmp_path / "again.zip").read_bytes() == packed.read_bytes()


def test_a_forged_score_is_named_with_question_and_both_values(
    packed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def forge(run: ExportedRun) -> ExportedRun:
        first = run.rows[0]
        value = 0.25 if first.metrics["recall@10"] != 0.25 else 0.5
        return replace(run, rows=[replace(first, metrics={**first.metrics, "recall@10": value}), *run.rows[1:]])

    forged = with_run(packed, tmp_path / "forged.zip", forge)
    with opened_pack(packed) as opened:
        true = read_export(opened.run).rows[0]
    wrong = said(forged, "does not fit")
    assert (
        wrong[0] == f"score: {true.question_id}: recall@10 is printed as 0.25, recomputed {true.metrics['recall@10']:g}"
    )
    assert any("evidence.all.recall@10.mean is printed as" in one for one in wrong)
    assert verify([str(forged)]) == 5
    assert wrong[0].removeprefix("score: ") in capsys.readouterr().out


def test_a_forged_mean_and_forged_costs_are_named(packed: Path, tmp_path: Path) -> None:
    def forge(run: ExportedRun) -> ExportedRun:
        summary: dict[str, Any] = json.loads(json.dumps(run.summary))
        summary["evidence"]["all"]["recall@10"]["mean"] = 0.987
        summary["calls"]["total"]["prompt_tokens"] = 7
        return replace(run, summary=summary)

    wrong = said(with_run(packed, tmp_path / "forged.zip", forge), "does not fit")
    assert any(one.startswith("mean: evidence.all.recall@10.mean is printed as 0.987, recomputed") for one in wrong)
    assert "cost: calls.total.prompt_tokens is printed as 7, recomputed 0" in wrong


def with_retrievals(path: Path, out: Path, change: Callable[[list[dict[str, Any]]], None]) -> Path:
    """Forge a pack: rows of its retrievals are changed, and all digests are made again."""
    with opened_pack(path) as opened:
        contents = {place.name: place.read_bytes() for place in (*opened.run.parent.iterdir(), *opened.rows.iterdir())}
        rows = [json.loads(line) for line in contents["retrievals.jsonl"].splitlines()]
        change(rows)
        contents["retrievals.jsonl"] = "".join(json.dumps(row) + "\n" for row in rows).encode()
        write_pack(out, opened.manifest, {name: one for name, one in contents.items() if name != MANIFEST})
    return out


def test_one_altered_list_whose_scores_were_left_is_named(packed: Path, tmp_path: Path) -> None:
    with opened_pack(packed) as opened:
        (question,) = [row for row in read_export(opened.run).rows if row.metrics["recall@10"] == 1][:1]

    def forge(rows: list[dict[str, Any]]) -> None:
        (row,) = [row for row in rows if row["question_id"] == question.question_id]
        for hit in row["hits"]:
            hit["turn_ids"] = ["D1:1"]

    wrong = said(with_retrievals(packed, tmp_path / "forged.zip", forge), "does not fit")
    assert any(one.startswith(f"score: {question.question_id}: hit") and one.endswith("recomputed 0") for one in wrong)
    assert all(question.question_id in one or one.startswith("score: and ") for one in wrong)


def test_an_altered_context_is_named(packed: Path, tmp_path: Path) -> None:
    def forge(rows: list[dict[str, Any]]) -> None:
        rows[0]["context"] += " 1998"

    wrong = said(with_retrievals(packed, tmp_path / "forged.zip", forge), "does not fit")
    assert any(one.startswith("texts: ") and "the context is not the one that was packed" in one for one in wrong)


def test_every_column_is_said_to_be_recomputed_or_claimed(packed: Path) -> None:
    with opened_pack(packed) as opened:
        rows = read_export(opened.run).rows
    columns = {name for row in rows for name, value in row.metrics.items() if value is not None}
    found = [finding for finding in check_pack(packed) if finding.what in ("answers", "evidence", "scores")]
    lists = {state: " ".join(one.text for one in found if one.state == state) for state in ("checked", "claimed")}
    named = {state: set(re.findall(r"[\w@.]+", text)) & columns for state, text in lists.items()}
    assert named["checked"] | named["claimed"] == columns and not named["checked"] & named["claimed"]
    assert {"recall@5", "recall@10"} <= named["checked"] and "kept_words" in named["claimed"]


def test_forged_gold_and_a_left_out_question_are_found(packed: Path, tmp_path: Path) -> None:
    def forge(contents: dict[str, bytes]) -> None:
        rows = [json.loads(line) for line in contents["questions.jsonl"].splitlines()]
        rows[0]["gold"] = "0" * 64
        contents["questions.jsonl"] = "".join(json.dumps(row) + "\n" for row in rows[:-1]).encode()

    wrong = said(rezipped(packed, tmp_path / "forged.zip", forge), "does not fit")
    assert wrong[0] == "file: questions.jsonl was changed after packing: its sha256 differs"
    assert any("gold answer or evidence is not that of the data set" in one for one in wrong)
    assert any("is in locomo_sample and not in the pack" in one for one in wrong)


def test_texts_that_may_not_be_passed_on_are_withheld(tmp_path: Path) -> None:
    path = FakeRun().write(tmp_path / "runs")
    assert pack([str(path), "--out", str(tmp_path / "fake.zip")]) == 0
    with zipfile.ZipFile(tmp_path / "fake.zip") as archive:
        whole = b"".join(archive.read(name) for name in archive.namelist())
    assert b"secret" not in whole and b"node17" not in whole
    claimed = said(tmp_path / "fake.zip", "claimed")
    assert any(one.startswith("scores: the data set locomo") for one in claimed)


def test_texts_that_may_not_be_passed_on_are_found(packed: Path, tmp_path: Path) -> None:
    other = lambda run: replace(run, record={**run.record, "data": {**run.record["data"], "sha256": "1" * 64}})  # noqa: E731
    wrong = said(with_run(packed, tmp_path / "other.zip", other), "does not fit")
    assert wrong[0].startswith("licence: texts are included that may not be passed on (CC BY-NC 4.0; LoCoMo")


def test_the_run_folder_gives_texts_that_are_withheld(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eval.audit.packs.making.terms", lambda record: (False, "for this test"))
    assert pack([str(run), "--out", str(tmp_path / "bare.zip")]) == 0
    alone, beside = said(tmp_path / "bare.zip", "claimed"), said(tmp_path / "bare.zip", "claimed", run)
    assert any("texts are withheld" in one for one in alone) and not any("texts are withheld" in one for one in beside)
    for folder in (None, run):  # a new score that a withheld text decides is named in eval.audit.packs.checking
        assert said(tmp_path / "bare.zip", "does not fit", folder) == []
    other = retrieval_run(tmp_path, "bm25_turn")
    assert any("is not the one that was packed" in one for one in said(tmp_path / "bare.zip", "does not fit", other))


BOMB = b"\0" * (8 << 20)
#: What is done to the members of a pack, and a part of the message.
BROKEN: Mapping[str, tuple[Change, str]] = {
    "a further file": (lambda found: found.update({"../../evil": b"x"}), "a file outside of itself"),
    "a strange file": (lambda found: found.update({"run.py": b"x"}), "is not a file of a pack"),
    "a lost file": (lambda found: found.pop("scores.parquet"), "it lacks scores.parquet"),
    "a file that the manifest does not name": (lambda found: found.pop("calls.jsonl"), "differ: calls.jsonl"),
    "another format": (lambda found: found.update({MANIFEST: b'{"format": 99}'}), "its format is 99"),
    "a manifest of another shape": (lambda found: found.update({MANIFEST: b"[]"}), "manifest.json"),
    "scores that are none": (lambda found: found.update({"scores.parquet": b"x"}), "scores.parquet"),
    "rows of another shape": (lambda found: found.update({"answers.jsonl": b'{"category": 1}\n'}), "answers.jsonl:1"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_a_file_that_is_no_pack_is_one_message(
    kind: str, packed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, message = BROKEN[kind]
    broken = rezipped(packed, tmp_path / "broken.zip", change)
    assert verify([str(broken)]) == 2
    errors = capsys.readouterr().err
    assert message in " ".join(errors.split()) and "Traceback" not in errors


def test_a_bomb_is_refused_before_it_is_unpacked(packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = rezipped(packed, tmp_path / "bomb.zip", lambda found: found.update({"calls.jsonl": BOMB}))
    assert bomb.stat().st_size < 1 << 17
    monkeypatch.setattr(files, "MOST_UNPACKED", len(BOMB))
    with pytest.raises(RunDirectoryError, match="MiB unpacked, more than the 8 MiB of any pack"), opened_pack(bomb):
        pass
    monkeypatch.setattr(files, "MOST_PACKED", 1000)
    with pytest.raises(RunDirectoryError, match="packed, more than"), opened_pack(packed):
        pass


def test_a_damaged_archive_and_a_missing_file_are_errors(packed: Path, tmp_path: Path) -> None:
    (tmp_path / "half.zip").write_bytes(packed.read_bytes()[:2000])
    with pytest.raises(DataError, match="is not a whole zip archive"), opened_pack(tmp_path / "half.zip"):
        pass
    with pytest.raises(RunDirectoryError, match="cannot be read"), opened_pack(tmp_path / "none.zip"):
        pass
