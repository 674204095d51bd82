"""Questions whose gold is in doubt. Loaders mark them, scoring keeps the mark, and tables also show means without them.

LoCoMo's come from an audit of its labels (:mod:`eval.loaders.locomo_labels`), PerLTQA's from a check whether the memory
that a question names still holds the answer (:func:`eval.loaders.perltqa_questions.support`).
"""

from collections.abc import Mapping

from memsys.vocabulary import Json

#: Key of ``Reference.extra`` that holds the kind of problem.
LABEL_PROBLEM = "label_problem"
#: The answer is right, the evidence ids are not.
MISCITED = "citation"
#: The evidence ids were malformed, and the loader has repaired them.
REPAIRED = "citation_repaired"
#: Most of what the answer adds to the question is nowhere in the memory that it names.
LOW_SUPPORT = "low_support"

#: Names of the marks among a question's scores; 1 where they apply, absent elsewhere.
DOUBTFUL_ANSWER, DOUBTFUL_EVIDENCE = "doubtful_answer", "doubtful_evidence"


def answer_is_doubtful(kind: str | None) -> bool:
    """Return whether a problem of this kind makes the gold answer wrong or debatable."""
    return kind is not None and kind not in (MISCITED, REPAIRED)


def evidence_is_doubtful(kind: str | None) -> bool:
    """Return whether a problem of this kind makes the gold evidence wrong or useless."""
    return kind is not None and kind != REPAIRED


def marks(extra: Mapping[str, Json]) -> dict[str, float | None]:
    """Return the marks of a question from its reference's ``extra``; empty where nothing is in doubt."""
    kind = extra.get(LABEL_PROBLEM)
    applying = {DOUBTFUL_ANSWER: answer_is_doubtful(kind), DOUBTFUL_EVIDENCE: evidence_is_doubtful(kind)}
    return {name: 1.0 for name, applies in applying.items() if applies}
