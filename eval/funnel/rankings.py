"""Evidence of a part of what was retrieved, for systems that tell it apart (:data:`memsys.vocabulary.RankingName`)."""

from math import fsum

from eval.funnel.stages import names_turns, run_protocol
from eval.metrics.evidence import DEPTH
from eval.tables.plain import figure
from eval.tables.stored import StoredRun
from memsys.vocabulary import RANKINGS, RankingName

_WORDS: dict[RankingName, str] = {
    "named": "hits that its model names as sources of the context",
    "searched": "hits that were searched for",
}
#: What is said of each, and how it is called.
_SHOWN = {"e_precision": "precision", "e_recall": "recall", "e_f1": "F1"}


def ranking_remarks(run: StoredRun) -> list[str]:
    """Say how good the evidence of each such list is, over the questions that the run's protocol counts."""
    return [text for name in RANKINGS if (text := _remark(run, name))] if names_turns(run) else []


def _remark(run: StoredRun, name: RankingName) -> str:
    """Say it of one list; empty where no question with gold evidence has it."""
    protocol = run_protocol(run)
    counted = [row.metrics for row in run.rows if protocol.counts(row.kind)]
    rows = [metrics for metrics in counted if metrics.get(f"e_f1_{name}") is not None]
    if not rows:
        return ""
    figures = [
        f"{words} {figure(100 * fsum(metrics[f'{metric}_{name}'] or 0.0 for metrics in rows) / len(rows))}"
        for metric, words in _SHOWN.items()
    ]
    return f"evidence of the first {DEPTH} {_WORDS[name]}: {', '.join(figures)}"
