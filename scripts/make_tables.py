"""Write what the repository holds of the committed runs: results/tables, and the tables of docs/results.md.

Usage: scripts/make_tables.py

In one process, so that the runs are read and the presets composed once.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from eval import lens, tables  # noqa: E402
from eval.commands.commands import explains_errors  # noqa: E402
from eval.results.own import results_page  # noqa: E402
from eval.runs.folders import SUMMARIES  # noqa: E402


@explains_errors
def main() -> int:
    """Write all tables; returns the exit status."""
    status = tables.main([]) or results_page.main([])
    if not status:
        lens.write_page([SUMMARIES], tables.OUT / "lens.md")
    return status


if __name__ == "__main__":
    sys.exit(main())
