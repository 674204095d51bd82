"""Words for lexical search: lower-case word characters without a short list of English function words."""

import re

_WORD = re.compile(r"\w+")

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


def words(text: str) -> list[str]:
    """Split a text into lower-case words and leave the stop words out, in order, with repeats."""
    return [word for word in _WORD.findall(text.lower()) if word not in STOP_WORDS]
