"""``make fault-campaign``: hundreds of kills, every role by every bad reply, damaged files, full disks.

Prints how many were tried and how many survived, and every problem; writes both as JSON. Exit status 1 if there is one.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.support.faults.cases import Case, Cases

ROOT = Path(__file__).resolve().parents[3]
#: Section of a run that nothing was done to, where it fails.
UNDISTURBED = "undisturbed"
#: Section of the campaign's own processes, where one fails.
PROCESSES = "processes"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign; returns the exit status."""
    options = _parser().parse_args(arguments)
    if options.shard is not None:
        _run_shard(options)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        results, whole = _run_all(options, Path(folder))
    problems = [result for result in results if result["problem"]]
    table = figures(results)
    report = {
        "seed": options.seed,
        "seconds": options.seconds,
        "all cases": whole,
        "figures": table,
        "problems": problems,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2, ensure_ascii=True) + "\n", encoding="utf-8")
    for problem in problems:
        _say(f"{problem['case']}\n    {problem['problem']}")
    _say("\n".join(rows(table)))
    _say(f"{'all cases' if whole else 'as many cases as the time allowed'}; figures and problems: {options.out}")
    return 1 if problems else 0


def figures(results: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Of each section: cases tried and survived, processes killed, bytes of the files that were damaged.

    A damage that leaves a file as it was is not a case.
    """
    table: dict[str, dict[str, int]] = {}
    for result in results:
        if result.get("same"):
            continue
        row = table.setdefault(result["section"], {"tried": 0, "survived": 0, "kills": 0, "bytes": 0})
        row["tried"] += 1
        row["survived"] += not result["problem"]
        row["kills"] += result.get("kills", 0)
        row["bytes"] += result.get("bytes", 0)
    return dict(sorted(table.items()))


def rows(table: Mapping[str, Mapping[str, int]]) -> list[str]:
    """The figures as lines of text."""
    columns = ("tried", "survived", "kills", "bytes")
    head = f"{'':12}" + "".join(f"{name:>12}" for name in columns)
    return [head, *(f"{name:12}" + "".join(f"{row[key]:>12,}" for key in columns) for name, row in table.items())]


def _run_all(options: argparse.Namespace, folder: Path) -> tuple[list[dict[str, Any]], bool]:
    """Share the presets among processes; what they found, and whether they tried all."""
    files = [folder / f"{number}.json" for number in range(options.workers)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.faults", "--shard", str(number), "--workers", str(options.workers),
             "--seconds", str(options.seconds), "--seed", str(options.seed), "--kills", str(options.kills),
             *(["--only", options.only] if options.only else []), "--out", str(file)],
            cwd=ROOT,
        )
        for number, file in enumerate(files)
    ]  # fmt: skip
    return merged(files, [process.wait() for process in processes])


def merged(files: Sequence[Path], codes: Sequence[int]) -> tuple[list[dict[str, Any]], bool]:
    """Put together what the processes found; one that failed is a problem, and what it had found until then stays."""
    parts = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.is_file()]
    results = [result for part in parts for result in part["results"]]
    for number, code in enumerate(codes):
        if code:
            results.append({"section": PROCESSES, "case": f"process {number}", "problem": f"ended with status {code}"})
    return results, len(parts) == len(files) and not any(codes) and all(part["whole"] for part in parts)


def _run_shard(options: argparse.Namespace) -> None:
    from tests.support.faults.bench import Bench
    from tests.support.faults.cases import Cases, shard
    from tests.support.stub_process import stub_server

    with stub_server(delay=0.0) as url, tempfile.TemporaryDirectory() as folder:
        cases = Cases(Bench(Path(folder), url), options.seed)
        planned = cases.all(shard(options.shard, options.workers), options.kills, options.only)
        write_found(options.out, _results(cases, planned), time.monotonic() + options.seconds)


def write_found(out: Path, found: Iterable[dict[str, Any]], end: float) -> None:
    """Write the results until there are no more, the time is over, or an undisturbed run fails.

    They are written each time, so that what was found is there whatever becomes of this process.
    """
    results: list[dict[str, Any]] = []
    _write_part(out, results, whole=False)
    for result in found:
        results.append(result)
        _write_part(out, results, whole=False)
        if time.monotonic() >= end or result["section"] == UNDISTURBED:
            return
    _write_part(out, results, whole=True)


def _write_part(out: Path, results: Sequence[Mapping[str, Any]], *, whole: bool) -> None:
    part = out.with_suffix(".part")
    part.write_text(json.dumps({"results": results, "whole": whole}), encoding="utf-8")
    part.replace(out)


def _results(cases: "Cases", planned: Iterator["Case"]) -> Iterator[dict[str, Any]]:
    """Results one by one; an undisturbed run that fails, without which there are no further cases, is the last."""
    try:
        for case in planned:
            yield cases.run(case)
    except AssertionError as error:
        yield {"section": UNDISTURBED, "case": "", "problem": str(error)}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make fault-campaign", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0, help="time; a part of the cases if it is short")
    parser.add_argument("--kills", type=int, default=4, help="runs killed of each preset")
    parser.add_argument(
        "--only", choices=("kills", "bad replies", "files", "disks"), help="one kind of fault alone (default: all)"
    )
    parser.add_argument("--seed", type=int, default=0, help="chooses places, rows, bytes and the order")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument(
        "--out", type=Path, default=Path("build/fault_campaign.json"), help="figures and problems as JSON"
    )
    parser.add_argument("--shard", type=int, help=argparse.SUPPRESS)
    return parser


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
