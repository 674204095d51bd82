"""A process that forks runs for tests: requests come as JSON lines on standard input, results go out the same way.

Tests do not fork by themselves: a test process has threads, and a lock that one holds would never be given free.
"""

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from tests.support.bad_replies import BAD_REPLIES
from tests.support.faults.bench import Bench
from tests.support.faults.cases import Cases
from tests.support.faults.damage import DamageCase, files_of
from tests.support.faults.disk import DiskCase
from tests.support.faults.replies import ReplyCase
from tests.support.stub_process import stub_server


def answer(cases: Cases, request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Run what a request asks for."""
    preset, section = str(request["preset"]), request["section"]
    rng = Random(f"{cases.seed} {sorted(request.items())}")
    if section == "kills":
        return [cases.run(case) for case in cases.kills(preset, 1)]
    if section == "replies":
        assert request["kind"] in BAD_REPLIES
        role = rng.choice(cases.bench.roles(preset))
        return [cases.run(ReplyCase(preset, role, request["kind"]))]
    if section == "disks":
        return [cases.run(DiskCase(preset, request["kind"], request["amount"], request["file"]))]
    files = [name for name in files_of(cases.pristine(preset).lay_out(request["state"])) if _fits(name, request)]
    chosen = rng.choice(files)
    return [
        cases.run(
            DamageCase(preset, request["state"], chosen, request["damage"], request["command"], rng.randrange(1 << 20))
        )
    ]


def _fits(file: str, request: Mapping[str, Any]) -> bool:
    if request["command"] != "run" and not file.startswith("run/"):
        return False
    return file.endswith((".jsonl", ".json")) or not str(request["damage"]).startswith(("row", "CRLF", "UTF"))


def main() -> None:
    """Entry point."""
    seed = int(sys.argv[1])
    with stub_server(delay=0.0) as url, tempfile.TemporaryDirectory() as folder:
        cases = Cases(Bench(Path(folder), url, conversations=1), seed)
        for line in sys.stdin:
            sys.stdout.write(json.dumps(answer(cases, json.loads(line))) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
