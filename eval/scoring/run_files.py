"""Rows of a run's files, read once for its scores and its summary."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from eval.runs.load import load_answers, load_conversations, load_references, load_retrievals
from eval.runs.records import AnswerRecord, ConversationRecord, ReferenceRecord, RetrievalRecord
from eval.scoring.stored_turns import StoredTurns


class RunFiles:
    """Reads each file of a run when it is first asked for, and keeps its rows; the run must not be going on.

    Args:
        path: the run's directory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def references(self) -> Mapping[str, ReferenceRecord]:
        """Gold by question id, in the run's order."""
        return load_references(self.path)

    @cached_property
    def answers(self) -> Mapping[str, AnswerRecord]:
        """Answers by question id."""
        return load_answers(self.path)

    @cached_property
    def retrievals(self) -> Mapping[str, RetrievalRecord]:
        """Retrievals by question id."""
        return load_retrievals(self.path)

    @cached_property
    def conversations(self) -> Sequence[ConversationRecord]:
        """Ingested conversations."""
        return load_conversations(self.path)

    @cached_property
    def stored(self) -> StoredTurns:
        """Turns that the memories come from."""
        return StoredTurns(self.path)
