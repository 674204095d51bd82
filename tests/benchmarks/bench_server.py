"""How near a run, or a sweep, comes to what its vLLM server can do at once.

The command after ``--`` is run against a server that is up already (``memsys serve``, or any vLLM server that the
command's backbone is attached to). The server's own counters, read before and after it, say how many requests,
prompt tokens (computed and taken from the cache of prefixes) and new tokens it was, and how long it took. Then as many
requests of the same mean length are sent with nothing to wait for: random tokens, no grammar, no memory, no common
beginning. That is the ceiling. Printed: tokens a second of both (computed prompt tokens and new ones), and the ratio.

The ceiling is asked with ``--in-flight`` requests at once, which is more than the systems ever have, and a second time
with as many as the command had on average, since a batch shares the reading of the weights.

Run: ``python tests/benchmarks/bench_server.py --url http://127.0.0.1:8000 -- memsys run -m +experiment=... memory=...``
Without a command only the ceiling for ``--prompt`` and ``--new`` tokens is measured.
"""

import argparse
import asyncio
import json
import random
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import aiohttp

#: Counters of vLLM's /metrics, by what they are called here.
COUNTERS = {
    "requests": "vllm:request_success_total",
    "prompt": "vllm:prompt_tokens_total",
    "new": "vllm:generation_tokens_total",
    "cached": "vllm:prefix_cache_hits_total",
}
RUNNING = "vllm:num_requests_running"
#: Ids of ordinary tokens in all vocabularies used here.
FIRST_TOKEN, LAST_TOKEN = 1_000, 30_000


@dataclass(frozen=True)
class Work:
    """What a server did in some time."""

    seconds: float
    requests: float
    prompt: float
    new: float
    cached: float
    in_flight: float  # mean, while any request ran

    @property
    def rate(self) -> float:
        """Computed prompt tokens and new tokens a second."""
        return (self.prompt - self.cached + self.new) / self.seconds


def counters(url: str) -> dict[str, float]:
    """Sum of each counter over its labels."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as reply:
        text = reply.read().decode()
    return {name: _sum(text, metric) for name, metric in {**COUNTERS, "running": RUNNING}.items()}


def _sum(text: str, metric: str) -> float:
    found = re.findall(rf"^{re.escape(metric)}(?:\{{[^}}]*\}})? (\S+)$", text, re.MULTILINE)
    return sum(map(float, found))


class Watch:
    """Looks at the requests that run twice a second."""

    def __init__(self, url: str) -> None:
        self._url, self._seen, self._end = url, list[float](), threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "Watch":
        self._before, self._begun = counters(self._url), time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self._seconds, after = time.monotonic() - self._begun, counters(self._url)
        self._did = {name: after[name] - self._before[name] for name in COUNTERS}

    def _look(self) -> None:
        while not self._end.wait(0.5):
            self._seen.append(counters(self._url)["running"])

    def work(self) -> Work:
        """What was done between entry and exit."""
        busy = [count for count in self._seen if count]
        return Work(seconds=self._seconds, in_flight=sum(busy) / max(len(busy), 1), **self._did)


async def ceiling(url: str, model: str, requests: int, prompt: int, new: int, in_flight: int) -> None:
    """Send requests of one length with nothing between them."""
    slots = asyncio.Semaphore(in_flight)
    draw = random.Random(in_flight)  # no prompt of another measurement, which would be in the cache of prefixes
    prompts = [[draw.randint(FIRST_TOKEN, LAST_TOKEN) for _ in range(prompt)] for _ in range(requests)]
    connector = aiohttp.TCPConnector(limit=in_flight)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None)) as session:

        async def one(tokens: list[int]) -> None:
            body = {"model": model, "prompt": tokens, "max_tokens": new, "ignore_eos": True, "temperature": 0}
            async with slots, session.post(f"{url}/v1/completions", json=body) as reply:
                reply.raise_for_status()
                await reply.read()

        await asyncio.gather(*map(one, prompts))


def measure_ceiling(url: str, requests: int, prompt: int, new: int, in_flight: int) -> Work:
    """Time so many requests of one length, by the server's counters."""
    with urllib.request.urlopen(f"{url}/v1/models", timeout=30) as reply:
        model = json.load(reply)["data"][0]["id"]
    with Watch(url) as watch:
        asyncio.run(ceiling(url, model, requests, prompt, new, in_flight))
    return watch.work()


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def show(name: str, work: Work) -> None:
    """Print one line of the table."""
    say(
        f"{name:<24}{work.seconds:>8.1f} s {work.requests:>8,.0f} requests {work.prompt:>11,.0f} prompt tokens"
        f" ({work.cached / max(work.prompt, 1):.0%} cached) {work.new:>10,.0f} new {work.in_flight:>6.0f} in flight"
        f" {work.rate:>9,.0f} tokens/s"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, then the ceiling."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--url", required=True, help="http://host:port of the server")
    parser.add_argument("--in-flight", type=int, default=256)
    parser.add_argument("--requests", type=int, default=2048, help="most that the ceiling asks")
    parser.add_argument("--prompt", type=int, default=300, help="without a command: tokens of a prompt")
    parser.add_argument("--new", type=int, default=60, help="without a command: new tokens of a reply")
    parser.add_argument("--out", help="write the figures to this file, as JSON")
    parser.add_argument("command", nargs="*", help="what to run against the server")
    options = parser.parse_args(arguments)
    figures: dict[str, Work] = {}
    prompt, new, requests, status = options.prompt, options.new, options.requests, 0
    if options.command:
        with Watch(options.url) as watch:
            status = subprocess.run(options.command, check=False).returncode
        done = figures["command"] = watch.work()
        if not done.requests:
            sys.exit("the server had no request from the command")
        prompt, new = round((done.prompt - done.cached) / done.requests), round(done.new / done.requests)
        requests = min(requests, int(done.requests))
    as_many = max(round(figures["command"].in_flight), 1) if figures else 1
    for in_flight in dict.fromkeys((options.in_flight, as_many)):
        share = max(requests * min(in_flight, options.in_flight) // options.in_flight, in_flight)
        work = measure_ceiling(options.url, share, max(prompt, 1), max(new, 1), in_flight)
        figures[f"ceiling, {in_flight} at once"] = work
    for name, work in figures.items():
        show(name, work)
        if options.command and name != "command":
            say(f"{'':<24}the command had {figures['command'].rate / work.rate:.2f} of it")
    if options.out:
        found = {name: {**asdict(work), "tokens_per_s": work.rate} for name, work in figures.items()}
        Path(options.out).write_text(json.dumps(found), encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
