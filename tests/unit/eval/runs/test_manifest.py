"""No number of a run or a summary changes unseen: every file, damaged in every way, against every reader."""

import itertools
import json
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import pytest

from eval.export import export_run
from eval.report.cache import Cache
from eval.results.frame import Skipped, load_run, read_run
from eval.results.stored_run import StoredRun
from eval.runs.exports import read_export
from eval.runs.files import JsonLines, read_json_lines, write_json
from eval.runs.folders import SUMMARIES, find_run_folders
from eval.runs.manifest import DERIVED, MANIFEST, check_folder, present, read_manifest
from eval.runs.records import AnswerRecord, ReferenceRecord, RetrievalRecord
from eval.runs.run_json import RunRecord
from eval.runs.rundir import RunDirectory
from eval.runs.signing import sign_folder
from eval.scoring.score_run import score_run
from eval.scoring.summary import summarise
from eval.scoring.verdicts.store import AnswerVerdict, input_checksums, load_judged
from eval.settle import main as settle_main
from eval.sign import main as sign_main
from eval.sign import sign
from memsys.errors import MemsysError, RunDirectoryError
from tests.support.fake_run import FakeRun

JUDGED = "judgements/plain-fake"


def _whole_run(root: Path, memory: str) -> Path:
    """A complete, scored, judged run whose rows carry checksums."""
    path = FakeRun(memory=memory, questions_each=4).write(root)
    for file in path.glob("*.jsonl"):
        if file.name not in DERIVED:
            rows = [json.loads(line) for line in file.read_text().splitlines()]
            _rewrite(file, [{**row, "prediction": f"gold of {memory}"} if "prediction" in row else row for row in rows])
    verdicts = [AnswerVerdict(f"conv-26:{number}", 0, "CORRECT", "", "0" * 64) for number in range(4)]
    (path / "judgements").mkdir()
    _rewrite(path / f"{JUDGED}.jsonl", [asdict(one) for one in verdicts])
    write_json(path / f"{JUDGED}.json", {
        "status": "complete", "inputs": input_checksums(path), "column": "judge_plain_fake", "judge": "plain",
        "backbone": "fake", "identity": {}, "verdicts": 4, "repeats": 1, "adversarial": False,
        "probe": {"items": 0, "accuracy": None, "always": None, "false_accept": None, "false_reject": None,
                  "unscored": 0, "by_kind": {}},
    })  # fmt: skip
    sign_folder(path)
    score_run(path)
    summarise(path)
    return path


def _rewrite(path: Path, rows: list[Any]) -> None:
    path.unlink(missing_ok=True)
    with closing(JsonLines(path)) as file:
        for row in rows:
            file.append(row)


def _changed_character(data: bytes, rng: Random) -> bytes:
    """Change a digit or a letter of a value: it stays JSON."""
    places = [match.start() for match in re.finditer(rb"[0-9a-z]", data)]
    at = rng.choice(places)
    old = data[at : at + 1]
    new = (b"7" if old != b"7" else b"3") if old.isdigit() else (b"q" if old != b"q" else b"r")
    return data[:at] + new + data[at + 1 :]


def _lines(change: Callable[[list[bytes], Random], list[bytes]]) -> Callable[[bytes, bytes, Random], bytes]:
    return lambda data, other, rng: b"".join(change(data.splitlines(keepends=True), rng))


def _without(lines: list[bytes], at: int) -> list[bytes]:
    return lines[:at] + lines[at + 1 :]


def _swapped(lines: list[bytes], rng: Random) -> list[bytes]:
    first, second = rng.sample(range(len(lines)), 2) if len(lines) > 1 else (0, 0)
    lines[first], lines[second] = lines[second], lines[first]
    return lines


def _copied(data: bytes, other: bytes, rng: Random) -> bytes:
    """Put a row of the other run in the place of one of this run's."""
    lines, others = data.splitlines(keepends=True), other.splitlines(keepends=True)
    at = rng.randrange(min(len(lines), len(others)))
    return b"".join([*lines[:at], others[at], *lines[at + 1 :]])


#: (content, content of the same file of another run, choices) -> damaged content; ``None`` deletes the file.
DAMAGES: Mapping[str, Callable[[bytes, bytes, Random], bytes | None]] = {
    "edited": lambda data, other, rng: _changed_character(data, rng),
    "truncated": lambda data, other, rng: data[: rng.randrange(len(data))],
    "last row lost": _lines(lambda lines, rng: lines[:-1]),
    "row deleted": _lines(lambda lines, rng: _without(lines, rng.randrange(len(lines)))),
    "row twice": _lines(lambda lines, rng: [*lines, rng.choice(lines)]),
    "rows swapped": _lines(_swapped),
    "checksum removed": lambda data, other, rng: re.sub(rb',"crc32":"[0-9a-f]{8}"', b"", data, count=1),
    "checksum removed, row edited": lambda data, other, rng: _changed_character(
        re.sub(rb',"crc32":"[0-9a-f]{8}"', b"", data), rng
    ),
    "of another run": lambda data, other, rng: other,
    "row of another run": _copied,
    "deleted": lambda data, other, rng: None,
}
#: Damages of ``manifest.json`` by the name of the file whose entry is meant.
MANIFEST_DAMAGES: Mapping[str, Callable[[dict[str, Any], str], None]] = {
    "digest edited": lambda found, name: found["files"].update({name: "0" * 64}),
    "entry removed": lambda found, name: found["files"].pop(name),
}


def _tables(run: Path, out: Path) -> Any:
    found = read_run(run)
    assert not isinstance(found, Skipped), found.reason
    return {name: value for name, value in asdict(found).items() if name != "path"}


def _score(run: Path, out: Path) -> Any:
    score_run(run)
    summarise(run)
    return [(run / name).read_bytes() for name in DERIVED]


def _export(run: Path, out: Path) -> Any:
    return read_export(export_run(run, out))


def _frames(run: Path, out: Path) -> Any:
    opened = load_run(run)
    frames = (opened.answers, opened.retrievals, opened.references, opened.calls, opened.conversations)
    return [frame().to_json() for frame in frames]


def _judges(run: Path, out: Path) -> Any:
    return [one.shares() for one in load_judged(run)]


READERS: Mapping[str, Callable[[Path, Path], Any]] = {
    "tables": _tables, "score": _score, "export": _export, "load_run": _frames, "judges": _judges,
}  # fmt: skip


@dataclass
class Pair:
    """Two runs of one data set, what each reader says of the first, and how often it was damaged."""

    first: Path
    other: Path
    said: Mapping[str, Any]

    def silent(self, folder: Path, reader: str, change: Callable[[Path], object]) -> bool | None:
        """Whether a reader gives another result than of the whole run and no message; ``None``: nothing was damaged."""
        run = folder / "run"
        shutil.copytree(self.first, run)
        before = _bytes(run)
        change(run)
        if _bytes(run) == before:
            return None
        try:
            said = READERS[reader](run, folder / "out")
        except MemsysError as error:
            assert "restore" in str(error) or "memsys" in str(error), error
            return False
        return bool(said != self.said[reader])


def _bytes(run: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    root = tmp_path_factory.mktemp("pair")
    first, other = (_whole_run(root, memory) for memory in ("rag", "amem"))
    said = {}
    for name, read in READERS.items():
        shutil.copytree(first, root / name / "run")
        said[name] = read(root / name / "run", root / name / "out")
    return Pair(first, other, said)


def test_no_damage_of_any_file_is_silent(runs: Pair, tmp_path: Path) -> None:
    pair = runs
    rng, number = Random(0), itertools.count()
    tried, silent = 0, []
    for file in present(pair.first):
        whole, other = (pair.first / file).read_bytes(), (pair.other / file).read_bytes()
        changes: dict[str, Callable[[Path], object]] = {
            name: _file_change(file, damage(whole, other, rng)) for name, damage in DAMAGES.items()
        }
        changes |= {name: _manifest_change(file, damage) for name, damage in MANIFEST_DAMAGES.items()}
        changes["manifest deleted"] = lambda run: (run / MANIFEST).unlink()
        for (name, change), reader in itertools.product(changes.items(), pair.said):
            found = pair.silent(tmp_path / str(next(number)), reader, change)
            tried += found is not None
            if found:
                silent.append(f"{file}: {name}, read by {reader}")
    assert silent == []
    assert tried >= 500, tried


def _file_change(file: str, content: bytes | None) -> Callable[[Path], object]:
    return lambda run: (run / file).unlink() if content is None else (run / file).write_bytes(content)


def _manifest_change(file: str, damage: Callable[[dict[str, Any], str], None]) -> Callable[[Path], object]:
    def change(run: Path) -> None:
        found = json.loads((run / MANIFEST).read_text())
        damage(found, file)
        (run / MANIFEST).write_text(json.dumps(found))

    return change


def test_one_message_names_the_file_and_what_to_do(runs: Pair, tmp_path: Path) -> None:
    for file, advice in (
        ("scores.jsonl", r"run `memsys score .*`"),
        ("answers.jsonl", r"restore it, or run `memsys sign .*`, which checks what is there"),
    ):
        run = tmp_path / file
        shutil.copytree(runs.first, run)
        (run / file).write_bytes((run / file).read_bytes().replace(b"conv-26", b"conv-27", 1))
        with pytest.raises(RunDirectoryError, match=rf"{file} was modified after it was written: .*; {advice}"):
            read_run(run)


def test_scores_that_do_not_fit_are_made_again_by_score(runs: Pair, tmp_path: Path) -> None:
    shutil.copytree(runs.first, tmp_path / "run")
    (tmp_path / "run" / "scores.jsonl").write_bytes((runs.other / "scores.jsonl").read_bytes())
    (tmp_path / "run" / "summary.json").unlink()
    assert _score(tmp_path / "run", tmp_path) == runs.said["score"]
    assert _tables(tmp_path / "run", tmp_path) == runs.said["tables"]


def test_a_run_of_an_earlier_version_is_read_after_it_was_signed(
    runs: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(runs.first, run)
    (run / MANIFEST).unlink()
    with pytest.raises(RunDirectoryError, match=r"is complete and has no manifest\.json: .* run `memsys sign "):
        read_run(run)
    assert sign_main([str(run)]) == 0
    assert "signed" in capsys.readouterr().out
    assert isinstance(read_run(run), StoredRun)
    assert [one.shares() for one in load_judged(run)] == runs.said["judges"]


def test_signing_refuses_what_contradicts_itself(runs: Pair, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(runs.first, run)
    rows = list(read_json_lines(run / f"{JUDGED}.jsonl"))
    _rewrite(run / f"{JUDGED}.jsonl", rows[:2])
    with pytest.raises(RunDirectoryError, match=r"holds 2 of the 4 verdicts"):
        sign(run)
    exported = export_run(runs.first, tmp_path / "summaries")
    with pytest.raises(RunDirectoryError, match="is an exported run, which `memsys export` signs"):
        sign(exported)


def _any_byte(data: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def test_no_damage_of_an_export_is_silent(runs: Pair, tmp_path: Path) -> None:
    first, other = (export_run(run, tmp_path / run.name) for run in (runs.first, runs.other))
    rng = Random(0)
    for name in ("runs.jsonl", "scores.parquet", MANIFEST):
        file = first.parent / name
        whole, theirs = file.read_bytes(), (other.parent / name).read_bytes()
        edits = {_changed_character(whole, rng) if name == MANIFEST else _any_byte(whole, rng) for _ in range(20)}
        for damaged in (*edits, whole[: len(whole) // 2], b"", theirs, None):
            file.unlink() if damaged is None else file.write_bytes(damaged)
            for read in (read_run, export_run):
                with pytest.raises(RunDirectoryError):
                    read(first)
            with pytest.raises(RunDirectoryError, match=r"git checkout -- .* or delete it and export") as raised:
                read_export(first)
            assert str(first.parent) in str(raised.value)
            file.write_bytes(whole)
        assert read_export(first).rows


def test_rows_of_a_run_that_an_export_does_not_name_are_refused(runs: Pair, tmp_path: Path) -> None:
    first, _ = (export_run(run, tmp_path) for run in (runs.first, runs.other))
    file = first.parent / "runs.jsonl"
    file.write_text("".join(line for line in file.read_text().splitlines(keepends=True) if first.name in line))
    digests = {path.name: sha256(path.read_bytes()).hexdigest() for path in first.parent.glob("*s.*")}
    write_json(first.parent / MANIFEST, {"files": digests})
    with pytest.raises(RunDirectoryError, match=r"it has rows of amem-.*, which runs\.jsonl does not name"):
        read_export(first)


def test_signing_computes_scores_again(runs: Pair, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(runs.first, run)
    content = (run / "scores.jsonl").read_text()
    (run / "scores.jsonl").write_text(
        re.sub(r'"f1_set":[0-9.]+', '"f1_set":0.95', re.sub(r',"crc32":"\w+"', "", content))
    )
    assert re.fullmatch(r"signed; [1-9]\d* scores were not those of the answers and are computed again", sign(run))
    assert _tables(run, tmp_path)["rows"] == runs.said["tables"]["rows"]


def _record() -> RunRecord:
    return RunRecord(
        run_id="r", experiment="e", seed=0, mode="answers", config={}, identity={"a": 1}, data={}, model={},
        commit=None, dirty=None, packages={}, hardware={}, started="2026-01-01T00:00:00+00:00",
        row_checksums="chained",
    )  # fmt: skip


def _answer(name: str) -> AnswerRecord:
    return AnswerRecord(name, "c", 1, "q", f"answer to {name}", "{}", False, [], 0.1, 0.1, False, 1, 1)


def _going_on(path: Path, **changes: Any) -> Path:
    """An incomplete run with four answers."""
    with closing(RunDirectory(path)) as directory:
        record = _record()
        for name, value in changes.items():
            setattr(record, name, value)
        directory.begin(record)
        for number in range(4):
            directory.add_answer(_answer(f"q{number}"))
    return path


@pytest.mark.parametrize(
    "damage", ["edited", "row deleted", "row twice", "rows swapped", "checksum removed", "row of another run"]
)
def test_rows_of_a_run_that_goes_on_are_chained(tmp_path: Path, damage: str) -> None:
    """A last row that is lost is asked again; any other damage is refused."""
    run, other = _going_on(tmp_path / "a"), _going_on(tmp_path / "b", started="2026-01-02T00:00:00+00:00")
    whole, there = (path.joinpath("answers.jsonl").read_bytes() for path in (run, other))
    refused = 0
    for seed in range(40):
        data = DAMAGES[damage](whole, there, Random(seed))
        assert data is not None
        if whole.startswith(data):
            continue
        (run / "answers.jsonl").write_bytes(data)
        with pytest.raises(RunDirectoryError, match=r"answers\.jsonl:\d (was modified|is not JSON)"):
            list(read_json_lines(run / "answers.jsonl"))
        refused += 1
    assert refused > 10


def test_a_chain_goes_on_after_a_torn_row(tmp_path: Path) -> None:
    run = _going_on(tmp_path)
    file = run / "answers.jsonl"
    file.write_bytes(file.read_bytes() + b'{"question_id":"q4","conv')
    with closing(RunDirectory(run)) as directory:
        record = directory.begin(_record())
        directory.add_answer(_answer("q4"))
        assert record.resumed == 1
    assert [row["question_id"] for row in read_json_lines(file)] == [f"q{number}" for number in range(5)]


def test_a_kill_between_manifest_and_record_leaves_a_run_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from eval.runs import signing

    run, write = _going_on(tmp_path), signing.write_json

    def killed(path: Path, value: Any) -> None:
        if path.name == "run.json":
            raise KeyboardInterrupt
        write(path, value)

    record = _record()
    record.status = "complete"
    with closing(RunDirectory(run)) as directory:
        directory.begin(_record())
        monkeypatch.setattr(signing, "write_json", killed)
        with pytest.raises(KeyboardInterrupt):
            directory.save(record)
        monkeypatch.undo()
    assert (run / MANIFEST).is_file()
    with closing(RunDirectory(run)) as directory:
        directory.begin(_record())
        assert not (run / MANIFEST).exists()
        directory.save(record)
    check_folder(run)
    found = read_manifest(run)
    assert found is not None and set(found.files) == {"run.json", "answers.jsonl"} and not found.open


def test_a_part_of_the_report_that_was_changed_is_computed_again(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    assert cache.get("part", [1], lambda: {"mean": 25.7}) == {"mean": 25.7}
    assert cache.get("part", [2], lambda: {"mean": 1.5}) == {"mean": 1.5}
    first, second = sorted(tmp_path.iterdir())
    first.write_text(first.read_text().replace("25.7", "83.1").replace("1.5", "9.5"))
    second.write_text(first.read_text())
    assert cache.get("part", [1], lambda: {"mean": 25.7}) == {"mean": 25.7}
    assert cache.get("part", [2], lambda: {"mean": 1.5}) == {"mean": 1.5}


def test_the_committed_summaries_fit_their_manifests_and_have_scores_in_place_of_means() -> None:
    paths = list(find_run_folders([SUMMARIES]))
    assert len(paths) > 100
    for path in paths:
        run = read_export(path)
        assert run.rows and not run.summary.keys() & {"metrics", "protocols", "audited"}


def test_settled_questions_are_signed_and_settle_signs_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    references = [ReferenceRecord(f"q{number}", "c", 1, ["a"], None, [], [], []) for number in range(3)]
    record = _record()
    with closing(RunDirectory(tmp_path)) as directory:
        directory.begin(record)
        directory.write_references(references)
        for name in ("q0", "q1"):
            directory.add_retrieval(RetrievalRecord(name, "c", 1, [], "", 0, 0))
            directory.add_answer(_answer(name))
        record.status = "incomplete"
        directory.save(record)
    assert settle_main([str(tmp_path), "--close"]) == 0
    check_folder(tmp_path)
    settled = tmp_path / "settled.jsonl"
    whole = settled.read_bytes()
    settled.write_bytes(whole.replace(b"failed", b"withheld"))
    assert settle_main([str(tmp_path)]) == 2
    assert "settled.jsonl was modified after it was written" in re.sub(r"\s+", " ", capsys.readouterr().err)
    settled.write_bytes(whole)
    assert settle_main([str(tmp_path), "--again"]) == 0
    assert not (tmp_path / MANIFEST).exists() and not settled.read_bytes()
    assert settle_main([str(tmp_path), "--close"]) == 0
    check_folder(tmp_path)
    signed = (tmp_path / MANIFEST).read_bytes()
    assert settle_main([str(tmp_path), "--close"]) == 0
    assert (tmp_path / MANIFEST).read_bytes() == signed


@pytest.mark.parametrize("content", ["[1]", "null", "{"])
def test_a_manifest_that_is_no_object_is_said_to_be_so(content: str, tmp_path: Path) -> None:
    """A list was reported as "found None"."""
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(RunDirectoryError, match=r"manifest\.json is damaged \(it holds no JSON object\)"):
        read_manifest(tmp_path)
