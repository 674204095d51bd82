"""Serve a backbone and an embedder to programs that speak OpenAI's protocol: ``memsys proxy backbone=NAME``.

Prints the base URL and the key for the program, serves until it is interrupted, and prints what was used. After ``--``
follows a command to run with ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY`` set; the proxy ends when it does, with its
status. ``--summary FOLDER`` prints the ledger of an earlier proxy.
"""

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from eval.commands.commands import EXIT_DONE, described, explains_errors, program, start, terminated_as_interrupted
from eval.commands.places import check_folder
from eval.commands.rendering.terminal import show
from eval.commands.terminal import say
from eval.config.overrides import report_repeated
from eval.config.presets import make_preset
from eval.running.composed import plan_of
from eval.running.models import embedder_for, open_backbones, run_meters
from eval.running.paid_embedding import PaidEmbedder
from eval.running.plan import Plan
from eval.running.proxy.ledger import EmbeddingLedger, FailureLedger, summary
from eval.running.proxy.record import ProxyRecord, check_folder_is_ours, make_record, read_record, write_record
from eval.runs.files import disk_error
from eval.runs.rundir import CallFolder
from memsys import event_loop
from memsys.embedding.contract import PaidPerToken
from memsys.errors import ConfigError
from memsys.proxy.clients import ProxyClient, ProxyScope
from memsys.proxy.server import ProxyParts, ProxyServer, ProxySettings

_LOG_LINE = "%(asctime)s %(name)s: %(message)s"
SETTINGS = Path(__file__).parent / "running" / "proxy" / "proxy.yaml"
#: Parts of a run that have no place behind a proxy.
_OF_RUNS = ("memory", "dataset", "reader", "prompts", "protocol", "scoring", "score", "show_answers")


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Serve, or summarise, as the command line says; returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    place = given.index("--") if "--" in given else len(given)
    options = _parser().parse_intermixed_args(given[:place])
    if options.summary:
        _say_summary(options.summary)
        return EXIT_DONE
    logging.basicConfig(level=logging.WARNING, format=_LOG_LINE)
    _check_settings(options.overrides)
    report_repeated(options.overrides)
    if options.out is not None:
        check_folder(options.out)
    plan = plan_of(options.overrides)
    if plan.backbone is None:
        raise ConfigError("mode=retrieval_only has no backbone to serve")
    settings = make_preset(ProxySettings, SETTINGS)
    if options.port is not None:
        settings = replace(settings, port=options.port)
    folder = options.out or _new_folder(plan.runs_dir, plan.backbone.name)
    record = make_record(plan, given)
    check_folder_is_ours(folder, record)
    status = EXIT_DONE
    try:
        with terminated_as_interrupted(), _warnings_kept(folder):
            status = event_loop.run(serve(plan, settings, folder, record, given[place + 1 :]))
    except KeyboardInterrupt:
        say("interrupted")
    say(f"ledger: {folder}")
    _say_summary(folder)
    return status


def _say_summary(folder: Path) -> None:
    record = read_record(folder)
    if record is not None:
        say(
            f"backbone {record.backbone} ({record.model}), embedder {record.embedder}, seed {record.seed}, memsys "
            f"{record.memsys}, started {record.started}"
        )
    show(summary(folder, record.price, record.embedding_price) if record else summary(folder))


@contextmanager
def _warnings_kept(folder: Path) -> Iterator[None]:
    """Write warnings to ``logs/proxy.log`` of the folder as well; the first of them makes the file."""
    log = folder / "logs" / "proxy.log"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(log, error) from error
    handler = logging.FileHandler(log, encoding="utf-8", delay=True)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter(_LOG_LINE))
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()


def _check_settings(overrides: Sequence[str]) -> None:
    """Refuse settings of parts that a proxy does not have: the program behind it brings its own.

    Raises:
        ConfigError: names the setting.
    """
    for text in overrides:
        if text.lstrip("+~").partition("=")[0].partition(".")[0] in _OF_RUNS:
            raise ConfigError(f"{text} changes nothing here: a proxy serves a backbone and an embedder alone")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program("proxy"),
        description=described(__doc__).partition("\n\n")[0],
        epilog="After -- follows a command to run with OPENAI_BASE_URL and OPENAI_API_KEY set.",
    )
    parser.add_argument("--port", type=int, help="on 127.0.0.1 (default: any free one)")
    parser.add_argument("--out", type=Path, help="folder of the ledger (default: results/proxy/BACKBONE-TIME)")
    parser.add_argument("--summary", type=Path, metavar="FOLDER", help="print the ledger of an earlier proxy")
    parser.add_argument(
        "overrides", nargs="*", metavar="KEY=VALUE", help="as for `memsys run`: backbone=NAME embedder=NAME seed=N ..."
    )
    return parser


async def serve(plan: Plan, settings: ProxySettings, folder: Path, record: ProxyRecord, command: Sequence[str]) -> int:
    """Serve until interrupted, or until a command ends; returns its status.

    Args:
        plan: gives backbone, embedder, seed, cache and budget.
        settings: of the server.
        folder: gets the ledger; calls that it holds already are not booked again.
        record: says what the ledger is the ledger of.
        command: what to run; empty for none.

    Raises:
        MemsysError: the backbone did not come up, or the port is taken.
    """
    async with AsyncExitStack() as stack:
        directory = CallFolder(folder)
        stack.callback(directory.close)
        write_record(folder, record)
        embeddings, failures = EmbeddingLedger(folder), FailureLedger(folder)
        stack.callback(embeddings.close)
        stack.callback(failures.close)
        meters = run_meters(plan, directory)
        backbones = await open_backbones(plan, directory, stack, meters)
        assert backbones is not None and plan.backbone is not None
        embedder = embedder_for(plan)
        if isinstance(embedder, PaidPerToken):
            embedder = PaidEmbedder(embedder, embeddings.add_paid, meters.embedder)
        parts = ProxyParts(plan.backbone.name, backbones.main.bind, embedder, embeddings.note, failures.note)
        proxy = await stack.enter_async_context(ProxyServer(parts, settings))
        client = proxy.clients.admit(command[0] if command else "program", ProxyScope("program"))
        if command:
            return await _run(command, proxy.base_url, client)
        say(f"base URL: {proxy.url(client)}")
        say(f"or base URL {proxy.base_url} with the key {client.token}")
        await asyncio.Event().wait()
        return 0


async def _run(command: Sequence[str], base_url: str, client: ProxyClient) -> int:
    """Run a command against the proxy; returns its exit status."""
    environment: Mapping[str, str] = {**os.environ, "OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": client.token}
    try:
        process = await asyncio.create_subprocess_exec(*command, env=environment)
    except OSError as error:
        raise ConfigError(f"{command[0]} cannot be started ({error.strerror}); name a program after --") from error
    try:
        status = await process.wait()
    except asyncio.CancelledError:
        process.terminate()
        await process.wait()
        raise
    if status < 0:
        client.complain(f"it was ended by signal {signal.Signals(-status).name}")
        return 128 - status
    return status


def _new_folder(runs_dir: Path, backbone: str) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return runs_dir.parent / "proxy" / f"{backbone}-{stamp}"


if __name__ == "__main__":
    start(main)
