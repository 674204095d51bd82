"""xMemory's analyses of finished runs: ``python -m eval.results.analysis.xmemory_structure RUN [RUN ...]``.

Hit distribution and coverage (figure 4, tables 3 and 5) and tokens per query exist for the runs of every memory;
reassignment and counts of themes and facts (tables 6 to 8) and the gate for those of xMemory. Reads stored records
alone.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.commands.commands import explains_errors, start
from eval.commands.rendering.table import DASH, Table, columns
from eval.commands.rendering.terminal import show
from eval.loaders.question_types import ADVERSARIAL
from eval.results.analysis.theme_structure import gate, query_tokens, structure
from eval.runs.files import write_json
from eval.runs.load import check_joined, load_calls, load_conversations, load_references, load_retrievals
from eval.scoring.evidence_density import evidence_density
from memsys.errors import ScoringError

RESULT = "xmemory_structure.json"


def analyse(run: Path) -> dict[str, Any]:
    """Analyse one run.

    Raises:
        ScoringError: it is not a run directory, nothing was retrieved, or its files are of two runs.
    """
    references, retrievals = load_references(run), load_retrievals(run)
    check_joined(retrievals, references, run / "retrievals.jsonl")
    if not retrievals:
        raise ScoringError(f"{run} has no retrievals; let the run finish first")
    scored = [name for name in retrievals if references[name].kind != ADVERSARIAL]
    conversations, calls = load_conversations(run), load_calls(run)
    ours = bool(conversations) and all("theme_paths" in record.statistics for record in conversations)
    return {
        "run": run.name,
        **evidence_density(references, retrievals),
        "tokens_all": query_tokens(calls, list(retrievals)),
        "tokens_scored": query_tokens(calls, scored),
        "structure": structure(conversations) if ours else None,
        "gate": gate([retrievals[name] for name in scored]) if ours else None,
    }


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Analyse runs, store each result next to its run's scores and show them side by side."""
    parser = argparse.ArgumentParser(prog="python -m eval.results.analysis.xmemory_structure", description=main.__doc__)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="folder of a finished run")
    options = parser.parse_args(arguments)
    results = []
    for run in options.runs:
        results.append(analyse(run))
        write_json(run / RESULT, results[-1])
    show(comparison(results))
    return 0


def comparison(results: Sequence[Mapping[str, Any]]) -> Table:
    """Return results side by side; a dash where a run has no such thing."""
    rows = [[label, *(_cell(result, path, factor) for result in results)] for label, path, factor in _ROWS]
    return Table("Evidence density, structure and cost", columns(("", *(result["run"] for result in results))), rows)


_ROWS = (
    ("1-hit blocks, %", ("hits", "all", "1"), 100),
    ("2-hit blocks, %", ("hits", "all", "2"), 100),
    ("multi-hit blocks, %", ("hits", "all", "multi"), 100),
    ("blocks to cover the answer", ("coverage", "blocks"), 1),
    ("tokens to cover the answer", ("coverage", "tokens"), 1),
    ("answers covered, %", ("coverage", "covered"), 100),
    ("tokens per question, all", ("tokens_all", "total"), 1),
    ("tokens per scored question", ("tokens_scored", "total"), 1),
    ("of these, probes", ("tokens_scored", "probe"), 1),
    ("of these, reader's prompt", ("tokens_scored", "reader_prompt"), 1),
    ("episodes", ("structure", "episodes"), 1),
    ("facts", ("structure", "facts"), 1),
    ("themes", ("structure", "themes"), 1),
    ("facts per theme", ("structure", "facts_per_theme"), 1),
    ("reassigned by id, %", ("structure", "reassignment", "by_id"), 100),
    ("reassigned by content, %", ("structure", "reassignment", "by_content"), 100),
    ("probes per question", ("gate", "probes"), 1),
    ("episodes admitted", ("gate", "admitted"), 1),
    ("episodes expanded", ("gate", "expanded"), 1),
)


def _cell(result: Mapping[str, Any], path: Sequence[str], factor: int) -> str:
    value: Any = result
    for name in path:
        value = None if value is None else value.get(name)
    if value is None:
        return DASH
    return str(value) if isinstance(value, int) else f"{factor * value:.2f}"


if __name__ == "__main__":
    start(main)
