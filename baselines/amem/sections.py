"""Reading free-text replies of small models: a JSON object where there is one, else headed sections."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import json_repair

#: Words of a decision, longest first: the first that occurs in the reply counts.
DECISIONS: Mapping[str, tuple[str, ...]] = {
    "STRENGTHEN_AND_UPDATE": ("strengthen", "update_neighbor"),
    "UPDATE_NEIGHBOR": ("update_neighbor",),
    "NO_EVOLUTION": (),
    "STRENGTHEN": ("strengthen",),
}

_HEADED = r"^\W*{name}\w*\W*?:[ \t]*(.*?)(?=^\W*[A-Z][A-Z_ ]{{2,}}\d*\W*?:|\Z)"
_NEIGHBOUR = re.compile(r"^\W*NEIGHBOU?R\W*(\d{1,9})\W*$", flags=re.MULTILINE | re.IGNORECASE)


def section(text: str, name: str) -> str:
    """Return what stands under the heading ``NAME:``, up to the next heading in capitals; empty if there is none."""
    headed = _json_value(text, name)
    if headed is not None:
        return headed
    found = re.search(_HEADED.format(name=name), text, flags=re.MULTILINE | re.DOTALL)
    return found.group(1).strip() if found else ""


def items(text: str) -> list[str]:
    """Split a list written with commas, semicolons or lines; bullets, brackets and quotes come off, repeats too."""
    parts = (re.sub(r"^\s*(?:[-*•]|\d+[.)])\s+", "", part) for part in re.split(r"[,;\n]", text))
    cleaned = (part.strip(" \t[]\"'`*.") for part in parts)
    return [item for item in dict.fromkeys(cleaned) if item and item.lower() != "none"]


def numbers(text: str) -> list[int]:
    """Return the integers of a text, in order."""
    return [int(number) for number in re.findall(r"-?\d{1,9}", text)]


def decision(text: str) -> tuple[str, ...]:
    """Read the actions that a reply decides for.

    The four words are looked for first; then, in free wording, words of both actions. Nothing found means none.
    """
    spelled = re.sub(r"[\s-]+", "_", text.upper())
    named = [(spelled.find(word), -len(word), word) for word in DECISIONS if word in spelled]
    if named:
        return DECISIONS[min(named)[2]]
    stems = (("strengthen", r"STRENGTH|CONNECT|LINK"), ("update_neighbor", r"UPDAT|REWRIT|REVIS"))
    if re.search(r"\bNO\b|\bNONE\b|\bNOT\b", text.upper()):
        return ()
    return tuple(action for action, stem in stems if re.search(stem, spelled))


def neighbour_blocks(text: str, count: int) -> list[tuple[str, list[str]]]:
    """Read one (context, tags) pair per neighbour from blocks headed ``NEIGHBOR n`` (n from 0); what lacks is empty."""
    pairs: list[tuple[str, list[str]]] = [("", []) for _ in range(count)]
    heads = list(_NEIGHBOUR.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    for head, end in zip(heads, ends, strict=False):
        block = text[head.end() : end]
        if int(head.group(1)) < count:
            pairs[int(head.group(1))] = (section(block, "CONTEXT"), items(section(block, "TAGS")))
    return pairs


def _json_value(text: str, name: str) -> str | None:
    """Look a heading up in the reply's JSON object, lists joined by commas; ``None`` where there is no object."""
    start = text.find("{")
    if start < 0:
        return None
    value: Any = json_repair.loads(text[start:])
    if not isinstance(value, dict):
        return None
    found = {str(key).upper(): entry for key, entry in value.items()}.get(name, "")
    if isinstance(found, Sequence) and not isinstance(found, str):
        return ", ".join(str(entry) for entry in found)
    return str(found)
