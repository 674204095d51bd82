"""What may be chosen: every choice of ``conf/`` is a file that plain Hydra composes."""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from eval.config.compose import choice_settings, compose, config_loader, find_settings
from eval.config.presets import GLOBAL_GROUPS, MEMORY, current_name, description, preset_names, read_settings
from eval.config.run_help import groups
from eval.running.plan import identity_of, run_path
from eval.runs.identity import identity_hash
from memsys.errors import ConfigError
from tests.support.composing import CONF, composed
from tests.unit.eval.config.test_experiments import plan

GROUPS = (*groups(CONF), "judge")

#: Composes the choices that it is given, each as GROUP=CHOICE, in a process that cannot import this project.
PLAIN = """
import importlib.util, json, sys
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

assert not any(importlib.util.find_spec(name) for name in ("memsys", "eval", "baselines"))
conf, choices, made = sys.argv[1], json.loads(sys.stdin.read()), {}
with initialize_config_dir(conf, version_base="1.3"):
    for choice in choices:
        group, _, name = choice.partition("=")
        if group[0] == "+" or group.startswith("hydra/"):  # sets the whole configuration
            made[choice] = OmegaConf.to_container(compose("config", overrides=[choice], return_hydra_config=True))
        else:
            config = compose(f"{group}/{name}")
            made[choice] = OmegaConf.to_container(OmegaConf.select(config, group.replace("/", ".")))
print(json.dumps(made, default=str))
"""


def written(group: str, choice: str) -> str:
    """Return how a command line chooses it."""
    added = "+" if group in GLOBAL_GROUPS else ""
    return f"{added}{group}={choice}"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Every choice of every group, composed without this project on the path and so without its plug-ins."""
    choices = [written(group, choice) for group in GROUPS for choice in preset_names(CONF / group)]
    packages = tmp_path_factory.mktemp("packages")  # what is installed, without this project where it is so too
    for place in dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))):
        for each in Path(place).iterdir():
            link = packages / each.name
            if each.name not in ("memsys", "eval", "baselines") and each.suffix != ".pth" and not link.exists():
                link.symlink_to(each)
    code = f"import sys; sys.path.append({str(packages)!r})\n{PLAIN}"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(CONF)], input=json.dumps(choices), cwd=packages,
        capture_output=True, text=True, timeout=800, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    made: dict[str, object] = json.loads(done.stdout)
    return made


@pytest.mark.timeout(900)
def test_every_choice_composes_under_plain_hydra(plain: dict[str, object]) -> None:
    missing = [
        written(group, choice)
        for group in GROUPS
        for choice in preset_names(CONF / group)
        if not plain.get(written(group, choice))
    ]
    assert not missing and len(plain) > 200
    assert {name: plain[f"memory={name}"] for name in preset_names(MEMORY)} == {
        name: composed_plainly(name) for name in preset_names(MEMORY)
    }


def composed_plainly(name: str) -> object:
    """Return what this project composes of a memory, unresolved, as JSON has it."""
    return json.loads(json.dumps(choice_settings("memory", name)))


@pytest.mark.parametrize("group", GROUPS)
def test_a_choice_begins_with_what_it_is(group: str) -> None:
    """Help and docs/choices.md show it."""
    assert [name for name in preset_names(CONF / group) if not description(CONF / group / f"{name}.yaml")] == []


def test_memories_are_files_of_one_folder_that_bear_their_name() -> None:
    assert not [path for path in MEMORY.iterdir() if path.is_dir()]
    named = {name: composed(name)["name"] for name in preset_names(MEMORY)}
    assert {name: own for name, own in named.items() if own != name} == {"gated": "gated_rag"}


@pytest.mark.parametrize("group", ["backbone", "dataset", "experiment"])
def test_a_choice_bears_the_name_of_its_file(group: str) -> None:
    key = "experiment" if group == "experiment" else "name"
    files = {name: read_settings(CONF / group / f"{name}.yaml") for name in preset_names(CONF / group)}
    assert {name: own[key] for name, own in files.items() if own.get(key, name) != name} == {}


def test_settings_of_a_choice_come_from_its_file_and_those_it_starts_from(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "a.yaml").write_text("name: a\nk: {one: 1, two: 2}\n")
    (tmp_path / "memory" / "b.yaml").write_text("defaults: [a, _self_]\nname: b\nk: {two: 3}\n")
    found = choice_settings("memory", "b", tmp_path)
    assert found == {"name": "b", "k": {"one": 1, "two": 3}}
    found["k"]["two"] = 4
    assert choice_settings("memory", "b", tmp_path)["k"]["two"] == 3
    assert find_settings("memory", "c", tmp_path) is None
    with pytest.raises(ConfigError, match="memory='c' is unknown; choose one of a, b"):
        choice_settings("memory", "c", tmp_path)


def test_a_file_that_is_no_yaml_is_named(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "a.yaml").write_text("value: 1\nvalue: 2\n")
    with pytest.raises(ConfigError, match=r"a\.yaml, line 2: is not YAML \(found duplicate key value\)"):
        choice_settings("memory", "a", tmp_path)


def test_a_name_that_older_runs_recorded_is_that_of_a_preset() -> None:
    assert current_name("rag_turn") == "rag" and current_name("clag") == "clag"


def test_a_kind_and_its_number_are_one_run() -> None:
    by_number, by_kind = plan("dataset.categories=[2,1]"), plan("dataset.categories=[temporal,multi-hop]")
    assert by_kind.settings["dataset"]["categories"] == ["temporal", "multi-hop"]
    assert identity_of(by_kind, "0") == identity_of(by_number, "0")
    assert identity_of(by_number, "0")["dataset"]["categories"] == [2, 1]


def test_a_preset_and_the_same_override_are_one_run(tmp_path: Path) -> None:
    folder = f"runs_dir={tmp_path}"
    preset, written = plan("memory=clag_tau_015", folder), plan("memory=clag", "memory.tau=0.15", folder)
    identity = identity_of(preset, "0")
    assert identity_hash(identity) == identity_hash(identity_of(written, "0"))
    path = run_path(preset, identity)
    assert path.name.startswith("clag_tau_015-")
    path.mkdir(parents=True)
    assert run_path(written, identity_of(written, "0")) == path


def test_a_sweep_starts_from_the_papers_tables_and_its_files_bear_its_name() -> None:
    config = compose(config_loader(), ["+sweep=clag_table2"], sweep=True)
    assert (config.timing, config.hydra.sweep.dir) == ("latency", f"{config.runs_dir}/.sweeps/clag_table2")
    assert list(config.hydra.sweeper.params.items()) == [
        ("+experiment", "clag_locomo"),
        ("memory", "rag_clag,amem,gam,memoryos,clag"),
    ]
    assert config.hydra.launcher._target_.endswith("MemsysJoblibLauncher")
