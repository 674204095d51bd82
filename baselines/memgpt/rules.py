"""Groups of hyperparameters, each a mapping of the YAML."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from memsys.errors import ConfigError
from memsys.settings import check_choices, check_flags, check_minimum, check_optional, check_share, check_template

IngestMode = Literal["insert", "session", "turn"]
RecallSearch = Literal["embedding", "bm25", "substring"]
HumanBlock = Literal["halves", "whole"]
AnsweredBy = Literal["reader", "agent"]
FunctionName = Literal[
    "send_message",
    "core_memory_append",
    "core_memory_replace",
    "conversation_search",
    "conversation_search_date",
    "archival_memory_insert",
    "archival_memory_search",
]

FUNCTIONS: tuple[FunctionName, ...] = get_args(FunctionName)
#: Ends a turn, and a search.
SEND: FunctionName = "send_message"
#: Functions that find something.
SEARCHES: tuple[FunctionName, ...] = ("conversation_search", "conversation_search_date", "archival_memory_search")


@dataclass(frozen=True, slots=True)
class IngestionRules:
    """Settings of feeding a conversation to the agent.

    Attributes:
        mode: ``insert`` stores turns and passages without asking the agent; ``session`` shows it a session at a time,
            ``turn`` a pair of turns.
        event_tokens: a session longer than this is shown in several events.
        passage_turns: turns of a passage in mode ``insert``, at most.
        passage_tokens: tokens of such a passage, at most; a longer turn is a passage of its own.
    """

    mode: IngestMode
    event_tokens: int
    passage_turns: int
    passage_tokens: int

    def __post_init__(self) -> None:
        check_choices(self, "memory.ingest", mode=IngestMode)
        check_minimum(self, "memory.ingest", event_tokens=1, passage_turns=1, passage_tokens=1)


@dataclass(frozen=True, slots=True)
class MainContextRules:
    """The window that the method pages (W), and when.

    Attributes:
        window: tokens of the main context: instructions, core memory, summary and queue.
        warn_share: of the window, above which the agent is warned.
        flush_share: of the window, above which messages are evicted before the next call.
        evict_share: of the queue's tokens that an eviction takes.
        keep_messages: latest messages that it leaves.
        spare_tokens: tokens of the backbone's window kept free besides a prompt and its reply.
    """

    window: int
    warn_share: float
    flush_share: float
    evict_share: float
    keep_messages: int
    spare_tokens: int

    def __post_init__(self) -> None:
        group = "memory.main_context"
        check_minimum(self, group, window=1, keep_messages=1, spare_tokens=0)
        check_share(self, group, "warn_share", "flush_share", "evict_share")


@dataclass(frozen=True, slots=True)
class SummaryRules:
    """The summary of what was evicted.

    Attributes:
        words: that the prompt allows.
        fallback_words: of each message, which replace an empty summary.
    """

    words: int
    fallback_words: int

    def __post_init__(self) -> None:
        check_minimum(self, "memory.summary", words=1, fallback_words=1)


@dataclass(frozen=True, slots=True)
class CoreRules:
    """Core memory.

    Attributes:
        limit: characters of a block.
        human: the block about the speakers is one for both (``whole``), or each has half of it (``halves``).
    """

    limit: int
    human: HumanBlock

    def __post_init__(self) -> None:
        check_choices(self, "memory.core", human=HumanBlock)
        check_minimum(self, "memory.core", limit=2)


@dataclass(frozen=True, slots=True)
class AgentRules:
    """The agent's steps.

    Attributes:
        ingest_functions: offered while it takes in an event.
        question_functions: offered while it searches for a question; those that write are refused.
        answer: the text of ``send_message`` is the answer (``agent``), or only ends the search (``reader``).
        ingest_steps: calls for an event, at most.
        question_steps: calls for a question, at most.
        max_failures: failed calls after which an event or a question is left.
        refuse_repeats: a call that was made before, for the same event or question, is refused.
        thought_words: of a thought, as the prompt says.
        return_chars: of what a function returns.
    """

    ingest_functions: Sequence[FunctionName]
    question_functions: Sequence[FunctionName]
    answer: AnsweredBy
    ingest_steps: int
    question_steps: int
    max_failures: int
    refuse_repeats: bool
    thought_words: int
    return_chars: int

    def __post_init__(self) -> None:
        group = "memory.agent"
        check_minimum(self, group, ingest_steps=1, question_steps=0, max_failures=1, thought_words=1, return_chars=1)
        check_flags(self, group, "refuse_repeats")
        check_choices(self, group, answer=AnsweredBy)
        for key in ("ingest_functions", "question_functions"):
            named = list(getattr(self, key))
            if set(named) - set(FUNCTIONS) or SEND not in named or len(set(named)) < len(named):
                raise ConfigError(
                    f"{group}.{key}={named} must name {SEND}, and may name others of {', '.join(FUNCTIONS)}, each once"
                )


@dataclass(frozen=True, slots=True)
class PagedSearchRules:
    """The search functions.

    Attributes:
        recall: how ``conversation_search`` compares: by cosine, by BM25, or as a substring whatever the case.
        bm25: k1 and b.
        page_size: results of a page.
    """

    recall: RecallSearch
    bm25: Sequence[float]
    page_size: int

    def __post_init__(self) -> None:
        check_choices(self, "memory.search", recall=RecallSearch)
        check_minimum(self, "memory.search", page_size=1)
        if len(self.bm25) != 2:
            raise ConfigError(f"memory.search.bm25={list(self.bm25)} must be k1 and b")


@dataclass(frozen=True, slots=True)
class MemGptContextRules:
    """Settings of the reader's context.

    Attributes:
        max_tokens: limit, counted with the backbone's tokenizer; core memory, summary and results go before recent
            messages. ``None`` for no limit of its own.
        recent_tokens: of the latest messages; ``None``: all of the queue.
        reserve_tokens: of the backbone's window, for instructions, question and reply.
    """

    max_tokens: int | None
    recent_tokens: int | None
    reserve_tokens: int

    def __post_init__(self) -> None:
        check_optional(self, "memory.context", max_tokens=1, recent_tokens=0)
        check_minimum(self, "memory.context", reserve_tokens=0)


@dataclass(frozen=True, slots=True)
class MemGptTexts:
    """Words of the context (``memory.context_texts``).

    Attributes:
        core: heading of the core memory.
        block: a block of a ``{name}`` with its ``{text}``.
        summary: heading of the summary.
        recent: heading of the latest messages.
        results: heading of what was found.
        entry: a ``{text}`` with its ``{date}``.
    """

    core: str
    block: str
    summary: str
    recent: str
    results: str
    entry: str

    def __post_init__(self) -> None:
        places = {"block": ("name", "text"), "entry": ("text", "date")}
        for key in self.__slots__:
            check_template(f"memory.context_texts.{key}", getattr(self, key), *places.get(key, ()))
