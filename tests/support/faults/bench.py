"""One folder with the undisturbed runs, and what every kind of case needs of them."""

import json
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval.runs.files import read_json_lines
from tests.support.faults import inside
from tests.support.faults.forked import Ended, forked
from tests.support.faults.runs import small_plan, write_data


@dataclass
class Bench:
    """Makes runs below a folder, against one stub server.

    Attributes:
        root: of everything that is written.
        url: of the stub server.
        conversations: one or two.
        limit_s: seconds until a command counts as hung on a machine that is free; an undisturbed run has ten times as
            long. Where one takes its time, commands have five times as long as the slowest of them took.
    """

    root: Path
    url: str
    conversations: int = 2
    limit_s: float = 90.0
    _whole: dict[str, Path] = field(default_factory=dict)
    _slowest_s: float = 0.0

    def __post_init__(self) -> None:
        inside.preload()
        self.root.chmod(0o755)
        write_data(self.root / "data.json", self.conversations)

    def folder(self) -> Path:
        """A new folder for one case."""
        return Path(tempfile.mkdtemp(dir=self.root))

    @property
    def patience_s(self) -> float:
        """Seconds until a command counts as hung."""
        return max(self.limit_s, 5 * self._slowest_s)

    def run(self, preset: str, folder: Path, kill: inside.Kill | None = None, **changes: Any) -> Ended:
        """Start a run, or take it up again, in a process of its own."""
        plan = small_plan(preset, folder, self.url, **changes)
        return forked(lambda: inside.start(plan, kill), folder, self.patience_s)

    def whole(self, preset: str) -> Path:
        """The run directory of the preset's undisturbed run.

        Raises:
            AssertionError: it did not become complete; with what it said.
        """
        if preset not in self._whole:
            folder = self.folder()
            plan = small_plan(preset, folder, self.url)
            ended = forked(lambda: inside.start(plan, None), folder, 10 * self.patience_s)
            self._slowest_s = max(self._slowest_s, ended.seconds)
            assert ended.code == 0, f"the undisturbed run of {preset} failed: {ended}"
            self._whole[preset] = folder / "run"
        return self._whole[preset]

    def rows(self, preset: str, name: str) -> list[dict[str, Any]]:
        """Rows of a file of the undisturbed run."""
        return list(read_json_lines(self.whole(preset) / name))

    def roles(self, preset: str) -> list[str]:
        """Roles that the preset's run asks, the reader's among them."""
        return sorted({row["role"] for row in self.rows(preset, "calls.jsonl")})

    def bound(self, preset: str) -> list[str]:
        """Those of them whose replies a schema binds."""
        names: list[str] = json.loads((self.whole(preset).parent / inside.BOUND).read_text())
        return names

    def forget(self, folder: Path) -> None:
        """Delete a case's folder."""
        shutil.rmtree(folder, ignore_errors=True)
