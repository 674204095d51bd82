"""Downloads against a local server: whole, resumed, wrong, refused, absent."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pyarrow
import pyarrow.parquet
import pytest

from eval.commands.commands import EXIT_ERROR, EXIT_INCOMPLETE
from eval.data import main
from eval.loaders.contract import PinnedFile
from eval.loaders.factconsolidation import FACTCONSOLIDATION
from eval.loaders.fetch import FetchOutcome, _rows_to_json, copy, fetch
from eval.loaders.locomo import LOCOMO
from eval.loaders.registry import DATASETS
from memsys.errors import DataError

CONTENT = bytes(range(256)) * 1000
ROOT = Path(__file__).resolve().parents[4]


class Handler(BaseHTTPRequestHandler):
    """Serves CONTENT under /file, honouring ranges; /no-ranges ignores them; anything else is 403."""

    seen: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        type(self).seen.append(self.headers.get("Range"))
        if self.path not in ("/file", "/no-ranges"):
            self.send_error(403)
            return
        wanted = self.headers.get("Range")
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.path == "/file" else 0
        if start >= len(CONTENT):
            self.send_error(416)
            return
        body = CONTENT[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    Handler.seen = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{http.server_address[1]}"
        http.shutdown()
        thread.join()


def pinned(url: str) -> PinnedFile:
    return PinnedFile("set/data.bin", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), url)


def test_downloads_checks_and_recognises(server: str, tmp_path: Path) -> None:
    reports: list[tuple[int, int]] = []
    file = pinned(f"{server}/file")
    assert fetch(LOCOMO, file, tmp_path, lambda done, total: reports.append((done, total))) is FetchOutcome.DOWNLOADED
    assert (tmp_path / "set/data.bin").read_bytes() == CONTENT
    assert reports[-1] == (len(CONTENT), len(CONTENT))
    assert fetch(LOCOMO, file, tmp_path) is FetchOutcome.PRESENT
    assert Handler.seen == [None]
    assert sorted(path.name for path in (tmp_path / "set").iterdir()) == ["data.bin"]


@pytest.mark.parametrize(
    ("path", "have", "outcome"),
    [
        ("/file", CONTENT[:1000], FetchOutcome.RESUMED),
        ("/no-ranges", CONTENT[:1000], FetchOutcome.DOWNLOADED),
        ("/file", CONTENT, FetchOutcome.RESUMED),
    ],
)
def test_resumes_what_was_cut(server: str, tmp_path: Path, path: str, have: bytes, outcome: FetchOutcome) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set/data.bin.part").write_bytes(have)
    assert fetch(LOCOMO, pinned(server + path), tmp_path) is outcome
    assert Handler.seen == [f"bytes={len(have)}-"]
    assert (tmp_path / "set/data.bin").read_bytes() == CONTENT


def test_a_wrong_checksum_leaves_nothing(server: str, tmp_path: Path) -> None:
    file = replace(pinned(f"{server}/file"), sha256="0" * 64)
    with pytest.raises(DataError, match=r"expected 0000.*discarded"):
        fetch(LOCOMO, file, tmp_path)
    assert list((tmp_path / "set").iterdir()) == []


def test_a_spoilt_part_is_discarded_so_that_the_next_try_is_clean(server: str, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set/data.bin.part").write_bytes(b"not the beginning")
    with pytest.raises(DataError, match="discarded"):
        fetch(LOCOMO, pinned(f"{server}/file"), tmp_path)
    assert fetch(LOCOMO, pinned(f"{server}/file"), tmp_path) is FetchOutcome.DOWNLOADED


def test_a_refusal_says_what_to_do(server: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"403 Forbidden. Download http.*save it as .*data.bin.*or set MEMSYS_DATA"):
        fetch(LOCOMO, pinned(f"{server}/secret"), tmp_path)


def test_no_network_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot be reached \(ConnectError.*again to resume.*or set MEMSYS_DATA"):
        fetch(LOCOMO, pinned("http://127.0.0.1:9/file"), tmp_path, timeout=2)


@pytest.mark.parametrize(
    ("urls", "status"),
    [
        (["http://127.0.0.1:9/file"], EXIT_INCOMPLETE),
        (["http://127.0.0.1:9/file", ""], EXIT_ERROR),  # the second needs registration, whatever is repeated
    ],
)
def test_a_download_that_failed_is_incomplete_work(
    urls: list[str], status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = tuple(replace(pinned(url), name=f"{place}.bin") for place, url in enumerate(urls))
    monkeypatch.setitem(DATASETS, "locomo", replace(LOCOMO, files=files))
    assert main(["locomo", "--to", str(tmp_path)]) == status


def test_another_file_of_that_name_is_never_overwritten(server: str, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set/data.bin").write_bytes(b"mine")
    with pytest.raises(DataError, match=r"is there with sha256.*Move it away"):
        fetch(LOCOMO, pinned(f"{server}/file"), tmp_path)
    assert (tmp_path / "set/data.bin").read_bytes() == b"mine"


def test_files_without_address_need_registration(tmp_path: Path) -> None:
    info = replace(LOCOMO, how_to_get="Register first.")
    with pytest.raises(DataError, match=r"cannot be downloaded by a script. Register first"):
        fetch(info, pinned(""), tmp_path)


ROWS = [{"context": "0. Zoë lives in Rome.", "answers": [["Rome"]], "metadata": {"demo": None, "source": "sh"}}]


def parquet_file(folder: Path, url: str) -> PinnedFile:
    """Lay Parquet at the server's /file; the pin is that of the JSON array."""
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), folder / "rows.parquet")
    made = json.dumps(ROWS, ensure_ascii=False, indent=2).encode()
    return PinnedFile("set/rows.json", hashlib.sha256(made).hexdigest(), len(made), url, parquet=True)


def test_rows_published_as_parquet_become_the_pinned_json(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = parquet_file(tmp_path, f"{server}/file")
    monkeypatch.setattr(sys.modules[__name__], "CONTENT", (tmp_path / "rows.parquet").read_bytes())
    assert fetch(FACTCONSOLIDATION, file, tmp_path) is FetchOutcome.DOWNLOADED
    assert json.loads((tmp_path / "set/rows.json").read_text(encoding="utf-8")) == ROWS
    assert [path.name for path in (tmp_path / "set").iterdir()] == ["rows.json"]
    with pytest.raises(DataError, match=r"expected 0000.*discarded"):
        fetch(FACTCONSOLIDATION, replace(file, sha256="0" * 64), tmp_path / "second")


def test_what_is_no_parquet_is_discarded(server: str, tmp_path: Path) -> None:
    file = parquet_file(tmp_path, f"{server}/file")
    with pytest.raises(DataError, match=r"no Parquet file \(256000 bytes\); discarded"):
        fetch(FACTCONSOLIDATION, file, tmp_path)
    assert list((tmp_path / "set").iterdir()) == []
    with pytest.raises(DataError, match=r"with access, write its rows as a JSON array .*save it as .*rows\.json"):
        fetch(FACTCONSOLIDATION, replace(file, url=f"{server}/secret"), tmp_path)


def test_factconsolidation_is_fetched_from_the_hub() -> None:
    (file,) = FACTCONSOLIDATION.files
    assert file.parquet and file.url.startswith("https://huggingface.co/datasets/ai-hyz/MemoryAgentBench/resolve/main/")


def test_the_published_rows_survive_parquet_byte_for_byte(tmp_path: Path) -> None:
    (file,) = FACTCONSOLIDATION.files
    published = Path(os.environ.get("MEMSYS_DATA", "nowhere")) / file.name
    if not published.is_file():
        pytest.skip("the real file is not here: set MEMSYS_DATA")
    rows = json.loads(published.read_bytes())
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "rows.parquet")
    _rows_to_json(file, tmp_path / "rows.parquet")
    assert hashlib.sha256((tmp_path / "rows.parquet").read_bytes()).hexdigest() == file.sha256


def test_copies_are_checked_too(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(CONTENT)
    assert copy(LOCOMO, pinned(""), tmp_path, tmp_path / "to") is FetchOutcome.COPIED
    assert copy(LOCOMO, pinned(""), tmp_path, tmp_path / "to") is FetchOutcome.PRESENT
    (tmp_path / "data.bin").write_bytes(b"other")
    with pytest.raises(DataError, match="discarded"):
        copy(LOCOMO, pinned(""), tmp_path, tmp_path / "elsewhere")
    with pytest.raises(DataError, match=r"has no set/data.bin"):
        copy(LOCOMO, pinned(""), tmp_path / "to/set/no", tmp_path / "third")


def test_the_command_exits_with_2_where_a_file_is_missing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "eval", "data", "locomo", "--to", str(tmp_path), "--from", str(tmp_path)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "CC BY-NC 4.0" in result.stdout
    assert "has no locomo10.json" in result.stderr


def test_the_command_sums_up_and_says_once_how_to_register(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "eval", "data", "bioasq20", "--to", str(tmp_path / "new")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "0 of 6 files are in place" in result.stdout
    assert result.stderr.count("Register (free of charge)") == 1
    assert result.stderr.count("likewise (sha256") == 5
    assert "missing: bioasq10b/10B1_golden.json" in result.stderr
    assert not (tmp_path / "new").exists(), "an empty folder would look like a data set"


def test_no_network_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        fetch(LOCOMO, pinned("http://127.0.0.1:9/file"), tmp_path, timeout=2)
    assert list(tmp_path.iterdir()) == []
