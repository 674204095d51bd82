"""Scores of a retrieval: the gold evidence in it, its size, and what the memory behind it still holds."""

from collections.abc import Mapping, Sequence
from math import inf

from eval.loaders.question_types import ADVERSARIAL
from eval.metrics.attacks import Attack, Piece, attack_scores
from eval.metrics.budgets import budget_scores, lift_scores, token_precision
from eval.metrics.evidence import (
    STORED_RECALL,
    SUBSTRING,
    TURN_RECALL,
    evidence_scores,
    pool_scores,
    rank_by_lineage,
    rank_by_substring,
    shown_scores,
    turn_scores,
)
from eval.metrics.items import ITEM_SUFFIXES, item_scores
from eval.metrics.kept import kept_scores
from eval.metrics.sessions import EVIDENCE_SESSIONS, session_scores
from eval.metrics.updates import Update, update_scores
from eval.runs.records import HitRecord, ReferenceRecord, RetrievalRecord
from eval.scoring.answers import gold_answers
from eval.scoring.config import Scores, ScoringConfig
from eval.scoring.shown import CONTEXT_ESTIMATE, SHOWN_CHARS, shown_hits, shown_memories, texts_of, with_others
from eval.scoring.stored_turns import StoredTurns, stored_share
from memsys.scripts import estimated_tokens
from memsys.vocabulary import OVERRULED


def retrieval_scores(
    retrieval: RetrievalRecord, reference: ReferenceRecord, config: ScoringConfig, turns: int = 0
) -> Scores:
    """Score what a question retrieved.

    Args:
        retrieval: of the run.
        reference: of the same question.
        config: how texts are matched.
        turns: of the conversation; 0 where they are not known.

    Returns:
        Sizes alone for a context that was recorded elsewhere: nothing says which memories it was made of.
    """
    texts = [hit.text for hit in retrieval.hits]
    origins = [hit.turn_ids for hit in retrieval.hits]
    gold, gold_texts, whole = reference.evidence, reference.evidence_texts, len(texts)
    tokens, ranked, traced = retrieval.context_tokens, retrieval.ranked, retrieval.traced
    size: Scores = {
        "context_chars": float(retrieval.context_chars),
        "context_tokens": None if tokens is None else float(tokens),
    }
    if len(retrieval.context) == retrieval.context_chars:  # a pack may withhold the text
        size[CONTEXT_ESTIMATE] = float(estimated_tokens(retrieval.context))
    if not whole and not ranked:
        return size
    found = shown_hits(retrieval)
    shown, shown_text = with_others(retrieval, found) if traced else None, texts_of(retrieval, found)
    by_session = (
        session_scores(origins, gold, reference.extra[EVIDENCE_SESSIONS], ranked=ranked)
        if EVIDENCE_SESSIONS in reference.extra and traced
        else {}
    )
    return {
        **by_session,
        **evidence_scores(rank_by_lineage(origins, gold) if ranked and traced else None),
        **_equal_scores(retrieval, reference, shown, turns),
        **evidence_scores(rank_by_substring(texts, gold_texts, config.matching) if ranked else None, SUBSTRING),
        **pool_scores(rank_by_lineage(origins, gold, depth=whole) if traced else None),
        **pool_scores(
            rank_by_substring(texts, gold_texts, config.matching, depth=whole) if ranked else None, SUBSTRING
        ),
        **shown_scores(
            None if shown is None else rank_by_lineage([hit.turn_ids for hit in shown], gold, depth=len(shown))
        ),
        **_ranking_scores(retrieval, gold),
        **_item_scores(retrieval, reference),
        **size,
        "hit_chars": float(sum(map(len, texts))),
        SHOWN_CHARS: None if shown_text is None else float(sum(map(len, shown_text))),
        "hits": float(len(texts)),
    }


def _equal_scores(
    retrieval: RetrievalRecord, reference: ReferenceRecord, shown: Sequence[HitRecord] | None, turns: int
) -> Scores:
    """Return the scores that do not grow with the size of memories, see :mod:`eval.metrics.budgets`."""
    origins = [hit.turn_ids for hit in retrieval.hits]
    found = turn_scores(origins if retrieval.ranked and retrieval.traced else None, reference.evidence)
    context = float(estimated_tokens(retrieval.context))
    rate = _tokens_per_character(shown, context)
    sizes = None if rate is None else [rate * len(hit.text) for hit in retrieval.hits]
    gold = dict(zip(reference.evidence, map(estimated_tokens, reference.evidence_texts), strict=False))
    in_context = None if rate is None else [(hit.turn_ids, rate * len(hit.text)) for hit in shown or ()]
    return {
        **found,
        **lift_scores(found[TURN_RECALL], turns),
        **budget_scores(origins, sizes if retrieval.ranked else None, reference.evidence),
        **token_precision(in_context, {turn: float(size) for turn, size in gold.items()}, context),
    }


def _tokens_per_character(shown: Sequence[HitRecord] | None, context: float) -> float | None:
    """Return the tokens that a memory takes in a context for each character of its text.

    Headings, dates and all else in the context are spread over its memories.

    Returns:
        ``None`` where it is not known which memories are in the context, or they have no text of their own; infinite
        if there are none, so that nothing is within a budget.
    """
    if shown is None:
        return None
    characters = sum(len(hit.text) for hit in shown)
    return context / characters if characters else None if shown else inf


def _ranking_scores(retrieval: RetrievalRecord, evidence: Sequence[str]) -> Scores:
    """Return the evidence scores of the memory's further rankings; empty if it has none."""
    scores: Scores = {}
    for name, places in retrieval.rankings.items():
        origins = [retrieval.hits[place].turn_ids for place in places]
        scores |= evidence_scores(rank_by_lineage(origins, evidence) if retrieval.traced else None, f"_{name}")
    return scores


def _item_scores(retrieval: RetrievalRecord, reference: ReferenceRecord) -> Scores:
    """Return the evidence scores by the items that the gold names; empty where it names turns alone."""
    origins = [hit.turn_ids for hit in retrieval.hits]
    scores: Scores = {}
    for key, suffix in ITEM_SUFFIXES.items():
        if key in reference.extra and retrieval.traced:
            scores |= item_scores(origins, reference.extra[key], suffix, ranked=retrieval.ranked)
    return scores


def memory_scores(
    retrieval: RetrievalRecord,
    reference: ReferenceRecord,
    stored: StoredTurns,
    successors: Mapping[str, str] | None,
) -> Scores:
    """Say what a question's memory still holds: of its evidence, and of what is overruled.

    Args:
        retrieval: of the run.
        reference: of the same question.
        stored: what the run's memories come from.
        successors: overruled turns of the conversation, see :class:`eval.metrics.updates.Update`.
    """
    if not reference.evidence:
        return {}
    turns = stored.of(reference.conversation_id)
    shown = [turn for hit in retrieval.hits for turn in hit.turn_ids]
    share = stored_share(reference.evidence, turns, shown)
    updates = _update_scores(retrieval, reference, turns, successors)
    return {STORED_RECALL: share, **_kept(reference, stored), **updates}


def _kept(reference: ReferenceRecord, stored: StoredTurns) -> Scores:
    """Return what of the gold answer is still in the entries that came from the gold turns."""
    answers = () if reference.kind == ADVERSARIAL else gold_answers(reference)
    memories = stored.texts(reference.conversation_id, reference.evidence)
    return kept_scores(answers, reference.evidence_texts, memories)


def attack_metrics(
    retrieval: RetrievalRecord, reference: ReferenceRecord, stored: StoredTurns, answer: str | None
) -> Scores:
    """Say how far what was aimed at a question came; empty where nothing was.

    Args:
        retrieval: of the run.
        reference: of the same question.
        stored: what the run's memories come from.
        answer: to the question; ``None`` where nothing was asked.
    """
    attack = Attack.of(reference.extra)
    if attack is None:
        return {}
    entries = stored.entries(reference.conversation_id)
    shown = shown_memories(retrieval)
    traced = retrieval.traced or not attack.turns
    return attack_scores(
        attack,
        None if entries is None else [Piece(entry.turns, entry.said) for entry in entries],
        _pieces(retrieval.hits) if traced and retrieval.ranked else None,
        _pieces(shown) if traced and shown is not None else None,
        answer,
    )


def _pieces(hits: Sequence[HitRecord]) -> list[Piece]:
    return [Piece(frozenset(hit.turn_ids), hit.text) for hit in hits]


def _update_scores(
    retrieval: RetrievalRecord,
    reference: ReferenceRecord,
    stored: frozenset[str] | None,
    successors: Mapping[str, str] | None,
) -> Scores:
    """Update metrics of a question whose reference names what is overruled; none for any other."""
    overruled = reference.extra.get(OVERRULED)
    if not retrieval.traced or not overruled:
        return {}
    in_context = shown_memories(retrieval)
    update = Update(
        newest=frozenset(reference.evidence),
        overruled=frozenset(overruled),
        retrieved=[hit.turn_ids for hit in retrieval.hits],
        shown=None if in_context is None else [hit.turn_ids for hit in in_context],
        stored=stored,
        ranked=retrieval.ranked,
        successors=successors,
    )
    return update_scores(update)
