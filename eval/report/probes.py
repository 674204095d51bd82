"""Judges that are no better than a constant on answers whose grade is known: their verdicts mean nothing."""

from collections.abc import Sequence

from eval.tables.stored import StoredRun


def judge_faults(runs: Sequence[StoredRun]) -> dict[str, str]:
    """Name of each judge's scores -> why they mean nothing; judges that beat a constant are absent."""
    found: dict[str, str] = {}
    for run in runs:
        for name, entry in (run.summary.get("judges") or {}).items():
            probe = entry["probe"]
            if not probe["items"]:
                continue  # verdicts that were recorded with the answers: nobody could probe the judge
            if probe["accuracy"] is None:
                found[name] = f"{name} gave no readable verdict on its probe"
            elif probe["accuracy"] <= probe["always"]:
                right, constant = 100 * probe["accuracy"], 100 * probe["always"]
                found[name] = (
                    f"{name} is no better than a constant on its probe ({right:.1f} % right, always one verdict "
                    f"{constant:.1f} %)"
                )
    return found
