"""The scores that the page can show, with what is known of each."""

from collections.abc import Sequence

from eval.metrics.evidence import SHOWN_RECALL
from eval.metrics.metric import Metric
from eval.metrics.registry import METRICS, TOKEN_F1, higher_is_better, listed
from eval.report.config import PageConfig
from eval.results.stored_run import StoredRun
from eval.results.tables.judges import judge_texts, score_texts
from eval.scoring.beam import meaning, missing_kinds
from memsys.vocabulary import Json

#: Decimals of figures in the page's data.
PAGE_DECIMALS = 4


def metric_list(runs: Sequence[StoredRun], config: PageConfig) -> list[dict[str, Json]]:
    """Return the scores that at least one run holds, judges last.

    Returns:
        Of each its name, its heading, its group in the menu, its source, its unit, and whether a lower value is better.
    """
    held = frozenset[str]().union(*(run.columns.scored for run in runs))
    held -= set() if any(run.shows_contexts for run in runs) else {SHOWN_RECALL}
    found = {name: (group, METRICS[name].source if name in METRICS else "")
             for group, names in config.columns.items() for name in names}  # fmt: skip
    for group, retrieval in (("answers", False), ("evidence", True)):
        found |= {one.name: (group, one.source) for one in listed(retrieval=retrieval) if one.name not in found}
    judges = judge_texts(runs)
    judges |= {
        score: f"{meaning(score, missing_kinds([run.columns for run in runs], score))}, by {text}"
        for score, text in score_texts(runs).items()
    }
    found |= {name: ("judges", judges[name]) for name in sorted(judges)}
    return [_entry(name, *about) for name, about in found.items() if name in held]


def _entry(name: str, group: str, source: str) -> dict[str, Json]:
    known = METRICS.get(name)
    unit, heading = (known.unit, _heading(known)) if known else ("percent", name)
    lower = not higher_is_better(name)
    return {"name": name, "heading": heading, "group": group, "source": source, "unit": unit, "lower": lower}


def _heading(metric: Metric) -> str:
    """Return heading in comparisons; of a definition that has none, the name that it defines and whose it is."""
    if metric.label or not metric.whose:
        return metric.heading
    return f"{'F1' if metric.group == TOKEN_F1 else metric.group} ({metric.whose})"
