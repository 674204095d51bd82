"""Recorded judges that were measured; verdicts of others are not shown in the leaderboards."""

from collections.abc import Mapping, Sequence

from eval.audit.config import AuditConfig
from eval.audit.leaderboard import Row
from eval.audit.readings import JUDGE
from eval.audit.recorded.catalogue import load_catalogue
from eval.scoring.inference import ALPHA
from eval.scoring.verdicts.judge_quality import SHOW_ANYWAY, GradeCounts

#: Table with a row for each run whose verdicts are not shown.
LEFT_OUT = "judges_left_out"


def with_measured_judges(
    tables: Mapping[str, Sequence[Row]], config: AuditConfig, *, unmeasured: bool = False
) -> Mapping[str, Sequence[Row]]:
    """Leave out the verdicts of judges that could not be compared with people, and list the runs under ``LEFT_OUT``.

    A judge is measured where enough of its answers are word for word some that people labelled, and it does better on
    them than one verdict for all. Those are answers to LoCoMo: what the same judge is asked of other data is another
    question. People's own labels stay.

    Args:
        tables: rows by table.
        config: which run holds labels by people.
        unmeasured: leave nothing out.
    """
    board = tables["leaderboard"]
    good = {str(row["judge"]).partition(": ")[0] for row in tables.get("judges") or () if _beats_a_constant(row)}
    sources = {name: entry.repository for name, entry in load_catalogue().entries.items()}
    hidden = {
        (str(row["data"]), str(row["run"]))
        for row in board
        if row["metric"] == JUDGE
        and row["run"] != config.people
        and not (row["data"] == "locomo" and sources.get(str(row["run"])) in good)
    }
    if unmeasured or not hidden:
        return tables
    kept = [row for row in board if row["metric"] != JUDGE or (str(row["data"]), str(row["run"])) not in hidden]
    left_out: list[Row] = [{"data": data, "run": run} for data, run in sorted(hidden)]
    return {**tables, "leaderboard": kept, LEFT_OUT: left_out}


def _beats_a_constant(row: Row) -> bool:
    shares = (_share(row[name]) for name in ("right_rejected", "wrong_accepted"))
    return GradeCounts.of(int(str(row["answers"])), float(str(row["right_by_people"])), *shares).chance <= ALPHA


def _share(value: object) -> float | None:
    return None if value is None else float(str(value))


def left_out_text(tables: Mapping[str, Sequence[Row]], data: str, command: str) -> str:
    """Return the note of a leaderboard whose verdicts are partly left out; empty where none are.

    Args:
        tables: rows by table.
        data: name of the data set.
        command: the one that shows them with its option.
    """
    names = [str(row["run"]) for row in tables.get(LEFT_OUT) or () if row["data"] == data]
    if not names:
        return ""
    listed = ", ".join(f"`{name}`" for name in names)
    return (
        f"Runs without a judge's score although their file has verdicts: {len(names)}. Too few of their answers are "
        "identical to answers labelled by people, so it is unknown how many wrong answers their judge accepts. "
        f"`{command} {SHOW_ANYWAY}` shows these scores too ({listed})."
    )
