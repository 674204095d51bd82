"""What a released code did, kept between runs of a stage that change our side alone (``make parity-mutations``).

A run of theirs follows from its worker, their files, the settings, the conversation, and the stand-in for a backbone:
where all of these are the same, so is the run.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from eval.parity.endpoint import RecordedCall
from eval.parity.ours import Answered, SideResult
from eval.parity.replies import Request
from eval.runs.files import write_atomic
from memsys.assets.paths import ROOT

#: Code that a run of theirs depends on, besides their files.
CODE = ("eval/parity/*.py", "eval/parity/*.yaml", "baselines/packages/authors_*/*.py", "memsys/workers/*.py")


def key_of(*given: Any) -> str:
    """Return the key of a run of theirs: a digest of what it is given and of the code that it depends on."""
    digest = hashlib.sha256(json.dumps(given, sort_keys=True, default=str).encode("utf-8", "replace"))
    for pattern in CODE:
        for path in sorted(ROOT.glob(pattern)):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def keep(path: Path, calls: Sequence[RecordedCall], result: SideResult) -> None:
    """Write a run of theirs: its calls in their order, its memory and its answers."""
    told = {"calls": [asdict(one) for one in calls], "result": asdict(result)}
    write_atomic(path, json.dumps(told).encode())  # a schema's fields in their order, which is compared


def kept(path: Path) -> tuple[list[RecordedCall], SideResult] | None:
    """Read a run of theirs; ``None`` where there is none."""
    if not path.is_file():
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    calls = [RecordedCall(_request(one["request"]), one["reply"]) for one in found["calls"]]
    answers = {name: Answered(**one) for name, one in found["result"]["answers"].items()}
    return calls, SideResult(found["result"]["store"], answers)


def _request(found: dict[str, Any]) -> Request:
    return Request(**{**found, "exchange": tuple(found["exchange"])})
