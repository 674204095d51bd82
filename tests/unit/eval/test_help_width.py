"""The help of every command fits the window."""

import sys
from importlib import import_module

import pytest

from eval.__main__ import listing
from eval.commands.catalogue import commands
from eval.commands.help_text import filled, side_by_side

WIDTHS = (60, 80, 120)
ASKED = [(command.module, ()) for command in commands()] + [
    ("eval.recorded", ("import",)),
    ("eval.recorded", ("fetch",)),
    ("eval.run", ("memory",)),
    ("eval.parity.stages", ()),
    ("eval.parity.mutations", ()),
    ("eval.parity.page", ()),
]


def check_width(text: str, width: int) -> None:
    assert text.strip()
    assert [line for line in text.splitlines() if len(line) > width] == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("module", "words"), ASKED, ids=lambda part: part if isinstance(part, str) else " ".join(part))
def test_help_fits_the_window(
    module: str, words: tuple[str, ...], width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    name = module.removeprefix("eval.").removesuffix(".__main__")
    monkeypatch.setattr(sys, "argv", [f"memsys {name}", *words, "--help"])
    try:
        status = import_module(module).main()
    except SystemExit as end:
        status = end.code
    assert not status
    check_width(capsys.readouterr().out, width)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_list_of_commands_fits_the_window(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    check_width(listing(commands()), width)
    text = listing(commands(), described=True)
    check_width(text, width)
    assert all(f"\n  {command.name} " in text or f"\n  {command.name}\n" in text for command in commands())


def test_lines_of_a_paragraph_are_joined_and_indented_lines_are_not() -> None:
    text = "one two\nthree\n\nexamples:\n  a\n  b"
    assert filled(text, 80) == "one two three\n\nexamples:\n  a\n  b"
    assert filled("one two three", 8) == "one two\nthree"


def test_a_description_goes_below_where_there_is_no_room_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    assert side_by_side("  name  ", "what it is") == "  name  what it is"
    assert side_by_side("  a_name_of_many_letters  ", "what it is") == "  a_name_of_many_letters\n    what it is"
