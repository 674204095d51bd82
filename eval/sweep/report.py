"""What people read of a sweep."""

from collections.abc import Sequence

from eval.cli.terminal import complain, console, say
from eval.sweep.status import CellStatus, counted

_COLOURS = {"done": "green", "running": "cyan", "failed": "bold red", "stopped": "yellow"}
_REASON_CHARS = 300


def show_status(statuses: Sequence[CellStatus]) -> None:
    """Print every cell, then why those that failed did."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for name, align in (("cell", "left"), ("stands", "left"), ("answered", "right"), ("job", "left"), ("on", "left")):
        table.add_column(name, justify="right" if align == "right" else "left")
    for status in statuses:
        ticket = status.ticket
        answered = f"{status.answered[0]}/{status.answered[1]}" if status.answered else ""
        colour = _COLOURS.get(status.standing, "")
        table.add_row(
            status.cell.label,
            Text(status.standing, style=colour),
            answered,
            ticket.job if ticket else status.reason.removeprefix("job ") if status.standing == "waiting" else "",
            _place(status),
        )
    console().print(table)
    console().print(summary_line(statuses), highlight=False)
    for status in statuses:
        if status.standing in ("failed", "stopped"):
            say(explained(status))


def show_unfinished(statuses: Sequence[CellStatus]) -> None:
    """Complain about the cells that are not done."""
    for status in statuses:
        if status.standing != "done":
            complain(explained(status))
    complain(f"{summary_line(statuses)}; the same command takes up what is not done")


def summary_line(statuses: Sequence[CellStatus]) -> str:
    """``7 of 9 cells done, 1 running, 1 failed``."""
    counts = counted(statuses)
    rest = [f"{number} {name}" for name, number in counts.items() if number and name != "done"]
    return ", ".join([f"{counts['done']} of {len(statuses)} cells done", *rest])


def explained(status: CellStatus) -> str:
    """One cell, why it stands as it does, and where to read on."""
    reason = status.reason if len(status.reason) <= _REASON_CHARS else f"... {status.reason[-_REASON_CHARS:]}"
    log = f" (log: {status.log})" if status.log else ""
    return f"{status.cell.label}: {status.standing}{': ' if reason else ''}{reason}{log}"


def _place(status: CellStatus) -> str:
    ticket = status.ticket
    if ticket is None:
        return ""
    devices = f" gpu {ticket.devices}" if ticket.devices else ""
    return f"{ticket.host}{devices}"
