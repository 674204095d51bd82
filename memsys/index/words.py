"""Words for lexical search: lower-case word characters without a short list of English function words.

Where no space separates words, pairs of neighbouring characters replace them (:func:`memsys.scripts.all_words`).
"""

import logging

from memsys.scripts import all_words, has_joined_words

logger = logging.getLogger(__name__)

#: Name of this tokenizer in ``run.json``.
TOKENIZER = "words, character bigrams of scripts without spaces"

_FUNCTION_WORDS = """
a an the this that these those
i me my mine we us our ours you your yours he him his she her hers it its they them their theirs
am is are was were be been being do does did has have had having will would shall should can could may might must
of in on at by for with to from into about as than and or but if then so
what which who whom whose when where why how there here
s t m d ll re ve
"""

#: Articles, pronouns, auxiliaries, prepositions, conjunctions, question words and cut endings; no negation.
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
#: Tokenizers that were warned of in this process.
_WARNED: set[str] = set()


def words(text: str) -> list[str]:
    """Split a text into lower-case words and leave the stop words out, in order, with repeats."""
    return [word for word in all_words(text) if word not in STOP_WORDS]


def warn_of_joined_words(tokenizer: str, text: str) -> None:
    """Warn, once per tokenizer and process, that a published tokenizer meets words that no space separates."""
    if has_joined_words(text) and tokenizer not in _WARNED:
        _WARNED.add(tokenizer)
        logger.warning(
            "%s is made for words between spaces and finds little in Chinese, Japanese, Korean, Thai, Lao, Khmer or "
            "Burmese text. It is kept as published: for such text choose a search by vectors, or by memsys's own words",
            tokenizer,
        )
