"""What the proxy adds to a run: the same requests straight to a server that takes 50 ms, and by the proxy.

Both go by the same HTTP client. The processor time that the proxy adds to a call, beside its 50 ms, is what a run
of one program pays; the goal is at most 1.05. Wall times are told too: on a busy machine, or where the calls per second
are more than a core can pass on, they say more about the machine. Run: ``python tests/benchmarks/bench_proxy.py``
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import aiohttp

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from memsys.embedding.hashing import HashingEmbedder  # noqa: E402
from memsys.llm.cache import ReplyCache  # noqa: E402
from memsys.llm.ledger import CallRecord  # noqa: E402
from memsys.proxy.server import ProxyParts, ProxyServer, ProxySettings  # noqa: E402
from tests.support.backbones import StubEngine, backbone_config, open_backbone  # noqa: E402
from tests.support.stub_process import stub_server  # noqa: E402

DELAY = 0.05
TEXT = "Describe the message for a memory store. " * 20


class Spent(NamedTuple):
    """Seconds of the clock, and of this process's processor time: client and proxy."""

    wall: float
    cpu: float


async def drive(url: str, key: str, in_flight: int, calls: int, name: str) -> Spent:
    """Make the calls."""
    slots = asyncio.Semaphore(in_flight)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, headers={"Authorization": f"Bearer {key}"}) as session:

        async def one(number: int | str) -> None:
            body = {
                "model": "m",
                "max_tokens": 50,
                "messages": [{"role": "user", "content": f"{TEXT} {name} {number}"}],
            }
            async with slots, session.post(f"{url}/chat/completions", json=body) as reply:
                assert reply.status == 200, await reply.text()
                await reply.read()

        await asyncio.gather(*(one(f"warm {number}") for number in range(in_flight)))
        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(one(number) for number in range(calls)))
        return Spent(time.perf_counter() - wall, time.process_time() - cpu)


async def measure(url: str, folder: Path, in_flight: int, calls: int) -> str:
    """Measure both ways; returns the row of the table."""
    records: list[CallRecord] = []
    config = backbone_config(max_in_flight=in_flight, timeout_s=120)
    cache = ReplyCache(folder / str(in_flight))
    settings = ProxySettings(0, 64, max_body_mb=8, body_timeout_s=60, json_mode="bound", tool_calls="served")
    line = open_backbone(StubEngine([url]), folder, config=config, cache=cache, on_call=records.append)
    async with line, ProxyServer(ProxyParts("stub", line.bind, HashingEmbedder(8)), settings) as proxy:
        client = proxy.clients.admit("bench")
        direct, through = [], []
        for repeat in range(3):  # by turns, so that a busy machine is busy for both
            direct.append(await drive(url, "", in_flight, calls, f"direct {repeat}"))
            through.append(await drive(proxy.base_url, client.token, in_flight, calls, f"proxy {repeat}"))
    wall = min(one.wall for one in through) / min(one.wall for one in direct)
    added = (min(one.cpu for one in through) - min(one.cpu for one in direct)) / calls
    return (
        f"{in_flight:>6} in flight: wall ratio {wall:.3f}; {1000 * added:.2f} ms CPU per call added, "
        f"{1 + added / DELAY:.3f} of a {1000 * DELAY:.0f} ms call"
    )


def main() -> None:
    """Measure and print."""
    with stub_server(delay=DELAY) as url, tempfile.TemporaryDirectory() as folder:
        for in_flight, calls in ((1, 60), (8, 400), (32, 800), (1000, 2000)):
            sys.stdout.write(asyncio.run(measure(url, Path(folder), in_flight, calls)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
