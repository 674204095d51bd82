"""What may be chosen: files, variants, names, old names; every spelling that ever was makes the same method."""

import json
from pathlib import Path

import pytest
import yaml
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import create_config_search_path

from eval.config.choices import aliases, current_name, find, presets, settings_of
from eval.config.compose import compose
from eval.running.plan import identity_of, run_path
from eval.runs.identity import identity_hash
from memsys.errors import ConfigError
from tests.support.composing import CONF, composed
from tests.unit.test_experiments import plan

#: All choices of the version before folders and variants: the names that users may have typed.
OLD = json.loads((Path(__file__).parents[1] / "golden" / "old_choices.json").read_text())


@pytest.mark.parametrize("name", OLD["memory"])
def test_every_old_name_of_a_memory_is_a_preset_of_that_name_or_an_alias(name: str) -> None:
    found = find(name)
    assert found is not None
    assert found.name == name or composed(name) == composed(found.choice)


@pytest.mark.parametrize("name", OLD["experiment"])
def test_every_old_name_of_an_experiment_makes_a_plan(name: str) -> None:
    made = plan(f"+experiment={name}")
    assert name.startswith(made.experiment) or name in aliases()["experiment"]


@pytest.mark.parametrize("group", sorted(OLD.keys() - {"memory", "experiment", "sweep"}))
def test_other_choices_have_the_names_that_they_had(group: str) -> None:
    known = presets(CONF / group)
    assert [name for name in OLD[group] if name not in known and not (CONF / group / f"{name}.yaml").is_file()] == []


def test_an_old_name_is_told_once(capfd: pytest.CaptureFixture[str]) -> None:
    from hydra import compose, initialize_config_dir

    from hydra_plugins.memsys_choices import _say_once

    _say_once.cache_clear()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        for _ in range(2):
            compose(None, overrides=["+memory=clag_tau_010"])
        compose(None, overrides=["+memory=clag_tau_015"])
    assert capfd.readouterr().err == "note: memory=clag_tau_010 is now written memory=clag/paper\n"


def test_one_method_is_one_run_whatever_it_is_called(tmp_path: Path) -> None:
    names = ("clag", "clag/paper", "clag_paper", "clag_tau_010", "clag_n_init_3")
    made = [plan(f"memory={name}", f"runs_dir={tmp_path}") for name in names]
    assert len({run_path(one, identity_of(one, "0")) for one in made}) == 1


def test_a_kind_and_its_number_are_one_run() -> None:
    by_number, by_kind = plan("dataset.categories=[2,1]"), plan("dataset.categories=[temporal,multi-hop]")
    assert by_kind.settings["dataset"]["categories"] == ["temporal", "multi-hop"]
    assert identity_of(by_kind, "0") == identity_of(by_number, "0")
    assert identity_of(by_number, "0")["dataset"]["categories"] == [2, 1]


def test_a_variant_and_the_same_override_are_one_run(tmp_path: Path) -> None:
    folder = f"runs_dir={tmp_path}"
    variant, written = plan("memory=clag/tau_015", folder), plan("memory=clag", "memory.tau=0.15", folder)
    identity = identity_of(variant, "0")
    assert identity_hash(identity) == identity_hash(identity_of(written, "0"))
    path = run_path(variant, identity)
    assert path.name.startswith("clag_tau_015-")
    path.mkdir(parents=True)
    assert run_path(written, identity_of(written, "0")) == path


@pytest.mark.parametrize("name", sorted(presets()))
def test_settings_read_without_hydra_are_those_that_it_composes(name: str) -> None:
    preset = presets()[name]
    made = dict(composed(name))
    if "host" in made:
        made |= {"host": made["host"]["name"], "name": "gated"}
    assert settings_of(preset) == made
    assert preset.about


def test_names_are_unique_and_a_variant_says_what_it_must(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "paper.yaml").write_text("# One.\nname: a\nk: {one: 1, two: 2}\n")
    variants = folder / "a" / "variants.yaml"
    variants.write_text(yaml.safe_dump({"more": {"about": "More.", "of": "paper", "set": {"k": {"two": 3}}}}))
    assert current_name("a/more", folder) == "a_more"
    more = find("a_more", folder)
    assert more is not None and settings_of(more, folder) == {"name": "a_more", "k": {"one": 1, "two": 3}}
    assert find("nope", folder) is None and current_name("nope", folder) == "nope"
    (folder / "a_more.yaml").write_text("# Another.\n")
    with pytest.raises(ConfigError, match="are both called a_more; change the name of one"):
        presets(folder)
    variants.write_text("more: {of: paper}\n")
    with pytest.raises(ConfigError, match="more must have `about`, `of` and `set`"):
        presets(folder)


def test_a_variant_of_an_experiment_chooses_and_sweeps(tmp_path: Path) -> None:
    folder = tmp_path / "experiment"
    folder.mkdir()
    (folder / "base.yaml").write_text("# One.\ndefaults:\n  - override /memory: rag\nexperiment: base\nseed: 1\n")
    entry = {"about": "More.", "of": "base", "choose": {"memory": "amem"}, "set": {"seed": 2}, "sweep": {"seed": "2,3"}}
    (folder / "variants.yaml").write_text(yaml.safe_dump({"more": entry, "less": {"about": "Less.", "of": "more"}}))
    more, less = find("more", folder), find("less", folder)
    assert more is not None and less is not None and more.choose == {"memory": "amem"}
    swept = {"mode": "MULTIRUN", "sweeper": {"params": {"seed": "2,3"}}}
    assert settings_of(more, folder) == {"experiment": "more", "seed": 2, "hydra": swept}
    assert settings_of(less, folder) == {"experiment": "less", "seed": 2, "hydra": swept}
    (folder / "variants.yaml").write_text(yaml.safe_dump({"more": entry | {"settings": {}}}))
    with pytest.raises(ConfigError, match="must have `about` and `of`; it may have `choose`, `set`, `sweep`"):
        presets(folder)


@pytest.mark.parametrize("group", ["experiment", "sweep", "memory/clag", "backbone"])
def test_a_file_of_variants_is_no_choice(group: str) -> None:
    known = ConfigLoaderImpl(create_config_search_path(str(CONF))).repository
    assert not known.config_exists(f"{group}/variants")
    assert "variants" not in known.get_group_options(group)


def test_a_sweep_is_a_variant_of_the_papers_tables_and_bears_its_name() -> None:
    config = compose(ConfigLoaderImpl(create_config_search_path(str(CONF))), ["+sweep=clag_table2"], sweep=True)
    assert (config.timing, config.hydra.sweep.dir) == ("latency", f"{config.runs_dir}/.sweeps/clag_table2")
    assert list(config.hydra.sweeper.params.items()) == [
        ("+experiment", "clag_locomo"),
        ("memory", "rag_clag,amem,gam,memoryos,clag"),
    ]
    assert config.hydra.launcher._target_.endswith("MemsysJoblibLauncher")


def test_a_file_is_parsed_as_omegaconf_does_and_again_when_it_has_changed(tmp_path: Path) -> None:
    """Files are parsed once for all configurations of a process: a change must not be missed."""
    (tmp_path / "aliases.yaml").write_text("{}")
    loader = ConfigLoaderImpl(config_search_path=create_config_search_path(str(tmp_path)))
    texts = {"value: 1e-3  # PyYAML: a text": 0.001, "value: 2001-01-01": "2001-01-01", "value: a\n": "a"}
    for text, value in texts.items():
        (tmp_path / "config.yaml").write_text(text)
        for _ in range(2):
            config = compose(loader, [])
            assert config.value == value
            config.value = "changed"  # in this configuration alone
    (tmp_path / "config.yaml").write_text("value: 1\nvalue: 2\n")
    with pytest.raises(ConfigError, match=r"config\.yaml, line 2: is not YAML \(found duplicate key value\)"):
        compose(loader, [])
    assert loader.repository.sources[1].path == str(tmp_path)
