"""What the others are compared with: the system that is named, else the conventional simplest one."""

from collections.abc import Sequence

from eval.compare.rows import SystemRow
from memsys.errors import ConfigError

#: Names that memories which only search begin with, then those without a memory, the simplest first.
_SIMPLE = ("rag", "dense", "bm25", "hybrid", "full_context", "no_memory")


def choose_baseline(rows: Sequence[SystemRow], against: str | None = None) -> SystemRow:
    """Find the system that the others are tested against.

    Without a name: plain RAG, else what comes next to it, else the system whose questions cost the fewest tokens.

    Args:
        rows: at least one.
        against: a label, a preset of ``conf/memory``, or a run's id or the end of it.

    Raises:
        ConfigError: nothing, or more than one system, is called so; the message lists the names.
    """
    if against is None:
        return min(rows, key=_rank)
    exact = [row for row in rows if against in (row.label, *(run.run_id for run in row.repeats.runs))]
    found = exact or [row for row in rows if against == row.run.memory] or [row for row in rows if _ends(row, against)]
    if len(found) == 1:
        return found[0]
    choices = "; ".join(f"{row.label} ({', '.join(run.run_id for run in row.repeats.runs)})" for row in rows)
    trouble = f"fits {len(found)} systems" if found else "names no system here"
    raise ConfigError(f"--against {against} {trouble}; take a label or a run id of: {choices}")


def _ends(row: SystemRow, against: str) -> bool:
    return any(run.run_id.endswith((f"/{against}", f"-{against}")) for run in row.repeats.runs)


def _rank(row: SystemRow) -> tuple[int, int, float]:
    name = row.run.memory
    place = next(
        (n for n, simple in enumerate(_SIMPLE) if name == simple or name.startswith(f"{simple}_")), len(_SIMPLE)
    )
    tokens = row.estimates["tokens"].value if "tokens" in row.estimates else 0.0
    return place, len(name) if place < len(_SIMPLE) else 0, tokens
