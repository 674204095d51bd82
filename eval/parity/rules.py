"""Tests of a difference's two values, by the names that ``match`` in ``departures.yaml`` uses."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from eval.parity.compare import AGAIN
from memsys.errors import ConfigError

#: Words that stand before the fields of a note or a cluster, on either side.
LABELS = frozenset(
    ("cluster_id", "id", "size", "summary", "cluster_tags", "tags", "representative_memories", "example", "content",
     "context", "query", "user")
)  # fmt: skip
#: Words of the descriptions of clusters that have no profile, on either side.
DESCRIPTIONS = frozenset(
    ("cluster", "around", "memories", "related", "to", "notes", "about", "on", "various", "topics", "subcluster",
     "part", "a", "b")
)  # fmt: skip
#: Words of the headings above lists of memories, on either side.
HEADINGS = frozenset(("memories", "for", "user", "of"))
#: Lines that stand above lists, in small letters.
LINES = frozenset(("original messages:", "(none)"))
#: What stands around the lines of MemoryOS's context: bullets, brackets, and when a fact was said.
_AROUND = re.compile(r"^(?:\[|\(about: |(?:- )+)|(?: \(said on [^)]*\)|\]|\))$")
_OF_A_PAGE = re.compile(r"\bUser: .*? Assiant: ", re.DOTALL)
_ESCAPE = re.compile(r'\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])')
_WORD = re.compile(r"\w+")


def links_to_stored_notes(place: str, ours: Any, theirs: Any) -> bool:
    """Ours are their links without those that name no note stored before (``place`` is ``notes.N.links``)."""
    number = int(place.split(".")[1])
    return bool(ours == [link for link in theirs if isinstance(link, int) and 0 <= link < number])


def two_members(place: str, ours: Any, theirs: Any) -> bool:
    """There are two: both are equally near to their mean, and their order is a matter of the last digit."""
    return len(ours) == len(theirs) == 2


def same_words_but_labels(place: str, ours: Any, theirs: Any) -> bool:
    """Both hold the same words, each as often, but for the labels of fields."""
    return _words(ours) == _words(theirs)


def same_words_but_descriptions(place: str, ours: Any, theirs: Any) -> bool:
    """As ``same_words_but_labels``, and but for how clusters without a profile are described."""
    return _words(ours, DESCRIPTIONS) == _words(theirs, DESCRIPTIONS)


def same_words_but_headings(place: str, ours: Any, theirs: Any) -> bool:
    """Both hold the same words, each as often, but for headings of lists; theirs may be written as JSON."""
    return _words(_unescaped(ours), HEADINGS) == _words(_unescaped(theirs), HEADINGS)


def same_lines(place: str, ours: Any, theirs: Any) -> bool:
    """Both hold the same lines in the same order, but for headings, bullets, blank lines and capitals."""
    return _lines(ours) == _lines(theirs)


def neighbours_swapped(place: str, ours: Any, theirs: Any) -> bool:
    """Both hold the same lines, and some that stand next to each other in the other order: they are all but tied."""
    one, other = ours.splitlines(), theirs.splitlines()
    at = 0
    while at < len(one):
        if one[at : at + 1] == other[at : at + 1]:
            at += 1
        elif len(one[at : at + 2]) == 2 and one[at : at + 2] == other[at : at + 2][::-1]:
            at += 2
        else:
            return False
    return len(one) == len(other)


def same_but_correction(place: str, ours: Any, theirs: Any) -> bool:
    """Both are the same up to their last message, which says what was wrong with a reply."""
    one, other = ours.rpartition(AGAIN)[0], theirs.rpartition(AGAIN)[0]
    return bool(one == other and one)


def theirs_of_a_page(place: str, ours: Any, theirs: Any) -> bool:
    """Theirs alone: a call about both sides of a page, as MemoryOS's release writes them."""
    return ours is None and _OF_A_PAGE.search(theirs) is not None


def lines_shown(place: str, ours: Any, theirs: Any) -> bool:
    """Each line of ours but headings stands in theirs, without its bullet and brackets and when a fact was said."""
    lines = (line for line in ours.splitlines() if not line.endswith(":"))
    return all(_AROUND.sub("", line).strip() in theirs for line in lines)


def same_words(place: str, ours: Any, theirs: Any) -> bool:
    """Both hold the same words, numbers and signs in the same order: only white space differs."""
    return "".join(ours.split()) == "".join(theirs.split())


def _lines(text: str) -> list[str]:
    lines = (line.strip(" •").lower() for line in text.splitlines())
    return [line for line in lines if line and line not in LINES]


def _unescaped(text: str) -> str:
    """A text with its JSON escapes resolved."""
    read = _ESCAPE.sub(lambda found: str(json.loads(f'"{found[0]}"')), text)
    return read.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _words(text: str, others: frozenset[str] = frozenset()) -> Counter[str]:
    return Counter(word for word in _WORD.findall(text) if word.lower() not in LABELS | others)


RULES: Mapping[str, Callable[[str, Any, Any], bool]] = {
    "lines_shown": lines_shown,
    "links_to_stored_notes": links_to_stored_notes,
    "theirs_of_a_page": theirs_of_a_page,
    "two_members": two_members,
    "neighbours_swapped": neighbours_swapped,
    "same_but_correction": same_but_correction,
    "same_lines": same_lines,
    "same_words": same_words,
    "same_words_but_headings": same_words_but_headings,
    "same_words_but_descriptions": same_words_but_descriptions,
    "same_words_but_labels": same_words_but_labels,
}


def passes(rule: str | None, place: str, ours: Any, theirs: Any) -> bool:
    """Whether two values pass a rule; any two do where there is none.

    Raises:
        ConfigError: there is no such rule.
    """
    if rule is None:
        return True
    if rule not in RULES:
        raise ConfigError(f"departures.yaml: match: rule={rule} is unknown; choose one of {', '.join(RULES)}")
    return RULES[rule](place, ours, theirs)
