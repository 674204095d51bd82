"""Text about a sweep for people."""

from collections.abc import Sequence

from eval.commands.rendering.table import Cell, Column, Span, Table, texts
from eval.commands.rendering.terminal import show
from eval.commands.terminal import complain, console, say
from eval.sweep.status import CellStatus, counted

_COLOURS = {"done": "green", "running": "cyan", "failed": "bold red", "stopped": "yellow"}
_REASON_CHARS = 300


def show_status(statuses: Sequence[CellStatus]) -> None:
    """Print every cell, then why those that failed did."""
    columns = (*texts(("cell", "status")), Column("answered"), Column("job", "left"), Column("on", "left"))
    show(Table("", columns, [_row(status) for status in statuses]))
    console().print(summary_line(statuses), highlight=False)
    for status in statuses:
        if status.state in ("failed", "stopped"):
            say(explained(status))


def show_unfinished(statuses: Sequence[CellStatus]) -> None:
    """Complain about the cells that are not done."""
    for status in statuses:
        if status.state != "done":
            complain(explained(status))
    complain(f"{summary_line(statuses)}; run the same command again to continue")


def summary_line(statuses: Sequence[CellStatus]) -> str:
    """Return ``7 of 9 cells done, 1 running, 1 failed``."""
    counts = counted(statuses)
    rest = [f"{number} {name}" for name, number in counts.items() if number and name != "done"]
    return ", ".join([f"{counts['done']} of {len(statuses)} cells done", *rest])


def explained(status: CellStatus) -> str:
    """Return a line on one cell: the reason of its state, and where to read on."""
    reason = status.reason if len(status.reason) <= _REASON_CHARS else f"... {status.reason[-_REASON_CHARS:]}"
    log = f" (log: {status.log})" if status.log else ""
    return f"{status.cell.label}: {status.state}{': ' if reason else ''}{reason}{log}"


def _row(status: CellStatus) -> list[Cell]:
    state = Span(status.state, colour=_COLOURS.get(status.state, ""))
    answered = f"{status.answered[0]}/{status.answered[1]}" if status.answered else ""
    return [status.cell.label, state, answered, _job(status), _place(status)]


def _job(status: CellStatus) -> str:
    """Return the number of a cell's job; for a waiting one as in Slurm's queue."""
    if status.ticket is not None:
        return status.ticket.job
    return status.reason.removeprefix("job ") if status.state == "waiting" else ""


def _place(status: CellStatus) -> str:
    ticket = status.ticket
    if ticket is None:
        return ""
    devices = f" gpu {ticket.devices}" if ticket.devices else ""
    return f"{ticket.host}{devices}"
