"""Advice for an installed package names nothing that only a checkout has."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from eval.commands.commands import described
from memsys.assets import paths
from memsys.assets.hints import in_checkout, of_source

ROOT = Path(__file__).resolve().parents[3]
#: These write or read pages of the checkout itself.
OF_THE_CHECKOUT = {
    "eval/audit/page.py",
    "eval/results/papers/deviations.py",
    "eval/results/figures/scale.py",
    "eval/results/choices_page.py",
    "eval/sweep/hosted_page.py",
}
WORDED = ("in_checkout", "of_source", "described")
TARGETS = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
ONLY_IN_SOURCE = re.compile(rf"make ({'|'.join(TARGETS)})\b|\b(docs|scripts)/\w+\.(md|py)")


def texts(node: ast.AST) -> Iterator[str]:
    """Strings of a module that are no docstrings and no arguments of what words them by what is there."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in WORDED:
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        if isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child.value
        yield from texts(child)


def test_no_message_names_what_only_a_checkout_has() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {text}"
        for top in ("memsys", "eval", "baselines")
        for path in (ROOT / top).rglob("*.py")
        if path.relative_to(ROOT).as_posix() not in OF_THE_CHECKOUT
        for text in texts(ast.parse(path.read_text(encoding="utf-8")))
        if ONLY_IN_SOURCE.search(text)
    }
    assert found == set()


def test_an_installed_package_is_pointed_at_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (of_source("docs/models.md"), in_checkout("a", "b")) == ("docs/models.md", "a")
    assert described("see docs/models.md") == "see docs/models.md"
    monkeypatch.setattr(paths, "is_installed", lambda: True)
    assert (of_source("docs/models.md"), in_checkout("a", "b")) == ("docs/models.md of memsys's source", "b")
    assert described("see ``docs/models.md``") == "see `docs/models.md of memsys's source`"
