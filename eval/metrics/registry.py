"""All metrics by name, each with its source: what a table may print.

Those of the papers are listed here; a module of :mod:`eval.metrics` adds others by holding a
:class:`eval.metrics.metric.Metric`, a third-party package by :func:`register`.
"""

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from eval import metrics
from eval.metrics import locomo, ngrams, overlap
from eval.metrics.attacks import ATTACK_METRICS
from eval.metrics.budgets import BUDGET_AREA, BUDGET_RECALL, BUDGETS, CHANCE, LIFT, TOKEN_PRECISION
from eval.metrics.evidence import EVIDENCE_METRICS, POOL_METRICS, SHOWN_RECALL, STORED_RECALL, SUBSTRING, TURN_RECALL
from eval.metrics.items import ITEM_METRICS
from eval.metrics.kept import KEPT_DATES, KEPT_WORDS
from eval.metrics.metric import GROUPS, Metric, PairFunction
from eval.metrics.ordering import ORDER_METRICS, SEMANTIC_ORDER_METRICS
from eval.metrics.sessions import BY_SESSION, SESSION_METRICS
from eval.metrics.updates import UPDATE_METRICS
from memsys.errors import ConfigError
from memsys.vocabulary import RANKINGS

_AMEM = "A-Mem and CLAG utils.py"
_AMEM_MEM0 = f"{_AMEM}; mem0 metrics/utils.py (xMemory, SAGE, nemori)"
_GAM = "GAM research/eval/locomo_test.py"
_SQUAD = "SQuAD; GAM research/eval/hotpotqa_test.py"
_LOCOMO = "LoCoMo task_eval/evaluation.py"
_MEMOS = "MemOS evaluation/scripts/locomo/locomo_eval.py"
_MEMORY_AGENT_BENCH = "MemoryAgentBench utils/eval_other_utils.py"
_CLAG = "CLAG equations 14-18"
_MEMFLY = "MemFly section 4.3, Table 3"
_LONGMEMEVAL = "LongMemEval src/retrieval/eval_utils.py"
_BEAM = "BEAM src/evaluation/compute_metrics.py, items aligned by words"
_BEAM_SEMANTIC = "BEAM src/evaluation/compute_metrics.py, semantic_align (cosine of 0.65 or more)"


#: Factor from a share to percent.
_PERCENT = 100.0
#: The name that papers give to many definitions; their group leads the lens.
TOKEN_F1 = "token F1"
_EXACT, _NGRAMS, _MODEL = "exact match", "n-grams", "model"


def _variant(name: str, source: str, function: PairFunction | None = None, **settings: Any) -> Metric:
    """Return a metric that has no column of its own in comparisons."""
    return Metric(name, source, function, listed=False, **settings)


# Inside a group the order is the lens's.
_LEXICAL = (
    _variant("f1_set", _AMEM_MEM0, overlap.f1_set, group=TOKEN_F1, whose="A-Mem, mem0", words="spaces"),
    _variant(
        "f1_word",
        "MemoryOS eval/evalution_loco.py",
        overlap.f1_word,
        group=TOKEN_F1,
        whose="MemoryOS",
        words="word_characters",
    ),
    _variant("f1_memos", _MEMOS, overlap.f1_memos, needs=("punkt",), group=TOKEN_F1, whose="MemOS", words="spaces"),
    _variant("f1_gam", _GAM, overlap.f1_gam, references="max", group=TOKEN_F1, whose="GAM", words="word_characters"),
    _variant("f1_squad", _SQUAD, overlap.f1_squad, references="max", group=TOKEN_F1, whose="SQuAD", words="spaces"),
    _variant("f1_locomo", _LOCOMO, locomo.f1_locomo, group=TOKEN_F1, whose="LoCoMo", words="spaces"),
    _variant("f1_locomo_multi", f"{_LOCOMO}, category 1", locomo.f1_locomo_multi, words="spaces"),
    _variant(
        "locomo_official", f"{_LOCOMO}, rule per category", rule=locomo.locomo_official, group=TOKEN_F1, words="spaces"
    ),
    _variant("em_lower", _AMEM_MEM0, overlap.em_lower, group=_EXACT),
    _variant("em_squad", _SQUAD, overlap.em_squad, references="max", group=_EXACT),
    _variant("em_set", _LOCOMO, locomo.em_set, group=_EXACT),
    _variant("substring_em", _MEMORY_AGENT_BENCH, overlap.substring_em, references="max", group=_EXACT),
    Metric("bleu1", _AMEM_MEM0, ngrams.bleu1, needs=("punkt",), group=_NGRAMS, label="BLEU-1", words="spaces"),
    _variant("bleu2", _AMEM, ngrams.bleu2, needs=("punkt",), words="spaces"),
    _variant("bleu3", _AMEM, ngrams.bleu3, needs=("punkt",), words="spaces"),
    _variant("bleu4", _AMEM, ngrams.bleu4, needs=("punkt",), words="spaces"),
    _variant("bleu1_gam", _GAM, ngrams.bleu1_gam, references="max", group=_NGRAMS, words="word_characters"),
    _variant("rouge1", _AMEM, ngrams.rouge1, words="latin"),
    _variant("rouge2", _AMEM, ngrams.rouge2, words="latin"),
    Metric("rougeL", _AMEM, ngrams.rouge_l, group=_NGRAMS, label="ROUGE-L", words="latin"),
    _variant("rouge1_locomo", f"{_LOCOMO}, rougel_score", locomo.rouge1_locomo, group=_NGRAMS, words="spaces"),
    Metric("meteor", _AMEM, ngrams.meteor, needs=("wordnet",), group=_NGRAMS, label="METEOR", words="spaces"),
    _variant(
        "meteor_tokenized", _MEMOS, ngrams.meteor_tokenized, needs=("punkt", "wordnet"), group=_NGRAMS, words="spaces"
    ),
)

_NEURAL = (
    _variant("bert_f1", f"{_AMEM}, package bert_score", needs=("bertscore_model",), group=_MODEL),
    _variant("bert_precision", f"{_AMEM}, package bert_score", needs=("bertscore_model",)),
    _variant("bert_recall", f"{_AMEM}, package bert_score", needs=("bertscore_model",)),
    _variant("sbert", _AMEM, needs=("sbert_model",), group=_MODEL),
)

#: Evidence metrics with a column in comparisons (by turn ids), and its heading.
_EVIDENCE_LABELS = {"e_f1": "E-F1", "recall@5": "R@5", "recall@10": "R@10", "ndcg@10": "nDCG@10"}

#: Those whose definition is not the one of their paper, or needs a word.
_OWN_SOURCES = {
    "recall@10": f"{_CLAG}; an upper bound that grows with the number of turns per memory; see recall_turns@10",
    "ndcg@10": "standard nDCG, not CLAG's reading: a memory gains once if it is the first with some gold turn, the "
    "ideal once for each gold turn, so that one with several cannot reach 100",
    "ndcg@10_clipped": "standard nDCG, every memory with gold gains, cut at 100",
    "ndcg@10_retrieved": f"{_CLAG}: the ideal is the same memories in the best order",
}

_EVIDENCE = tuple(
    Metric(
        name + suffix,
        _OWN_SOURCES.get(name, source),
        needs=("retrievals",),
        label=_EVIDENCE_LABELS.get(name, ""),
        listed=name in _EVIDENCE_LABELS and not suffix,
    )
    for source, names in ((_CLAG, EVIDENCE_METRICS), (_MEMFLY, POOL_METRICS))
    for suffix in ("", SUBSTRING)
    for name in names
)

#: Evidence of a part of the hits, for systems that tell it apart.
_RANKINGS = tuple(
    _variant(
        f"{name}_{ranking}",
        f"{_OWN_SOURCES.get(name, _CLAG)}, over the hits that were {ranking}",
        needs=("retrievals",),
    )
    for ranking in RANKINGS
    for name in EVIDENCE_METRICS
)

#: Evidence columns of data sets whose gold names items.
_ITEM_LABELS = {"recall@10_items": "R@10 items", "ndcg@10_items": "nDCG@10 items"}

_ITEMS = tuple(
    Metric(
        name,
        f"{_OWN_SOURCES.get(name.removesuffix('_items'), _CLAG)}, over items",
        needs=("retrievals",),
        label=_ITEM_LABELS.get(name, ""),
        listed=name in _ITEM_LABELS,
    )
    for name in ITEM_METRICS
)

_STORED = (
    Metric(
        TURN_RECALL,
        "ours, by lineage: gold among the first ten turns that the memories came from, however many each has",
        needs=("retrievals",),
        label="R@10 turns",
    ),
    _variant(STORED_RECALL, "ours, by lineage", needs=("retrievals",)),
    Metric(
        SHOWN_RECALL,
        "ours, by lineage: gold turns that a memory in the reader's context came from",
        needs=("retrievals",),
        label="in context",
    ),
)

#: Evidence under equal conditions: docs/measures.md.
_EQUAL = (
    *(
        _variant(
            name,
            f"ours, by lineage: gold in the first {budget:,} tokens",
            needs=("retrievals",),
            label=f"R@{budget:,}t",
        )
        for budget, name in BUDGET_RECALL.items()
    ),
    Metric(
        BUDGET_AREA,
        f"ours, by lineage: area below recall over the first {BUDGETS[-1]:,} tokens of memories",
        needs=("retrievals",),
        label="R tokens",
    ),
    _variant(CHANCE, "ours: ten turns of the conversation by chance", needs=("retrievals",), label="chance"),
    Metric(
        LIFT,
        "ours, by lineage: recall_turns@10 over what ten turns drawn by chance hold",
        needs=("retrievals",),
        label="lift",
        unit="times",
    ),
    Metric(
        TOKEN_PRECISION,
        "ours, by lineage: tokens of the context that gold turns account for",
        needs=("retrievals",),
        label="gold tokens",
    ),
    Metric(
        KEPT_WORDS,
        "ours: content words of gold answer and gold turns that the entries made from these turns still hold",
        needs=("retrievals",),
        label="kept words",
    ),
    _variant(
        KEPT_DATES,
        "ours: days, months and years of the gold answer in the entries made from the gold turns",
        needs=("retrievals",),
        label="kept dates",
    ),
)

#: How far an attack came, on data that `memsys stress` changed.
_ATTACKS = tuple(
    _variant(name, f"ours: {what}", needs=("retrievals",), label=name.removeprefix("attack_"), higher_is_better=False)
    for name, what in ATTACK_METRICS.items()
)

#: Update metrics with a column in comparisons, and its heading.
_UPDATE_LABELS = {"newest_stored": "stored", "newest_retrieved": "new@10", "staleness": "stale"}

_UPDATES = tuple(
    Metric(
        name,
        "ours, by lineage",
        needs=("retrievals",),
        label=_UPDATE_LABELS.get(name, ""),
        higher_is_better=not name.startswith("staleness"),
        listed=name in _UPDATE_LABELS,
    )
    for name in UPDATE_METRICS
)

#: Scores that data sets with the gold for them alone have, always computed there where they need no model.
_SPECIAL = (
    *(
        Metric(name, _LONGMEMEVAL, needs=("retrievals",), label=BY_SESSION.get(name, ""), listed=name in BY_SESSION)
        for name in SESSION_METRICS
    ),
    *(_variant(name, _BEAM, needs=("ordered_items",)) for name in ORDER_METRICS),
    *(_variant(name, _BEAM_SEMANTIC, needs=("ordered_items", "sbert_model")) for name in SEMANTIC_ORDER_METRICS),
)

#: Every metric by name.
METRICS: dict[str, Metric] = {}


def register(*added: Metric) -> None:
    """Add metrics: scoring, comparisons, lens, report, floors and tables know them from then on.

    Raises:
        ConfigError: the name is another metric's, or a group's; or what is added is not a metric.
    """
    for metric in added:
        if not isinstance(metric, Metric):
            raise ConfigError(f"{metric!r} is not a metric; register a Metric(name, source, function)")
        if metric.name in METRICS or metric.name in GROUPS:
            raise ConfigError(f"metric {metric.name!r} is there already; choose another name")
        METRICS[metric.name] = metric


def _of_modules() -> Iterator[Metric]:
    """Yield the metrics at the top of the other modules of this package."""
    for entry in pkgutil.iter_modules(metrics.__path__, f"{metrics.__name__}."):
        if entry.name != __name__:
            yield from (
                value for value in vars(importlib.import_module(entry.name)).values() if isinstance(value, Metric)
            )


register(
    *_LEXICAL,
    *_NEURAL,
    *_EVIDENCE,
    *_RANKINGS,
    *_ITEMS,
    *_STORED,
    *_EQUAL,
    *_ATTACKS,
    *_UPDATES,
    *_SPECIAL,
    *dict.fromkeys(_of_modules()),
)


def groups() -> dict[str, tuple[str, ...]]:
    """Return the names of the metrics of each group."""
    return {
        group: tuple(name for name, metric in METRICS.items() if belongs(metric)) for group, belongs in GROUPS.items()
    }


def definitions() -> dict[str, tuple[str, ...]]:
    """Return the metrics by the name that they define, see :attr:`Metric.group`."""
    found: dict[str, tuple[str, ...]] = {}
    for metric in METRICS.values():
        if metric.group:
            found[metric.group] = (*found.get(metric.group, ()), metric.name)
    return found


def listed(*, retrieval: bool) -> list[Metric]:
    """Return the metrics with a column in comparisons: of retrievals in the registry's order, of answers by heading."""
    found = [metric for metric in METRICS.values() if metric.listed and ("retrievals" in metric.needs) is retrieval]
    return found if retrieval else sorted(found, key=lambda metric: metric.heading)


def scale_of(name: str) -> float:
    """Return the factor from a stored score to the shown one; unregistered scores are shares."""
    return METRICS[name].scale if name in METRICS else _PERCENT


def is_share(name: str) -> bool:
    """Return whether the values of a score lie from 0 to 1, shown as 0 to 100 percent."""
    return scale_of(name) == _PERCENT


def higher_is_better(name: str) -> bool:
    """Return whether a higher score is better; true for unregistered scores but the share of fooled answers."""
    return METRICS[name].higher_is_better if name in METRICS else name != "trapped"


def find_metric(name: str, where: str = "") -> Metric:
    """Look a metric up.

    Args:
        name: of the metric.
        where: what names it, to begin the message with.

    Raises:
        ConfigError: there is no such name.
    """
    if name not in METRICS:
        hint = "names have blanks between them, no commas; " if "," in str(name) else _meant(str(name).lower())
        raise ConfigError(f"{where}metric {name!r} is unknown; {hint}`memsys score --list` shows them all")
    return METRICS[name]


def _meant(name: str) -> str:
    """Return a hint at the metric that was meant: a similar name, this heading, or a name that begins with it."""
    close = [metric.name for metric in METRICS.values() if metric.label.lower() == name]
    close += [each for each in METRICS if each.lower().startswith(f"{name}_")]
    close += get_close_matches(name, [*METRICS, *groups()], n=3)
    return f"did you mean {' or '.join(list(dict.fromkeys(close))[:3])}? " if close else ""


def matching(name: str) -> str:
    """Return how an evidence metric finds gold turns: by ``turn ids`` or by ``substring``; empty for other metrics.

    Empty too for metrics of sessions, which are found by their own ids.
    """
    metric = METRICS.get(name)
    if metric is None or "retrievals" not in metric.needs or name in BY_SESSION:
        return ""
    return "substring" if name.endswith(SUBSTRING) else "turn ids"


def select_metrics(names: Sequence[str]) -> tuple[Metric, ...]:
    """Resolve names and group names, without repetitions, in the registry's order.

    Raises:
        ConfigError: an unknown name.
    """
    named = groups()
    wanted = {found for name in names for found in named.get(name, (name,))}
    chosen = {find_metric(name).name for name in sorted(wanted)}
    return tuple(metric for metric in METRICS.values() if metric.name in chosen)
