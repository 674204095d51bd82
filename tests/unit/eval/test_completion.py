"""The Tab key in bash: commands, groups and choices, with lines split into words as bash splits them."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from eval.commands.catalogue import commands
from eval.completion import bash_script, main
from eval.config.presets import CONF, preset_names

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    line = [sys.executable, "-m", "eval", "completion", "bash"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    path = tmp_path_factory.mktemp("bash") / "memsys.bash"
    path.write_text(done.stdout, encoding="utf-8")
    return path


def complete(script: Path, line: str, breaks: str = "=@:") -> list[str]:
    """What bash is offered at the end of a line of which ``breaks`` end words, as in ``COMP_WORDBREAKS``."""
    words = [part for word in line.split(" ") for part in re.split(f"([{breaks}]+)", word) if part or not word]
    said = " ".join(map(shlex.quote, words))
    typed = f"COMP_WORDS=({said}); COMP_CWORD={len(words) - 1}"
    text = f'source {script}; {typed}; _memsys; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(
        ["bash", "--norc", "-c", text],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_all_commands_are_offered(script: Path) -> None:
    assert complete(script, "memsys ") == [command.name for command in commands()]


def test_every_choice_of_a_group_is_offered(script: Path) -> None:
    for group in ("memory", "dataset", "hydra/launcher"):
        assert complete(script, f"memsys run {group}=") == list(preset_names(CONF / group))
    assert complete(script, "memsys run +experiment=") == list(preset_names(CONF / "experiment"))


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("memsys conv", ["convert_data"]),
        ("memsys run dat", ["dataset="]),
        ("memsys run seed=1 +ex", ["+experiment="]),
        ("memsys run backbone/", ["backbone/engine="]),
        ("memsys run embedder=ha", ["hashing"]),
        ("memsys run +sweep=memfly_table1", ["memfly_table1"]),
        ("memsys run -m embedder=minilm,ha", ["minilm,hashing"]),
        ("memsys run memory=gated memory@memory.host=bm25_t", ["bm25_turn"]),
        ("memsys inspect_data embedder=ha", ["hashing"]),
        ("memsys run memory.k=", []),
        ("memsys run memory=no_such", []),
        ("memsys run unheard", []),
        ("memsys compare dat", []),
    ],
)
def test_what_is_offered(script: Path, line: str, offered: list[str]) -> None:
    assert complete(script, line) == offered


def test_where_the_equals_sign_is_part_of_a_word_the_whole_word_is_offered(script: Path) -> None:
    assert complete(script, "memsys run embedder=ha", breaks=";") == ["embedder=hashing"]


def test_bash_uses_it_for_memsys(script: Path) -> None:
    done = subprocess.run(
        ["bash", "--norc", "-c", f"source {script}; complete -p memsys"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "complete -o default -F _memsys memsys\n"


def test_a_name_of_a_plugin_that_a_shell_would_run_is_left_out(tmp_path: Path) -> None:
    path, made = tmp_path / "memsys.bash", tmp_path / "made"
    path.write_text(bash_script(["run"], {"memory": ["a'b", f"it$(touch${{IFS}}{made})", "rag"]}), encoding="utf-8")
    assert complete(path, "memsys run memory=") == ["rag"] and not made.exists()


def test_it_starts_without_hydra() -> None:
    text = "import sys; from eval.completion import main; main(['bash']); sys.exit('hydra' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, check=False).returncode == 0


def test_a_shell_that_has_no_script_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["fish"])
    assert "invalid choice: 'fish'" in capsys.readouterr().err
