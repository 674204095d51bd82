"""Groups of hyperparameters, each a mapping of the YAML."""

from dataclasses import dataclass
from typing import Literal

from memsys.settings import check_choices, check_flags, check_minimum, check_share

Dates = Literal["header", "inline"]
Mode = Literal["parallel", "sequential"]


@dataclass(frozen=True, slots=True)
class PageRules:
    """Settings of the ends of pages; sizes are in words between white space.

    Attributes:
        max_words: a chunk takes paragraphs until it has these words; the page ends at one of its marks.
        start_words: marks precede the paragraphs that reach these words, and end the chunk.
        tail_words: what is left with fewer words is one page, without a call.
        split_words: longer turns become several paragraphs, cut between sentences; ``None`` cuts none.
        respect_sessions: a page ends where its session ends; otherwise the conversation is one text.
        dates: ``header`` puts the session's date before each page and each gist; ``inline`` before a session's first
            turn, as a part of the text, where a gist may lose it.
    """

    max_words: int
    start_words: int
    tail_words: int
    split_words: int | None
    respect_sessions: bool
    dates: Dates

    def __post_init__(self) -> None:
        check_choices(self, "memory.pages", dates=Dates)
        check_flags(self, "memory.pages", "respect_sessions")
        check_minimum(self, "memory.pages", max_words=1, start_words=0, tail_words=0)
        if self.split_words is not None:
            check_minimum(self, "memory.pages", split_words=1)


@dataclass(frozen=True, slots=True)
class GistRules:
    """Requirements of a gist.

    Attributes:
        keep_facts: the prompt asks for names, dates and numbers to be kept.
        max_share: words of a gist over those of its page; above, the reply is not a gist.
        min_overlap: share of a gist's content words that its page must have; below, the reply is a refusal or
            an answer.
        fallback_share: share of the page's words, from its start, that replaces what is not a gist.
    """

    keep_facts: bool
    max_share: float
    min_overlap: float
    fallback_share: float

    def __post_init__(self) -> None:
        check_flags(self, "memory.gists", "keep_facts")
        check_share(self, "memory.gists", "max_share", "min_overlap", "fallback_share")


@dataclass(frozen=True, slots=True)
class LookupRules:
    """Settings of the pages chosen to be read again.

    Attributes:
        mode: ``parallel`` names all pages in one call; ``sequential`` one page per call, seeing those opened before.
        parallel_pages: most pages that one call names.
        sequential_pages: most rounds.
        max_tokens: limit of the gists in one call, counted with the backbone's tokenizer: more are shown in several
            calls (``parallel``) or left out (``sequential``). ``None`` for what the window leaves.
    """

    mode: Mode
    parallel_pages: int
    sequential_pages: int
    max_tokens: int | None

    def __post_init__(self) -> None:
        check_choices(self, "memory.lookup", mode=Mode)
        check_minimum(self, "memory.lookup", parallel_pages=1, sequential_pages=1)
        if self.max_tokens is not None:
            check_minimum(self, "memory.lookup", max_tokens=1)


@dataclass(frozen=True, slots=True)
class GistContextRules:
    """Settings of the reader's context.

    Attributes:
        page_tags: pages and gists keep their numbers.
        max_tokens: limit, counted with the backbone's tokenizer: pages in the order of request, then the gists nearest
            to them. ``None`` for what the window leaves.
        reserve_tokens: of the window, for instructions, question and reply; of look-ups too.
    """

    page_tags: bool
    max_tokens: int | None
    reserve_tokens: int

    def __post_init__(self) -> None:
        check_flags(self, "memory.context", "page_tags")
        check_minimum(self, "memory.context", reserve_tokens=0)
        if self.max_tokens is not None:
            check_minimum(self, "memory.context", max_tokens=1)


@dataclass(frozen=True, slots=True)
class ReadAgentRules:
    """All groups."""

    pages: PageRules
    gists: GistRules
    lookup: LookupRules
    context: GistContextRules
