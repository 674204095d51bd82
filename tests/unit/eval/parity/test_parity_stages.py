"""``make parity``: which stages were compared, and when a stage that was not makes it fail."""

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from eval.commands.commands import EXIT_DIFFERENT, EXIT_DONE, EXIT_ERROR, EXIT_INCOMPLETE
from eval.config.presets import make_preset
from eval.parity import stages
from eval.parity.__main__ import compared
from eval.parity.config import counterparts
from eval.parity.stages import FILE, WHOLE, ParityStages
from memsys.assets.paths import ROOT
from memsys.errors import ConfigError, DataError

ALL = len(make_preset(ParityStages, FILE).stages)
EXPLAINED, UNEXPLAINED = SimpleNamespace(unexplained=False), SimpleNamespace(unexplained=True)


def give(monkeypatch: pytest.MonkeyPatch, *outcomes: object) -> None:
    """Let the stages end like this, in order; the last outcome is that of all others."""
    left = list(outcomes)

    def outcome(_arguments: object) -> object:
        found = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(stages, "compared", outcome)


@pytest.mark.parametrize(
    ("outcomes", "status", "required", "line"),
    [
        ((EXPLAINED,), EXIT_DONE, EXIT_DONE, f"{ALL} of {ALL} stages compared\n"),
        ((None, EXPLAINED), EXIT_DONE, EXIT_INCOMPLETE, f"{ALL - 1} of {ALL} stages compared; not compared: clag\n"),
        ((UNEXPLAINED, None, EXPLAINED), EXIT_DIFFERENT, EXIT_DIFFERENT,
         f"{ALL - 1} of {ALL} stages compared; with unexplained differences: clag; not compared: clag_prompts\n"),
        ((DataError("no"), EXPLAINED), EXIT_ERROR, EXIT_ERROR, f"{ALL - 1} of {ALL} stages compared; failed: clag\n"),
    ],
)  # fmt: skip
def test_the_last_line_says_how_many_stages_were_compared(
    outcomes: tuple[object, ...],
    status: int,
    required: int,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for flags, expected in (([], status), (["--require"], required)):
        give(monkeypatch, *outcomes)
        assert stages.main(flags) == expected
        assert capsys.readouterr().out.endswith(f"parity: {line}")


@pytest.mark.parametrize("file", [FILE, WHOLE])
def test_every_released_code_has_a_stage(file: Path) -> None:
    named = [
        one.partition("=")[2]
        for arguments in make_preset(ParityStages, file).stages.values()
        for one in arguments
        if one.startswith("against=")
    ]
    assert set(named) == set(counterparts())


def test_a_stage_is_chosen_by_name_and_its_own_settings_come_first() -> None:
    found = ParityStages(["dataset=d", "embedder=e"], {"a": ["memory=m", "dataset=other"], "b": ["memory=n"]})
    assert found.chosen(["a"]) == {"a": ["memory=m", "dataset=other", "embedder=e"]}
    assert list(found.chosen()) == ["a", "b"]
    assert found.over_sample().chosen(["b"]) == {"b": ["memory=n", "dataset=locomo_sample", "embedder=e"]}
    with pytest.raises(ConfigError, match="--only c: choose from a, b"):
        found.chosen(["c"])


def test_prompts_that_were_not_fetched_leave_a_stage_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEMSYS_PROMPTS", str(tmp_path))
    found = make_preset(ParityStages, FILE)
    arguments = [*found.stages["clag_prompts"], *found.every, f"--out={tmp_path}", "--skip-without-sources"]
    assert compared(arguments) is None
    assert "parity skipped: prompts=authors: 12 texts of clag are missing" in capsys.readouterr().out


@pytest.mark.parametrize(("given", "passed"), [("1", True), ("0", False), ("", False)])
def test_make_passes_the_switch_on(given: str, passed: bool) -> None:
    command = ["make", "-n", "--no-print-directory", "-o", "env", "parity", f"REQUIRE_PARITY={given}"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert shown.rstrip().endswith("--require") == passed
