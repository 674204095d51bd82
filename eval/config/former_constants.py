"""Settings that were constants in code before: with the value of then, a run is the run that it was.

Its identity leaves them out, so that its folder is found again and it is not run twice.
"""

from collections.abc import Mapping
from typing import Any

from eval.config.memory_parts import with_changed_parts

#: Settings of memories by dotted key, and the value that stood in code.
FORMER_CONSTANTS: Mapping[str, Any] = {
    "card_profiles": "own",  # CLAG
    "heuristics": {"keywords": 5, "shortest_word": 3, "tags": 3, "context_chars": 200},  # A-Mem's staged calls
    "bm25.fill": True,  # plain retrieval
    "agent.answer": "reader",  # MemGPT
    "episode.quoted_chars": 100,  # Nemori and xMemory
    "ingest.fallback_letters": 4,  # MemFly
    "research.max_requests": 5,  # GAM
    "research.keywords": "okapi",  # GAM
    "research.opened": "top_k",  # GAM
    "research.ties": "number",  # GAM
    "research.checks": "careful",  # GAM
    "pages.embedded": "beginning",  # GAM
    "texts.no_findings": "(nothing yet)",  # GAM
    "retrieve.max_keywords": 3,  # MemoryOS
    "mid_term.keyword_case": "lower",  # MemoryOS
    "mid_term.copies": False,  # MemoryOS
    "mid_term.unread_topics": "beginning",  # MemoryOS
    "mid_term.continues": "said",  # MemoryOS
    "mid_term.chain_shown": "latest",  # MemoryOS
    "mid_term.keywords_of": "topic",  # MemoryOS
    "mid_term.page_vector": "dated",  # MemoryOS
    "long_term.reading": "tolerant",  # MemoryOS
    "retrieve.keyword_fallback": "words",  # MemoryOS
    "prompt_layout": {  # MemoryOS
        "page": "{dated}",
        "agent_page": "{dated}",
        "between": "\n\n",
        "profile": "PROFILE:",
        "facts": "FACTS:",
        "agent_facts": "",
    },
    "heat.credit": "joined",  # MemoryOS
    "heat.nothing_new": "cool",  # MemoryOS
    "summaries.named_turns": "all",  # MemoryBank
    "update.conflicts_name_turns": True,  # MemFly
    "bare_lists": "lost",  # LightMem
    "theme.summaries": "one_line",  # xMemory
    "gate.silent": None,  # xMemory
    "proxy.tool_calls": "served",  # packages
}


def without_former_constants(memory: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a memory's settings, and those of its host, without the former constants that have their value of then."""
    return with_changed_parts(memory, _without_own)


def _without_own(memory: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: dict(value) if isinstance(value, Mapping) else value for key, value in memory.items()}
    for dotted, constant in FORMER_CONSTANTS.items():
        parent, _, child = dotted.rpartition(".")
        group = kept.get(parent) if parent else kept
        if isinstance(group, dict) and child in group and group[child] == constant:
            del group[child]
    return kept
