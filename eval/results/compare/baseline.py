"""Baseline of a comparison: the named system, else the conventional simplest one."""

from collections import Counter
from collections.abc import Sequence
from math import inf

from eval.results.compare.rows import SystemRow
from memsys.errors import ConfigError

#: Names that memories which only search begin with, then those without a memory, the simplest first.
_SIMPLE = ("rag", "dense", "bm25", "hybrid", "full_context", "no_memory")


class UnknownBaselineError(ConfigError):
    """No system is called so.

    Args:
        against: name that was given.
        known: systems, each with its runs.
    """

    def __init__(self, against: str, known: Sequence[str]) -> None:
        super().__init__(f"--against {against} names no system here; take a label or a run id of: {'; '.join(known)}")
        self.against, self.known = against, known


def choose_baseline(rows: Sequence[SystemRow], lead: str, against: str | None = None) -> SystemRow:
    """Find the system that the others are tested against.

    Without a name: plain RAG, else what comes next to it, else the system whose questions cost the fewest tokens. Of
    several such, asked with different prompts, the one whose prompts most systems here were asked with. Where two
    or more have a score in the lead column, it is one of these: no other could have their scores tested against it.

    Args:
        rows: at least one.
        lead: column that the rows are sorted by.
        against: a label, a preset of ``conf/memory``, or a run's id or the end of it.

    Raises:
        UnknownBaselineError: no system is called so.
        ConfigError: several are; the message lists them.
    """
    if against is None:
        asked_with = Counter(row.run.prompts for row in rows)
        scored = [row for row in rows if lead in row.estimates]
        able = scored if len(scored) > 1 else rows  # a single one may have no other score, as a constant has none
        return min(able, key=lambda row: _rank(row, asked_with[row.run.prompts]))
    exact = [row for row in rows if against in (row.label, *(run.run_id for run in row.repeats.runs))]
    found = exact or [row for row in rows if against == row.run.memory] or [row for row in rows if _ends(row, against)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UnknownBaselineError(against, list(map(_named, rows)))
    choices = "; ".join(map(_named, found))
    raise ConfigError(f"--against {against} fits {len(found)} systems; take a label or a run id of: {choices}")


def _named(row: SystemRow) -> str:
    return f"{row.label} ({', '.join(run.run_id for run in row.repeats.runs)})"


def _ends(row: SystemRow, against: str) -> bool:
    return any(run.run_id.endswith((f"/{against}", f"-{against}")) for run in row.repeats.runs)


def _rank(row: SystemRow, same_prompts: int) -> tuple[int, int, int, float]:
    name = row.run.memory
    place = next(
        (n for n, simple in enumerate(_SIMPLE) if name == simple or name.startswith(f"{simple}_")), len(_SIMPLE)
    )
    tokens = row.estimates["tokens"].value if "tokens" in row.estimates else inf  # not known to be the fewest
    return place, -same_prompts, len(name) if place < len(_SIMPLE) else 0, tokens
