"""The one command: what it lists, what it starts, and what it says to a name that is none."""

import subprocess
import sys
from pathlib import Path

import pytest

from eval.__main__ import listing
from eval.audit.recorded.shapes import _SYNONYMS
from eval.commands.catalogue import TASKS, Command, Task, commands, find_command, tasks
from eval.commands.commands import program
from memsys.errors import ConfigError
from memsys.yaml_files import read_yaml

ROOT = Path(__file__).resolve().parents[3]


def memsys(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "eval", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )


def test_every_command_of_eval_is_found_and_described() -> None:
    found = {command.name: command for command in commands()}
    assert {"run", "score", "compare", "tables", "report", "lens", "explain", "judge", "export", "inspect_data",
            "sweep", "floors", "plots", "serve", "models", "data"} <= set(found)  # fmt: skip
    for command in found.values():
        assert 10 < len(command.summary) <= 75 and "`" not in command.summary, command


def test_a_new_module_with_a_main_is_a_command(tmp_path: Path) -> None:
    (tmp_path / "count.py").write_text(
        '"""Count things: ``python -m eval.count``."""\ndef main() -> int:\n    return 0\n'
    )
    (tmp_path / "helper.py").write_text('"""No command."""\n')
    (tmp_path / "large" / "big").mkdir(parents=True)
    (tmp_path / "large" / "big" / "__main__.py").write_text('"""Do it."""\ndef main() -> int:\n    return 0\n')
    assert commands(tmp_path) == [
        Command("big", "eval.large.big.__main__", "Do it"),
        Command("count", "eval.count", "Count things"),
    ]


def test_every_command_has_a_place_below_one_heading() -> None:
    """A new command is added to eval/commands/tasks.yaml."""
    placed = [name for headings in read_yaml(TASKS, "").values() for names in headings.values() for name in names]
    assert sorted(placed) == [command.name for command in commands()]


def test_commands_are_listed_by_what_they_are_for(tmp_path: Path) -> None:
    path = tmp_path / "tasks.yaml"
    path.write_text("described:\n  First: [b, a]\nnamed:\n  Second: [gone]\n")
    a, b, c = (Command(name, f"eval.{name}", f"Do {name}") for name in "abc")
    assert tasks([a, b, c], path) == [Task("First", [b, a], True), Task("Others", [c], False)]


def test_the_list_of_all_describes_every_command() -> None:
    said = memsys("--help", "all").stdout
    assert all(f" {command.name} {command.summary} " in " ".join(said.split()) for command in commands())


def test_a_beginning_is_enough_where_it_is_one_commands_alone() -> None:
    known = commands()
    assert find_command("inspect", known).module == "eval.inspect_data"
    assert find_command("run", known).module == "eval.run"
    assert find_command("check-memory", known) == find_command("check_memory", known)
    with pytest.raises(ConfigError, match="exp may be explain or export"):
        find_command("exp", known)
    with pytest.raises(ConfigError, match=r"no command 'cmpare'; did you mean compare\? `memsys"):
        find_command("cmpare", known)


@pytest.mark.parametrize("command", ["audit", "recorded", "run"])
def test_the_usage_of_a_command_is_written_as_it_was_called(command: str) -> None:
    """These three said ``python -m eval.NAME``."""
    assert f"usage: memsys {command} " in memsys(command, "--help").stdout


@pytest.mark.parametrize("command", ["convert_data", "inspect_data", "parity", "proxy", "serve"])
def test_a_help_names_the_command_as_it_is_typed(command: str) -> None:
    """These said ``python -m eval.NAME`` in double back-ticks, as their modules did."""
    said = " ".join(memsys(command, "--help").stdout.split())
    assert f"`memsys {command}" in said and "``" not in said and "python -m eval" not in said


def test_the_help_of_an_import_has_its_columns_and_an_example() -> None:
    said = memsys("recorded", "import", "--help").stdout
    assert "memsys recorded import answers.csv --as mine --dataset own" in said
    assert all(f"`{name}`" in said for name in _SYNONYMS)


def test_alone_it_says_what_there_is_in_less_than_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    alone, asked = memsys(), memsys("--help")
    assert alone.returncode == asked.returncode == 0
    assert alone.stdout == asked.stdout == listing(commands())
    assert len(alone.stdout.splitlines()) <= 30 and max(map(len, alone.stdout.splitlines())) <= 110


def test_it_starts_a_command_whose_usage_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    done = memsys("compare", "--help")
    assert done.returncode == 0 and done.stdout.startswith("usage: memsys compare ")
    wrong = memsys("cmpare")
    assert wrong.returncode == 2 and wrong.stderr.startswith("error: there is no command")
    assert memsys("--version").stdout.startswith("memsys 0.")
    monkeypatch.setattr(sys, "argv", ["/some/place/compare/__main__.py"])
    assert program("compare") == "python -m eval.compare"
    monkeypatch.setattr(
        sys, "argv", ["memsys probe"]
    )  # `memsys probe` said of its settings `memsys probe ... memory=rag`
    assert program("run") == "memsys run"
