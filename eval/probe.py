"""Probe what a server and its model take and give: ``memsys probe URL MODEL``.

A few hundred tokens in some 20 to 80 small requests: the form of requests and replies, thoughts and how they are
switched off, the window, equal replies at temperature 0, caching of prompts, and how many requests at once are taken.
Runs choose their settings from it; one that the user gives is not changed.
"""

import argparse
import asyncio
import json
import logging
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from eval.commands.commands import described, explains_errors, program, start
from eval.commands.rendering.table import Table, texts
from eval.commands.rendering.terminal import show
from eval.commands.terminal import say, stage
from eval.running.composed import plan_of
from eval.running.servers import findings_folder, keep
from memsys.errors import ConfigError
from memsys.llm.accepted import written
from memsys.llm.config import BackboneConfig
from memsys.llm.engines.contract import ServedByOthers
from memsys.llm.findings import ASKED_TEMPERATURE, ChosenSetting, Findings, FindingsStore, choose
from memsys.llm.probing import probe

_HEADINGS = ("capability", "found", "chosen for the backbone")
_YES_NO = {True: "yes", False: "no", None: "not known"}


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Ask the server that the command line names; returns the exit status."""
    parser = argparse.ArgumentParser(prog=program("probe"), description=described(__doc__).partition("\n\n")[0])
    parser.add_argument("url", metavar="URL", help="of the server, with /v1; or backbone=NAME, a preset, without MODEL")
    parser.add_argument("model", metavar="MODEL", nargs="?", help="what the server calls it")
    parser.add_argument("--key", metavar="VARIABLE", help="environment variable that holds the server's key")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    settings = _settings(options.url, options.model, options.key)
    plan = plan_of(settings)
    config = plan.backbone
    assert config is not None
    if not isinstance(config.engine, ServedByOthers):
        raise ConfigError(f"backbone={config.name} is served by memsys itself, which knows what it takes")
    say(f"asking {config.engine.served()[0]}")
    with tempfile.TemporaryDirectory() as logs:
        found = asyncio.run(probe(config, Path(logs), whole=True, stage=stage))
    stored = keep(FindingsStore(findings_folder(plan.cache_dir)), config, found)
    chosen = choose(config, found)
    show(table(config, found, chosen))
    say(f"{found.requests} requests, {found.prompt_tokens} + {found.completion_tokens} tokens"
        + (f"; kept for runs in {stored}" if stored else ""))  # fmt: skip
    say(f"chooses these by itself: {program('run')} {shlex.join(settings)} memory=rag dataset=locomo_sample")
    return 0


def _settings(url: str, model: str | None, key: str | None) -> list[str]:
    """Return the settings of a run that name the server.

    Raises:
        ConfigError: the model is missing, or is not for a preset.
    """
    if url.startswith("backbone="):
        if model or key:
            raise ConfigError(f"{url} names model and key itself; leave MODEL and --key out")
        return [url]
    if not model:
        raise ConfigError("MODEL is missing: what the server calls it")
    settings = ["backbone=endpoint", f"backbone.model={json.dumps(model)}", f"backbone.engine.base_urls=[{url}]"]
    return [*settings, f"backbone.engine.api_key_env={key}"] if key else settings


def table(config: BackboneConfig, found: Findings, chosen: Sequence[ChosenSetting]) -> Table:
    """Return what was found, by capability, with the setting that follows."""
    by_name = {one.name: one for one in chosen}
    rows = []
    for capability, said, names in _capabilities(config, found):
        settings = [f"{name}={written(by_name[name].chosen)}" for name in names if name in by_name]
        rows.append((capability, said, ", ".join(settings)))
    address, model = config.engine.served() if isinstance(config.engine, ServedByOthers) else ("", "")
    columns = [replace(column, together=bool(place)) for place, column in enumerate(texts(_HEADINGS))]
    return Table(f"{model} at {address}", columns, rows)


def _capabilities(config: BackboneConfig, found: Findings) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield each capability, what was found of it, and the settings that may follow."""
    refused = found.refused
    limit = next((name for name in ("max_tokens", "max_completion_tokens") if name not in refused), "neither")
    yield "limit of tokens", limit, ("max_tokens_field",)
    refusals = {"temperature": f"{ASKED_TEMPERATURE:g} refused", "seed": "refused"}
    for name, said in refusals.items():
        yield name, said if name in refused else "taken", (f"send_{name}",)
    for form in ("json_schema", "json_object"):
        yield form, found.forms.get(form, "not tried"), ("structured",) * (form == "json_schema")
    yield "tools", found.tools, ()
    others = [name for name in config.sampling if name in refused]
    if others:
        yield "sampling", f"refused: {', '.join(others)}", tuple(f"sampling.{name}" for name in others)
    yield "usage", "in each reply" if found.usage else "missing: tokens are counted here", ()
    yield "thoughts", found.thoughts, ("thinking", "thinking_switch", "thinking_tokens")
    if found.thinks:
        off = found.thoughts_off
        yield "switched off by", "nothing that was tried" if off is None else written(dict(off)), ()
    raw = "not known" if found.completions is None else "completed" if found.completions else "not completed"
    yield "raw prompts", raw, ("completions",)
    window = "not stated" if found.window is None else f"{found.window} tokens ({found.window_said})"
    yield "window", window, ("context_length",)
    yield "equal at temperature 0", _YES_NO[found.repeatable], ()
    yield "prompt cache in usage", _YES_NO[found.prompt_cache], ()
    at_once = "not known" if found.in_flight is None else f"{found.in_flight}"
    more = f"; more: {found.pushed_back}" if found.pushed_back else " or more"
    yield "requests at once", at_once + more * (found.in_flight is not None), ("max_in_flight",)
    limits = ", ".join(f"{size:.0f} {name}" for name, size in found.limits.items())
    yield "limits in headers", limits or "not stated", ()


if __name__ == "__main__":
    start(main)
