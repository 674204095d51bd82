"""Backbones of a run: engines that the runs of a process share, and the model as a run sees it."""

import asyncio
import atexit
import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.commands.terminal import say
from eval.config.prices import load_prices
from eval.running.budgets import RunMeters
from eval.running.server_requests import ask_for_servers
from eval.running.servers import FittedBackbone, begun_with, fitted
from eval.runs.rundir import CallFolder
from memsys.llm.budget import SpendingMeter
from memsys.llm.config import BackboneConfig
from memsys.llm.contract import LanguageModel
from memsys.llm.delegate import DelegatingModel
from memsys.llm.engines.contract import Engine, ServedByOthers
from memsys.llm.ledger import CallRecord
from memsys.settings import check_flags, check_minimum
from memsys.vocabulary import Json

if TYPE_CHECKING:
    from memsys.llm.accepted import Adaptation
    from memsys.llm.backbone import Backbone, Traffic
    from memsys.llm.cache import ReplyCache

#: Settings of an engine that say where a server listens and how it is watched.
_SERVER_ONLY = frozenset({"host", "port", "start_timeout_s", "max_restarts"})


@dataclass(frozen=True, slots=True)
class Serving:
    """Servers that jobs use together, see :mod:`memsys.llm.engines.shared`.

    Attributes:
        shared: use those announced in ``folder`` instead of starting one.
        folder: on a disk that all machines see.
        wait_s: seconds a job waits for a server.
        idle_s: seconds a server waits for a job.
    """

    shared: bool
    folder: Path
    wait_s: float
    idle_s: float

    def __post_init__(self) -> None:
        """Refuse what is not a truth value, or no time that a job could wait.

        Raises:
            ConfigError: names the setting.
        """
        check_flags(self, "serving", "shared")
        check_minimum(self, "serving", wait_s=0, idle_s=0)


@dataclass(frozen=True, slots=True)
class BackboneSelection:
    """Backbones of a run.

    Attributes:
        main: answers.
        second: answers ``second_roles`` instead; ``None`` for no such roles.
        second_roles: names of roles.
        serving: where servers of other processes are found.
        seed: the run's.
        cache_dir: folder of replies, with what is known of servers; ``None``: nothing is asked of servers.
    """

    main: BackboneConfig
    second: BackboneConfig | None
    second_roles: tuple[str, ...]
    serving: Serving
    seed: int
    cache_dir: Path | None = None


@dataclass(frozen=True, slots=True)
class Backbones:
    """The open backbone of a run and, where some roles ask another model, that one.

    Attributes:
        main: answers.
        second: answers ``second_roles``.
        second_roles: names of roles.
        servers: what was found about external servers, and which settings were chosen.
    """

    main: "Backbone"
    second: "Backbone | None" = None
    second_roles: tuple[str, ...] = ()
    servers: Sequence[dict[str, Json]] = ()

    def bind(self, conversation_id: str) -> LanguageModel:
        """Return the model bound to one conversation."""
        main = self.main.bind(conversation_id)
        return DelegatingModel(main, self.second.bind(conversation_id), self.second_roles) if self.second else main

    def fingerprint(self) -> dict[str, Json]:
        """Return the fingerprints of the model and of the one for delegated roles."""
        own = dict(self.main.fingerprint())
        return {**own, "second": dict(self.second.fingerprint())} if self.second else own

    def on_adapted(self, noted: "Callable[[Adaptation], None]") -> None:
        """Let a function be called with each setting that is chosen again, as a server refuses a field."""
        for backbone in (self.main, self.second):
            if backbone is not None:
                backbone.accepted.on_adapted = noted

    def dollars(self) -> float | None:
        """Return what calls have cost since the backbones were opened; ``None`` where a price is not known."""
        spent = 0.0
        for backbone in (self.main, self.second):
            if backbone is None:
                continue
            price, used = load_prices().get(backbone.config.name), backbone.counters
            if price is None:
                return None
            later = used.batched
            batched = later.prompt_tokens, later.completion_tokens, later.cached_tokens
            whole = used.prompt_tokens, used.completion_tokens, used.cached_tokens
            spent += price.of_both((one - other for one, other in zip(whole, batched, strict=True)), batched)
        return spent

    def traffic(self) -> "Traffic":
        """Return the counters of both backbones since they were opened."""
        own = self.main.traffic()
        if self.second is None:
            return own
        return type(own)(*(one + other for one, other in zip(own, self.second.traffic(), strict=True)))


_ENGINES: dict[str, Engine] = {}
_NO_LIMIT = RunMeters()


def engines_for(configs: Iterable[BackboneConfig], serving: Serving | None = None) -> list[Engine]:
    """Return the engines of a run's backbones; runs of one process share a server until the process ends.

    With ``serving.shared`` the first is an external server, found in the group's folder.
    """
    wanted = {repr((config.engine, serving, number)): config for number, config in enumerate(configs)}
    for other in [name for name in _ENGINES if name not in wanted]:
        _ENGINES.pop(other).stop()  # a process runs one experiment at a time, and a GPU holds few servers
    for number, (key, config) in enumerate(wanted.items()):
        if key not in _ENGINES:
            announced = serving if number == 0 and serving and serving.shared else None
            _ENGINES[key] = _shared_engine(config, announced) if announced else config.engine.build()
            atexit.register(_ENGINES[key].stop)
    return [_ENGINES[key] for key in wanted]


def stop_engines() -> None:
    """Stop the servers that runs of this process have left running for the next one."""
    while _ENGINES:
        _ENGINES.popitem()[1].stop()


def server_group(config: BackboneConfig) -> str:
    """Return the name of the servers that serve a backbone with these very settings.

    Where a server listens and how it is watched does not count, so that one that was started on a port of one's own is
    found by runs that name none.
    """
    engine: Any = config.engine
    if is_dataclass(engine):  # a plug-in's may be none
        counted = {each.name: getattr(engine, each.name) for each in fields(engine) if each.name not in _SERVER_ONLY}
        engine = (type(engine).__name__, counted)
    return f"{config.name}-{hashlib.sha256(repr(engine).encode()).hexdigest()[:8]}"


def _shared_engine(config: BackboneConfig, serving: Serving) -> Engine:
    from memsys.llm.engines.registry import Registry
    from memsys.llm.engines.shared import SharedEngine

    registry = Registry(serving.folder / server_group(config))
    return SharedEngine(config.engine.build().name, registry, serving.wait_s, partial(ask_for_servers, registry.folder))


def make_engines(choice: BackboneSelection) -> list[Engine]:
    """Make the engines of a choice without starting them; :func:`connect` starts them."""
    return engines_for([choice.main, *([choice.second] if choice.second else [])], choice.serving)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Settings of opening a backbone, next to its own.

    Attributes:
        seed: of the run.
        log_dir: for the engine's log.
        on_call: called with every row of the ledger.
        on_rejected: called with those of replies that were paid for and are no completions.
        make_cache: makes a store of replies, which the backbone closes; ``None`` for none.
        known_servers: folder of replies, below which is what is known of servers; ``None``: nothing is asked of them.
        meter: what may be spent; ``None`` for no limit.
        tell: gets lines on what is asked of a server and which settings follow.
        begun: what a resumed run knows of the server; ``None`` before its first call.
    """

    seed: int
    log_dir: Path
    on_call: Callable[[CallRecord], None]
    on_rejected: Callable[[CallRecord], None] | None = None
    make_cache: "Callable[[], ReplyCache | None]"
    known_servers: Path | None = None
    meter: SpendingMeter | None = None
    tell: Callable[[str], None] = say
    begun: Mapping[str, Any] | None = None


@asynccontextmanager
async def open_backbone(
    config: BackboneConfig, engine: Engine, opening: Opening
) -> "AsyncIterator[tuple[Backbone, FittedBackbone]]":
    """Give a backbone, open while the block runs, and how its settings were fitted to its server.

    Raises:
        BackboneError: a server did not come up, or cannot be reached.
        ConfigError: the server does not accept a setting that the user gave.
    """
    from memsys.llm.backbone import Backbone

    known = FittedBackbone(config)
    if opening.known_servers is not None:
        known = await fitted(config, opening.known_servers, opening.log_dir, opening.tell, opening.begun)
    backbone = Backbone(
        known.config,
        engine,
        cache=opening.make_cache(),
        on_call=opening.on_call,
        log_dir=opening.log_dir,
        run_seed=opening.seed,
    )
    backbone.meter, backbone.on_rejected = opening.meter, opening.on_rejected
    try:
        async with backbone:
            yield backbone, known
    except asyncio.CancelledError:
        engine.stop()  # it may wait for its server in a thread that the end of the event loop waits for
        raise


async def connect(
    choice: BackboneSelection,
    stack: AsyncExitStack,
    directory: CallFolder,
    make_cache: "Callable[[], ReplyCache | None]",
    meters: RunMeters = _NO_LIMIT,
) -> Backbones:
    """Open a run's backbones on a stack.

    Args:
        choice: which ones.
        stack: closes them.
        directory: gets every call, and the servers' logs.
        make_cache: makes a store of replies; each backbone closes its own.
        meters: what may be spent.

    Raises:
        BackboneError: a server did not come up, or cannot be reached.
        ConfigError: the server does not accept a setting that the user gave.
    """
    configs = [choice.main, *([choice.second] if choice.second else [])]
    places = [("logs", meters.main), ("logs/second", meters.second)]
    opened, begun = [], begun_with(directory.path)
    for config, engine, (logs, meter) in zip(configs, engines_for(configs, choice.serving), places, strict=False):
        opening = Opening(
            seed=choice.seed,
            log_dir=directory.path / logs,
            on_call=directory.add_call,
            on_rejected=directory.add_paid,
            make_cache=make_cache,
            known_servers=None if choice.serving.shared else choice.cache_dir,
            meter=meter,
            begun=None if begun is None else begun.get(config.name, {}),
        )
        opened.append(await stack.enter_async_context(open_backbone(config, engine, opening)))
    main, *second = (backbone for backbone, _ in opened)
    asked = [known.record() for _, known in opened if isinstance(known.config.engine, ServedByOthers)]
    return Backbones(main, second[0] if second else None, choice.second_roles, asked)
