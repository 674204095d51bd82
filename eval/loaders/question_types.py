"""Kinds of questions: what is asked, in words that all data sets share; a category is a data set's own number.

A loader gives each question a kind. Readers choose the prompt by it, protocols the label and the treatment of
adversarial questions; a kind that they do not name takes their default. New kinds need no entry here.
"""

from collections.abc import Mapping

#: Has no answer in the conversation; the right reply is to abstain. Some data sets give a false answer with it.
ADVERSARIAL = "adversarial"
MULTI_HOP, TEMPORAL, OPEN_DOMAIN, SINGLE_HOP, LIST = "multi_hop", "temporal", "open_domain", "single_hop", "list"
#: What holds after it changed; what several sessions say together; an answer that heeds what the user prefers.
KNOWLEDGE_UPDATE, MULTI_SESSION, PREFERENCE = "knowledge_update", "multi_session", "preference"
#: Kinds with a meaning in readers, protocols or judges.
KINDS = (
    SINGLE_HOP, MULTI_HOP, TEMPORAL, OPEN_DOMAIN, LIST, ADVERSARIAL, KNOWLEDGE_UPDATE, MULTI_SESSION, PREFERENCE
)  # fmt: skip

#: Rows of runs that were written before questions had kinds: category numbers then meant the same in every data set
#: (1 to 5 as in LoCoMo, 4 and 6 of BioASQ-20, 4 of HotpotQA-20, 7 to 10 PerLTQA's sections).
BEFORE_KINDS: Mapping[int, str] = {
    1: MULTI_HOP,
    2: TEMPORAL,
    3: OPEN_DOMAIN,
    4: SINGLE_HOP,
    5: ADVERSARIAL,
    6: LIST,
    7: "profile",
    8: "social_relationship",
    9: "events",
    10: "dialogues",
}


def kind_of(kind: str, category: int) -> str:
    """Return the kind of a stored question; of a row without one, what its category number meant then."""
    return kind or BEFORE_KINDS.get(category, f"category_{category}")
