"""Content of a text independent of its phrasing: known texts, marks, clusters and notes in it.

Two prompts that show the same things in other words have the same facts. The deterministic backbone replies to facts
alone, so that both sides get the same reply wherever they show the same things.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

#: A mark is a word that the deterministic backbone made up; it names the reply that it comes from.
MARK = re.compile(r"\bzq[0-9a-f]{6}\b")
_CLUSTER = re.compile(r"id: *(cluster_\w+)")
_NOTE = re.compile(r"memory index: *(\d+)")
#: A numbered message: ``[time] 3.Speaker: text``.
_MESSAGE = re.compile(r"^(?:\[[^\]\n]*\] )?(\d+)\.[^:\n]+: ", re.MULTILINE)
#: Cards show this many characters of a note; texts that begin alike so far count as one.
_SHOWN_CHARS = 160
#: Stands for each character of a text that was found.
_FOUND = "\0"
_KEPT = 1 << 14


@dataclass(frozen=True, slots=True)
class Facts:
    """Content of a text.

    Attributes:
        texts: numbers of the known texts that are in it, in the order of their places.
        marks: in the order of the alphabet, repeated ones too: the order of a list of tags is layout.
        clusters: ids of the clusters that it lists, in order.
        notes: numbers of the notes that it lists, in order.
        messages: numbers of the numbered messages that it lists, in order. How they are numbered is layout: a reply
            names them by their numbers, and is the same under another numbering but for these.
    """

    texts: tuple[int, ...] = ()
    marks: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    notes: tuple[int, ...] = ()
    messages: tuple[int, ...] = field(default=(), compare=False)

    @property
    def key(self) -> str:
        """The facts as one text, for digests; two prompts that show the same parts in another order share it."""
        texts = sorted(self.texts)
        return f"{texts}|{','.join(self.marks)}|{','.join(self.clusters)}|{list(self.notes)}"


class KnownTexts:
    """Texts of a conversation that can be found again inside a prompt.

    Args:
        texts: contents of its notes and its questions, in order.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        numbers: dict[str, int] = {}
        for text in texts:
            numbers.setdefault(_needle(text), len(numbers))
        self._numbers = numbers
        self._needles = sorted(((needle, number) for needle, number in numbers.items() if needle), key=_longest_first)
        self._texts = list(numbers)
        #: Facts of a text; each prompt is asked for three times.
        self.facts = lru_cache(maxsize=_KEPT)(self._facts)

    def number(self, text: str) -> int:
        """Return the number of a known text."""
        return self._numbers[_needle(text)]

    def text(self, number: int) -> str:
        """Return the beginning of a known text."""
        return self._texts[number]

    def _facts(self, text: str) -> Facts:
        """Find what a text shows."""
        return Facts(
            tuple(number for _, number in sorted(self._places(text))),
            tuple(sorted(MARK.findall(text))),
            tuple(_CLUSTER.findall(text)),
            tuple(int(number) for number in _NOTE.findall(text)),
            tuple(int(number) for number in _MESSAGE.findall(text)),
        )

    def _places(self, text: str) -> list[tuple[int, int]]:
        """Return places and numbers of the known texts, without those inside a longer one."""
        left, places = text.replace("\n", " "), []
        for needle, number in self._needles:
            at = left.find(needle)
            while at >= 0:
                places.append((at, number))
                left = left[:at] + _FOUND * len(needle) + left[at + len(needle) :]
                at = left.find(needle, at + len(needle))
        return places


def _needle(text: str) -> str:
    return text[:_SHOWN_CHARS].replace("\n", " ").strip()


def _longest_first(entry: tuple[str, int]) -> tuple[int, str]:
    return (-len(entry[0]), entry[0])
