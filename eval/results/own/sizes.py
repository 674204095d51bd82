"""Sizes of a run's memories, per turn ingested, from the counts in its summary."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from math import fsum
from typing import Any

import numpy as np

from eval.metrics.evidence import SHOWN_RECALL
from eval.results.own.stages import names_turns, shown_shares, stored_shares, with_gold
from eval.results.stored_run import StoredRun
from eval.scoring.shown import SHOWN_CHARS


@dataclass(frozen=True, slots=True)
class StoredSizes:
    """Sizes of a run's memories.

    Attributes:
        conversations: with a snapshot.
        turns: ingested into these.
        entries: kind -> how many.
        tokens: of all entries, estimated from their characters; ``None`` where the rate is not known.
        characters: of all entries.
        duplicates: entries that repeat the main text of an earlier one of their conversation and kind; ``None`` where
            the run was scored by a version that compared a relation's source alone.
        overruled: entries from overruled turns without those that hold in their place; ``None`` where the run does not
            say what is overruled, or was scored by a version that knew the questions' own facts alone.
        origins: turns that entries came from, counted for each entry.
        context_turns: distinct turns that the memories of a question's context came from, mean.
    """

    conversations: int
    turns: int
    entries: Mapping[str, int]
    tokens: float | None
    characters: int
    duplicates: int | None
    overruled: int | None
    origins: int
    context_turns: float | None

    @property
    def total(self) -> int:
        """Entries of all kinds."""
        return sum(self.entries.values())


def stored_sizes(run: StoredRun, rate: float | None) -> StoredSizes | None:
    """Return the sizes of a run's memories.

    Args:
        run: the run.
        rate: characters per token, see :func:`characters_per_token`; ``None`` where it is not known.

    Returns:
        ``None`` where the run's summary does not have them.
    """
    found = run.summary.get("storage") or {}
    kinds = found.get("kinds")
    if kinds is None:
        return None
    characters = sum(kind["characters"] for kind in kinds.values())
    return StoredSizes(
        conversations=found["conversations"],
        turns=found["turns"],
        entries={name: kind["entries"] for name, kind in kinds.items()},
        tokens=0.0 if not characters else None if rate is None else characters / rate,
        characters=characters,
        duplicates=_known_of_all(kinds.values(), "duplicates"),
        overruled=_known_of_all(kinds.values(), "overruled") if found["judged"] else None,
        origins=sum(kind["origins"] for kind in kinds.values()),
        context_turns=_context_turns(run, found),
    )


def _context_turns(run: StoredRun, found: Mapping[str, Any]) -> float | None:
    """Return the distinct turns in a context."""
    counted = SHOWN_RECALL in run.columns.names
    known = counted and not _written_anew(run) and (found["hits_naming_turns"] or not found["hits"])
    return found["context_turns"] if known else None


def _written_anew(run: StoredRun) -> bool:
    """Return whether contexts are rewritten from hits and contain none; see :mod:`eval.scoring.shown`."""
    columns = run.columns
    found = columns.only(np.isnan(columns.column(SHOWN_CHARS)) & (columns.column("hit_chars") > 0))
    return any(SHOWN_CHARS in row.metrics for row in found)


def _known_of_all(kinds: Iterable[Mapping[str, int]], name: str) -> int | None:
    counts = [kind.get(name) for kind in kinds]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def characters_per_token(runs: Iterable[StoredRun]) -> float | None:
    """Return the characters per token of contexts, by the backbone's tokenizer; ``None`` where none were counted."""
    sizes = [(run.columns.column("context_chars"), run.columns.column("context_tokens")) for run in runs]
    known = [(chars[both], tokens[both]) for chars, tokens in sizes for both in [~np.isnan(chars + tokens)]]
    tokens = fsum(chain.from_iterable(tokens for _, tokens in known))
    return fsum(chain.from_iterable(chars for chars, _ in known)) / tokens if tokens else None


def remarks(run: StoredRun) -> list[str]:
    """Return why a run has a dash."""
    if run.recorded:
        return ["the answers were recorded elsewhere: there is no memory to inspect"]
    return [*_storage_remarks(run), *_evidence_remarks(run)]


def _storage_remarks(run: StoredRun) -> Iterator[str]:
    gold = with_gold(run.columns)
    found = run.summary.get("storage")
    if "storage" not in run.summary:
        yield "scored before storage was counted: run memsys score on the run, and export it again"
    elif found is None:
        yield "there is no snapshot of its memories"
    else:
        if found["kinds"] is None:
            yield "its system does not declare where a snapshot stores its entries (entries.yaml)"
            return
        if any("duplicates" not in kind for kind in found["kinds"].values()):
            yield "scored by a version that merged two relations of one source"
        if np.isnan(stored_shares(gold)).any():
            yield "the snapshots do not name the turns that entries came from, or some are missing"


def _evidence_remarks(run: StoredRun) -> Iterator[str]:
    gold = with_gold(run.columns)
    if not names_turns(run):
        yield "its memories do not name the turns they came from"
    elif not gold:
        yield "its scores show no question with gold evidence"
    else:
        if np.isnan(gold.column("recall@10")).any():
            yield "it ranks no memories"
        if np.isnan(shown_shares(gold)).any():
            yield (
                "its contexts are written by a model from the retrieved memories: which turns are still in them is "
                "unknown"
                if _written_anew(run)
                else "it is unknown which memories are in the context"
            )
    if run.retrieval_only:
        yield "it only retrieves: there are no answers"
