"""The models of a run: backbones and embedder, loaded side by side."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AsyncExitStack, nullcontext
from dataclasses import replace
from functools import partial

from eval.commands.terminal import announced
from eval.running.backbones import Backbones, BackboneSelection, connect, make_engines
from eval.running.budgets import PaidParts, RunMeters, make_meters
from eval.running.loading import BACKBONE, EMBEDDER, Loading, embeds
from eval.running.paid_embedding import PaidEmbedder
from eval.running.plan import Plan
from eval.running.progress import TrafficSince
from eval.running.roles import check_raw_roles
from eval.running.runner import RunResources
from eval.running.timing import LoadingEmbedder
from eval.runs.rundir import CallFolder, RunDirectory
from memsys.embedding.contract import CutsIntoWindows, Embedder, KeepsVectors, LoadsModel, PaidPerToken
from memsys.embedding.cut_texts import CutTextCounter
from memsys.llm.config import BackboneConfig
from memsys.llm.none import NoBackbone

#: Word pieces that begin and end a text.
_SPECIAL_PIECES = 2


async def load_models(
    plan: Plan, directory: RunDirectory, stack: AsyncExitStack, loading: Loading, meters: RunMeters | None = None
) -> "tuple[Backbones | None, Future[float] | None]":
    """Load backbone and embedder side by side; returns when the backbone is there.

    A memory whose first calls need no vector then has its first reply while the embedder's model is still loading. In
    latency mode both are waited for: what is timed one at a time is timed on a quiet machine. ``meters``: what may be
    spent; ``None``: see :func:`run_meters`.

    Returns:
        The open backbone, and the embedder's loading, ``None`` if there is none.
    """
    if plan.backbone is not None:
        make_engines(backbone_selection(plan, plan.backbone))  # first: see memsys.llm.engines.llamacpp.LlamaCppEngine
    embedder = embedder_for(plan)
    if isinstance(embedder, KeepsVectors) and embeds(plan.memory):
        embedder.keep(plan.cache_dir / "vectors" if plan.use_cache and plan.timing != "latency" else None)
    loaded = loading.start_embedder(embedder, plan.memory)
    with announced(f"loading {' and '.join(parts)}") if (parts := _parts_to_load(plan, loaded)) else nullcontext():
        if plan.backbone is not None:
            with loading.of(BACKBONE):
                backbone = await open_backbones(plan, directory, stack, meters)
        else:
            backbone = None
        if loaded is not None and (plan.timing == "latency" or backbone is None):
            await asyncio.wrap_future(loaded)
    return backbone, loaded


def _parts_to_load(plan: Plan, loaded: "Future[float] | None") -> list[str]:
    backbone = [f"{BACKBONE} {plan.backbone.name}"] if plan.backbone is not None else []
    return backbone + ([f"{EMBEDDER} {plan.embedder.name}"] if loaded is not None else [])


def backbone_traffic(backbone: Backbones | None) -> Callable[[], TrafficSince]:
    """Return the counters of the backbone, for a progress display."""
    if backbone is None:
        return lambda: TrafficSince(0, 0, 0, 0)
    return lambda: TrafficSince(*backbone.traffic(), backbone.dollars())


def paid_parts(plan: Plan) -> PaidParts:
    """Return the parts of a plan that may cost dollars."""
    paid = isinstance(embedder_for(plan), PaidPerToken) and embeds(plan.memory)
    return PaidParts(plan.backbone, plan.second, plan.second_roles, plan.embedder.name if paid else None)


def run_meters(plan: Plan, directory: CallFolder) -> RunMeters:
    """Return the meters of a run's budgets, shared by its backbones and its embedder."""
    return make_meters(plan.budget, paid_parts(plan), directory.path)


async def open_backbones(
    plan: Plan, directory: CallFolder, stack: AsyncExitStack, meters: RunMeters | None = None
) -> Backbones | None:
    """Open the plan's backbones on the stack; ``None`` for a retrieval-only run.

    Args:
        plan: names them.
        directory: gets every call.
        stack: closes them.
        meters: what may be spent; ``None``: see :func:`run_meters`.
    """
    from memsys.llm.cache import ReplyCache

    if plan.backbone is None:
        return None

    def make_cache() -> ReplyCache | None:
        return ReplyCache(plan.cache_dir, shared=plan.cache_shared) if plan.use_cache else None

    meters = meters or run_meters(plan, directory)
    opened = await connect(backbone_selection(plan, plan.backbone), stack, directory, make_cache, meters)
    parts = {"backbone": opened.main.config, "second": opened.second.config if opened.second else None}
    check_raw_roles(plan.settings["memory"], parts, plan.second_roles)  # its server may complete no raw prompts
    return opened


def backbone_selection(plan: Plan, main: BackboneConfig) -> BackboneSelection:
    """Return the backbones that a plan names, ``main`` and perhaps a second one, as its conversations share them."""
    return BackboneSelection(main, plan.second, plan.second_roles, plan.serving, plan.seed, plan.cache_dir)


def make_resources(
    plan: Plan,
    backbone: Backbones | None,
    prompts: dict[str, str],
    loading: Loading | None = None,
    loaded: "Future[float] | None" = None,
    paid: "Callable[[Embedder], Embedder]" = lambda embedder: embedder,
) -> RunResources:
    """Make the runner's resources.

    Args:
        plan: of the run.
        backbone: open; ``None`` for a retrieval-only run.
        prompts: hashes by role, as recorded.
        loading: where the loading of the embedder's model is noted; ``None`` where it is not timed.
        loaded: done when that model is there; ``None`` where it is not being loaded.
        paid: gives the embedder that books what it costs, see :func:`booked`.
    """
    nobody = NoBackbone(plan.memory.name)
    embedder = paid(embedder_for(plan))
    if loading is not None and isinstance(embedder, LoadsModel):
        embedder = LoadingEmbedder(embedder, loaded, partial(loading.load_embedder, embedder))
    return RunResources(
        memory=plan.memory,
        embedder=embedder,
        turn_format=plan.dataset.turn_format,
        seed=plan.seed,
        bind=backbone.bind if backbone else lambda conversation_id: nobody,
        reader=plan.reader.build(plan.seed) if backbone else None,
        prompts=prompts,
        count_context=backbone is not None,
        failures_in_a_row=plan.unanswered.failures_in_a_row,
        context_budget=plan.context_budget,
    )


def booked(embedder: Embedder, directory: RunDirectory, meters: RunMeters) -> Embedder:
    """Return an embedder that records its costs in the run's directory; unchanged if it costs nothing."""
    if not isinstance(embedder, PaidPerToken):
        return embedder
    directory.open_embeddings()
    return PaidEmbedder(embedder, directory.add_embedding, meters.embedder)


_EMBEDDERS: dict[str, Embedder] = {}


def counting_cut_texts(plan: Plan, embedder: Embedder, note: Callable[[int], None]) -> Embedder:
    """Return the embedder that counts the texts which are longer than its window, if it has one and can tell.

    Args:
        plan: of the run.
        embedder: of the run.
        note: called with the number of such texts whenever it grows.
    """
    window = getattr(plan.embedder, "max_word_pieces", None) or getattr(plan.embedder, "max_chars", None)
    if window is None or not isinstance(embedder_for(plan), CutsIntoWindows):
        return embedder
    return CutTextCounter(embedder, max(0, window - _SPECIAL_PIECES), note)


def embedder_for(plan: Plan) -> Embedder:
    """Return the embedder, loaded once per process; for latency runs without a cache of vectors."""
    config = plan.embedder
    if plan.timing == "latency" and hasattr(config, "cache_entries"):
        config = replace(config, cache_entries=0)
    key = repr(config)
    if key not in _EMBEDDERS:
        _EMBEDDERS[key] = config.build()
    return _EMBEDDERS[key]
