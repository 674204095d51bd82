"""Groups of hyperparameters, each a mapping of the YAML."""

from dataclasses import dataclass
from typing import Literal

from memsys.errors import ConfigError
from memsys.settings import (
    check_choices,
    check_cosines,
    check_flags,
    check_minimum,
    check_optional,
    check_template,
    check_texts,
)

PageCut = Literal["pairs", "turns", "released_pairs"]
FlushOrder = Literal["before_append", "after_append"]
TopicInput = Literal["both", "user_only"]
KeywordOverlap = Literal["jaccard", "mean_share"]
MergeChoice = Literal["sum", "cosine"]
KeywordCase = Literal["lower", "kept"]
UnreadTopics = Literal["beginning", "drop"]
ContinuesReading = Literal["said", "exact"]
ChainShown = Literal["latest", "two_later"]
SegmentKeywords = Literal["topic", "asked"]
PageVector = Literal["dated", "run_on"]
Eviction = Literal["heat", "lfu"]
Recency = Literal["dialogue", "fresh"]
HeatCredit = Literal["joined", "nearest"]
NothingNew = Literal["cool", "block"]
LongTermReading = Literal["tolerant", "as_written"]
KeywordFallback = Literal["words", "none"]


@dataclass(frozen=True, slots=True)
class ShortTermRules:
    """The queue of the latest pages.

    Attributes:
        capacity: pages.
        flush: a full queue gives its oldest page away before the next is appended, or after it was (the released
            code, whose queue of one page is then always empty).
    """

    capacity: int
    flush: FlushOrder

    def __post_init__(self) -> None:
        check_choices(self, "memory.short_term", flush=FlushOrder)
        check_minimum(self, "memory.short_term", capacity=1)

    def kept(self, pages: int) -> int:
        """Count the pages that stay in the queue for good, of so many."""
        return min(pages, self.capacity if self.flush == "before_append" else self.capacity - 1)


@dataclass(frozen=True, slots=True)
class MidTermRules:
    """Settings of putting pages into segments.

    Attributes:
        capacity: segments.
        theta: least score by which a topic joins a segment: cosine and overlap of keywords together.
        overlap: of keyword sets: Jaccard's, or the mean of the shares of either set (the released code).
        keyword_case: keywords of topics and questions are compared in lower case, or as they are written (the released
            code).
        merge_by: the segment with the greatest sum, or with the greatest cosine, whose sum then decides, unless that
            cosine is negative (the released code).
        copies: a page under two topics of one segment is in it twice, and one in two segments takes two of the places
            among the pages found (the released code); else each page counts once.
        topics_of: what of a page is summarised: both sides, or the user's alone (the released code).
        evict: beyond the capacity the coldest segment goes, or the one that was found least often.
        unread_topics: a page whose topics cannot be read gets its beginning as a topic, or is dropped (the released
            code): no segment has it and no question finds it. Where pages are dropped, topics are taken as they come,
            blank ones too.
        fallback_chars: of a page, which replace a summary that cannot be read.
        continues: a page goes on with the one before where the reply has the word true, or where it is that word and
            nothing else (the released code).
        chain_shown: a page shows its chain's latest summary, or that of the page two places after it in its chain, if
            there is one, else its own (the released code, which unlinks pages as it brings them up to date). An empty
            reply keeps what is known; with ``two_later`` it replaces it, as in the released code.
        keywords_of: a segment has the keywords that its topic came with, or those that the backbone names of its
            summary with one call more (the released code).
        page_vector: what is embedded of a page: its date and both sides on lines of their own, or the user's side,
            the date and the reply with nothing between them (the released code, when it searches).
    """

    capacity: int
    theta: float
    overlap: KeywordOverlap
    keyword_case: KeywordCase
    merge_by: MergeChoice
    copies: bool
    topics_of: TopicInput
    evict: Eviction
    unread_topics: UnreadTopics
    fallback_chars: int
    continues: ContinuesReading
    chain_shown: ChainShown
    keywords_of: SegmentKeywords
    page_vector: PageVector

    def __post_init__(self) -> None:
        group = "memory.mid_term"
        check_choices(self, group, overlap=KeywordOverlap, merge_by=MergeChoice, topics_of=TopicInput, evict=Eviction)
        check_choices(self, group, keyword_case=KeywordCase, unread_topics=UnreadTopics, continues=ContinuesReading)
        check_choices(self, group, chain_shown=ChainShown, keywords_of=SegmentKeywords, page_vector=PageVector)
        check_flags(self, group, "copies")
        check_minimum(self, group, capacity=1, theta=0.0, fallback_chars=1)


@dataclass(frozen=True, slots=True)
class HeatRules:
    """When a segment is hot: alpha visits + beta pages + gamma exp(-seconds since the last visit / mu).

    Attributes:
        alpha: weight of visits. No question's visit is kept, so there are none.
        beta: weight of pages since the last promotion.
        gamma: weight of recency.
        mu: seconds.
        tau: heat at which a segment's pages are read for the profile.
        recency: by the dates of the conversation; ``fresh`` is always 1, as in the released code.
        credit: pages count for the segment that they joined, or for the segment nearest to each of their topics,
            whether they joined it or opened another one (the released code).
        nothing_new: the hottest segment, where it has no page that was not read before, cools down, or stays as it is
            and keeps all others from being read until one of them is hotter (the released code).
    """

    alpha: float
    beta: float
    gamma: float
    mu: float
    tau: float
    recency: Recency
    credit: HeatCredit
    nothing_new: NothingNew

    def __post_init__(self) -> None:
        check_choices(self, "memory.heat", recency=Recency, credit=HeatCredit, nothing_new=NothingNew)
        check_minimum(self, "memory.heat", alpha=0.0, beta=0.0, gamma=0.0, mu=1e-9, tau=0.0)


@dataclass(frozen=True, slots=True)
class LongTermRules:
    """Settings of the long-term memory of the speakers.

    Attributes:
        enabled: else nobody is described. Nobody is in any case where only one speaks (data that is not talk).
        capacity: facts of each kind, the latest; ``None`` for all.
        shortest_profile: characters of a merged profile below which the old one stays.
        reading: of the replies. ``tolerant``: one fact per line, without its bullet; lines that say there is none,
            and headings, are left out, and an empty profile changes nothing. ``as_written`` (the released code): the
            user's facts are lines with their bullets, where a reply without a second part holds the fact "None"; what
            is said of the other speaker is one fact of all lines; and each profile is merged into the one before and
            replaces it, whatever it says.
    """

    enabled: bool
    capacity: int | None
    shortest_profile: int
    reading: LongTermReading

    def __post_init__(self) -> None:
        check_flags(self, "memory.long_term", "enabled")
        check_choices(self, "memory.long_term", reading=LongTermReading)
        check_optional(self, "memory.long_term", capacity=1)
        check_minimum(self, "memory.long_term", shortest_profile=0)


@dataclass(frozen=True, slots=True)
class PromptLayout:
    """Layout of prompts about several pages, and the headings that they ask for (``memory.prompt_layout``).

    Attributes:
        page: in the prompt for the profile, with its sides ``{user}`` and ``{agent}``, its ``{date}``, or all of it as
            other prompts show it, ``{dated}``.
        agent_page: the same in the prompt for facts about the other speaker.
        between: two pages.
        profile: above the profile.
        facts: above the facts about the user.
        agent_facts: above those about the other speaker; empty where none is asked for.
    """

    page: str
    agent_page: str
    between: str
    profile: str
    facts: str
    agent_facts: str

    def __post_init__(self) -> None:
        check_texts(self, "memory.prompt_layout")
        for name in ("page", "agent_page"):
            check_template(f"memory.prompt_layout.{name}", getattr(self, name), "user", "agent", "date", "dated")
        for name in ("profile", "facts"):
            if not any(map(str.isalnum, getattr(self, name))):
                raise ConfigError(f"memory.prompt_layout.{name} has no word by which a reply could be split")


@dataclass(frozen=True, slots=True)
class MemoryOSSearchRules:
    """Settings of the search.

    Attributes:
        query_keywords: the backbone names keywords of the question; without them, segments are chosen by cosine.
        max_keywords: of these, the first so many count; ``None`` for all.
        keyword_fallback: where the reply names none, the question's first words count, or nothing does (the released
            code).
        segments: segments looked into, the most similar ones.
        segment_score: least score of a segment.
        pages: pages found.
        page_cos: least cosine of a page.
        user_facts: facts about the user; ``None`` for all.
        agent_facts: facts about the other speaker; ``None`` for all, whatever their cosine (the released code).
        fact_cos: least cosine of a fact.
    """

    query_keywords: bool
    max_keywords: int | None
    keyword_fallback: KeywordFallback
    segments: int
    segment_score: float
    pages: int
    page_cos: float
    user_facts: int | None
    agent_facts: int | None
    fact_cos: float

    def __post_init__(self) -> None:
        check_flags(self, "memory.retrieve", "query_keywords")
        check_choices(self, "memory.retrieve", keyword_fallback=KeywordFallback)
        check_minimum(self, "memory.retrieve", segments=1, pages=1, segment_score=-1.0)
        check_optional(self, "memory.retrieve", max_keywords=1, user_facts=0, agent_facts=0)
        check_cosines(self, "memory.retrieve", "page_cos", "fact_cos")


@dataclass(frozen=True, slots=True)
class MemoryOSContextRules:
    """Settings of the reader's context.

    Attributes:
        max_tokens: limit, counted with the backbone's tokenizer: recent pages first, then those found, the profile and
            the facts. ``None`` for no limit of its own.
        reserve_tokens: of the window, for instructions, question and reply.
    """

    max_tokens: int | None
    reserve_tokens: int

    def __post_init__(self) -> None:
        check_optional(self, "memory.context", max_tokens=1)
        check_minimum(self, "memory.context", reserve_tokens=0)


@dataclass(frozen=True, slots=True)
class MemoryOSTexts:
    """Words of the context (``memory.context_texts``).

    Attributes:
        recent: heading of the queue.
        found: heading of the pages found.
        overview: what a found page shows of the chain that it belongs to, its ``{overview}``.
        profile: heading of the profile of a ``{speaker}``.
        facts: heading of the facts about a ``{speaker}``.
        page: a page of ``{text}`` with its ``{date}``.
        fact: a ``{fact}`` with its ``{date}``.
        undated_fact: a ``{fact}`` where no date is known.
    """

    recent: str
    found: str
    overview: str
    profile: str
    facts: str
    page: str
    fact: str
    undated_fact: str

    def __post_init__(self) -> None:
        places: dict[str, tuple[str, ...]] = {
            "recent": (),
            "found": (),
            "overview": ("overview",),
            "profile": ("speaker",),
            "facts": ("speaker",),
            "page": ("text", "date"),
            "fact": ("fact", "date"),
            "undated_fact": ("fact",),
        }
        for key, known in places.items():
            check_template(f"memory.context_texts.{key}", getattr(self, key), *known)
