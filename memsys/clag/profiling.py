"""Role ``profile``: a summary and tags for a cluster, from its most typical members."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memsys.llm.contract import LanguageModel, Reply, Role
from memsys.notes.note import Note
from memsys.settings import check_texts

_SUMMARY = re.compile(r'"summary"\s*:\s*"((?:[^"\\]|\\.)+)"')
_TAGS = re.compile(r'"tags"\s*:\s*\[([^\]]*)')
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)+)"')
_RECOVERED_TAGS = 5


@dataclass(frozen=True, slots=True)
class Profile:
    """A cluster's new description; an empty part leaves the former one. ``fallback`` names how a bad reply ended.

    Fallbacks: ``recovered`` (parts were found in text that is not a valid object), ``kept`` (nothing was found).
    """

    summary: str
    tags: tuple[str, ...]
    fallback: str | None = None


@dataclass(frozen=True, slots=True)
class SampleLabels:
    """Labels of a member's lines in the prompt for a profile (``memory.sample_labels``)."""

    content: str
    context: str
    tags: str

    def __post_init__(self) -> None:
        check_texts(self, "memory.sample_labels")

    def text(self, note: Note) -> str:
        """Return the lines of a member."""
        tags = ", ".join(note.tags)
        return f"{self.content}{note.content}\n{self.context}{note.context}\n{self.tags}{tags}"


async def ask_profile(
    llm: LanguageModel, role: Role, samples: Sequence[Note], labels: SampleLabels, *, key: str, tag_limit: int
) -> Profile:
    """Describe a cluster with one call.

    Args:
        llm: the backbone.
        role: the role ``profile``.
        samples: members nearest the centroid, nearest first.
        labels: precede the lines of each.
        key: names the cluster and the occasion.
        tag_limit: number of tags kept.
    """
    reply = await llm.ask(role, {"samples": "\n\n".join(labels.text(note) for note in samples)}, key=key)
    return profile_from_reply(reply, tag_limit)


def profile_from_reply(reply: Reply, tag_limit: int) -> Profile:
    """Clean a reply: the summary stripped, each tag cut to its first word, no tag twice; other types are left out."""
    value = reply.value if reply.value is not None else _recovered(reply.text)
    summary, tags = value.get("summary"), value.get("tags")
    listed = tags if isinstance(tags, list) else []
    words = [tag.split()[0] for tag in listed if isinstance(tag, str) and tag.split()]
    told = summary.strip() if isinstance(summary, str) else ""
    profile = Profile(told, tuple(dict.fromkeys(words))[:tag_limit])
    if reply.value is not None:
        return profile
    found = profile.summary or profile.tags
    return Profile(profile.summary, profile.tags, "recovered" if found else "kept")


def _recovered(text: str) -> Mapping[str, Any]:
    """Find a quoted summary and quoted tags in a reply that was cut short."""
    summary, tags = _SUMMARY.search(text), _TAGS.search(text)
    return {
        "summary": summary.group(1) if summary else "",
        "tags": _QUOTED.findall(tags.group(1))[:_RECOVERED_TAGS] if tags else [],
    }
