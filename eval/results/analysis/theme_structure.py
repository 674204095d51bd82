"""Changes of themes while a memory was built, and its retrieval's costs (xMemory, sections 5.2 and 5.3).

Pure functions over stored records.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eval.runs.records import ConversationRecord, RetrievalRecord
from eval.scoring.means import mean_or_none
from memsys.llm.ledger import CallRecord

#: Phases of a question; construction is not counted.
QUERY_PHASES = ("retrieve", "answer")

_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


def reassignment(paths: Sequence[Sequence[str]]) -> dict[str, float | None]:
    """Return the dynamic reassignment ratio in three readings.

    Args:
        paths: by fact, the themes it belonged to, first to last.

    Returns:
        ``by_id``: share of facts whose last theme has another id than the first. ``by_content``: share of facts that
        did not begin in the theme that most facts of their last theme began in, whatever ids were given. ``ever``:
        share of facts that changed their theme at any time.
    """
    known = [path for path in paths if path]
    origins: dict[str, Counter[str]] = defaultdict(Counter)
    for path in known:
        origins[path[-1]][path[0]] += 1
    ancestors = {theme: counts.most_common(1)[0][0] for theme, counts in origins.items()}
    return {
        "by_id": mean_or_none([float(path[0] != path[-1]) for path in known]),
        "by_content": mean_or_none([float(path[0] != ancestors[path[-1]]) for path in known]),
        "ever": mean_or_none([float(len(set(path)) > 1) for path in known]),
    }


def structure(conversations: Sequence[ConversationRecord]) -> dict[str, Any]:
    """Sum up the hierarchies of all conversations: sizes, reassignment (over all facts), changes and ``f``."""
    statistics = [record.statistics for record in conversations]
    sizes = [size for each in statistics for size in each["theme_sizes"]]
    paths = [path for each in statistics for path in each["theme_paths"]]
    causes = Counter(cause for each in statistics for of_fact in each["theme_causes"] for cause in of_fact)
    messages = [count for each in statistics for count in each["episode_messages"]]
    stages = list(dict.fromkeys(stage for each in statistics for stage in each["objective"]))
    return {
        "episodes": sum(each["episodes"] for each in statistics),
        "facts": sum(each["facts"] for each in statistics),
        "themes": len(sizes),
        "turns_per_episode": mean_or_none(messages),
        "facts_per_theme": mean_or_none(sizes),
        "theme_sizes": {str(size): count for size, count in sorted(Counter(sizes).items())},
        "reassignment": reassignment(paths),
        "causes": dict(sorted(causes.items())),
        "objective": {stage: mean_or_none([each["objective"][stage] for each in statistics]) for stage in stages},
    }


def query_tokens(calls: Sequence[CallRecord], questions: Sequence[str]) -> dict[str, float | None]:
    """Average the tokens that questions cost.

    A call that was made twice, as in the warm-up of latency mode, counts once; a cached call counts as if it were made.

    Args:
        calls: the ledger.
        questions: ids of the questions that count.

    Returns:
        Per question: ``total`` of prompts and replies, of which ``probe``, ``answer`` and ``other``; ``reader_prompt``,
        the answering prompt alone; ``calls``, requests.
    """
    wanted = set(questions)
    unique = {
        (call.item, call.phase, call.role, call.key, call.attempt): call
        for call in calls
        if call.phase in QUERY_PHASES and call.item in wanted
    }
    spent: Counter[str] = Counter()
    for call in unique.values():
        kind = "answer" if call.phase == "answer" else "probe" if call.role == "probe" else "other"
        spent[kind] += call.prompt_tokens + call.completion_tokens
        spent["reader_prompt"] += call.prompt_tokens if kind == "answer" else 0
    spent["total"], spent["calls"] = spent["probe"] + spent["answer"] + spent["other"], len(unique)
    kinds = ("total", "probe", "answer", "other", "reader_prompt", "calls")
    return {kind: spent[kind] / len(wanted) if wanted else None for kind in kinds}


def gate(retrievals: Sequence[RetrievalRecord]) -> dict[str, Any]:
    """Sum up Stage II: probes, admitted and expanded episodes per question, and quantiles of the measured gains.

    The quantiles are what thresholds for a new backbone are chosen from, on questions that are not scored.
    """
    traces = [record.trace for record in retrievals if "probes" in record.trace]
    gains = [float(probe["gain"]) for trace in traces for probe in trace["probes"]]
    return {
        "questions": len(traces),
        "probes": mean_or_none([len(trace["probes"]) for trace in traces]),
        "admitted": mean_or_none([len(trace["episodes"]) for trace in traces]),
        "expanded": mean_or_none([len(trace["expanded"]) for trace in traces]),
        "facts": mean_or_none([len(trace["facts"]) for trace in traces]),
        "themes": mean_or_none([len(trace["themes"]) for trace in traces]),
        "fallbacks": dict(sorted(Counter(name for trace in traces for name in trace["fallbacks"]).items())),
        "gain_quantiles": {f"{share:g}": float(np.quantile(gains, share)) if gains else None for share in _QUANTILES},
        "seconds": _spans(traces),
    }


def _spans(traces: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    names = dict.fromkeys(name for trace in traces for name in trace.get("spans", {}))
    return {name: mean_or_none([trace["spans"][name] for trace in traces if name in trace["spans"]]) for name in names}
