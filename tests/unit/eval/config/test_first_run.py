"""A run that names no backbone: which model it has, and how that comes here."""

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from eval.commands import fetching
from eval.commands.fetching import fetch_missing
from eval.config.first_run import SETTINGS, chosen_model, is_here, missing_models, model_file
from eval.config.presets import read_settings
from eval.running.composed import compose_plan
from memsys.assets.catalog import find_asset
from memsys.assets.contract import Asset
from memsys.assets.paths import ROOT, models_dir
from memsys.errors import AssetError

CHOSEN = ("backbone=qwen25_coder_05b", "reader=clag_small")


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMSYS_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


def put(name: str, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / find_asset(name).destination).touch()


def test_a_command_line_without_a_model_gets_one_with_bounded_replies(empty: Path) -> None:
    assert chosen_model(["memory=rag", "dataset=locomo_sample"]) == CHOSEN
    assert chosen_model(["reader=locomo", "seed=1"]) == CHOSEN[:1]
    assert chosen_model(["reader.roles.default.max_tokens=5"]) == CHOSEN[:1]
    plan = compose_plan(CHOSEN)
    assert plan.backbone is not None and plan.backbone.name == "qwen25_coder_05b"
    assert {role["max_tokens"] for role in plan.settings["reader"]["roles"].values()} == {96}


@pytest.mark.parametrize(
    "named",
    ["backbone=endpoint", "backbone=smollm2_135m", "backbone.temperature=0", "+experiment=quickstart",
     "+sweep=clag_table2", "mode=retrieval_only"],
)  # fmt: skip
def test_what_names_a_model_or_needs_none_stays_as_it_is(named: str) -> None:
    assert chosen_model(["memory=rag", named]) == ()


def test_the_model_that_is_here_goes_before_one_that_must_be_fetched(empty: Path) -> None:
    put("qwen25_coder_15b", empty)
    assert chosen_model([])[0] == "backbone=qwen25_coder_15b"
    put("qwen25_coder_05b", empty)
    assert chosen_model([]) == CHOSEN


def test_the_first_run_names_choices_that_load_a_file() -> None:
    settings = read_settings(SETTINGS)
    assert all(model_file(name) for name in settings["backbones"])
    assert f"reader={settings['reader']}" == CHOSEN[1]


def test_what_is_missing_is_the_model_the_embedder_and_the_corpora(empty: Path) -> None:
    names = [asset.name for asset in missing_models("qwen25_coder_05b")]
    assert names == ["qwen25_coder_05b", "all_minilm_l6_v2", "punkt_tab", "wordnet"]
    put("qwen25_coder_05b", empty)
    assert is_here(find_asset("qwen25_coder_05b"))
    assert len(missing_models("qwen25_coder_05b")) == 3


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []

    def take(asset: Asset) -> bool:
        names.append(asset.name)
        return True

    monkeypatch.setattr(fetching, "fetch", take)
    return names


@pytest.mark.parametrize(
    ("answer", "takes"), [("\n", True), ("y\n", True), ("Yes\n", True), ("n\n", False), ("", False)]
)
def test_a_terminal_is_asked(
    answer: str, takes: bool, fetched: list[str], empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", said := Terminal())
    missing = missing_models("qwen25_coder_05b")
    if takes:
        fetch_missing(missing, agreed=False)
    else:
        with pytest.raises(AssetError, match="--yes"):
            fetch_missing(missing, agreed=False)
    assert said.getvalue().endswith("Fetch 620 MB? [Y/n] ") and "qwen25_coder_05b (491 MB)" in said.getvalue()
    assert fetched == ([asset.name for asset in missing] if takes else [])


def test_what_is_agreed_is_fetched_and_nothing_where_all_is_here(fetched: list[str], empty: Path) -> None:
    fetch_missing([], agreed=False)
    assert fetched == []
    fetch_missing([find_asset("wordnet")], agreed=True)
    assert fetched == ["wordnet"]


def memsys(folder: Path, *arguments: str, terminal: bool) -> tuple[int, str]:
    """Run a command without any model; returns status and standard error, of a terminal where `n` is typed."""
    environment = {**os.environ, "MEMSYS_MODELS": str(folder / "models")}
    command = [sys.executable, "-m", "eval", *arguments, f"runs_dir={folder / 'runs'}"]
    if not terminal:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stderr
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        said = b""
        while b"[Y/n]" not in said:
            said += os.read(ours, 1000)
        os.write(ours, b"n\n")
        try:
            while part := os.read(ours, 1000):
                said += part
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        return process.wait(), said.decode()


@pytest.mark.parametrize("terminal", [True, False])
def test_a_newcomers_run_says_what_it_would_fetch(terminal: bool, tmp_path: Path) -> None:
    code, said = memsys(tmp_path, "run", "memory=rag", "dataset=locomo_sample", terminal=terminal)
    said = " ".join(said.split())
    assert (
        code == 2
        and "qwen25_coder_05b (491 MB)" in said
        and "add --yes to fetch it, as `memsys models` does, or choose another" in said
    )
    assert not (tmp_path / "runs" / "adhoc").exists() or not list((tmp_path / "runs" / "adhoc").iterdir())


def test_mistakes_are_said_before_anything_is_fetched(tmp_path: Path) -> None:
    code, said = memsys(tmp_path, "run", "seed=one", terminal=False)
    assert code == 2 and "seed='one' must be a whole number" in said and "--yes" not in said


@pytest.mark.real_model
@pytest.mark.skipif(not is_here(find_asset("qwen25_coder_05b")), reason="memsys models qwen25_coder_05b")
def test_the_first_run_has_this_model_by_name(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "eval", "run", "memory=bm25_turn", "dataset=locomo_sample", "dataset.limit_questions=2",
         f"runs_dir={tmp_path}", f"cache_dir={tmp_path / 'cache'}"],
        cwd=ROOT, env={**os.environ, "MEMSYS_MODELS": str(models_dir())}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "adhoc").glob("bm25_turn-qwen25_coder_05b-s0-*")
    record = read_settings(run / "run.json")
    assert record["config"]["backbone"]["model"] == "Qwen2.5-Coder-0.5B-Instruct"
    assert record["config"]["reader"]["name"] == "clag_small"
