"""Runs of released codes that are kept while our side alone changes (``make parity-mutations``); state of the code.

A run of theirs follows from its worker, their files, the settings, the conversation, and the deterministic backbone:
where all of these are the same, so is the run.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from eval.parity.endpoint import RecordedCall
from eval.parity.ours import Answered, SideResult
from eval.parity.replies import Request
from eval.runs.files import write_atomic
from memsys.assets.paths import ROOT

#: Code that a run of theirs depends on, besides their files.
THEIRS = ("eval/parity/*.py", "eval/parity/*.yaml", "baselines/packages/authors_*/*.py", "memsys/workers/*.py")

#: Code that a comparison depends on.
BOTH = (
    *THEIRS,
    "eval/parity/released/*.yaml",
    *(f"{folder}/**/*.{kind}" for folder in ("memsys", "baselines", "conf") for kind in ("py", "yaml", "txt")),
)
_SHOWN = 8


@lru_cache
def code_of(patterns: Sequence[str] = BOTH) -> str:
    """Return the name of a state of the code: a digest of the files that the patterns find."""
    digest = hashlib.sha256()
    for path in sorted({path for pattern in patterns for path in ROOT.glob(pattern)}):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:_SHOWN]


def key_of(*given: Any) -> str:
    """Return the key of a run of theirs: a digest of what it is given and of the code that it depends on."""
    told = json.dumps([code_of(THEIRS), *given], sort_keys=True, default=str)
    return hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()


def keep(path: Path, calls: Sequence[RecordedCall], result: SideResult) -> None:
    """Write a run of theirs: its calls in their order, its memory and its answers."""
    told = {"calls": [asdict(one) for one in calls], "result": asdict(result)}
    write_atomic(path, json.dumps(told).encode())  # a schema's fields in their order, which is compared


def kept(path: Path) -> tuple[list[RecordedCall], SideResult] | None:
    """Read a run of theirs; ``None`` if there is none."""
    if not path.is_file():
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    calls = [RecordedCall(_request(one["request"]), one["reply"]) for one in found["calls"]]
    answers = {name: Answered(**one) for name, one in found["result"]["answers"].items()}
    return calls, SideResult(found["result"]["store"], answers)


def _request(found: dict[str, Any]) -> Request:
    return Request(**{**found, "exchange": tuple(found["exchange"])})
