"""F1, BLEU-1, ROUGE-L and METEOR for text in any script, next to the published definitions.

Their tokens are those of mixed segmentation (CMRC 2018, MLQA): characters of scripts without spaces and of Korean, as
in KorQuAD's F1, words elsewhere; NFKC, small letters, no punctuation, no optional vowel points (:mod:`memsys.scripts`).
What is counted over the tokens is what the published definition counts. A run is scored by these where a published
definition does not split its gold answers.
"""

from functools import lru_cache

from eval.metrics.metric import Metric
from eval.metrics.ngrams import meteor_of, subsequence_f1, unigram_bleu
from eval.metrics.overlap import multiset_f1
from eval.metrics.text import CACHE_SIZE
from memsys.scripts import parts


@lru_cache(maxsize=CACHE_SIZE)
def mixed_tokens(text: str) -> tuple[str, ...]:
    """Return the characters of scripts without spaces and of Korean, words of others, emoji."""
    return tuple(parts(text))


def f1_mixed(prediction: str, reference: str) -> float:
    """Return multiset F1 on tokens of any script."""
    return multiset_f1(mixed_tokens(prediction), mixed_tokens(reference))


def bleu1_mixed(prediction: str, reference: str) -> float:
    """Return BLEU-1 on tokens of any script."""
    return unigram_bleu(mixed_tokens(prediction), mixed_tokens(reference))


def rouge_l_mixed(prediction: str, reference: str) -> float:
    """Return ROUGE-L F on tokens of any script, without stemming."""
    return subsequence_f1(mixed_tokens(prediction), mixed_tokens(reference))


def meteor_mixed(prediction: str, reference: str) -> float:
    """Return METEOR on tokens of any script; English words also match by stem and synonym."""
    return meteor_of(mixed_tokens(prediction), mixed_tokens(reference))


_SOURCE = "mixed segmentation of CMRC 2018 and MLQA"

F1 = Metric("f1_mixed", _SOURCE, f1_mixed, label="F1 mixed", words="any_script")
BLEU1 = Metric("bleu1_mixed", _SOURCE, bleu1_mixed, words="any_script", listed=False)
ROUGE_L = Metric("rougeL_mixed", _SOURCE, rouge_l_mixed, label="ROUGE-L mixed", words="any_script")
METEOR = Metric("meteor_mixed", _SOURCE, meteor_mixed, needs=("wordnet",), words="any_script", listed=False)
