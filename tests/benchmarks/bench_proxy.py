"""What the proxy adds to a run: the same requests straight to a server that takes 50 ms, and by the proxy.

Both go by the same HTTP client, which is a process of its own as an external program is; so is the server. The goal is
a wall time of at most 1.05. The proxy's processor time for a call is reported, too: it says how many calls
per second one process can pass on. Run: ``python tests/benchmarks/bench_proxy.py``
"""

import asyncio
import multiprocessing
import sys
import tempfile
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path

import aiohttp

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from memsys import event_loop  # noqa: E402
from memsys.embedding.hashing import HashingEmbedder  # noqa: E402
from memsys.llm.cache import ReplyCache  # noqa: E402
from memsys.llm.ledger import CallRecord  # noqa: E402
from memsys.proxy.server import ProxyParts, ProxyServer, ProxySettings  # noqa: E402
from tests.support.backbones import StubEngine, backbone_config, open_backbone  # noqa: E402
from tests.support.stub_process import stub_server  # noqa: E402

DELAY = 0.05
TEXT = "Describe the message for a memory store. " * 20


async def drive(url: str, key: str, in_flight: int, calls: int, name: str) -> float:
    """Make the calls; returns seconds."""
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
        begun = time.perf_counter()
        await asyncio.gather(*(one(number) for number in range(calls)))
        return time.perf_counter() - begun


def foreign_program(url: str, key: str, in_flight: int, calls: int, name: str) -> float:
    """What the client's process runs."""
    return asyncio.run(drive(url, key, in_flight, calls, name))


async def measure(url: str, folder: Path, in_flight: int, calls: int, program: Executor) -> str:
    """Measure both ways; returns the row of the table."""
    records: list[CallRecord] = []
    config = backbone_config(max_in_flight=in_flight, timeout_s=120)
    cache = ReplyCache(folder / str(in_flight))
    settings = ProxySettings(0, 64, max_body_mb=8, body_timeout_s=60, json_mode="bound", tool_calls="served")
    line = open_backbone(StubEngine([url]), folder, config=config, cache=cache, on_call=records.append)
    async with line, ProxyServer(ProxyParts("stub", line.bind, HashingEmbedder(8)), settings) as proxy:
        client = proxy.clients.admit("bench")
        direct, through, passing = [], [], []

        async def run(url: str, key: str, name: str) -> float:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(program, foreign_program, url, key, in_flight, calls, name)

        for repeat in range(3):  # by turns, so that a busy machine is busy for both
            direct.append(await run(url, "", f"direct {repeat}"))
            begun = time.process_time()
            through.append(await run(proxy.base_url, client.token, f"proxy {repeat}"))
            passing.append((time.process_time() - begun) / (calls + in_flight))
    added = min(passing)
    return (
        f"{in_flight:>6} in flight: wall ratio {min(through) / min(direct):.3f}; the proxy takes {1000 * added:.2f} ms "
        f"of a processor per call, {1 + added / DELAY:.3f} of a {1000 * DELAY:.0f} ms call with it"
    )


def main() -> None:
    """Measure and print."""
    clients = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
    with stub_server(delay=DELAY) as url, tempfile.TemporaryDirectory() as folder, clients as program:
        for in_flight, calls in ((1, 60), (8, 400), (32, 800), (1000, 2000), (4000, 8000)):
            sys.stdout.write(event_loop.run(measure(url, Path(folder), in_flight, calls, program)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
