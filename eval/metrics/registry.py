"""All metrics by name, each with its source: what a table may print."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from eval.metrics import locomo, ngrams, overlap
from eval.metrics.evidence import EVIDENCE_METRICS, POOL_METRICS
from memsys.errors import ConfigError

PairFunction = Callable[[str, str], float]
CategoryRule = Callable[[str, str, int], float | None]
Need = Literal["punkt", "wordnet", "bertscore_model", "sbert_model", "retrievals"]
#: ``joined``: alternatives count as one text, as A-Mem's code has it. ``max``: the best over the alternatives.
References = Literal["joined", "max"]

#: Ends the names of evidence metrics that look for the gold turns' text in what was retrieved.
SUBSTRING = "_substring"

_AMEM = "A-Mem and CLAG utils.py"
_AMEM_MEM0 = f"{_AMEM}; mem0 metrics/utils.py (xMemory, SAGE, nemori)"
_GAM = "GAM research/eval/locomo_test.py"
_SQUAD = "SQuAD; GAM research/eval/hotpotqa_test.py"
_LOCOMO = "LoCoMo task_eval/evaluation.py"
_MEMOS = "MemOS evaluation/scripts/locomo/locomo_eval.py"
_CLAG = "CLAG equations 14-18"
_MEMFLY = "MemFly section 4.3, Table 3"


@dataclass(frozen=True, slots=True)
class Metric:
    """One named way to score an answer or a retrieval.

    Attributes:
        name: key in ``scores.jsonl``.
        source: where the definition comes from.
        function: score of (prediction, reference); ``None`` for the other kinds.
        rule: score of (prediction, reference, category), for rules that differ by category.
        needs: corpora, models or records without which it cannot be computed.
        references: how several reference answers are taken.
    """

    name: str
    source: str
    function: PairFunction | None = None
    rule: CategoryRule | None = None
    needs: tuple[Need, ...] = ()
    references: References = "joined"

    @property
    def lexical(self) -> bool:
        """Whether an answer's text suffices."""
        return self.function is not None or self.rule is not None


_LEXICAL = (
    Metric("f1_set", _AMEM_MEM0, overlap.f1_set),
    Metric("f1_word", "MemoryOS eval/evalution_loco.py", overlap.f1_word),
    Metric("f1_gam", _GAM, overlap.f1_gam, references="max"),
    Metric("f1_squad", _SQUAD, overlap.f1_squad, references="max"),
    Metric("f1_locomo", _LOCOMO, locomo.f1_locomo),
    Metric("f1_locomo_multi", f"{_LOCOMO}, category 1", locomo.f1_locomo_multi),
    Metric("locomo_official", f"{_LOCOMO}, rule per category", rule=locomo.locomo_official),
    Metric("f1_memos", _MEMOS, overlap.f1_memos, needs=("punkt",)),
    Metric("em_lower", _AMEM_MEM0, overlap.em_lower),
    Metric("em_squad", _SQUAD, overlap.em_squad, references="max"),
    Metric("em_set", _LOCOMO, locomo.em_set),
    Metric("bleu1", _AMEM_MEM0, ngrams.bleu1, needs=("punkt",)),
    Metric("bleu2", _AMEM, ngrams.bleu2, needs=("punkt",)),
    Metric("bleu3", _AMEM, ngrams.bleu3, needs=("punkt",)),
    Metric("bleu4", _AMEM, ngrams.bleu4, needs=("punkt",)),
    Metric("bleu1_gam", _GAM, ngrams.bleu1_gam, references="max"),
    Metric("meteor", _AMEM, ngrams.meteor, needs=("wordnet",)),
    Metric("meteor_tokenized", _MEMOS, ngrams.meteor_tokenized, needs=("punkt", "wordnet")),
    Metric("rouge1", _AMEM, ngrams.rouge1),
    Metric("rouge2", _AMEM, ngrams.rouge2),
    Metric("rougeL", _AMEM, ngrams.rouge_l),
    Metric("rouge1_locomo", f"{_LOCOMO}, rougel_score", locomo.rouge1_locomo),
)

_NEURAL = (
    Metric("bert_f1", f"{_AMEM}, package bert_score", needs=("bertscore_model",)),
    Metric("bert_precision", f"{_AMEM}, package bert_score", needs=("bertscore_model",)),
    Metric("bert_recall", f"{_AMEM}, package bert_score", needs=("bertscore_model",)),
    Metric("sbert", _AMEM, needs=("sbert_model",)),
)

_EVIDENCE = tuple(
    Metric(name + suffix, source, needs=("retrievals",))
    for source, names in ((_CLAG, EVIDENCE_METRICS), (_MEMFLY, POOL_METRICS))
    for suffix in ("", SUBSTRING)
    for name in names
)

#: Every metric by name.
METRICS = {metric.name: metric for metric in (*_LEXICAL, *_NEURAL, *_EVIDENCE)}

#: Names that stand for several metrics.
GROUPS: dict[str, tuple[str, ...]] = {
    "lexical": tuple(metric.name for metric in _LEXICAL),
    "neural": tuple(metric.name for metric in _NEURAL),
    "evidence": tuple(metric.name for metric in _EVIDENCE),
}
GROUPS["all"] = tuple(METRICS)


def find_metric(name: str) -> Metric:
    """Look a metric up.

    Raises:
        ConfigError: there is none of this name.
    """
    if name not in METRICS:
        close = get_close_matches(name, [*METRICS, *GROUPS], n=3)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        raise ConfigError(f"metric {name!r} is unknown; {hint}Choices: {', '.join([*GROUPS, *METRICS])}")
    return METRICS[name]


def matching(name: str) -> str:
    """How a metric of evidence finds gold turns: by ``turn ids`` or by ``substring``; empty for other metrics."""
    metric = METRICS.get(name)
    if metric is None or "retrievals" not in metric.needs:
        return ""
    return "substring" if name.endswith(SUBSTRING) else "turn ids"


def select_metrics(names: Sequence[str]) -> tuple[Metric, ...]:
    """Resolve names and group names, without repetitions, in the registry's order.

    Raises:
        ConfigError: an unknown name.
    """
    wanted = {found for name in names for found in GROUPS.get(name, (name,))}
    chosen = {find_metric(name).name for name in sorted(wanted)}
    return tuple(metric for metric in METRICS.values() if metric.name in chosen)
