"""What a run did on other terms than the paper: its numbers are shown, but not held against the printed ones."""

from collections.abc import Iterable, Mapping
from typing import Any

from eval.tables.spec import PaperSpec
from eval.tables.stored import StoredRun
from eval.tables.variants import CONF, overrides, variant_label

#: What part of the data set a run takes is told by its counts.
_SELECTION = ("path", "data_dir", "sample", "conversations", "limit_conversations", "limit_questions", "categories")
#: Settings of a backbone that reach the model; the others say where and how fast it runs.
_SAMPLING = ("prompt_mode", "thinking", "sampling", "temperature", "structured", "json_repair", "send_temperature")


def departures(run: StoredRun, dataset: str, spec: PaperSpec) -> tuple[str, ...]:
    """Name the settings of data set, reader, embedder and backbone that are not the paper's.

    Args:
        run: the run.
        dataset: data set of the spec that it stands for.
        spec: the paper's tables.
    """
    config, found = run.record["config"], []
    if (run.record["data"].get("notes") or {}).get("pinned") is False:
        found.append("the data file is not the published one")
    if run.floor:
        return tuple(found)
    expected = spec.datasets[dataset].runs[0]
    if run.dataset != expected:
        found.append(f"data set config {run.dataset}, the paper's is {expected}")
    found += _changed("data set", config, "dataset", leave_out=_SELECTION)
    embedder = str((config.get("embedder") or {}).get("name") or spec.embedder)
    if embedder != spec.embedder:
        found.append(f"embedder {embedder}, the paper's is {spec.embedder}")
    if not run.retrieval_only:
        if run.reader != spec.readers[0]:
            found.append(f"reader {run.reader}, the paper's is {spec.readers[0]}")
        found += _changed("reader", config, "reader")
        found += _changed("backbone", config, "backbone", only=_SAMPLING)
    return tuple(found)


def _changed(
    name: str, config: Mapping[str, Any], part: str, only: Iterable[str] = (), leave_out: Iterable[str] = ()
) -> list[str]:
    changed = overrides(config.get(part) or {}, CONF / part)
    only, leave_out = set(only), set(leave_out)
    kept = {
        key: value
        for key, value in changed.items()
        if key.partition(".")[0] not in leave_out and (not only or key.partition(".")[0] in only)
    }
    return [f"{name} settings {variant_label(kept)}"] if kept else []
