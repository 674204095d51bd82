"""What the client itself costs per call: CPU time of this process, with a server that answers after 50 ms.

The whole way of a call is measured: rendering, request, queue, HTTP, parsing, validation, ledger row, and the cache
when ``--cache`` is given. The wall time is shown next to the ideal one and to that of equal requests by the HTTP
client alone: with few cores, which the server shares, no client comes nearer to the ideal.
Run: ``python tests/benchmarks/bench_client.py [--cache]``
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from memsys import event_loop  # noqa: E402
from memsys.llm.cache import ReplyCache  # noqa: E402
from memsys.llm.http_client import HttpClient, HttpRequest  # noqa: E402
from memsys.llm.ledger import CallRecord  # noqa: E402
from memsys.llm.prompt import Prompt  # noqa: E402
from memsys.llm.wire import make_request  # noqa: E402
from tests.support.backbones import StubEngine, backbone_config, enter, open_backbone, role  # noqa: E402
from tests.support.stub_process import stub_server  # noqa: E402

DELAY = 0.05
PROMPT = Prompt("Describe the message for a memory store. " * 20 + "\n$text", "bench.txt", "0" * 64)


async def http_alone(url: str, in_flight: int, calls: int) -> float:
    """Send one request again and again, and read no reply; returns seconds."""
    body = make_request(backbone_config(), "vllm", role(prompt=PROMPT), PROMPT.text, 0).text.encode()
    request = HttpRequest("POST", f"{url}/chat/completions", {"Content-Type": "application/json"}, data=body)
    client = HttpClient()

    async def exchange(count: int) -> None:
        for _ in range(count):
            await client.exchange(request, timeout=120, largest=len(body))

    await asyncio.gather(*(exchange(1) for _ in range(in_flight)))
    begun = time.perf_counter()
    await asyncio.gather(*(exchange(calls // in_flight) for _ in range(in_flight)))
    seconds = time.perf_counter() - begun
    await client.close()
    return seconds


async def measure(url: str, folder: Path, in_flight: int, calls: int, *, cached: bool) -> str:
    """Make the calls; returns the row of the table."""
    enter()
    records: list[CallRecord] = []
    config = backbone_config(max_in_flight=in_flight, timeout_s=120)
    cache = ReplyCache(folder / str(in_flight)) if cached else None
    async with open_backbone(StubEngine([url]), folder, config=config, cache=cache, on_call=records.append) as backbone:
        model, asked = backbone.bind("c1"), role(prompt=PROMPT)
        await asyncio.gather(*(model.ask(asked, {"text": "warm"}, key=f"warm {n}") for n in range(in_flight)))
        cpu, wall = time.process_time(), time.perf_counter()
        await asyncio.gather(*(model.ask(asked, {"text": f"turn {n}"}, key=str(n)) for n in range(calls)))
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    ideal, alone = calls / in_flight * DELAY, await http_alone(url, in_flight, calls)
    return (
        f"{in_flight:>6} in flight: {1000 * cpu / calls:.2f} ms CPU per call; wall {wall:.2f} s, "
        f"HTTP alone {alone:.2f} s, ideal {ideal:.2f} s"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cache", action="store_true")
    arguments = parser.parse_args()
    with stub_server(delay=DELAY, extra=("--same",)) as url, tempfile.TemporaryDirectory() as folder:
        for in_flight, calls in ((1, 100), (64, 3200), (256, 5120), (1000, 8000)):
            row = event_loop.run(measure(url, Path(folder), in_flight, calls, cached=arguments.cache))
            sys.stdout.write(row + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
