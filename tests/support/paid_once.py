"""What a killed run paid twice, counted at the server: ``python -m tests.support.paid_once`` kills a run 50 times.

A reply is recorded once its row is in the cache of replies, which is the first thing that is done with it. One that is
recorded must never be asked again. A request that is in flight at a kill is asked again, whatever a client does: its
reply comes to nobody, or lies in the dead process's buffers. Those are counted too, by what had become of them.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memsys.llm.cache_rows import key_of_row
from memsys.llm.wire import WireRequest, model_text
from tests.support.stub_process import ROOT, attached, stub_server


@dataclass
class Paid:
    """Figures of a campaign, in requests as the server saw them.

    ``doubled``: asked again although the reply was recorded. ``unread``: asked again, after the server had sent the
    whole reply and the run was killed before it was recorded. ``unanswered``: asked again, after a kill that came
    before the reply.
    """

    calls: int = 0
    kills: int = 0
    requests: int = 0
    doubled: int = 0
    unread: int = 0
    unanswered: int = 0


@dataclass
class Watch:
    """Looks at the server's log and the cache after each kill.

    Args:
        log: that the server writes.
        cache: folder of the replies.
    """

    log: Path
    cache: Path
    recorded: list[tuple[int, set[str]]] = field(default_factory=list)  # lines of the log at a kill, what was stored

    def after_kill(self) -> None:
        """Note what was recorded when the run was killed."""
        rows = [row for path in self.cache.rglob("*.jsonl") for row in path.read_bytes().splitlines(keepends=True)]
        self.recorded.append((lines(self.log), {key.hex() for row in rows if (key := key_of_row(row))}))

    def paid(self, model: dict[str, Any]) -> Paid:
        """Count.

        Args:
            model: the fingerprint that the keys of the replies hold, from ``run.json``.
        """
        found, sent = Paid(kills=len(self.recorded)), dict[str, bool]()
        for number, line in enumerate(self.log.read_bytes().splitlines()):
            row = json.loads(line)
            key = _key(row["path"], row["body"], model)
            if row["event"] == "sent":
                sent[key] = True
                continue
            found.requests += 1
            stored: set[str] = next((stored for size, stored in reversed(self.recorded) if size <= number), set())
            if key in stored:
                found.doubled += 1
            elif key in sent:
                found.unread += sent[key]
                found.unanswered += not sent[key]
            sent[key] = False
        found.calls = len(sent)
        return found


def _key(path: str, body: dict[str, Any], model: dict[str, Any]) -> str:
    fields = {name: value for name, value in body.items() if name != "model"}
    return WireRequest.of(path.removeprefix("/v1"), fields).digest(model_text(model))


def lines(path: Path) -> int:
    """Lines of a file that is being written."""
    return path.read_bytes().count(b"\n") if path.is_file() else 0


def kill_after(command: Sequence[str], log: Path, replies: int, pause: float) -> bool:
    """Start a run and kill it once the server has sent so many more replies; false where it finished before."""
    place = log.stat().st_size if log.is_file() else 0
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while _sent(log, place) < replies and process.poll() is None:
        time.sleep(0.02)
    time.sleep(pause)
    alive = process.poll() is None
    if alive:
        os.kill(process.pid, signal.SIGKILL)
    process.wait()
    return alive


def _sent(log: Path, place: int) -> int:
    """Replies that were sent since the log had so many bytes."""
    if not log.is_file():
        return 0
    with log.open("rb") as stream:
        stream.seek(place)
        return stream.read().count(b'"event": "sent"')


def write_questions(folder: Path, count: int) -> Path:
    """Write a data set of one conversation with so many questions."""
    folder.mkdir()
    place = {"conversation": "c1", "session": "1", "speaker": "Ann", "date": "2024-05-03"}
    turns = [{**place, "id": str(n), "text": f"Cat {n}."} for n in range(3)]
    questions = [
        {"conversation": "c1", "id": f"q{n}", "question": f"What is cat {n} called?", "answers": ["x"], "evidence": []}
        for n in range(count)
    ]
    for name, rows in (("turns", turns), ("questions", questions)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def command(url: str, folder: Path, *extra: str) -> list[str]:
    """Return the command of the run that is killed."""
    return [
        sys.executable, "-m", "eval.run", "memory=bm25_turn", "embedder=hashing", "dataset=custom",
        f"dataset.data_dir={folder / 'data'}", *attached(url), f"run_dir={folder / 'run'}",
        f"cache_dir={folder / 'cache'}", "score=false", "progress=lines", *extra,
    ]  # fmt: skip


def campaign(folder: Path, calls: int, kills: int, seed: int) -> Paid:
    """Kill a run so many times at random moments, let it end, and count."""
    draw, log = random.Random(seed), folder / "log.jsonl"
    write_questions(folder / "data", calls)
    watch = Watch(log, folder / "cache")
    with stub_server(delay=0.02, extra=("--log", str(log))) as url:
        arguments = command(url, folder)
        for _ in range(kills):
            if not kill_after(arguments, log, draw.randint(1, max(1, calls // kills)), draw.uniform(0, 0.1)):
                break
            watch.after_kill()
        subprocess.run(arguments, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return watch.paid(json.loads((folder / "run" / "run.json").read_text("utf-8"))["model"])


def main() -> int:
    """Run the campaign and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = campaign(Path(folder), options.calls, options.kills, options.seed)
    sys.stdout.write(f"{found}\n")
    whole = (found.calls, found.kills) == (options.calls, options.kills)
    return 0 if whole and not found.doubled else 1


if __name__ == "__main__":
    sys.exit(main())
