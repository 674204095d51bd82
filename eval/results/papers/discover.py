"""Code for single papers, found in ``eval/results/papers/<paper>/``; no paper is listed anywhere.

``printed_numbers.py`` may define ``AVERAGES`` and ``TOTALS`` (rules of :mod:`eval.results.papers.arithmetic`) and
``CLAIMS`` (:mod:`eval.results.papers.claims`). It, and the folder itself, may be missing: a paper is there as soon as
``results/printed/<paper>.csv`` is.
"""

import importlib
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from types import ModuleType

from eval.results import papers
from eval.results.papers.arithmetic import Rule
from eval.results.papers.claims import Claim


@dataclass(frozen=True, slots=True)
class Checks:
    """Derived numbers of a paper: rules for averages and totals, and statements of its text."""

    averages: Sequence[Rule] = ()
    totals: Sequence[Rule] = ()
    claims: Sequence[Claim] = ()


def checks_of(paper: str) -> Checks:
    """Find the checks of a paper; empty ones where it has no ``printed_numbers.py``."""
    module = _module(paper, "printed_numbers")
    names = ("averages", "totals", "claims")
    return Checks(**{name: getattr(module, name.upper(), ()) for name in names})


def _folders() -> set[str]:
    return {entry.name for entry in pkgutil.iter_modules(papers.__path__) if entry.ispkg}


def _module(paper: str, name: str) -> ModuleType | None:
    """Import a module of a paper's folder; ``None`` where it is not there."""
    folder = f"{papers.__name__}.{paper}"
    if paper not in _folders() or find_spec(f"{folder}.{name}") is None:
        return None
    return importlib.import_module(f"{folder}.{name}")
