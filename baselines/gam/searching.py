"""The three tools that find pages: by words, by meaning, and by number."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from baselines.gam.lucene import LuceneIndex
from baselines.gam.pages import AbstractedPage, AbstractLines
from baselines.gam.rules import TOOLS, GamPageRules, ResearchRules, Tool
from baselines.gam.stems import stems
from memsys.embedding.contract import Embedder
from memsys.index.bm25 import BM25Index
from memsys.index.vector import SCORE_DECIMALS, VectorIndex
from memsys.llm.contract import Reply
from memsys.llm.reading import TOLERANT, ReplyReading
from memsys.llm.values import whole_number


@dataclass(frozen=True, slots=True)
class PageSearchPlan:
    """Requests of a search.

    Attributes:
        tools: to use, in order.
        keywords: searched together.
        queries: searched one by one.
        numbers: of pages to open.
    """

    tools: tuple[Tool, ...] = ()
    keywords: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundPage:
    """A page with the tool that scored it best."""

    number: int
    score: float
    source: Tool


@dataclass(slots=True)
class PageStore:
    """Pages with both indexes over their texts; neither index sees an abstract."""

    vectors: VectorIndex
    words: BM25Index
    abstracts: AbstractLines
    pages: list[AbstractedPage] = field(default_factory=list)
    number_of: dict[str, int] = field(default_factory=dict)

    def add(self, page: AbstractedPage) -> None:
        """Append a page, whose vector was added."""
        self.number_of[page.page_id] = len(self.pages)
        self.words.add([page.page_id], [page.text])
        self.abstracts.add(page)
        self.pages.append(page)


def empty_store(dimension: int, rules: ResearchRules, pages: GamPageRules) -> PageStore:
    """Make a store without a page."""
    k1, b = rules.bm25
    words = LuceneIndex(k1, b) if rules.keywords == "lucene" else BM25Index(k1=k1, b=b, tokenise=stems)
    return PageStore(VectorIndex(dimension), words, AbstractLines(pages))


def read_plan(
    reply: Reply, question: str, rules: ResearchRules, reading: ReplyReading = TOLERANT
) -> tuple[PageSearchPlan, bool]:
    """Read a plan; tools that are not allowed, and what is given for tools that are not named, do not count.

    Args:
        reply: of the planner.
        question: that is searched for where the rules say so.
        rules: of research.
        reading: of the planner's role.

    Returns:
        The plan, and whether it had to be replaced: by nothing, or by a search for the question.
    """
    plan = PageSearchPlan()
    if reply.value is not None:
        given = reply.value
        plan = PageSearchPlan(
            tuple(dict.fromkeys(tool for tool in given.get("tools", ()) if tool in rules.tools)),
            tuple(reading.texts(given.get("keyword_collection", []))),
            tuple(reading.texts(given.get("vector_queries", []))),
            tuple(dict.fromkeys(_page_number(each) for each in given.get("page_index", ()))),
        )
    if not plan.tools and rules.infer_tools:
        wanted = {"keyword": plan.keywords, "vector": plan.queries, "page_index": plan.numbers}
        tools = tuple(tool for tool in TOOLS if wanted[tool] and tool in rules.tools)
        plan = PageSearchPlan(tools, plan.keywords, plan.queries, plan.numbers)
    if plan.tools:
        return plan, False
    if rules.plan_fallback == "question":
        return PageSearchPlan(tuple(t for t in TOOLS[:2] if t in rules.tools), (question,), (question,)), True
    return PageSearchPlan(), True


def _page_number(given: float | str) -> int:
    """Read a number, which may be in words; -1, which is not a page, where it has too many digits to be one."""
    if isinstance(given, str):
        number = whole_number(given.strip().removeprefix("+"))
        return -1 if number is None else number
    return int(given)  # 1.0 is an integer in JSON


async def search_pages(
    store: PageStore, embedder: Embedder, plan: PageSearchPlan, rules: ResearchRules
) -> tuple[list[FoundPage], Mapping[str, int]]:
    """Use the plan's tools.

    BM25 scores and sums of cosines are on one scale, as in the released code: pages found by words come first.

    Returns:
        Pages, each once with its best score, best first; and how many each tool found.
    """
    totals = await _summed(store, embedder, plan.queries, rules) if "vector" in plan.tools else {}
    order = _by_score if rules.ties == "number" else _by_score_alone
    opened = rules.top_k if rules.opened == "top_k" else None
    found: Mapping[Tool, Callable[[], list[tuple[int, float]]]] = {
        "keyword": lambda: _by_words(store, plan.keywords, rules),
        "vector": lambda: sorted(totals.items(), key=order)[: rules.top_k],
        "page_index": lambda: [(n, 0.0) for n in plan.numbers if 0 <= n < len(store.pages)][:opened],
    }
    best: dict[int, FoundPage] = {}
    counts: Counter[str] = Counter()
    for tool in plan.tools:
        for number, score in found[tool]():
            counts[tool] += 1
            if number not in best or score > best[number].score:
                best[number] = FoundPage(number, score, tool)
    return sorted(best.values(), key=lambda page: order((page.number, page.score))), counts


def _by_score(entry: tuple[int, float]) -> tuple[float, int]:
    return -round(entry[1], SCORE_DECIMALS), entry[0]


def _by_score_alone(entry: tuple[int, float]) -> tuple[float, int]:
    return _by_score((0, entry[1]))


def _by_words(store: PageStore, keywords: Sequence[str], rules: ResearchRules) -> list[tuple[int, float]]:
    """Find pages by one query of all keywords; pages without one of the words are not found."""
    lucene = rules.keywords == "lucene"
    found = store.words.search(" ".join(keywords), len(store.pages) if lucene else rules.top_k) if keywords else []
    hits = [(store.number_of[page_id], score) for page_id, score in found if score > 0]
    return sorted(hits, key=_as_anserini)[: rules.top_k] if lucene else hits


def _as_anserini(entry: tuple[int, float]) -> tuple[float, str]:
    """Sort pages by score, ties by name as text (10 before 2), as Anserini does."""
    return _by_score(entry)[0], str(entry[0])


async def _summed(
    store: PageStore, embedder: Embedder, queries: Sequence[str], rules: ResearchRules
) -> Mapping[int, float]:
    """Add up, for each page, its cosines with the queries that have it among their best."""
    totals: dict[int, float] = {}
    for vector in await embedder.embed(list(queries)):
        for page_id, score in store.vectors.search(vector, rules.top_k):
            number = store.number_of[page_id]
            totals[number] = totals.get(number, 0.0) + score
    return totals
