"""LoCoMo's official scorer (snap-research/locomo, ``task_eval/evaluation.py``) and category 5 read both ways."""

import re
from collections.abc import Sequence
from functools import lru_cache

from eval.metrics.overlap import multiset_f1
from eval.metrics.resources import stemmer
from eval.metrics.text import CACHE_SIZE, locomo_tokens, squad_tokens
from memsys.scripts import has_joined_words, parts

#: LoCoMo's number for questions whose answer is not in the conversation;
#: :data:`eval.loaders.question_types.ADVERSARIAL` is the kind that they share with those of other data sets.
CATEGORY_5 = 5

_ABSTENTIONS = ("no information available", "not mentioned")
_LETTER = re.compile(r"\(?([ab])\)?", re.IGNORECASE)


@lru_cache(maxsize=CACHE_SIZE)
def stems(text: str) -> tuple[str, ...]:
    """Return the Porter stems of the normalised tokens."""
    return tuple(stemmer().stem(token) for token in locomo_tokens(text))


def f1_locomo(prediction: str, reference: str) -> float:
    """Return multiset F1 on stems, without "and" and the articles."""
    return multiset_f1(stems(prediction), stems(reference))


def f1_locomo_multi(prediction: str, reference: str) -> float:
    """Return the mean, over the reference's comma-separated items, of the best F1 among the prediction's items."""
    predicted = prediction.split(",")
    best = [max(f1_locomo(item, expected) for item in predicted) for expected in reference.split(",")]
    return sum(best) / len(best)


def em_set(prediction: str, reference: str) -> float:
    """Return 1 where the sets of normalised tokens are equal, else 0."""
    return float(set(locomo_tokens(prediction)) == set(locomo_tokens(reference)))


def rouge1_locomo(prediction: str, reference: str) -> float:
    """Return ROUGE-1 F of package ``rouge`` on stems, its 1e-8 included: what the official ``rougel_score`` returns."""
    predicted, expected = set(stems(prediction)), set(stems(reference))
    if not predicted or not expected:
        return 0.0
    common = len(predicted & expected)
    precision, recall = common / len(predicted), common / len(expected)
    return 2 * precision * recall / (precision + recall + 1e-8)


def abstains(prediction: str) -> bool:
    """Return whether the reply says that the conversation does not tell."""
    lowered = prediction.lower()
    return any(phrase in lowered for phrase in _ABSTENTIONS)


def locomo_official(prediction: str, reference: str, category: int) -> float | None:
    """Return the official score by the category's rule; ``None`` for a category that LoCoMo does not have."""
    match category:
        case 1:
            return f1_locomo_multi(prediction, reference)
        case 2 | 4:
            return f1_locomo(prediction, reference)
        case 3:
            return f1_locomo(prediction, reference.split(";")[0])
        case 5:
            return float(abstains(prediction))
        case _:
            return None


def chosen_option(prediction: str, options: Sequence[str]) -> str:
    """Map a reply that is only a letter, ``(a)`` or ``b``, to the text of the option it names.

    Args:
        prediction: the reply.
        options: the two options in the order shown; empty where none were.
    """
    match = _LETTER.fullmatch(prediction.strip())
    if match is None or len(options) != 2:
        return prediction
    return options["ab".index(match[1].lower())]


def is_trapped(prediction: str, false_answer: str) -> bool:
    """Return whether the reply gives category 5's false answer: its words are in the reply, which does not abstain.

    Our own reading (SQuAD normalisation; characters where no space separates words), in addition to the F1 against the
    false answer that A-Mem and CLAG print.
    """
    split = parts if has_joined_words(false_answer) else squad_tokens
    false_words = split(false_answer)
    if not false_words or abstains(prediction):
        return False
    return f" {' '.join(false_words)} " in f" {' '.join(split(prediction))} "
