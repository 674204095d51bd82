"""Evidence of a part of what was retrieved, for systems that tell it apart (:data:`memsys.vocabulary.RankingName`)."""

from eval.commands.rendering.table import figure
from eval.metrics.evidence import DEPTH
from eval.results.own.stages import mean_score, names_turns, run_protocol
from eval.results.stored_run import StoredRun
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
    means = {words: mean_score(run.rows, f"{metric}_{name}", protocol).score for metric, words in _SHOWN.items()}
    if None in means.values():
        return ""
    figures = ", ".join(f"{words} {figure(mean)}" for words, mean in means.items())
    return f"evidence of the first {DEPTH} {_WORDS[name]}: {figures}"
