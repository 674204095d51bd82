"""Reading free-text replies as A-Mem's "robust" path does: JSON where the whole reply is an object, else sections.

Source: WujiangXu/A-mem, March 2026. Where its code would store a value that breaks it later (a number as a context, a
text in place of a list of tags), the reply counts as unreadable here, as one on which it fails at once.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memsys.llm.reading import unfenced_object

#: What each decision asks for.
DECISIONS: Mapping[str, tuple[str, ...]] = {
    "STRENGTHEN_AND_UPDATE": ("strengthen", "update_neighbor"),
    "UPDATE_NEIGHBOR": ("update_neighbor",),
    "STRENGTHEN": ("strengthen",),
}
NO_EVOLUTION = "NO_EVOLUTION"


class UnreadableReplyError(Exception):
    """A reply is JSON of types that the path cannot use."""


def section(text: str, name: str, others: Sequence[str]) -> str:
    """Return what is under ``NAME:`` at the beginning of a line, up to the next of the other headings.

    A heading in bold is none.
    """
    found = re.search(rf"^\s*{name}\s*:\s*(.*)$", text, flags=re.IGNORECASE | re.MULTILINE)
    if found is None:
        return ""
    heading = re.compile(rf"^\s*(?:{'|'.join(others)})\s*:", flags=re.IGNORECASE | re.MULTILINE)
    following = heading.search(text, found.end())
    rest = text[found.end() : following.start() if following else len(text)]
    return "\n".join(part for part in (found.group(1).strip(), rest.strip()) if part)


def items(text: str) -> list[str]:
    """Split a list written with commas or lines; bullets, numbers and quotes come off, repeats stay."""
    found: list[str] = []
    for line in text.splitlines():
        bare = re.sub(r"^\d+[.)]\s*", "", re.sub(r"^[-*•]\s*", "", line.strip()))
        found += [item for part in bare.split(",") if (item := _unquoted(part))]
    return found


def _unquoted(text: str) -> str:
    return text.strip().strip('"').strip("'").strip()


@dataclass(frozen=True, slots=True)
class Analysis:
    """Metadata as a reply gives them; empty where it gives none."""

    keywords: list[str]
    context: str
    tags: list[str]


def analysis(text: str) -> Analysis:
    """Read keywords, context and tags.

    Raises:
        UnreadableReplyError: it is JSON, but of other types.
    """
    found = unfenced_object(text)
    if found is None:
        return Analysis(
            items(section(text, "KEYWORDS", ("CONTEXT", "TAGS"))),
            section(text, "CONTEXT", ("TAGS", "KEYWORDS")),
            items(section(text, "TAGS", ("KEYWORDS", "CONTEXT"))),
        )
    context = found.get("context") or ""
    context = " ".join(_texts(context)) if isinstance(context, list) else context
    if not isinstance(context, str):
        raise UnreadableReplyError
    keywords, tags = (
        items(given) if isinstance(given, str) else _texts(given)
        for given in (found.get("keywords") or [], found.get("tags") or [])
    )
    return Analysis(keywords, context, tags)


def decision(text: str) -> tuple[str, ...] | None:
    """Read the actions that a reply decides for; ``None`` is not an evolution, no action an evolution without effect.

    Raises:
        UnreadableReplyError: it is JSON whose actions are no list.
    """
    found = unfenced_object(text)
    if found is None:
        return DECISIONS.get(_decision_word(text))
    if "should_evolve" in found:
        actions = found.get("actions", []) if found["should_evolve"] else []
        if not isinstance(actions, list | str | Mapping):
            raise UnreadableReplyError
        return tuple(action for action in ("strengthen", "update_neighbor") if action in actions) or None
    word = found.get("decision", NO_EVOLUTION)
    return None if word == NO_EVOLUTION else DECISIONS.get(word, ()) if isinstance(word, str) else ()


def _decision_word(text: str) -> str:
    """Return the word under DECISION; where it is none of the four, what the whole reply mentions."""
    word = section(text, "DECISION", ("REASON",)).upper().replace(" ", "_")
    if word in DECISIONS or word == NO_EVOLUTION:
        return word
    strengthen, update = ("STRENGTHEN" in text.upper(), "UPDATE" in text.upper())
    if strengthen:
        return "STRENGTHEN_AND_UPDATE" if update else "STRENGTHEN"
    return "UPDATE_NEIGHBOR" if update else NO_EVOLUTION


def connections(text: str) -> tuple[list[Any], list[str]]:
    """Read the numbers of notes to link to, and the new tags.

    Raises:
        UnreadableReplyError: it is JSON, but of other types.
    """
    found = unfenced_object(text)
    if found is None:
        named = items(section(text, "CONNECTIONS", ("TAGS",)))
        return [int(item) for item in named if _is_number(item)], items(section(text, "TAGS", ("CONNECTIONS",)))
    numbers = found.get("connections", found.get("suggested_connections", []))
    if not isinstance(numbers, list):
        raise UnreadableReplyError
    if "connections" not in found:
        numbers = [number for number in numbers if isinstance(number, int | float)]
    return numbers, _texts(found.get("tags", found.get("tags_to_update", [])) or [])


def _is_number(item: str) -> bool:
    return re.fullmatch(r"[+-]?\d{1,9}", item) is not None


def neighbour_blocks(text: str, count: int) -> list[tuple[str, list[str]]]:
    """Read one (context, tags) pair per neighbour from blocks headed ``NEIGHBOR n:`` (n from 0); what lacks is empty.

    A block reaches to the heading of the next number, or else to the end.

    Raises:
        UnreadableReplyError: it is JSON, but of other types.
    """
    found = unfenced_object(text)
    if found is None:
        return [_block(text, number) for number in range(count)]
    contexts, tags = found.get("new_context_neighborhood", []), found.get("new_tags_neighborhood", [])
    if not (isinstance(contexts, list) and isinstance(tags, list)):
        raise UnreadableReplyError
    contexts = [*_texts([context or "" for context in contexts]), *[""] * count][:count]
    return list(zip(contexts, [*(_texts(each or []) for each in tags), *[[]] * count][:count], strict=True))


def _block(text: str, number: int) -> tuple[str, list[str]]:
    head = re.search(rf"NEIGHBOR\s+{number}\s*:", text, flags=re.IGNORECASE)
    if head is None:
        return "", []
    following = re.compile(rf"NEIGHBOR\s+{number + 1}\s*:", flags=re.IGNORECASE).search(text, head.end())
    block = text[head.end() : following.start() if following else len(text)]
    return section(block, "CONTEXT", ("TAGS",)), items(section(block, "TAGS", ("CONTEXT",)))


def query_keywords(text: str) -> str:
    """Read the keywords to search by: those of an object, else the whole reply."""
    found = unfenced_object(text)
    return text.strip() if found is None or "keywords" not in found else str(found["keywords"])


def _texts(given: Any) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(text, str) for text in given):
        raise UnreadableReplyError
    return given
