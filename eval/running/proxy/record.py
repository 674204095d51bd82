"""``proxy.json``: what a proxy's ledger is the ledger of."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from eval.config.prices import EmbeddingPrice, Price, load_embedding_prices, load_prices
from eval.running.plan import Plan
from eval.runs.embeddings import EMBEDDINGS
from eval.runs.files import write_json
from eval.runs.identity import as_written, differences, listed, without, without_name
from eval.runs.run_json import now
from eval.runs.rundir import CALLS
from memsys.credentials import redacted, without_secrets
from memsys.errors import ConfigError
from memsys.rows import record_from
from memsys.vocabulary import Json

FILE = "proxy.json"


@dataclass(frozen=True, slots=True)
class ProxyRecord:
    """Models that a proxy serves.

    Attributes:
        backbone: name of the preset.
        model: the model's name as papers write it.
        embedder: name of the preset.
        seed: part of every sampling seed.
        memsys: version.
        command: arguments of the command, without keys.
        started: UTC time of the first start on this folder.
        price: of the backbone, as ``conf/prices.yaml`` has it; ``None`` where it has none.
        embedding_price: of the embedder, likewise.
        identity: the settings that can change a reply; a folder takes calls of one identity.
    """

    backbone: str
    model: str
    embedder: str
    seed: int
    memsys: str
    command: list[str]
    started: str
    price: Price | None
    embedding_price: EmbeddingPrice | None
    identity: dict[str, Json]


def make_record(plan: Plan, command: Sequence[str]) -> ProxyRecord:
    """Return the record of a proxy that starts now.

    Args:
        plan: gives backbone, embedder and seed.
        command: arguments of the command.
    """
    assert plan.backbone is not None
    shown: Any = without_secrets(list(command))
    return ProxyRecord(
        backbone=plan.backbone.name,
        model=plan.backbone.model,
        embedder=plan.embedder.name,
        seed=plan.seed,
        memsys=version("memsys"),
        command=[redacted(one) for one in shown],
        started=now(),
        price=load_prices().get(plan.backbone.name),
        embedding_price=load_embedding_prices().get(plan.embedder.name),
        identity=_identity(plan),
    )


def _identity(plan: Plan) -> dict[str, Json]:
    assert plan.backbone is not None
    runtime = {"backbone": plan.backbone.runtime_fields(), "embedder": getattr(plan.embedder, "RUNTIME_FIELDS", ())}
    parts: Mapping[str, Json] = {
        name: without_name(without(plan.settings[name], sorted(fields))) for name, fields in runtime.items()
    }
    return as_written({**parts, "seed": plan.seed})


def check_folder_is_ours(folder: Path, record: ProxyRecord) -> None:
    """Refuse a folder whose ledger is that of something else.

    Raises:
        ConfigError: it holds a run, or calls of a proxy with other settings or of one that did not say which.
    """
    if (folder / "run.json").is_file():
        raise ConfigError(f"--out {folder} holds a run; name another folder")
    if not any(_has_rows(folder / name) for name in (CALLS, EMBEDDINGS)):
        return
    stored = read_record(folder)
    if stored is None:
        raise ConfigError(
            f"--out {folder} holds a ledger without {FILE}, so its origin is unknown; name another folder"
        )
    if changed := differences(stored.identity, record.identity):
        raise ConfigError(
            f"--out {folder} holds the ledger of a proxy with other settings ({FILE}); name another folder or restore "
            "these:\n" + listed(changed)
        )


def write_record(folder: Path, record: ProxyRecord) -> None:
    """Write ``proxy.json``; a folder that is taken up keeps the time of its first start."""
    stored = read_record(folder)
    write_json(folder / FILE, asdict(record) | ({"started": stored.started} if stored else {}))


def read_record(folder: Path) -> ProxyRecord | None:
    """Return ``proxy.json`` of a folder; ``None`` if there is none.

    Raises:
        ConfigError: it is damaged.
    """
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        return record_from(ProxyRecord, json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is damaged ({error}); restore it, or name another folder") from error


def _has_rows(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0
