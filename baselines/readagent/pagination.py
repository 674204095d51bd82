"""Cutting a text into pages: marks where a page may end, and one call that chooses among them."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from baselines.readagent.paragraphs import TranscriptParagraph
from baselines.readagent.roles import TEXTS, paginate_for
from baselines.readagent.rules import Dates, PageRules
from memsys.llm.contract import LanguageModel, Reply, Role

_MARK = re.compile(r"<(\d{1,9})>")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Paragraphs ``start`` to ``end`` (exclusive); mark j of ``labels`` precedes paragraph j, or ends the text."""

    start: int
    end: int
    labels: tuple[int, ...]
    words: int


@dataclass(frozen=True, slots=True)
class Pagination:
    """Pages as lists of paragraphs, in order, and what happened."""

    pages: list[list[TranscriptParagraph]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def next_chunk(paragraphs: Sequence[TranscriptParagraph], start: int, rules: PageRules) -> Chunk:
    """Take paragraphs from ``start`` until there are enough words, and place the marks."""
    words, end = paragraphs[start].words, start + 1
    labels: list[int] = []
    while words < rules.max_words and end < len(paragraphs):
        words += paragraphs[end].words
        if words >= rules.start_words:
            labels.append(end)
        end += 1
    return Chunk(start, end, (*labels, end), words)


async def paginate(
    llm: LanguageModel, role: Role, paragraphs: Sequence[TranscriptParagraph], rules: PageRules, *, key: str
) -> Pagination:
    """Cut paragraphs into pages, one call for each page that could end at more than one place.

    A reply that names no mark of the chunk ends the page at the chunk's end (counted as ``fallback.paginate``). The
    page before that the call is shown is of the same text: with pages that end with their sessions, a session is cut
    without a look at others.
    """
    found = Pagination()
    start = 0
    while start < len(paragraphs):
        chunk = next_chunk(paragraphs, start, rules)
        found.counts["paginate.chunks"] += 1
        end = chunk.end
        if chunk.words < rules.tail_words and chunk.end == len(paragraphs):
            found.counts["paginate.tails"] += 1
        elif len(chunk.labels) > 1:
            values = _values(found.pages[-1] if found.pages else [], paragraphs, chunk, rules.dates)
            reply = await llm.ask(paginate_for(role, chunk.labels), values, key=f"{key}:{start}")
            chosen = chosen_place(reply, chunk)
            found.counts["fallback.paginate"] += chosen is None
            end = chunk.end if chosen is None else chosen
        found.pages.append(list(paragraphs[start:end]))
        start = end
    return found


def chosen_place(reply: Reply, chunk: Chunk) -> int | None:
    """Read where a reply ends the page, and ``None`` when it names no place of the chunk.

    In free text it is the first number in angle brackets, wherever it is, and may be that of a paragraph without a
    mark, as in the notebook.
    """
    if reply.value is not None:
        label = int(reply.value["label"])
        return label if label in chunk.labels else None
    match = None if reply.malformed else _MARK.search(reply.text)
    place = int(match.group(1)) if match else -1
    return place if chunk.start < place <= chunk.end else None


def _values(
    before: Sequence[TranscriptParagraph], paragraphs: Sequence[TranscriptParagraph], chunk: Chunk, dates: Dates
) -> dict[str, str]:
    """Return what the prompt shows; of the paragraph that follows its first line, or all where that may be a date."""
    following = paragraphs[chunk.end].text if chunk.end < len(paragraphs) else TEXTS("text_ends")
    if dates != "inline":
        following = following.split("\n")[0]
    return {
        "previous": "\n".join(each.text for each in before) or TEXTS("text_begins"),
        "passage": marked(paragraphs, chunk),
        "following": following,
    }


def marked(paragraphs: Sequence[TranscriptParagraph], chunk: Chunk) -> str:
    """Write a chunk with its marks, each on a line of its own."""
    lines: list[str] = []
    for position in range(chunk.start, chunk.end):
        lines += [f"<{position}>"] if position in chunk.labels else []
        lines.append(paragraphs[position].text)
    return "\n".join([*lines, f"<{chunk.end}>"])
