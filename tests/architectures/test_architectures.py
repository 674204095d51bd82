"""Each paper's experiment from its command to its table, on its own backbone's architecture under real vLLM.

The weights are random, so replies are random texts within their schemas: what is tried is that every role is served,
that structured outputs and the switch for thinking reach the server, and that no answer reaches a table.
"""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from memsys.assets.catalog import asset_path
from memsys.errors import AssetError

pytestmark = [pytest.mark.serve, pytest.mark.timeout(3600)]

ROOT = Path(__file__).resolve().parents[2]
SERVE = ROOT / ".venv-serve" / "bin" / "python"
#: Whether Qwen3 thinks; the family's template begins a reply with an empty thought where it does not: four tokens.
SWITCH, NO_THOUGHT = "backbone.thinking_switch.chat_template_kwargs.enable_thinking", 4
#: How long a model that always thinks may do so. Random weights never end a thought: the server does.
BUDGET, THOUGHT = "backbone.thinking_switch.thinking_token_budget", 32
DEEPSEEK = "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B"
#: Tokens of a random reply in plain text.
TEXT = 16
#: All that a run with random weights gives to a table.
TIMES = {"retrieval_ms", "end_to_end_ms"}
#: Turns of the sample's first session that are kept.
TURNS = 4
#: What two cores need: one layer, and the CPU build's settings. Schemas leave no white space that would not end.
OUTPUTS = {"backend": "xgrammar", "disable_any_whitespace": True}
ON_A_CPU = (
    "backbone.engine.dtype=float32",  # bfloat16 is slow on processors that do not know it
    "backbone.engine.enforce_eager=true",
    "backbone.engine.chunked_prefill=false",
    "backbone.engine.max_num_batched_tokens=8192",
    "backbone.engine.cpu_kvcache_space_gb=1",
    "backbone.engine.cpu_reserved_cores=0",
    "backbone.engine.max_num_seqs=32",
    "backbone.context_length=8192",
)
#: Random replies neither end nor repeat an answer: all are sampled, and none stops the run.
RANDOM = (
    "schedule.warmup=0",
    "backbone.temperature=1.0",
    "unanswered.stop_share=null",
    "use_cache=false",
    "progress=lines",
)


@dataclass(frozen=True)
class Paper:
    """What is run of a paper.

    Attributes:
        experiment: its experiment.
        backbone: one of its open backbones.
        memory: its own system.
        settings: further overrides; what is swept makes several runs on one server.
        roles: of the memory, each of which must be asked.
        readers: roles of its reader.
        texts: which of all these reply in plain text.
        numbers: which reply with a number; JSON holds random ones, such as 1e99999, that are none to the parser.
        arguments: further ones of the server.
    """

    experiment: str
    backbone: str
    memory: str
    settings: Sequence[str]
    roles: frozenset[str]
    readers: frozenset[str]
    texts: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    arguments: Sequence[str] = ()


#: Roles of CLAG with either way to evolve.
CLAG = frozenset({"analyse", "router", "profile", "keywords", "selector"})

PAPERS: Mapping[str, Paper] = {
    "clag": Paper(
        "clag_locomo",
        "qwen3_06b",
        "clag",
        ("memory.buffer_size=3", "memory.evolution_calls=per_neighbour,joint", "timing=latency"),
        CLAG | {"evolve", "link", "rewrite"},
        frozenset({"default", "temporal", "adversarial", "list"}),
    ),
    "llama": Paper(
        "clag_locomo",
        "llama32_1b",
        "clag",
        ("memory.buffer_size=3", "memory.evolution_calls=joint"),
        CLAG | {"evolve"},
        frozenset({"default", "temporal", "adversarial", "list"}),
    ),
    "xmemory": Paper(
        "xmemory_locomo",
        "qwen3_8b",
        "xmemory",
        (
            "embedder=minilm",
            "memory.boundary.max_messages=2",
            "memory.semantic.min_cos=-1",
            "++memory.roles.extract.min_items=1",  # without a fact the next episode is not predicted
            "memory.semantic.mode=direct,predict_calibrate",
        ),
        frozenset({"boundary", "episode", "extract", "predict", "calibrate", "theme", "probe"}),
        frozenset({"default"}),
        frozenset({"predict", "theme", "probe", "default"}),
    ),
    "memfly": Paper(
        "memfly_locomo",
        "qwen3_8b",
        "memfly",
        ("memory.candidates.min_cosine=-1", "memory.roles.sufficient.malformed_retries=9", f"{SWITCH}=false,true"),
        frozenset({"ingest", "update", "intent", "draft", "sufficient", "subquery"}),
        frozenset({"default", "temporal", "adversarial"}),
        frozenset({"draft", "subquery"}),
        frozenset({"update", "sufficient"}),
    ),
    "sage": Paper(
        "sage_locomo",
        "qwen25_3b",
        "sage",
        (
            "embedder=minilm",
            "memory.batch_size=2",
            "memory.delta=1.0",
            "++memory.roles.extract.min_items=1",  # else a random list is mostly empty, and nothing is merged
        ),
        frozenset({"extract", "merge"}),
        frozenset({"default"}),
        frozenset({"merge", "default"}),
    ),
    "deepseek": Paper(  # it always thinks in chats, as SAGE asks it; in the raw prompts of CLAG it does not
        "sage_locomo",
        "deepseek_r1_15b",
        "sage",
        (
            "embedder=minilm",
            "memory.batch_size=2",
            "memory.delta=1.0",
            "++memory.roles.extract.min_items=1",
            "backbone.thinking=on",
            f"backbone.thinking_tokens={THOUGHT + 1}",  # with the mark that ends it
            f"+{BUDGET}={THOUGHT}",
        ),
        frozenset({"extract", "merge"}),
        frozenset({"default"}),
        frozenset({"merge", "default"}),
        arguments=("--reasoning-parser", "deepseek_r1"),
    ),
}


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of the architectures, in place of ``models/``; skips where there is no serving environment."""
    try:
        asset_path("qwen25_coder_05b")
    except AssetError as error:
        pytest.skip(str(error))
    if not SERVE.is_file():
        pytest.skip("there is no .venv-serve: make serve-env")
    folder = tmp_path_factory.mktemp("models")
    subprocess.run([SERVE, Path(__file__).with_name("stage.py"), folder], check=True)
    return folder


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first turns of the sample, with the questions that they answer."""
    (sample,) = json.loads((ROOT / "datasets/locomo/sample.json").read_text(encoding="utf-8"))
    conversation = sample["conversation"]
    kept = {key: value for key, value in conversation.items() if not key.startswith("session_")}
    kept |= {key: conversation[key] for key in ("session_1", "session_1_date_time")}
    kept["session_1"] = kept["session_1"][:TURNS]
    turns = {turn["dia_id"] for turn in kept["session_1"]}
    asked = [one for one in sample["qa"] if set(one.get("evidence") or [""]) <= turns]
    path = tmp_path_factory.mktemp("data") / "locomo.json"
    path.write_text(json.dumps([{**sample, "conversation": kept, "qa": asked}]), encoding="utf-8")
    return path


def bounds(paper: Paper) -> Iterator[str]:
    """Return settings that end random replies: short strings and lists, and few tokens of plain text."""
    for group, roles in (("memory", paper.roles), ("reader", paper.readers)):
        for role in sorted(roles):
            yield f"{group}.roles.{role}.max_tokens={TEXT if role in paper.texts else 256}"
            yield f"++{group}.roles.{role}.max_chars=16"
            yield f"++{group}.roles.{role}.max_items=2"


def run(paper: Paper, models: Path, data: Path, out: Path, *settings: str) -> list[Path]:
    """Run an experiment's command; returns the folders of its runs."""
    layers = json.dumps({"num_hidden_layers": 1})
    arguments = ["--load-format", "dummy", "--hf-overrides", layers, "--structured-outputs-config", json.dumps(OUTPUTS)]
    arguments += paper.arguments
    overrides = [
        f"+experiment={paper.experiment}",
        f"backbone={paper.backbone}",
        "backbone/engine=vllm_dummy",
        f"backbone.engine.extra_args={json.dumps(arguments)}",
        f"dataset.path={data}",
        f"runs_dir={out}",
        *ON_A_CPU,
        *RANDOM,
        *bounds(paper),
        *settings,
    ]
    subprocess.run([sys.executable, "-m", "eval.run", "-m", *overrides], check=True, cwd=ROOT, env=environment(models))
    return sorted(path.parent for path in out.glob("*/*/run.json"))


def environment(models: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "MEMSYS_MODELS": str(models), "MEMSYS_VLLM_PYTHON": str(SERVE), "HF_HUB_OFFLINE": "1"}


def rows(folders: Sequence[Path], name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for folder in folders for line in (folder / name).read_text("utf-8").splitlines()]


@pytest.mark.parametrize("name", PAPERS)
def test_a_paper_from_command_to_table(name: str, models: Path, data: Path, tmp_path: Path) -> None:
    paper = PAPERS[name]
    folders = run(paper, models, data, tmp_path / "runs", f"memory={paper.memory}", *paper.settings)
    calls = rows(folders, "calls.jsonl")
    assert {call["role"] for call in calls} >= paper.roles
    held = [call for call in calls if call["role"] not in paper.texts]
    assert {call["finish_reason"] for call in held} == {"stop"}
    assert not [call for call in held if call["malformed"] and call["role"] not in paper.numbers]
    for folder in folders:
        record = json.loads((folder / "run.json").read_text("utf-8"))
        assert record["status"] == "complete"
        assert record["model"]["engine"]["random_weights"] is True
    if f"{SWITCH}=false,true" in paper.settings:
        tokens = {thinks(folder): first_prompt(folder, "ingest") for folder in folders}
        assert tokens[False] - tokens[True] == NO_THOUGHT
    if f"+{BUDGET}={THOUGHT}" in paper.settings:
        check_thoughts(folders[0], Tokenizer.from_file(str(models / DEEPSEEK / "tokenizer.json")))
    tables = [
        "--paper",
        paper.experiment.partition("_")[0],
        "--runs",
        str(tmp_path / "runs"),
        "--out",
        str(tmp_path / "tables"),
    ]
    subprocess.run([sys.executable, "-m", "eval.tables", *tables], check=True, cwd=ROOT, env=environment(models))
    found = {row["metric"] for path in (tmp_path / "tables").glob("*.csv") for row in measured(path)}
    assert found == (TIMES if "timing=latency" in paper.settings else set())


def check_thoughts(folder: Path, tokenizer: Tokenizer) -> None:
    """Hold that every answer was generated with a thought before it, and is what follows the thought."""
    made = [call["completion_tokens"] for call in rows([folder], "calls.jsonl") if call["role"] == "default"]
    assert set(made) == {TEXT + THOUGHT + 1}
    answers = [row["raw"] for row in rows([folder], "answers.jsonl")]
    assert len(answers) == len(made) and not [text for text in answers if "think>" in text]
    assert max(len(tokenizer.encode(text).ids) for text in answers) < THOUGHT


def thinks(folder: Path) -> bool:
    """Return which way a run set the switch for thinking."""
    backbone = json.loads((folder / "run.json").read_text("utf-8"))["config"]["backbone"]
    return bool(backbone["thinking_switch"]["chat_template_kwargs"]["enable_thinking"])


def first_prompt(folder: Path, role: str) -> int:
    """Return the tokens of a role's prompt for the first turn."""
    asked = [call for call in rows([folder], "calls.jsonl") if call["role"] == role and call["attempt"] == 0]
    return int(min(asked, key=lambda call: call["key"])["prompt_tokens"])


def measured(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table that have a measured number."""
    with path.open(encoding="utf-8", newline="") as stream:
        return [row for row in csv.DictReader(stream) if row.get("measured")]
