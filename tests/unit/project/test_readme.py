"""The table of memory systems is what their presets say of themselves; commands of all pages name what exists."""

import re
import shlex
from pathlib import Path

from eval.commands.rendering.markdown import replace_tables
from eval.config.overrides import check_command_line
from eval.config.presets import description
from eval.results.choices_page import DEVIATIONS, NAME, PAGE, first_sentence, main_presets, systems_table
from eval.results.papers.deviations import deviations_page, load_deviations


def test_the_list_of_deviations_is_up_to_date() -> None:
    said = DEVIATIONS.read_text(encoding="utf-8")
    assert deviations_page(load_deviations()) == said, "run python -m eval.results.choices_page"


def test_the_table_is_up_to_date() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert replace_tables(PAGE, {NAME: systems_table()}) == text, "run python -m eval.results.choices_page"


def test_a_new_system_has_a_row_without_another_edit(tmp_path: Path) -> None:
    preset = "# Keeps turns | in\n# order. More.\n_target_: baselines.rag.config.RagConfig\n"
    (tmp_path / "mine.yaml").write_text(preset)
    (tmp_path / "mine_small.yaml").write_text("# Less.\n_target_: baselines.rag.config.RagConfig\n")
    assert systems_table(tmp_path) == "| memory= | what |\n| --- | --- |\n| `mine` | Keeps turns \\| in order |"


def test_the_main_presets_are_those_that_extend_no_other_name() -> None:
    assert main_presets(["rag", "rag_turn", "ragged", "bm25"]) == ["rag", "ragged", "bm25"]


def test_the_first_sentence_ends_at_a_full_stop_and_not_in_a_number(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("# Version 0.1 of\n# it. Then more.\nk: 1\n# Not this.\n")
    assert first_sentence(description(tmp_path / "x.yaml")) == "Version 0.1 of it"


#: A run or a sweep's plan with its settings; names in capitals stand for anything.
_RUN = re.compile(r"^(?:memsys (?:run|sweep \w+)|python -m eval\.(?:run|sweep \w+)) (.*)$", re.MULTILINE)


def test_runs_and_sweeps_of_the_pages_name_choices_that_exist() -> None:
    root = PAGE.parents[1]
    found = 0
    for page in (root / "README.md", *sorted((root / "docs").glob("*.md"))):
        if not page.name.startswith("add_a_"):  # their choices are made by their pages
            for line in _RUN.findall(page.read_text(encoding="utf-8")):
                arguments = shlex.split(line.replace("\\", ""), comments=True)
                if "--help" not in arguments:
                    check_command_line(arguments)
                    found += 1
    assert found > 10
