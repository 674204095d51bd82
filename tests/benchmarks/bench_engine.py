"""How near CLAG's ingestion on the embedded engine comes to what llama.cpp itself can do, and what its settings cost.

Everything is counted in CPU seconds of this process, and printed as ratios of figures of one run,
so that other work on the machine matters less. Two parts, chosen by ``--parts``:

* ``clag``: some turns of a conversation through CLAG with bounded replies. Printed: per role the share of prompt tokens
  that came from the cache of prefixes; and the CPU seconds that the ceiling's rates give for the tokens that were
  computed, over the CPU seconds that were spent. The ceiling is what the same server does with raw batched completions,
  prompts alone and generation alone, without client, memory or grammar: once with as many requests as the engine
  keeps sequences, once with as many as the ingestion had at once, since a batch shares the reading of the weights.
* ``variants``: the ceiling's two figures with one setting changed, each between two measurements without the change.
* ``vllm``: the same requests to vLLM with the same weights in bfloat16 (``--served``), with and without its cache of
  prefixes, in seconds of the clock over the embedded engine's, as it is another process. Needs ``make serve-env``, so
  it is not among the default parts.

Run: ``python tests/benchmarks/bench_engine.py [--backbone qwen25_coder_05b] [--turns 12] [--parts clag]``
``--conversations 3`` writes three at once, as a run with ``schedule.conversations_in_flight=3`` does.
"""

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import aiohttp

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from hydra import compose, initialize_config_dir  # noqa: E402
from hydra.utils import instantiate  # noqa: E402

from memsys.clag.memory import ClagMemory  # noqa: E402
from memsys.embedding.contract import Embedder, Vectors  # noqa: E402
from memsys.llm.backbone import Backbone, BackboneConfig  # noqa: E402
from memsys.llm.engines import llamacpp  # noqa: E402
from memsys.llm.engines.llamacpp import LlamaCppEngineConfig  # noqa: E402
from memsys.llm.ledger import CallRecord  # noqa: E402
from memsys.llm.scope import CallScope, call_scope  # noqa: E402
from memsys.protocol import Parts  # noqa: E402
from tests.support.clag import preset  # noqa: E402

WORDS = (
    "time",
    "person",
    "year",
    "way",
    "day",
    "thing",
    "man",
    "world",
    "life",
    "hand",
    "part",
    "child",
    "eye",
    "place",
)
PREPARE_AHEAD = 8
#: Settings of llama.cpp, changed one at a time.
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "batch invariant": {"batch_invariant": True},
    "weights not repacked": {"no_extra_bufts": True},
    "flash attention off, cache in 16 bits": {
        "flash_attn_type": "DISABLED",
        "cache_type_k": "F16",
        "cache_type_v": "F16",
    },
    "cache in 16 bits": {"cache_type_k": "F16", "cache_type_v": "F16"},
    "micro-batch of 128": {"n_ubatch": 128},
    "one thread": {"threads": 1},
    "twice the sequences": {"parallel": 2},
}


#: What a variant is compared with where a preset may have the changed setting itself.
WITHOUT: Mapping[str, Mapping[str, Any]] = {
    "batch invariant": {"batch_invariant": False},
    "weights not repacked": {"batch_invariant": False},
}


@dataclass(frozen=True)
class Spent:
    """Seconds of the processor in this process, and of the clock."""

    cpu: float
    wall: float

    @classmethod
    def now(cls) -> "Spent":
        """What was spent so far."""
        return cls(time.process_time(), time.perf_counter())

    def since(self, begun: "Spent") -> "Spent":
        """What was spent between two moments."""
        return Spent(self.cpu - begun.cpu, self.wall - begun.wall)


@dataclass(frozen=True)
class Rates:
    """Tokens per CPU second, and per second of the clock."""

    prompt: float
    generation: float
    prompt_wall: float = 0.0
    generation_wall: float = 0.0


class TimedEmbedder:
    """Passes calls on and counts the texts."""

    def __init__(self, inner: Embedder) -> None:
        self.inner, self.name, self.dimension = inner, inner.name, inner.dimension
        self.texts = 0

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts."""
        self.texts += len(texts)
        return await self.inner.embed(texts)


def composed(name: str) -> Any:
    """Compose one choice of a configuration group, e.g. ``backbone=smollm2_135m``."""
    with initialize_config_dir(str(ROOT / "conf"), version_base=None):
        group = name.partition("=")[0]
        return instantiate(compose("config", overrides=[name])[group], _convert_="all")


@contextmanager
def served(config: BackboneConfig, changes: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """Start the backbone's engine with some of its settings, or of llama.cpp's, changed."""
    engine_config = config.engine
    assert isinstance(engine_config, LlamaCppEngineConfig)
    changes = dict(changes)
    if "parallel" in changes:
        changes["parallel"] *= engine_config.parallel
    own = {key: changes.pop(key) for key in ("batch_invariant", "threads", "parallel") if key in changes}
    engine = replace(engine_config, **own).build()
    parameters = llamacpp._parameters

    def changed(xllamacpp: Any, *given: Any) -> Any:
        made = parameters(xllamacpp, *given)
        kinds = {"cache_type_k": "ggml_type", "cache_type_v": "ggml_type", "flash_attn_type": "llama_flash_attn_type"}
        for key, value in changes.items():
            kind = kinds.get(key)
            prefix = "GGML_TYPE_" if kind == "ggml_type" else "LLAMA_FLASH_ATTN_TYPE_"
            setattr(made, key, getattr(getattr(xllamacpp, kind), prefix + value) if kind else value)
        return made

    with tempfile.TemporaryDirectory() as folder, patch.object(llamacpp, "_parameters", changed):
        (endpoint,) = engine.start(Path(folder))
        try:
            yield engine, endpoint.base_url
        finally:
            engine.stop()


def prompt(seed: str, words: int) -> str:
    """Words in an order of their own, so that no two prompts begin alike."""
    rng = random.Random(seed)
    return " ".join(rng.choice(WORDS) for _ in range(words))


async def complete(
    url: str, bodies: Sequence[Mapping[str, Any]], *, model: str = "m", cache: bool = False
) -> tuple[Spent, list[Any]]:
    """Send raw completions at once; returns what was spent and the replies. ``cache`` is llama.cpp's alone."""
    sampling = {"temperature": 0.7, "top_p": 1.0, "top_k": 0, "min_p": 0.0}
    if model == "m":
        sampling["cache_prompt"] = cache

    async def one(session: aiohttp.ClientSession, body: Mapping[str, Any]) -> Any:
        async with session.post(f"{url}/completions", json={"model": model, **sampling, **body}) as response:
            response.raise_for_status()
            return await response.json()

    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=3600)) as session:
        begun = Spent.now()
        replies = await asyncio.gather(*(one(session, body) for body in bodies))
        return Spent.now().since(begun), replies


async def rates(url: str, sequences: int, options: argparse.Namespace, model: str = "m") -> Rates:
    """Measure prompts alone and generation alone, with as many requests at once as there are sequences."""
    seed = random.random()
    await complete(url, [{"prompt": "Hello", "max_tokens": 2}], model=model)
    bodies = [{"prompt": prompt(f"{seed} {n}", options.prompt), "max_tokens": 1} for n in range(sequences)]
    reading, replies = await complete(url, bodies, model=model)
    read = sum(reply["usage"]["prompt_tokens"] for reply in replies)
    body = {"prompt": "Once", "max_tokens": options.new, "ignore_eos": True}
    writing, replies = await complete(url, [{**body, "seed": n} for n in range(sequences)], model=model)
    new = sum(reply["usage"]["completion_tokens"] for reply in replies)
    return Rates(read / reading.cpu, new / writing.cpu, read / reading.wall, new / writing.wall)


async def common_beginning(url: str, sequences: int, options: argparse.Namespace, model: str) -> float:
    """Tokens of prompts per second of the clock where all begin with the same nine tenths, one after the other."""
    beginning = prompt(str(random.random()), 9 * options.prompt // 10)
    read, seconds = 0, 0.0
    for number in range(sequences):
        body = {"prompt": f"{beginning} {prompt(str(number), options.prompt // 10)}", "max_tokens": 1}
        spent, (reply,) = await complete(url, [body], model=model, cache=True)
        read, seconds = read + reply["usage"]["prompt_tokens"], seconds + spent.wall
    return read / seconds


async def ingest(
    engine: Any, config: BackboneConfig, options: argparse.Namespace, on_call: Callable[[CallRecord], None]
) -> tuple[Spent, int]:
    """Write turns of the sample conversation into CLAG; returns what was spent and texts embedded.

    Several conversations are the sample's turns cut into pieces, each with a memory of its own, all at once.
    """
    sample = composed("dataset=locomo_sample").load().samples[0]
    embedder = TimedEmbedder(composed("embedder=minilm").build())
    await embedder.embed(["warm"])
    with tempfile.TemporaryDirectory() as folder:
        backbone = Backbone(config, engine, on_call=on_call, log_dir=Path(folder), run_seed=0)
        async with backbone:
            memories = [
                ClagMemory(preset("clag_small"), Parts(name, backbone.bind(name), embedder, seed=0))
                for name in map(str, range(options.conversations))
            ]
            units = memories[0].units(sample.conversation)[: options.turns * len(memories)]
            size = len(units) // len(memories)
            begun = Spent.now()
            await asyncio.gather(
                *(write(memory, units[n * size : (n + 1) * size]) for n, memory in enumerate(memories))
            )
            spent = Spent.now().since(begun)
    return spent, embedder.texts


async def write(memory: ClagMemory, units: Sequence[Any]) -> None:
    """Prepare some units ahead and write in order, as a run does."""
    call_scope.set(CallScope("write", "bench"))
    ahead = [asyncio.ensure_future(memory.prepare(unit)) for unit in units[:PREPARE_AHEAD]]
    for position, unit in enumerate(units):
        prepared = await ahead[position]
        if position + PREPARE_AHEAD < len(units):
            ahead.append(asyncio.ensure_future(memory.prepare(units[position + PREPARE_AHEAD])))
        await memory.write(unit, prepared)


def by_role(calls: Sequence[CallRecord]) -> str:
    """Table of calls, tokens and cached shares."""
    groups: dict[str, list[CallRecord]] = defaultdict(list)
    for call in calls:
        groups[call.role].append(call)
    rows = [f"  {'role':10} {'calls':>5} {'prompt':>7} {'new':>6} {'cached':>7}"]
    for role, group in [*sorted(groups.items()), ("all", list(calls))]:
        prompts, new = sum(call.prompt_tokens for call in group), sum(call.completion_tokens for call in group)
        cached = sum(call.cached_tokens or 0 for call in group)
        rows.append(f"  {role:10} {len(group):5} {prompts:7} {new:6} {100 * cached / prompts:6.1f}%")
    return "\n".join(rows)


def say(text: str) -> None:
    """Print at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


async def measure_clag(config: BackboneConfig, options: argparse.Namespace) -> None:
    """Ingest, with the ceiling measured before and after on the same server."""
    assert isinstance(config.engine, LlamaCppEngineConfig)
    sequences = config.engine.parallel
    with served(config, changes_of(options)) as (engine, url):
        before = None if options.counts_only else await rates(url, sequences, options)
        calls: list[CallRecord] = []
        spent, texts = await ingest(engine, config, options, calls.append)
        say(by_role(calls))
        if before is None:
            return
        ceiling = mean_of(before, await rates(url, sequences, options))
        in_flight = sum(call.seconds for call in calls) / spent.wall
        few = max(1, round(in_flight))
        ceiling_of_few = mean_of(*[await rates(url, few, options) for _ in range(2)])
    asked, new = sum(call.prompt_tokens for call in calls), sum(call.completion_tokens for call in calls)
    computed = asked - sum(call.cached_tokens or 0 for call in calls)
    say(f"  {computed} prompt tokens computed, {new} new ones, {texts} texts embedded in {spent.cpu:.1f} CPU seconds: "
        f"{(computed + new) / spent.cpu:.1f} a second, {(asked + new) / spent.cpu:.1f} with those cached")  # fmt: skip
    for at_once, rate in ((sequences, ceiling), (few, ceiling_of_few)):
        ideal = computed / rate.prompt + new / rate.generation
        say(f"  ceiling of {at_once} at once: {rate.prompt:.1f} prompt and {rate.generation:.1f} new tokens per CPU "
            f"second; the ingestion reaches {ideal / spent.cpu:.2f} of it")  # fmt: skip
    say(f"  the ingestion of {options.conversations} at once had {in_flight:.1f} requests at once: in a conversation "
        "a turn is written when the one before it is")  # fmt: skip


def mean_of(*rates_found: Rates) -> Rates:
    """Mean of several measurements, in tokens per CPU second."""
    return Rates(
        statistics.mean(each.prompt for each in rates_found), statistics.mean(each.generation for each in rates_found)
    )


def changes_of(options: argparse.Namespace) -> dict[str, Any]:
    """llama.cpp's parameters that ``--set`` names, as numbers."""
    return {
        key: float(value) if "." in value else int(value) for key, value in (each.split("=") for each in options.set)
    }


async def measure_variants(config: BackboneConfig, options: argparse.Namespace) -> None:
    """Set each variant between two measurements without it."""
    assert isinstance(config.engine, LlamaCppEngineConfig)
    sequences = config.engine.parallel

    async def figures(changes: Mapping[str, Any]) -> Rates:
        with served(config, changes) as (_, url):
            return await rates(url, sequences * int(changes.get("parallel", 1)), options)

    for name, changes in VARIANTS.items():
        if options.variant and options.variant not in name:
            continue
        without = WITHOUT.get(name, {})
        last, varied, following = await figures(without), await figures({**without, **changes}), await figures(without)
        read = varied.prompt / statistics.mean((last.prompt, following.prompt))
        new = varied.generation / statistics.mean((last.generation, following.generation))
        say(f"  {name:40} prompt {read:.2f}, generation {new:.2f} of the tokens per CPU second without it")


async def measure_served(config: BackboneConfig, options: argparse.Namespace) -> None:
    """Compare the embedded engine with vLLM, and vLLM with and without its cache of prefixes."""
    assert isinstance(config.engine, LlamaCppEngineConfig)
    sequences = config.engine.parallel
    with served(config, {}) as (_, url):
        ours = await rates(url, sequences, options)
        begun_alike = await common_beginning(url, sequences, options, "m")
    say(f"  llama.cpp: {ours.prompt_wall:.0f} prompt and {ours.generation_wall:.0f} new tokens per second of the clock,"
        f" {begun_alike:.0f} prompt tokens with a common beginning")  # fmt: skip
    engine_config = composed(f"backbone={options.served}").engine
    for caching in (True, False):
        engine = replace(engine_config, prefix_caching=caching).build()
        with tempfile.TemporaryDirectory() as folder:
            (endpoint,) = engine.start(Path(folder))
            try:
                found = await rates(endpoint.base_url, sequences, options, engine_config.model)
                alike = await common_beginning(endpoint.base_url, sequences, options, engine_config.model)
            finally:
                engine.stop()
        say(f"  vLLM in {engine_config.dtype}, {'' if caching else 'no '}cache of prefixes: "
            f"{found.prompt_wall / ours.prompt_wall:.2f} of the prompt tokens, {alike / begun_alike:.2f} of those with "
            f"a common beginning, {found.generation_wall / ours.generation_wall:.2f} of the new tokens")  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backbone", default="qwen25_coder_05b")
    parser.add_argument("--served", default="qwen25_coder_05b_vllm", help="backbone of the part vllm: the same weights")
    parser.add_argument("--parts", default="clag,variants")
    parser.add_argument("--turns", type=int, default=12, help="of a conversation")
    parser.add_argument("--conversations", type=int, default=1, help="written at once, each into a memory of its own")
    parser.add_argument("--prompt", type=int, default=250, help="words of a prompt of the ceiling")
    parser.add_argument("--new", type=int, default=24, help="new tokens of a reply of the ceiling")
    parser.add_argument("--variant", default="", help="only variants whose name contains this")
    parser.add_argument("--slots", type=int, default=0, help="sequences instead of the preset's")
    parser.add_argument("--in-flight", type=int, default=0, help="requests at once instead of the preset's")
    parser.add_argument("--set", nargs="*", default=[], help="parameters of llama.cpp for CLAG, e.g. cache_ram_mib=512")
    parser.add_argument("--counts-only", action="store_true", help="CLAG's tokens without the ceiling")
    options = parser.parse_args()
    config: BackboneConfig = composed(f"backbone={options.backbone}")
    assert isinstance(config.engine, LlamaCppEngineConfig)
    engine = replace(config.engine, parallel=options.slots or config.engine.parallel)
    config = replace(config, engine=engine, max_in_flight=options.in_flight or config.max_in_flight)
    say(f"{options.backbone}, {engine.parallel} sequences, {config.max_in_flight} requests at once")
    if "clag" in options.parts:
        asyncio.run(measure_clag(config, options))
    if "variants" in options.parts:
        asyncio.run(measure_variants(config, options))
    if "vllm" in options.parts:
        asyncio.run(measure_served(config, options))


if __name__ == "__main__":
    main()
