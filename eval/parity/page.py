"""Write the tables of ``docs/parity.md`` again: what can be compared, and what the last runs showed.

``python -m eval.parity.page`` reads the results that ``make parity`` and ``make parity-whole`` left in
``results/parity``, one folder per stage, and replaces what is between the marks of the page.
"""

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.commands.commands import EXIT_DONE, described, explains_errors, start
from eval.commands.help_text import Paragraphs
from eval.commands.rendering.markdown import render_markdown, replace_tables
from eval.commands.rendering.table import DASH, Span, Table, texts
from eval.commands.terminal import say
from eval.config.presets import make_preset
from eval.parity.__main__ import OUT
from eval.parity.config import counterparts, find_counterpart
from eval.parity.report import RESULT
from eval.parity.stages import FILE, WHOLE, ParityStages
from eval.runs.files import write_atomic
from memsys.assets.paths import ROOT
from memsys.errors import DataError

PAGE = ROOT / "docs" / "parity.md"
HEADS = (
    "stage", "conversation", "prompts", "spoiled", "calls, ours and theirs", "prompts equal to the letter",
    "values of the memory equal", "contexts equal", "answers equal", "settings equal", "ties", "unexplained",
)  # fmt: skip
#: Version of the code of a stage without a result, and its cells where no page has any.
_EARLIER = "earlier"
_NOT_RUN = (*(DASH for _ in HEADS[2:]), "not run")


def released_table() -> str:
    """Return the released codes: name, repositories with commits and files, settings that are compared, and stages."""
    stages = {name: own for file in (FILE, WHOLE) for name, own in make_preset(ParityStages, file).stages.items()}
    rows = []
    for name in counterparts():
        counterpart = find_counterpart(name)
        files = Counter(
            f"{source.repository}@{source.commit[:7]}"
            for source in counterpart.sources(counterpart.find_pack(ROOT)).values()
        )
        presets = dict.fromkeys(one for own in stages.values() if f"against={name}" in own for one in own)
        memories = [one.removeprefix("memory=") for one in presets if one.startswith("memory=")]
        code = ", ".join(f"{repository} ({count} files)" for repository, count in files.items())
        rows.append((Span(name, "code"), code, _codes(memories), len(counterpart.released)))
    return render_markdown(Table("", texts(("against", "code", "presets", "settings compared")), rows), level=0)


def _codes(names: Sequence[str]) -> tuple[Span | str, ...]:
    return tuple(part for name in names for part in (", ", Span(name, "code")))[1:]


def runs_table(folder: Path, page: str = "") -> str:
    """Return the results of the runs in a folder, one row for each stage, and of which version of the code they are.

    Args:
        folder: of the reports.
        page: the page as it is; a stage without a result keeps the row that it has there.

    Raises:
        DataError: there is none.
    """
    found = {path.parent.parent.name: path for path in folder.glob(f"*/*/{RESULT}")}
    names = [
        *make_preset(ParityStages, FILE).stages,
        *(f"whole_{one}" for one in make_preset(ParityStages, WHOLE).stages),
    ]
    results = {name: json.loads(found[name].read_text(encoding="utf-8")) for name in names if name in found}
    if not results:
        raise DataError(f"{folder} has no results; `python -m eval.parity.stages` writes them (also with --whole)")
    old = {
        cells[0]: tuple(cells)
        for line in page.splitlines()
        if len(cells := line.strip("| ").split(" | ")) == len(HEADS)
    }
    rows = [_row(name, results[name]) if name in results else old.get(name, (name, *_NOT_RUN)) for name in names]
    codes = {name: results.get(name, {}).get("code", _EARLIER) for name in names}
    return f"{render_markdown(Table('', texts(HEADS), rows), level=0)}\n\n{_states(codes)}"


def _states(codes: Mapping[str, str]) -> str:
    """Say of which versions of the code the rows are, by stage."""
    stages: dict[str, list[str]] = defaultdict(list)
    for name, code in codes.items():
        stages[code].append(name)
    code, *others = sorted(stages, key=lambda one: len(stages[one]), reverse=True)
    if not others:
        return f"All rows are of one version of the code (digest `{code}`)."
    named = "; ".join(f"`{one}` for {', '.join(stages[one])}" for one in others)
    return f"Versions of the code, by digest: {named}; `{code}` for the other rows."


def _row(stage: str, result: Mapping[str, Any]) -> tuple[str, ...]:
    calls, parts, told = list(result["calls"].values()), result["parts"], result["settings"]
    memory = [one for name, one in parts.items() if name not in ("contexts", "answers", "settings")]
    ties = sum(one["tie"] for one in (*calls, *parts.values()))
    return (
        stage,
        result["conversation"],
        told["prompts"],
        told["spoiled replies"],
        f"{_sum(calls, 'ours'):,}, {_sum(calls, 'theirs'):,}",
        f"{_sum(calls, 'equal'):,}",
        _share(memory),
        *(_share([parts[name]] if name in parts else []) for name in ("contexts", "answers", "settings")),
        f"{ties}",
        f"{result['unexplained']}",
    )


def _share(counts: Sequence[Mapping[str, int]]) -> str:
    return f"{_sum(counts, 'equal'):,} of {_sum(counts, 'compared'):,}"


def _sum(counts: Sequence[Mapping[str, int]], name: str) -> int:
    return sum(one[name] for one in counts)


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page; returns the exit status."""
    parser = argparse.ArgumentParser(description=described(__doc__), formatter_class=Paragraphs)
    parser.add_argument("--runs", type=Path, default=OUT, help="folder of the reports (default: results/parity)")
    options = parser.parse_args(arguments)
    tables = {"released": released_table(), "runs": runs_table(options.runs, PAGE.read_text(encoding="utf-8"))}
    write_atomic(PAGE, replace_tables(PAGE, tables).encode())
    say(f"wrote {PAGE.name}")
    return EXIT_DONE


if __name__ == "__main__":
    start(main)
