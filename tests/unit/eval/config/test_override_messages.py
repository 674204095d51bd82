"""What a user reads who mistypes a choice, a setting or an option: a few lines that say what was meant, status 2."""

import subprocess
import sys
from pathlib import Path

import pytest

from eval.commands.suggestions import close_names, did_you_mean
from eval.compare import main as compare
from eval.config.command_line import split
from eval.config.compose import compose, config_loader
from eval.config.overrides import check_command_line, explained
from eval.sweep.numbering import sweep_jobs
from memsys.errors import ConfigError

ROOT = Path(__file__).resolve().parents[4]
_ADDED = "+reader.roles.default.prompt=a.txt"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["+seeds=3"], ["no setting seeds", "did you mean seed="]),
        (["+limit=5"], ["no setting limit", "or dataset.limit_questions=?"]),
        (["memory=clga"], ["no memory/clga", "did you mean clag", "--help memory"]),
        (["memory=rag,clga", "-m"], ["no memory/clga", "did you mean clag"]),
        (["reader=clagg"], ["no reader/clagg", "clag"]),
        (["+sweep=base/paper_table"], ["sweep/base/paper_table is a part of other choices", "--help sweep"]),
        (["backbone=base/common"], ["backbone/base/common is a part of other choices", "--help backbone"]),
        (["-m", "backbone=smollm2_135m,engine/vllm"], ["backbone/engine/vllm is a part of other choices"]),
        (["scoring=zzz"], ["no scoring/zzz", "choose one of", "minilm"]),
        (["memory=rag,", "-m"], ["nothing follows the comma", "write memory=rag"]),
        (["seed=[1"], ["cannot be read", "quotes"]),
        (["rag"], ["did you mean memory=rag?"]),
        (["--memory", "rag"], ["--memory is not an option", "write memory=rag"]),
        (["--multirum"], ["did you mean --multirun?"]),
        (["memory=null"], ["memory is chosen by a name, as in memory=NAME"]),
        (["+memory=rag"], ["chosen already", "write memory=rag"]),
        (["experiment=quickstart"], ["write +experiment=quickstart"]),
        (["+experiment=quikstart"], ["no experiment/quikstart", "did you mean quickstart?"]),
        (["+schedule.warmups=3"], ["schedule has no setting warmups", "did you mean schedule.warmup?"]),
        (["+seed=3"], ["there already", "write seed=3"]),
        (["+memory.nope=1"], ["memory has no setting nope"]),
        (["-m", "memroy.k=1,2"], ["no memroy", "memory.k"]),
        (["memory=rag,amem"], ["several values", "-m"]),
        (["~seed"], ["every run needs seed", "seed=VALUE"]),
        (["~memory"], ["every run needs memory"]),
        (["seed=range(0)", "-m"], ["nothing to run"]),
        (["seed=range(0,2,0)", "-m"], ["seed=range(0,2,0)", "must not be zero"]),
        (["memory=glob(zzz*)", "-m"], ["memory=glob(zzz*)", "nothing to run"]),
        (["memory=glob(bm25*)", "memory.nope=1", "-m"], ["memory has no setting nope"]),
        (["memory=rag,amem", "memory.k=1,2", "+x=1"], ["no setting x"]),
        (["backbone/engine=vllm_attached", "seed=1,2"], ["the chosen backbone has no engine"]),
        (["memory=rag,amem", "seed=1,2", "++seed2=1"], ["no setting seed2", "did you mean seed="]),
    ],
)  # fmt: skip
def test_what_does_not_exist_is_refused_before_hydra_runs(arguments: list[str], words: list[str]) -> None:
    with pytest.raises(ConfigError) as raised:
        check_command_line(arguments)
    _is_clear(str(raised.value), words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["memroy=rag"], ["no setting memroy", "did you mean memory=?"]),
        (["data_dir=x"], ["no setting data_dir", "did you mean dataset.data_dir=?"]),
        (["backbone=endpoint", "backbone.base_url=http://h/v1"], ["did you mean backbone.engine.base_urls?"]),
        (["memory.kk=3"], ["memory has no setting kk", "did you mean memory.k?"]),
        (
            ["reader.roles.default.prompt=my.txt"],
            ["leaves prompt at its default", "+reader.roles.default.prompt=my.txt"],
        ),
        (["reader.roles.default.promt=my.txt"], ["reader.roles.default has no setting promt"]),
        (["reader.roles.default.temperatur=1"], ["did you mean reader.roles.default.temperature"]),
        (["~sede"], ["no setting sede", "did you mean seed"]),
        (["backbone/engine=vllm_attached"], ["the chosen backbone has no engine"]),
    ],
)
def test_what_hydra_refuses_is_said_in_our_words(arguments: list[str], words: list[str]) -> None:
    check_command_line(arguments)
    message = str(explained(arguments, ValueError("To append to your config use +memroy=rag")))
    _is_clear(message, words)


def _is_clear(message: str, words: list[str]) -> None:
    assert len(message.splitlines()) <= 5
    assert "append" not in message and "struct" not in message
    for word in words:
        assert word in message, message


def test_a_choice_of_a_package_that_nobody_named_is_answered_with_how_to_name_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was answered with the choices of memsys alone."""
    hint = "a package of your own is named in MEMSYS_PLUGINS (docs/plugins.md)"
    monkeypatch.delenv("MEMSYS_PLUGINS", raising=False)
    with pytest.raises(ConfigError) as raised:
        check_command_line(["memory=my_notes"])
    assert "there is no memory/my_notes" in str(raised.value) and str(raised.value).endswith(hint)
    monkeypatch.setenv("MEMSYS_PLUGINS", "eval.lens")
    with pytest.raises(ConfigError) as raised:
        check_command_line(["memory=my_notes"])
    assert hint not in str(raised.value)


def test_what_hydra_says_beyond_that_comes_without_the_advice_to_add() -> None:
    error = ValueError("Interpolation key 'x.y' not found\nTo append use +x\n full_key: a\nobject_type=dict")
    assert str(explained([], error)) == "the configuration cannot be composed: Interpolation key 'x.y' not found"


def test_a_value_that_is_missing_is_named_with_what_to_add() -> None:
    error = ValueError("Missing mandatory value: backbone.model\n    full_key: backbone.engine.model")
    assert str(explained(["backbone=endpoint"], error)) == "backbone.model has no value: add backbone.model=VALUE"


@pytest.mark.parametrize(
    "arguments",
    [
        ["memory=rag", "seed=1"],
        ["+experiment=quickstart"],
        ["-m", "+sweep=clag_table1"],
        ["-m", "memory=rag,amem", "seed=0,1"],
        ["+backbone@second=gpt41_mini", "second_roles=[probe]"],
        ["+backbone.thinking_switch.enable=x"],
        ["+reader.roles.default.prompt=a.txt"],
        ["hydra/launcher=joblib", "-m", "memory=rag", "+hydra.launcher.new=1"],
        ["+experiment=quickstart", "memory=rag_quickstart,no_memory"],
        ["++seed=3"],
        ["~dataset.labels"],
        ["dataset.conversations=[conv-26]"],
        ["memory.k=5,10", "-m"],
    ],
)
def test_what_exists_passes(arguments: list[str]) -> None:
    check_command_line(arguments)


def test_options_are_put_before_the_settings() -> None:
    line = split(["memory=a,b", "-m", "hydra/launcher=slurm", "--config-dir", "there", "--cfg", "job"])
    assert line.arguments() == ["-m", "--config-dir", "there", "--cfg", "job", "memory=a,b", "hydra/launcher=slurm"]
    assert line.multirun and line.config_dir == Path("there")
    assert split(["--config-dir=x"]).config_dir == Path("x") and split(["seed=1"]).config_dir is None
    assert split(["--info", "searchpath", "seed=1"]).arguments() == ["--info=searchpath", "seed=1"]
    assert split(["seed=1", "--info"]).arguments() == ["--info", "seed=1"]


def test_suggestions_by_hand() -> None:
    assert close_names("memroy", ["memory", "seed"]) == ["memory"]
    assert close_names("memory.kk", ["memory.k", "memory.unit", "reader.name"])[0] == "memory.k"
    assert did_you_mean("zzz", ["memory"]) == ""
    assert did_you_mean("clga", ["clag", "rag"]) == "; did you mean clag?"


@pytest.mark.parametrize(
    "arguments",
    [
        ["memroy=rag"],
        ["+seeds=3"],
        ["memory.kk=3"],
        ["memory=a,b", "-m", "hydra/launcher=slurm"],
        ["backbone=endpoint"],
        ["backbone=endpoint", "backbone.model=a"],
    ],
)
def test_the_command_ends_with_2_and_no_word_of_hydras(tmp_path: Path, arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "eval", "run", *arguments, f"run_dir={tmp_path}"], cwd=ROOT, capture_output=True,
        text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: ") and len(done.stderr.splitlines()) <= 5
    assert "append" not in done.stderr and "HYDRA" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "cells"),
    [
        (["-m", "memory=amem_small,clag_small", "memory.context.max_tokens=512"], {("memory.context.max_tokens=512",)}),
        (["+experiment=locomo_qwen05b_latency", "memory=amem_small,clag_small", "memory.context.max_links="],
         {("memory.context.max_links=",)}),
        (["-m", "memory=rag,bm25_turn", "memory.k=3", "runs_dir=there"], {("memory.k=3", "runs_dir=there")}),
    ],
)  # fmt: skip
def test_a_setting_of_the_swept_memories_that_the_default_one_lacks_reaches_every_cell(
    arguments: list[str], cells: set[tuple[str, ...]]
) -> None:
    overrides = check_command_line(arguments).overrides
    loader = config_loader()
    jobs = sweep_jobs(compose(loader, overrides, sweep=True), loader)
    settings = [tuple(each for each in job if each.startswith(("memory.", "runs_dir"))) for job in jobs]
    assert len(jobs) == 2 and set(settings) == cells
    for job in jobs:
        compose(loader, job)


def test_what_stands_above_the_cells_too_is_not_made_a_sweep_of_one_value() -> None:
    line = check_command_line(["-m", "memory=amem,clag", "runs_dir=x", "memory.context.max_links=2", _ADDED])
    assert line.overrides == ("memory=amem,clag", "runs_dir=x", "memory.context.max_links=choice(2)", _ADDED)


def test_a_setting_that_the_first_memory_of_an_experiments_own_sweep_lacks_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"there is no memory\.context"):
        check_command_line(["+experiment=locomo_qwen05b_latency", "memory.context.max_tokens=5"])


@pytest.mark.parametrize(
    ("typed", "meant"), [("mem0g", "mem0_graph"), ("A-MEM", "amem"), ("SAGE", "sage"), ("Mem-GPT", "memgpt")]
)
def test_a_systems_name_as_papers_print_it_is_suggested_first(typed: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=rf"did you mean {meant}\b"):
        check_command_line([f"memory={typed}"])


def test_a_run_is_resumed_by_its_own_command() -> None:
    """The advice was to write ``resume=memory=rag``, or ``--resolve``."""
    with pytest.raises(ConfigError) as problem:
        check_command_line(["--resume", "memory=rag"])
    assert "to resume a stopped run, run its command again" in str(problem.value)
    with pytest.raises(ConfigError, match=r"write sead=VALUE"):
        check_command_line(["--sead", "memory=rag"])


def test_compare_without_runs_says_where_they_lie(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare([]) == 2
    assert "results/runs" in capsys.readouterr().err
