"""Digests of objects of a user: equal for equal source and settings, different where one setting differs."""

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from baselines.external.digests import digest_of

ROOT = Path(__file__).resolve().parents[4]


class Memory:
    """Has settings of any kind."""

    def __init__(self, size: int = 1, options: Any = None) -> None:
        self.size, self.options = size, options

    def search(self) -> int:
        """Return something."""
        return self.size


class Slotted:
    """Has no dictionary."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size


class Mapping(dict[str, int]):
    """A mapping of the user."""


class Listing(list[int]):
    """A list of the user."""


class Text(str):
    """A text of the user."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """Has slots and a set."""

    words: frozenset[str]


def closure(size: int) -> Callable[[], Memory]:
    return lambda: Memory(size)


@pytest.mark.parametrize(
    "make",
    [
        lambda n: partial(Memory, n),
        lambda n: partial(Memory, 7, options=n),
        lambda n: partial(Memory, *[0] * n),
        lambda n: lambda size=n: Memory(size),
        lambda n: lambda *, size=n: Memory(size),
        closure,
        Memory,
        lambda n: Memory(options={"k": [n, {"long": "x" * 200}]}),
        lambda n: Memory(options={f"a{n}", "b", "c", "d", "e"}),
        lambda n: Memory(options=Path(f"/data/{n}")),
        lambda n: Memory(options=np.full(3, n)),
        lambda n: Memory(options=Memory(n)),
        lambda n: Memory(n).search,
        lambda n: Memory(options=Mapping(depth=n)),
        lambda n: Memory(options=Listing([n])),
        lambda n: Memory(options=Text(n)),
        lambda n: Memory(options=SimpleNamespace(depth=n)),
        lambda n: Memory(options=defaultdict(set, {"a": {n}})),
        lambda n: Memory(options=re.compile(str(n))),
        lambda n: Memory(options=Frozen(frozenset({str(n), "b"}))),
        Slotted,
    ],
)
def test_one_setting_makes_another_digest(make: Callable[[int], Any]) -> None:
    assert digest_of(make(1)) == digest_of(make(1)) != digest_of(make(2))


WORDS = {"a", "b", "c", "d", "e"}
SETS = [
    WORDS, Frozen(frozenset(WORDS)), SimpleNamespace(stop=WORDS), defaultdict(set, {"x": WORDS}), Mapping, re.compile,
]  # fmt: skip


def test_a_digest_is_the_same_in_every_process() -> None:
    """Sets have another order in each."""
    code = (
        "from tests.unit.baselines.external.test_object_digests import Memory, SETS, digest_of; "
        "print([digest_of(Memory(options=one)) for one in SETS])"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(found) == 1


def test_an_object_that_holds_itself_has_a_digest() -> None:
    one = Memory()
    one.options = one
    assert digest_of(one) != digest_of(Memory())


def test_what_cannot_be_compared_has_none() -> None:
    with pytest.raises(TypeError, match="cannot pickle"):
        digest_of(Memory(options=Lock()))


HELPERS = """
from core import SCALE

WEIGHT = 1

def score(text):
    return len(text) * WEIGHT * SCALE
"""
CORE, LAZY, PART = "SCALE = 1\n", "def rank(texts): return texts\n", "def best(texts): return texts\n"
MEMORY = """
import re
from threading import Lock

import helpers
import package.part
from helpers import score

LIMIT = 3
LIMITS = {"a": None, "b": 1}
WORD = re.compile("a")
LOCK = Lock()

class Base:
    def best(self, texts):
        return sorted(texts, key=score)[:LIMIT]

class Mine(Base):
    @staticmethod
    def other(text):
        return helpers.score(text)

    def search(self, query, k):
        from lazy import rank

        with LOCK:
            return package.part.best(rank(self.best(self.texts)))[: LIMITS["b"]] + WORD.findall(query)

def unused():
    return 1
"""


@pytest.mark.parametrize(
    ("file", "before", "after", "same"),
    [
        ("mine", "rank(self.best(", "rank(self.texts, self.best(", False),
        ("mine", '"b": 1', '"b": 2', False),
        ("mine", 'compile("a")', 'compile("b")', False),
        ("core", "SCALE = 1", "SCALE = 2", False),
        ("lazy", "return texts", "return texts[1:]", False),
        ("package/part", "return texts", "return texts[1:]", False),
        ("mine", "key=score)", "key=score, reverse=True)", False),
        ("mine", "LIMIT = 3", "LIMIT = 4", False),
        ("helpers", "len(text) * WEIGHT", "-len(text) * WEIGHT", False),
        ("helpers", "WEIGHT = 1", "WEIGHT = 2", False),
        ("mine", "return 1", "return 2", True),
    ],
)
def test_what_a_class_uses_belongs_to_it(tmp_path: Path, file: str, before: str, after: str, same: bool) -> None:
    """Bases, helpers, constants and modules of the user do; what its code does not name does not."""

    def digest() -> str:
        code = "from mine import Mine; from baselines.external.digests import digest_of; print(digest_of(Mine))"
        environment = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
        made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        return made.stdout

    texts = {
        "mine": MEMORY,
        "helpers": HELPERS,
        "core": CORE,
        "lazy": LAZY,
        "package/part": PART,
        "package/__init__": "",
    }
    (tmp_path / "package").mkdir()
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    first = digest()
    (tmp_path / f"{file}.py").write_text(texts[file].replace(before, after), encoding="utf-8")
    assert (digest() == first) == same


def test_a_class_without_a_file_is_known_by_its_code() -> None:
    def made(text: str) -> Any:
        space: dict[str, Any] = {"__name__": "__notebook__"}
        exec(text, space)
        return space["Mine"]

    text = "class Mine:\n    def search(self, query, k):\n        return query * 2\n"
    assert digest_of(made(text)) == digest_of(made(text)) != digest_of(made(text.replace("2", "3")))
