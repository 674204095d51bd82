"""Token F1 and exact match: five definitions under one name, kept apart.

On real answers their means lie up to four points apart, so a table must say which one it prints.
"""

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from eval.metrics.ngrams import punkt_tokens
from eval.metrics.text import amem_tokens, gam_tokens, squad_tokens, word_tokens


def harmonic(precision: float, recall: float) -> float:
    """Return F1 of precision and recall; 0 where both are 0."""
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def _ratio_f1(common: int, predicted: int, expected: int) -> float:
    return harmonic(common / predicted, common / expected) if common else 0.0


def set_f1(prediction: AbstractSet[str], reference: AbstractSet[str]) -> float:
    """Return F1 over distinct tokens; 0 when a side is empty."""
    return _ratio_f1(len(prediction & reference), len(prediction), len(reference))


def multiset_f1(prediction: Sequence[str], reference: Sequence[str]) -> float:
    """Return F1 over tokens with their counts; 0 when a side is empty."""
    common = sum((Counter(prediction) & Counter(reference)).values())
    return _ratio_f1(common, len(prediction), len(reference))


def f1_set(prediction: str, reference: str) -> float:
    """Set F1 on A-Mem tokens. Source: A-Mem and CLAG ``utils.py``, mem0 ``metrics/utils.py`` (xMemory, SAGE)."""
    return set_f1(set(amem_tokens(prediction)), set(amem_tokens(reference)))


def f1_word(prediction: str, reference: str) -> float:
    """Set F1 on runs of word characters. Source: MemoryOS ``eval/evalution_loco.py``."""
    return set_f1(set(word_tokens(prediction)), set(word_tokens(reference)))


def f1_gam(prediction: str, reference: str) -> float:
    """Return multiset F1; 1 where both texts are empty after normalisation. Source: GAM ``locomo_test.py``."""
    predicted, expected = gam_tokens(prediction), gam_tokens(reference)
    if not predicted and not expected:
        return 1.0
    return multiset_f1(predicted, expected)


def f1_squad(prediction: str, reference: str) -> float:
    """Return multiset F1 on SQuAD tokens. Source: SQuAD; GAM ``hotpotqa_test.py``."""
    return multiset_f1(squad_tokens(prediction), squad_tokens(reference))


def f1_memos(prediction: str, reference: str) -> float:
    """Set F1 on NLTK words of the lower-cased text, punctuation included. Source: MemOS ``locomo_eval.py``."""
    return set_f1(set(punkt_tokens(prediction)), set(punkt_tokens(reference)))


def em_lower(prediction: str, reference: str) -> float:
    """Return 1 where both are equal after strip and lower-casing; 0 when a side is blank. Source: A-Mem and CLAG."""
    predicted = prediction.strip().lower()
    return float(bool(predicted) and predicted == reference.strip().lower())


def em_squad(prediction: str, reference: str) -> float:
    """Return 1 where both are equal after SQuAD normalisation. Source: SQuAD; GAM."""
    return float(squad_tokens(prediction) == squad_tokens(reference))


def substring_em(prediction: str, reference: str) -> float:
    """Return 1 where the reference is in the prediction, both normalised as SQuAD does (MemoryAgentBench).

    Letters count, not words: ``art`` is in ``party``. A reference of which nothing is left (``A``, ``?``) is in
    no prediction; in MemoryAgentBench's code it is in each.
    """
    expected = " ".join(squad_tokens(reference))
    return float(bool(expected) and expected in " ".join(squad_tokens(prediction)))
