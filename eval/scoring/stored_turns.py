"""Which turns the memories of a run still come from, read from their snapshots."""

from functools import cached_property
from pathlib import Path

from eval.report.memories import Memories
from eval.runs.snapshots import snapshot_name


class StoredTurns:
    """Reads the snapshots of a run when the first question asks for them.

    Args:
        run_dir: the run's directory.
    """

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir

    @cached_property
    def _memories(self) -> Memories:
        return Memories(self._run_dir)

    def of(self, conversation_id: str) -> frozenset[str] | None:
        """Ids of the turns that entries of a conversation's memory name; ``None`` where there is no snapshot."""
        name = Path(snapshot_name(conversation_id)).stem
        return self._memories.turns(name) if self._memories.known(name) else None
