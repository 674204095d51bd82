"""A key that no file and no output may hold, put wherever a key can be; every file and line is searched for it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from eval.config.presets import CONF
from memsys.credentials import MASK, bearer, redacted, without_secrets
from memsys.errors import ConfigError, MemsysError
from tests.support.stub_process import attached, stub_server

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-unique7f3a9c1e5b"
BASE = ("memory=rag", "embedder=hashing", "score=false", "dataset.limit_questions=2")
VLLM = ("backbone=smollm2_135m_vllm", "backbone/engine=vllm_attached")
HOSTED = ("embedder=text_embedding_3_small", "mode=retrieval_only", "embedder.retries=0")

PLACES = {
    "user of vLLM's address": (*BASE, *VLLM, f"backbone.engine.urls=[http://user:{KEY}@127.0.0.1:9]"),
    "user alone": (*BASE, *VLLM, f"backbone.engine.urls=[http://{KEY}@127.0.0.1:9]"),
    "query of vLLM's address": (*BASE, *VLLM, f'backbone.engine.urls=["http://127.0.0.1:9?key={KEY}"]'),
    "urls as text": (*BASE, *VLLM, f'backbone.engine.urls="http://user:{KEY}@127.0.0.1:9"'),
    "user of llama.cpp's address": (
        *BASE, "backbone=smollm2_135m_server", f"backbone.engine.urls=[http://u:{KEY}@127.0.0.1:9]",
    ),
    "user of a hosted model's address": (
        *BASE, "backbone=gpt4o_mini", f"backbone.engine.base_urls=[https://u:{KEY}@127.0.0.1:9/v1]",
    ),
    "query of a hosted model's address": (
        *BASE, "backbone=gpt4o_mini", f'backbone.engine.base_urls=["https://127.0.0.1:9/v1?api_key={KEY}"]',
    ),
    "address that is none": (
        *BASE, "backbone=gpt4o_mini", f'backbone.engine.base_urls=["ftp://u:{KEY}@127.0.0.1:9/v1"]',
    ),
    "port that is none": (
        *BASE, "backbone=gpt4o_mini", f'backbone.engine.base_urls=["https://127.0.0.1:{KEY}/v1"]',
    ),
    "name of the variable": (*BASE, "backbone=gpt4o_mini", f"backbone.engine.api_key_env={KEY}"),
    "user of the embedder's address": (*BASE, *HOSTED, f"embedder.base_url=https://u:{KEY}@127.0.0.1:9/v1"),
    "query of the embedder's address": (*BASE, *HOSTED, f'embedder.base_url="https://127.0.0.1:9/v1?key={KEY}"'),
    "the embedder's variable": (*BASE, *HOSTED, f"embedder.api_key_env={KEY}"),
    "arguments of a server": (
        *BASE, "backbone=smollm2_135m_vllm", f"backbone.engine.extra_args=[--api-key,{KEY}]",
    ),
    "one argument of a server": (
        *BASE, "backbone=smollm2_135m_vllm", f'backbone.engine.extra_args=["--api-key={KEY}"]',
    ),
    "a header in the request": (
        *BASE, "backbone=gpt4o_mini", f"+backbone.thinking_switch.authorization={KEY}",
    ),
    "arguments of a server in a sweep": (
        "-m", *BASE, "backbone=smollm2_135m_vllm", f"backbone.engine.extra_args=[--api-key,{KEY}]", "seed=0,1",
    ),
    "variable of a sweep": ("-m", *BASE, "backbone=gpt4o_mini", f"backbone.engine.api_key_env={KEY}", "seed=0,1"),
    "variables of a sweep": ("-m", *BASE, "backbone=gpt4o_mini", f"backbone.engine.api_key_env=A_KEY,{KEY}"),
    "variable of one cell": (
        "-m", *BASE, "backbone=gpt4o_mini", f"'backbone.engine={{api_key_env:{KEY}}}'", "seed=0,1"),
    "a fragment": (*BASE, "backbone=gpt4o_mini", f"backbone.engine.base_urls=[http://127.0.0.1:9/v1#{KEY}]"),
    "a quoted fragment": ("-m", *BASE, *VLLM, f'backbone.engine.urls=["http://127.0.0.1:9#{KEY}"]', "seed=0,1"),
    "a user without a scheme": ("-m", *BASE, *VLLM, f'backbone.engine.urls=["u:{KEY}@127.0.0.1:9"]', "seed=0,1"),
    "the name of a model": ("-m", *BASE, "backbone=gpt4o_mini", f"backbone.model={KEY}", "seed=0,1"),
    "what a batch job sets": ("-m", *BASE, f"+hydra.job.env_set.OPENAI_API_KEY={KEY}", "seed=0,1"),
    "cells of a sweep": (
        "-m", *BASE, *VLLM, f"backbone.engine.urls=[http://user:{KEY}@127.0.0.1:9]", "seed=0,1",
    ),
}  # fmt: skip


def run(tmp_path: Path, *overrides: str, **environment: str) -> tuple[int, str]:
    """Run in an empty folder; returns status and output."""
    places = [f"runs_dir={tmp_path / 'runs'}", f"cache_dir={tmp_path / 'cache'}"]
    done = subprocess.run(
        [sys.executable, "-m", "eval.run", *overrides, *places], cwd=ROOT, env={**os.environ, **environment},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def assert_nowhere(folder: Path, output: str, key: str = KEY) -> None:
    assert key not in output, output
    for path in folder.rglob("*"):
        assert key not in path.name
        assert not path.is_file() or key.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("place", PLACES)
def test_a_key_in_a_setting_is_refused_and_stands_nowhere(tmp_path: Path, place: str) -> None:
    code, output = run(tmp_path, *PLACES[place], OPENAI_API_KEY="")
    assert code in (2, 3) and "Traceback" not in output, output
    assert_nowhere(tmp_path, output)


def test_a_key_that_is_used_stands_nowhere(tmp_path: Path) -> None:
    with stub_server(delay=0.0) as url:
        settings = (*BASE, *attached(url), "backbone.engine.api_key_env=MEMSYS_TEST_KEY")
        code, output = run(tmp_path, *settings, MEMSYS_TEST_KEY=KEY, VLLM_API_KEY=KEY)
    assert code == 0, output
    assert list(tmp_path.rglob("run.json"))
    assert_nowhere(tmp_path, output)


@pytest.mark.parametrize("key", [f"{KEY}\nX-Injected: 1", f"{KEY}\r\n{KEY}", f"{KEY}\x07x", "ключ"])
@pytest.mark.parametrize("settings", [(*BASE, "backbone=gpt4o_mini"), (*BASE, *HOSTED)], ids=["model", "embedder"])
def test_a_key_that_no_header_can_carry_is_one_message(tmp_path: Path, settings: tuple[str, ...], key: str) -> None:
    code, output = run(tmp_path, *settings, OPENAI_API_KEY=key)
    assert code == 2 and "OPENAI_API_KEY" in output and "in one line" in output and "Traceback" not in output, output
    assert_nowhere(tmp_path, output)


def test_an_embedder_that_is_refused_is_one_message(tmp_path: Path) -> None:
    with stub_server(delay=0.0) as url:
        settings = (*BASE, *HOSTED, f"embedder.base_url={url}/nowhere")
        code, output = run(tmp_path, *settings, OPENAI_API_KEY=KEY, PYTHONASYNCIODEBUG="0")
    assert code in (2, 3) and "gave no embeddings" in output and "Traceback" not in output, output
    assert "exception was never retrieved" not in output
    assert_nowhere(tmp_path, output)


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        (f"http://user:{KEY}@host/v1", f"http://{MASK}@host/v1"),
        (f"https://{KEY}@host", f"https://{MASK}@host"),
        (f"https://h/v1?key={KEY}&api-version=2024-06", f"https://h/v1?key={MASK}&api-version=2024-06"),
        (f"--api-key {KEY}", f"--api-key {MASK}"),
        (f"--api-key={KEY} --port 1", f"--api-key={MASK} --port 1"),
        (f"+backbone.engine.api_key={KEY}", f"+backbone.engine.api_key={MASK}"),
        (f"api_key_env={KEY} seed=1", f"api_key_env={MASK} seed=1"),
        (f"api_key_env=A_KEY,{KEY},seed=1", f"api_key_env=A_KEY,{MASK},seed=1"),
        (f"{{api_key_env:{KEY},base_urls:[a]}}", f"{{api_key_env:{MASK},base_urls:[a]}}"),
        ("m(api_key_env=None, n=1) api_key_env=A_KEY. `api_key_env=B`",) * 2,
        ("api_key_env=[A_KEY,B_KEY] api_key_env=null", "api_key_env=[A_KEY,B_KEY] api_key_env=null"),
        (f"urls=[http://h/v1#{KEY}]", f"urls=[http://h/v1#{MASK}]"),
        (f"http\\://u\\:{KEY}@h", f"http\\://{MASK}@h"),
        ("user:hunter2@10.0.0.1:8000/v1", f"{MASK}@10.0.0.1:8000/v1"),
        ("model=sk-proj-abcdefghijkl", f"model={MASK}"),
        ("git+https://github.com/org/name@4f2a1c", "git+https://github.com/org/name@4f2a1c"),
        ("mail a@b.org at 1:56 pm", "mail a@b.org at 1:56 pm"),
        (f"Authorization: Bearer {KEY}", f"Authorization: Bearer {MASK}"),
        (f'{{"api_key": "{KEY}"}}', f'{{"api_key": {MASK}}}'),
        ("max_tokens=5 token_counter=server", "max_tokens=5 token_counter=server"),
        ("[0].qa: duplicate key 'a'", "[0].qa: duplicate key 'a'"),
        ("Basic authentication is off", "Basic authentication is off"),
    ],
)
def test_redaction_by_hand(text: str, safe: str) -> None:
    assert redacted(text) == safe


def test_values_of_the_environments_keys_are_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", KEY)
    monkeypatch.setenv("SOME_TOKEN", "short")
    assert redacted(f"wrong key {KEY}, short") == f"wrong key {MASK}, short"


@pytest.mark.parametrize("path", sorted(CONF.rglob("*.yaml")), ids=lambda path: str(path.relative_to(CONF)))
def test_no_setting_of_ours_is_taken_for_a_key(path: Path) -> None:
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    settings.pop("hydra", None)  # its help says KEY=VALUE
    assert without_secrets(settings) == settings


def test_hashes_do_not_depend_on_the_key() -> None:
    from eval.sweep.cells import SweepCell

    def key(secret: str) -> str:
        return SweepCell((f"backbone.engine.urls=[http://u:{secret}@h]", "seed=1"), Path("x"), None).key

    assert key(KEY) == key("other") and KEY not in SweepCell((f"x=http://u:{KEY}@h",), Path("x"), None).label
    tree = {"engine": {"extra_args": ["--api-key", KEY], "header": {"authorization": KEY}}}
    assert without_secrets(tree) == json.loads(json.dumps(tree).replace(KEY, MASK))


def test_a_ticket_holds_no_key(tmp_path: Path) -> None:
    from eval.sweep.job_status import TicketWriter

    with pytest.raises(MemsysError), TicketWriter(tmp_path, "cell", [f"urls=[http://u:{KEY}@h]"]):
        raise ConfigError(f"http://u:{KEY}@h does not answer")
    assert_nowhere(tmp_path, "")
    assert MASK in (tmp_path / "cell.json").read_text()


def test_a_key_with_a_line_break_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", f"{KEY}\nmore")
    with pytest.raises(ConfigError, match="SOME_KEY") as found:
        bearer("SOME_KEY", "x", "y")
    assert KEY not in str(found.value)


def test_a_key_in_a_file_of_a_sweep_is_refused_before_it_is_recorded(tmp_path: Path) -> None:
    own = tmp_path / "conf" / "experiment" / "mine.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(f"# @package _global_\nbackbone:\n  engine:\n    api_key_env: {KEY}\n")
    runs = tmp_path / "out"
    runs.mkdir()
    code, output = run(runs, "-m", "--config-dir", str(own.parents[1]), "+experiment=mine", *BASE,
                       "backbone=gpt4o_mini", "seed=0,1")  # fmt: skip
    assert code == 2 and "the settings of backbone hold a key or password" in output, output
    assert_nowhere(runs, output)


def test_tracebacks_and_logs_hold_no_key() -> None:
    code = (
        "import logging, os\nfrom eval.commands.commands import start\n"
        "def main():\n"
        "    try:\n        raise ValueError('http://u:' + os.environ['X_KEY'] + '@h')\n"
        "    except ValueError:\n        logging.exception('lost')\n"
        "    raise RuntimeError('api_key=' + os.environ['X_KEY'] + '1')\n"
        "start(main)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "X_KEY": KEY}, text=True,
                          capture_output=True, timeout=60, check=False)  # fmt: skip
    assert done.returncode == 1 and done.stderr.count("Traceback") == 2, done.stderr
    assert KEY not in done.stderr and MASK in done.stderr
