"""Facts that were stated again with another value, question by question: is the old one alone found, and shown?"""

from collections.abc import Iterable
from dataclasses import replace

from eval.metrics.updates import IN_CONTEXT
from eval.results.stored_run import StoredRun
from eval.runs.records import HitRecord, ReferenceRecord
from eval.scoring.run_files import RunFiles
from eval.scoring.shown import shown_memories
from memsys.vocabulary import OVERRULED

NEWEST, STALENESS = "newest_retrieved", "staleness_of_question"
#: Whether one of the first ten memories, or of those in the context, came from the old turn and not from the new one.
OUTDATED, OUTDATED_SHOWN = "outdated_retrieved", "outdated_in_context"
#: Figures of a question about a changed fact, by their names in tables.
FACTS = {"newest found": NEWEST, "newest in context": IN_CONTEXT, "outdated found": OUTDATED,
         "outdated in context": OUTDATED_SHOWN}  # fmt: skip


def changed_facts(run: StoredRun) -> StoredRun:
    """Return a run with the questions alone that a changed fact answers, and both figures of the old turn."""
    files = RunFiles(run.path)
    rows = []
    for row in run.rows:
        gold = files.references[row.question_id]
        if OVERRULED in gold.extra:
            newest, stale = row.metrics.get(NEWEST), row.metrics.get(STALENESS)
            found = None if newest is None else float(bool(stale))  # of no memories at all none is outdated
            retrieval = files.retrievals.get(row.question_id)
            shown = shown_memories(retrieval) if retrieval is not None and retrieval.traced else None
            in_context = None if shown is None else float(_any_outdated(shown, gold))
            rows.append(replace(row, metrics={**row.metrics, OUTDATED: found, OUTDATED_SHOWN: in_context}))
    return replace(run, rows=tuple(rows))


def _any_outdated(memories: Iterable[HitRecord], gold: ReferenceRecord) -> bool:
    old, new = set(gold.extra[OVERRULED]), set(gold.evidence)
    return any(bool(old & {*hit.turn_ids}) and not new & {*hit.turn_ids} for hit in memories)
