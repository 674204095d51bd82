"""Presets read without Hydra: found by name, or refused in one sentence."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from eval.config.presets import find_preset, make_preset, preset_names, read_settings
from memsys.errors import ConfigError


@dataclass(frozen=True)
class Settings:
    k: int
    name: str = ""


def test_a_preset_is_found_and_made_without_hydras_target(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("_target_: some.Class\nname: b\nk: 3\n")
    (tmp_path / "a.yaml").write_text("k: 1\n")
    assert preset_names(tmp_path) == ("a", "b")
    assert make_preset(Settings, find_preset("b", tmp_path, "thing")) == Settings(k=3, name="b")


def test_an_unknown_preset_is_told_which_there_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="thing='c' is unknown; choose one of none: the folder is empty"):
        find_preset("c", tmp_path, "thing")
    (tmp_path / "a.yaml").write_text("k: 1\n")
    with pytest.raises(ConfigError, match=r"thing='c' is unknown; choose one of a$"):
        find_preset("c", tmp_path, "thing")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "x.yaml is not YAML: "),
        ("- a\n", "x.yaml must hold settings by name, not list"),
        ("", "x.yaml must hold settings by name, not NoneType"),
        ("k: 1\nz: 2\n", "unexpected keyword argument 'z'; settings are k, name"),
        ("name: x\n", "missing 1 required positional argument: 'k'; settings are k, name"),
    ],
)
def test_a_broken_preset_is_one_clear_error(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        make_preset(Settings, path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"x\.yaml does not exist"):
        read_settings(tmp_path / "x.yaml")
