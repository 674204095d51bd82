"""Evidence density and coverage of a run's retrievals (xMemory, figure 4, tables 3 and 5), from stored records alone.

A block is a memory in the context. Its tokens are its share of the context's, by characters. Left out are adversarial
questions, those whose context does not say which memories it shows, and those shown a context as a whole, whose one hit
names turns and has no text, so its blocks are unknown.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from eval.loaders.question_types import ADVERSARIAL
from eval.runs.records import ReferenceRecord, RetrievalRecord
from eval.scoring.answer_coverage import Retrieved, content_words, coverage, hit_shares, hits_of
from eval.scoring.means import mean_or_none
from eval.scoring.shown import shown_hits, texts_of


def evidence_density(
    references: Mapping[str, ReferenceRecord], retrievals: Mapping[str, RetrievalRecord]
) -> dict[str, Any]:
    """Say how the answers' words are spread over the retrieved blocks.

    Returns:
        ``hits``: shares of 1-hit, 2-hit and multi-hit blocks by category and over all, among the blocks of questions
        whose answers have content words; ``coverage``: see :func:`eval.scoring.answer_coverage.coverage`;
        ``answer_words``: content words per answer.
    """
    asked = {
        name: known
        for name, record in retrievals.items()
        if references[name].kind != ADVERSARIAL and (known := retrieved(references[name], record)) is not None
    }
    found: dict[str, list[int]] = {}
    for name, question in asked.items():
        if question.answer:
            category = str(retrievals[name].category)
            found.setdefault(category, []).extend(hits_of(question.answer, question.blocks))
    whole = [hit for hits in found.values() for hit in hits]
    return {
        "hits": {name: hit_shares(hits) for name, hits in [*sorted(found.items()), ("all", whole)]},
        "coverage": coverage(list(asked.values())),
        "answer_words": mean_or_none([len(question.answer) for question in asked.values()]),
    }


def retrieved(reference: ReferenceRecord, retrieval: RetrievalRecord) -> Retrieved | None:
    """Put the words of a question's first reference answer next to its blocks and their tokens.

    Returns:
        ``None`` where the blocks are not known.
    """
    blocks = texts_of(retrieval, shown_hits(retrieval))
    if blocks is None:
        return None
    words = content_words(reference.answers[0]) if reference.answers else frozenset()
    return Retrieved(words, blocks, _tokens(retrieval, blocks))


def _tokens(retrieval: RetrievalRecord, blocks: Sequence[str]) -> list[float] | None:
    """Return the tokens of each block; ``None`` where the context's were not counted, as without a reader."""
    if not blocks:
        return []
    if retrieval.context_tokens is None:
        return None
    rate = retrieval.context_tokens / retrieval.context_chars if retrieval.context_chars else 0.0
    return [rate * len(block) for block in blocks]
