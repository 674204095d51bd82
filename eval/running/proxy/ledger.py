"""Ledger of a proxy and its summary: calls by phase and role, and texts that were embedded."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from math import fsum
from pathlib import Path

from eval.commands.rendering.table import Cell, Table, columns
from eval.config.prices import EmbeddingPrice, Price, dates_of
from eval.runs.embeddings import EMBEDDINGS, EmbeddingRecord
from eval.runs.files import JsonLines
from eval.runs.rows import ledger
from eval.runs.rundir import CALLS
from memsys.credentials import redacted
from memsys.errors import ConfigError
from memsys.llm.ledger import CallRecord
from memsys.proxy.clients import ProxyScope

FAILURES = "failures.jsonl"


@dataclass(frozen=True, slots=True)
class FailureRecord:
    """One request that got an error: what it asked for, its HTTP status and the message."""

    conversation_id: str
    phase: str
    item: str
    endpoint: str
    status: int
    message: str


@dataclass(slots=True)
class RoleTotals:
    """Calls of one role in one phase. Tokens and seconds are those of calls that were made, not of cached ones."""

    calls: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    def add(self, call: CallRecord) -> None:
        """Count a call."""
        self.calls += 1
        if call.cache_hit:
            self.cached += 1
            return
        self.prompt_tokens += call.prompt_tokens
        self.completion_tokens += call.completion_tokens
        self.seconds += call.seconds


class EmbeddingLedger:
    """Appends requests for embeddings to ``embeddings.jsonl``."""

    def __init__(self, folder: Path) -> None:
        self._file = JsonLines(folder / EMBEDDINGS)
        # of a context, as every request is served by a task of its own and others are paid at the same time
        self._paid: ContextVar[int] = ContextVar("paid")

    def add_paid(self, record: EmbeddingRecord) -> None:
        """Count what the request that this task serves was paid."""
        self._paid.set(self._paid.get(0) + record.tokens)

    def note(self, scope: ProxyScope, texts: Sequence[str], seconds: float) -> None:
        """Append the request that this task served."""
        characters = sum(len(text) for text in texts)
        tokens = self._paid.get(0)
        self._paid.set(0)
        row = EmbeddingRecord(scope.conversation_id, scope.phase, scope.item, len(texts), characters, seconds, tokens)
        self._file.append(asdict(row))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class FailureLedger:
    """Appends requests that got an error to ``failures.jsonl``, which the first of them makes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FAILURES
        self._file: JsonLines | None = None

    def note(self, scope: ProxyScope, endpoint: str, status: int, message: str) -> None:
        """Append a request."""
        self._file = self._file or JsonLines(self._path)
        row = FailureRecord(scope.conversation_id, scope.phase, scope.item, endpoint, status, redacted(message))
        self._file.append(asdict(row))

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def totals(calls: Iterable[CallRecord]) -> dict[tuple[str, str], RoleTotals]:
    """Return the totals by phase and role, in the order in which they first occur."""
    found: dict[tuple[str, str], RoleTotals] = defaultdict(RoleTotals)
    for call in calls:
        found[call.phase, call.role].add(call)
    return dict(found)


def summary(folder: Path, price: Price | None = None, embedding: EmbeddingPrice | None = None) -> Table:
    """Return the calls of a proxy's ledger by phase and role, with what else it has as notes.

    Args:
        folder: of the ledger.
        price: of the backbone; ``None`` shows no dollars of it.
        embedding: price of the embedder, likewise.

    Raises:
        ConfigError: there is no ledger.
    """
    if not any((folder / name).is_file() for name in (CALLS, EMBEDDINGS, FAILURES)):
        raise ConfigError(f"{folder} holds no {CALLS}; name the folder that the proxy printed")
    calls = list(ledger(folder / CALLS, CallRecord))
    whole = RoleTotals()
    for call in calls:
        whole.add(call)
    rows = [_row(phase, role, one) for (phase, role), one in [*totals(calls).items(), (("all", ""), whole)]]
    notes = []
    if price is not None:
        made = [call for call in calls if not call.cache_hit]
        dollars = fsum(
            price.of(one.prompt_tokens, one.completion_tokens, one.cached_tokens or 0, batch=one.batched)
            for one in made
        )
        notes.append(f"dollars: {dollars:.4f}, list prices of {dates_of([price])}")
    shown = columns(("phase", "role", "calls", "cached", "prompt", "reply", "seconds"), left=2)
    return Table("", shown, rows, [*notes, *_embedded(folder, embedding), *_failed(folder)])


def _embedded(folder: Path, price: EmbeddingPrice | None) -> list[str]:
    """Return the embedded texts, and their cost where there is a price."""
    embedded = list(ledger(folder / EMBEDDINGS, EmbeddingRecord))
    texts, seconds = sum(row.texts for row in embedded), sum(row.seconds for row in embedded)
    lines = [f"embeddings: {len(embedded)} requests, {texts} texts, {seconds:.1f} s"]
    if price is not None:
        tokens = sum(row.tokens for row in embedded)
        dollars = price.of(tokens)
        lines.append(f"dollars of {tokens} embedded tokens: {dollars:.4f}, list prices of {dates_of([price])}")
    return lines


def _failed(folder: Path) -> list[str]:
    """Return the numbers of failed requests by status; empty where none failed."""
    counts = Counter(row.status for row in ledger(folder / FAILURES, FailureRecord))
    by_status = ", ".join(f"{counts[status]} with status {status}" for status in sorted(counts))
    requests = "1 request" if counts.total() == 1 else f"{counts.total()} requests"
    return [f"failed: {requests} ({by_status}); {FAILURES} says why"] if counts else []


def _row(phase: str, role: str, one: RoleTotals) -> list[Cell]:
    return [phase, role, one.calls, one.cached, one.prompt_tokens, one.completion_tokens, one.seconds]
