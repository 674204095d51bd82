"""Cases: a run is killed at a counted write and taken up again; it must end as the undisturbed one."""

from dataclasses import dataclass
from random import Random
from typing import Any

from tests.support.faults.bench import Bench
from tests.support.faults.forked import Ended
from tests.support.faults.inside import Kill
from tests.support.faults.runs import unlike

#: Files whose writes are counted, with how many there are in a run: as many as rows, or as many as replacements.
COUNTED = ("calls.jsonl", "answers.jsonl", "retrievals.jsonl", "conversations.jsonl")
WHEN = ("after", "middle", "before")


@dataclass(frozen=True)
class KillCase:
    """``kills`` one after the other, then a run to the end."""

    preset: str
    kills: tuple[Kill, ...]
    use_cache: bool = True

    def label(self) -> str:
        """Say what is done."""
        where = ", ".join(f"{kill.when} write {kill.count} of {kill.file}" for kill in self.kills)
        return f"{self.preset}: killed {where}{'' if self.use_cache else ', no cache'}"


def kill_cases(bench: Bench, preset: str, count: int, rng: Random) -> list[KillCase]:
    """Choose so many cases for a preset: every third kills twice, every other goes without a cache of replies."""
    cases = []
    for number in range(count):
        files = [name for name in COUNTED if bench.rows(preset, name)]
        kills = [_kill(bench, preset, rng, files) for _ in range(2 if number % 3 == 2 else 1)]
        cases.append(KillCase(preset, tuple(kills), use_cache=number % 2 == 0))
    return cases


def _kill(bench: Bench, preset: str, rng: Random, files: list[str]) -> Kill:
    # Calls and answers are what a run spends its time on; a snapshot is the one file that is replaced as a whole.
    name = rng.choice(["calls.jsonl", "calls.jsonl", "answers.jsonl", *files, ".npz"])
    # Each conversation has one snapshot at least, its last.
    rows = len(bench.rows(preset, "conversations.jsonl" if name == ".npz" else name))
    return Kill(name if rows else "answers.jsonl", rng.randint(1, max(rows, 1)), rng.choice(WHEN))


def run_kill_case(bench: Bench, case: KillCase) -> dict[str, Any]:
    """Do it; the result names the problem, and counts the kills that happened."""
    folder, whole, kills = bench.folder(), bench.whole(case.preset), 0
    for kill in case.kills:
        ended = bench.run(case.preset, folder, kill, use_cache=case.use_cache)
        if ended.code == -9 and not ended.hung:
            kills += 1
        elif kills == 0 or ended.problem():  # a second kill may find less left to do than it counts
            return {"problem": ended.problem() or "ended before it was killed", "kills": kills}
    problem = _resumed(bench.run(case.preset, folder, use_cache=case.use_cache)) or unlike(folder / "run", whole)
    bench.forget(folder)
    return {"problem": problem, "kills": kills, "files": len(case.kills)}


def _resumed(ended: Ended) -> str:
    return ended.problem() or ("" if ended.code == 0 else f"the resumed run is not complete: {ended.err[-300:]}")
