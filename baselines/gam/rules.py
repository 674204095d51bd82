"""Groups of hyperparameters, each a mapping of the YAML."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from memsys.errors import ConfigError
from memsys.settings import check_choices, check_flags, check_minimum, check_optional, check_template

Tool = Literal["keyword", "vector", "page_index"]
PageBound = Literal["session", "record"]
EmbeddedPart = Literal["beginning", "mean_of_windows"]
PlanFallback = Literal["nothing", "question"]
ShownText = Literal["integrated", "integrated_and_pages", "pages"]
KeywordScores = Literal["okapi", "lucene"]
OpenedPages = Literal["top_k", "all"]
TiedPages = Literal["number", "found"]
CheckReading = Literal["careful", "released"]

TOOLS: tuple[Tool, ...] = get_args(Tool)


@dataclass(frozen=True, slots=True)
class GamPageRules:
    """Settings of making pages from a conversation.

    Attributes:
        max_tokens: a page is closed before the turn that would exceed it; ``None`` for whole sessions.
        bound: what a page may not cross: a session, or a record of the data set.
        embedded: of a page, its beginning, as far as the embedder reads (the released code: 512 tokens), or all of it,
            as the mean of the vectors of its consecutive windows, each as long as the embedder reads.
        abstract_chars: of a page, which replace an empty abstract.
        by_position: pages are shown to the planner under their place in the list of different abstracts, as in the
            released code, whose numbers are wrong after an abstract that is empty or was written before.
    """

    max_tokens: int | None
    bound: PageBound
    embedded: EmbeddedPart
    abstract_chars: int
    by_position: bool

    def __post_init__(self) -> None:
        check_choices(self, "memory.pages", bound=PageBound, embedded=EmbeddedPart)
        check_optional(self, "memory.pages", max_tokens=1)
        check_minimum(self, "memory.pages", abstract_chars=1)
        check_flags(self, "memory.pages", "by_position")


@dataclass(frozen=True, slots=True)
class ResearchRules:
    """Settings of the research of a question.

    Attributes:
        max_rounds: of planning, searching, integrating and checking.
        tools: that the planner may choose.
        top_k: pages found by each tool.
        bm25: k1 and b of the keyword search.
        keywords: ``okapi`` searches words by :class:`memsys.index.bm25.BM25Index`; ``lucene`` by Lucene's words, stems,
            lengths and scores (:mod:`baselines.gam.lucene`), as the released code does through Pyserini.
        opened: how many pages a plan may open by number; the released code opens ``all`` that it names.
        ties: pages with equal scores are in the order of their ``number``, or as they were ``found``, tool by tool,
            as in the released code; pages opened by number all have the score 0.
        abstracts_shown: the planner sees the abstracts.
        plan_fallback: what is searched where a plan cannot be read or chooses no tool: nothing, as in the released
            code, or the question, by keywords and vectors.
        infer_tools: a plan that names no tool uses those that it has something for.
        keep_on_empty: an empty integration keeps the earlier text; the released code erases it.
        last_requests: further questions are asked for after the last round too, where nothing reads them.
        max_requests: further questions that are taken of one reply; ``None`` for all, as in the released code.
        checks: ``careful`` takes true, or yes in words, as enough, and else asks for further questions; ``released``
            takes what Python takes for true, and where the check is not an object asks for none.
    """

    max_rounds: int
    tools: Sequence[Tool]
    top_k: int
    bm25: Sequence[float]
    abstracts_shown: bool
    plan_fallback: PlanFallback
    infer_tools: bool
    keep_on_empty: bool
    last_requests: bool
    max_requests: int | None
    keywords: KeywordScores
    opened: OpenedPages
    ties: TiedPages
    checks: CheckReading

    def __post_init__(self) -> None:
        group = "memory.research"
        check_choices(self, group, plan_fallback=PlanFallback, keywords=KeywordScores, opened=OpenedPages)
        check_choices(self, group, ties=TiedPages, checks=CheckReading)
        check_minimum(self, group, max_rounds=1, top_k=1)
        check_optional(self, group, max_requests=1)
        check_flags(self, group, "abstracts_shown", "infer_tools", "keep_on_empty", "last_requests")
        if not self.tools or set(self.tools) - set(TOOLS):
            raise ConfigError(f"memory.research.tools={list(self.tools)} must name some of {', '.join(TOOLS)}")
        if len(self.bm25) != 2:
            raise ConfigError(f"memory.research.bm25={list(self.bm25)} must be k1 and b")


@dataclass(frozen=True, slots=True)
class GamContextRules:
    """Settings of the reader's context.

    Attributes:
        shown: the integrated text, the pages found, or both.
        max_tokens: limit, counted with the backbone's tokenizer; ``None`` for no limit of its own.
        reserve_tokens: of the window, for instructions, question and reply.
        spare_tokens: tokens of the window kept free besides a research prompt and its reply.
    """

    shown: ShownText
    max_tokens: int | None
    reserve_tokens: int
    spare_tokens: int

    def __post_init__(self) -> None:
        check_choices(self, "memory.context", shown=ShownText)
        check_optional(self, "memory.context", max_tokens=1)
        check_minimum(self, "memory.context", reserve_tokens=0, spare_tokens=0)


@dataclass(frozen=True, slots=True)
class GamTexts:
    """Words of pages and prompts (``memory.texts``).

    Attributes:
        header: first line of a page of a ``{session}`` and its ``{date}``; ``{index}`` is the number at the end of the
            session's id, counted from 0 as in the released script.
        undated_header: the same where no date is known.
        nothing: text of an empty list.
        no_findings: stands for findings before the first.
    """

    header: str
    undated_header: str
    nothing: str
    no_findings: str

    def __post_init__(self) -> None:
        check_template("memory.texts.header", self.header, "session", "date", "index")
        check_template("memory.texts.undated_header", self.undated_header, "session", "index")
        check_template("memory.texts.nothing", self.nothing)
        check_template("memory.texts.no_findings", self.no_findings)
