"""What is fetched is pinned: packages by the checksum of each file, models and data sets of the hub by commit."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from eval.config.compose import choice_settings
from eval.config.presets import CONF, preset_names
from eval.loaders import hotpotqa_files
from memsys.assets.catalog import CATALOG
from scripts.make_package_env import install

ROOT = Path(__file__).resolve().parents[4]
COMMIT = re.compile(r"[0-9a-f]{40}")
HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


DOCS = "requirements-docs.lock"
SERVERS = "tests/servers/requirements.lock"
PACKAGES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "baselines/packages").glob("*/requirements.lock"))


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-serve-cpu.lock", SERVERS, DOCS, *PACKAGES])
def test_every_package_has_a_version_and_checksums(name: str) -> None:
    text = (ROOT / name).read_text()
    blocks = re.split(r"^(?=[A-Za-z0-9])", "".join(re.findall(r"^(?!#).*\n", text, re.MULTILINE)), flags=re.MULTILINE)
    pins = [block for block in blocks if block.strip()]
    assert len(pins) > (20 if name in (DOCS, *PACKAGES) else 100)
    for pin in pins:
        assert re.fullmatch(
            r"[\w.-]+==[\w.+-]+ \\\n( +--hash=sha256:[0-9a-f]{64} \\\n)* +--hash=sha256:[0-9a-f]{64}\n", pin
        )
    assert "://" not in text and "index-url" not in text


def test_a_package_s_environment_is_installed_by_checksum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, check: asked.append(command))
    install(tmp_path / "env", tmp_path / "requirements.lock", "python3")
    assert PACKAGES and "--require-hashes" in asked[-1] and "--no-deps" in asked[-1]


def test_the_environment_is_installed_by_checksum() -> None:
    """Of torch the version alone is pinned: its CPU build is another file than PyPI has, which needs CUDA."""
    named = re.findall(r"^torch\S*", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert not named and re.search(r"^torch==[\d.]+$", (ROOT / "requirements-torch.txt").read_text(), re.MULTILINE)
    assert "--no-deps --require-hashes --requirement requirements.lock" in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("name", preset_names(CONF / "backbone"))
def test_models_of_the_hub_are_pinned_by_commit(name: str) -> None:
    engine = choice_settings("backbone", name).get("engine") or {}
    if HUB_NAME.fullmatch(str(engine.get("model", ""))):
        assert COMMIT.fullmatch(str(engine.get("revision"))), engine


def test_a_commit_belongs_to_one_model() -> None:
    text = "".join(path.read_text() for path in (CONF / "backbone").glob("*.yaml"))
    found = set(re.findall(r"model: ([\w.-]+/[\w.-]+)(?:, |\n +)revision: ([0-9a-f]{40})", text))
    assert len({model for model, _ in found}) == len({commit for _, commit in found}) == len(found) >= 11


def test_assets_and_the_hubs_data_set_are_pinned() -> None:
    """One file's commit and checksum are not known: they are noted when it is fetched."""
    loose = {asset.name for asset in CATALOG.values() if asset.hub and not COMMIT.fullmatch(asset.hub.revision)}
    assert loose == {"deepseek_r1_15b_gguf"}
    assert COMMIT.fullmatch(hotpotqa_files.HUB_REVISION)


def test_no_preset_names_a_model_of_the_hub_elsewhere() -> None:
    for group in ("embedder", "memory", "judge", "scoring"):
        for path in (CONF / group).rglob("*.yaml"):
            for key, value in _leaves(yaml.safe_load(path.read_text(encoding="utf-8"))):
                assert key not in ("model", "bertscore_model") or not HUB_NAME.fullmatch(str(value)), (path, value)


def _leaves(node: object) -> list[tuple[str, object]]:
    if not isinstance(node, dict):
        return []
    pairs = node.items()
    return [
        leaf for key, value in pairs for leaf in (_leaves(value) if isinstance(value, dict) else [(str(key), value)])
    ]
