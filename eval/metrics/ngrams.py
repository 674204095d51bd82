"""BLEU, METEOR and ROUGE: wrappers that feed the reference packages what the papers' code feeds them."""

from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from math import exp, log
from typing import Any

from eval.metrics.resources import punkt_words, stemmer, wordnet
from eval.metrics.text import CACHE_SIZE, gam_tokens

#: A-Mem's weights; the three of BLEU-3 really are 0.33 and not 1/3.
_BLEU_WEIGHTS = [(1, 0, 0, 0), (0.5, 0.5, 0, 0), (0.33, 0.33, 0.33, 0), (0.25, 0.25, 0.25, 0.25)]


@lru_cache(maxsize=CACHE_SIZE)
def punkt_tokens(text: str) -> tuple[str, ...]:
    """Tokenize the lower-cased text by NLTK's ``word_tokenize``."""
    return punkt_words().tokenize(text.lower())


@lru_cache(maxsize=CACHE_SIZE)
def _bleu(prediction: str, reference: str) -> tuple[float, ...]:
    """Return BLEU-1 to BLEU-4 with smoothing method 1; zeros when a side is empty."""
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    predicted, expected = punkt_tokens(prediction), punkt_tokens(reference)
    if not predicted or not expected:
        return (0.0,) * len(_BLEU_WEIGHTS)
    scores = sentence_bleu([expected], predicted, weights=_BLEU_WEIGHTS, smoothing_function=SmoothingFunction().method1)
    return tuple(float(score) for score in scores)


@lru_cache(maxsize=CACHE_SIZE)
def bleu1(prediction: str, reference: str) -> float:
    """Return BLEU-1 on NLTK words. Source: A-Mem and CLAG ``utils.py``, mem0 ``metrics/utils.py``.

    What NLTK's ``sentence_bleu`` gives, without the longer n-grams, which take most of its time and weigh nothing.
    """
    return unigram_bleu(punkt_tokens(prediction), punkt_tokens(reference))


def unigram_bleu(predicted: Sequence[str], expected: Sequence[str]) -> float:
    """Return BLEU-1 of token lists: clipped precision with brevity penalty."""
    clipped = sum((Counter(predicted) & Counter(expected)).values())
    if not clipped:
        return 0.0
    penalty = 1.0 if len(predicted) > len(expected) else exp(1 - len(expected) / len(predicted))
    return penalty * exp(log(clipped / len(predicted)))


def bleu2(prediction: str, reference: str) -> float:
    """Return BLEU-2; source as :func:`bleu1`."""
    return _bleu(prediction, reference)[1]


def bleu3(prediction: str, reference: str) -> float:
    """Return BLEU-3; source as :func:`bleu1`."""
    return _bleu(prediction, reference)[2]


def bleu4(prediction: str, reference: str) -> float:
    """Return BLEU-4; source as :func:`bleu1`."""
    return _bleu(prediction, reference)[3]


def bleu1_gam(prediction: str, reference: str) -> float:
    """Return unsmoothed BLEU-1 (clipped precision, brevity penalty) on GAM tokens. Source: GAM ``locomo_test.py``."""
    predicted, expected = gam_tokens(prediction), gam_tokens(reference)
    if not predicted or not expected:
        return 0.0
    clipped = sum((Counter(predicted) & Counter(expected)).values())
    penalty = 1.0 if len(predicted) >= len(expected) else exp(1 - len(expected) / len(predicted))
    return penalty * clipped / len(predicted)


def meteor_of(prediction: tuple[str, ...], reference: tuple[str, ...]) -> float:
    """Return METEOR of token lists (alpha 0.9, beta 3, gamma 0.5)."""
    from nltk.translate.meteor_score import single_meteor_score

    words = frozenset(stemmer().stem(word.lower()) for word in reference)
    return float(single_meteor_score(reference, prediction, stemmer=stemmer(), wordnet=wordnet().among(words)))


def meteor(prediction: str, reference: str) -> float:
    """Return METEOR on white-space tokens (alpha 0.9, beta 3, gamma 0.5). Source: A-Mem and CLAG ``utils.py``.

    An exact answer of n words scores ``1 - 0.5 / n**3``, so one word scores 0.5. NLTK hands stems to WordNet, so
    synonyms match only where both words equal their stems.
    """
    return meteor_of(tuple(prediction.split()), tuple(reference.split()))


def meteor_tokenized(prediction: str, reference: str) -> float:
    """Return METEOR on NLTK words. Source: MemOS ``locomo_eval.py``."""
    return meteor_of(punkt_tokens(prediction), punkt_tokens(reference))


@cache
def _rouge_tokenizer() -> Any:
    from rouge_score.tokenizers import DefaultTokenizer

    tokenizer = DefaultTokenizer(use_stemmer=False)
    tokenizer._stemmer = stemmer()  # rouge_score has no argument for a cached stemmer of the same algorithm
    tokenizer.tokenize = lru_cache(maxsize=CACHE_SIZE)(tokenizer.tokenize)  # gold texts come back with every run
    return tokenizer


@cache
def _rouge_scorer() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rouge1", "rouge2"], tokenizer=_rouge_tokenizer())


@lru_cache(maxsize=CACHE_SIZE)
def _rouge(prediction: str, reference: str) -> tuple[float, float]:
    scores = _rouge_scorer().score(reference, prediction)
    return float(scores["rouge1"].fmeasure), float(scores["rouge2"].fmeasure)


def rouge1(prediction: str, reference: str) -> float:
    """Return ROUGE-1 F with stemming, package rouge_score. Source: A-Mem and CLAG ``utils.py``."""
    return _rouge(prediction, reference)[0]


def rouge2(prediction: str, reference: str) -> float:
    """Return ROUGE-2 F; source as :func:`rouge1`."""
    return _rouge(prediction, reference)[1]


@lru_cache(maxsize=CACHE_SIZE)
def rouge_l(prediction: str, reference: str) -> float:
    """Return ROUGE-L F; source as :func:`rouge1`. Non-Latin text scores 0: the tokenizer keeps a-z and 0-9 only."""
    predicted, expected = (_rouge_tokenizer().tokenize(text) for text in (prediction, reference))
    return subsequence_f1(predicted, expected)


def subsequence_f1(predicted: Sequence[str], expected: Sequence[str]) -> float:
    """Return ROUGE-L F of token lists."""
    common = common_subsequence(predicted, expected)
    if not common:
        return 0.0
    precision, recall = common / len(predicted), common / len(expected)
    return 2 * precision * recall / (precision + recall)


def common_subsequence(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the longest common subsequence of token lists (Hyyro 2004: one integer per table row)."""
    places: dict[str, int] = {}
    for place, token in enumerate(other):
        places[token] = places.get(token, 0) | 1 << place
    row = everything = (1 << len(other)) - 1
    for token in one:
        matched = row & places.get(token, 0)
        row = (row + matched | row - matched) & everything
    return len(other) - row.bit_count()
