"""The site of the documents: every page has a place, and the reference is what code and configuration say."""

from pathlib import Path

import pytest

import memsys
from eval.commands.catalogue import commands
from eval.config.presets import CONF, preset_names
from eval.config.run_help import groups
from scripts import make_docs_pages
from scripts.make_docs_pages import api_page, llms_text, navigation, settings_pages, title_and_about

ROOT = Path(__file__).resolve().parents[5]
SECTIONS = [
    "Start", "Your own memory", "Your own data", "Your model", "Results", "Papers", "Reference", "Decisions",
]  # fmt: skip


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All pages; of the commands' help a line each, as the commands themselves are tried elsewhere."""
    out = tmp_path_factory.mktemp("site") / "pages"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(make_docs_pages, "help_of", lambda name: f"usage: memsys {name}\n")
        patch.setattr("sys.argv", ["make_docs_pages.py", str(out)])
        assert make_docs_pages.main() == 0
    return out


def test_every_document_has_one_place_in_the_navigation(pages: Path) -> None:
    placed = [page for _, section in navigation() for page in section]
    assert len(placed) == len(set(placed)) and [heading for heading, _ in navigation()] == SECTIONS
    documents = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")}
    assert documents - set(placed) == set(), "zensical.toml lacks it"
    assert [page for page in placed if not (pages / page).is_file()] == []


def test_the_list_for_language_models_has_every_page_and_what_it_is_about(pages: Path) -> None:
    lines = (pages / "llms.txt").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# memsys" and lines[2].startswith("> ") and len(lines[2]) < 300
    placed = [page for _, section in navigation() for page in section]
    entries = [line for line in lines if line.startswith("- ")]
    assert [entry.split("](")[1].split(")")[0] for entry in entries] == placed
    assert [entry for entry in entries if len(entry.split("): ")[1]) < 15] == []
    assert llms_text(pages).splitlines() == lines


def test_the_reference_has_every_command_and_every_choice(pages: Path) -> None:
    text = (pages / "reference" / "commands.md").read_text(encoding="utf-8")
    for command in commands():
        assert f"\n## {command.name}\n\n{command.summary}.\n\n```text\nusage: memsys {command.name}\n```" in text
    settings = settings_pages()
    assert set(settings) == {"index", *groups(CONF)}
    for group in groups(CONF):
        assert [line[3:] for line in settings[group].splitlines() if line.startswith("## ")] == [
            *preset_names(CONF / group),
            *(f"base/{path.stem}" for path in sorted((CONF / group / "base").glob("*.yaml"))),
        ]
        assert f"({group}.md)" in settings["index"]
    assert "# of sampling, option order and every generator" in settings["index"]
    assert "budget_tokens: null     # tokens of passages; null with k" in settings["memory"]
    assert "limit_sessions: null      # the first so many" in settings["dataset"]


def test_the_reference_of_python_names_where_each_public_name_is_made() -> None:
    named = {line.split(".")[-1] for line in api_page().splitlines() if line.startswith("::: ")}
    assert set(memsys.__all__) <= named
    assert "\n::: eval.api.evaluate.evaluate\n" in api_page()


def test_tables_are_left_out_of_the_search_and_pages_are_as_they_were(pages: Path) -> None:
    name = "results/tables/index.md"
    original = (ROOT / name).read_text(encoding="utf-8")
    assert (pages / name).read_text(encoding="utf-8") == f"---\nsearch:\n  exclude: true\n---\n\n{original}"
    assert (pages / "docs/models.md").read_bytes() == (ROOT / "docs/models.md").read_bytes()


def test_a_page_is_described_by_its_first_sentence() -> None:
    text = "# A page\n\n![x](y.svg)\n\n```\ncode. More\n```\n| a. |\nIt **says** [this](b.md), 1.5 times. Then\nmore."
    assert title_and_about(text) == ("A page", "It says this, 1.5 times")
    with pytest.raises(SystemExit, match="without a heading"):
        title_and_about("no heading")
