"""What a run did on other terms than the paper: its numbers are shown, but not held against the printed ones."""

from collections.abc import Iterable

from eval.tables.spec import PaperSpec
from eval.tables.stored import StoredRun
from eval.tables.variants import CONF, flat, overrides, variant_label

#: What part of the data set a run takes is told by its counts.
_SELECTION = ("path", "data_dir", "sample", "conversations", "limit_conversations", "limit_questions", "categories")
#: Settings of a backbone that reach the model; the others say where and how fast it runs.
_SAMPLING = ("prompt_mode", "thinking", "sampling", "temperature", "structured", "json_repair", "send_temperature")

#: Not a value of any setting.
_UNNAMED = object()


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
    found += _changed("data set", run, "dataset", spec, leave_out=_SELECTION)
    own = spec.embedder_of(run.backbone)
    embedder = str((config.get("embedder") or {}).get("name") or own)
    if embedder != own:
        found.append(f"embedder {embedder}, the paper's is {own}")
    if not run.retrieval_only:
        reader = spec.readers_of(dataset)[0]
        if run.reader != reader:
            found.append(f"reader {run.reader}, the paper's is {reader}")
        found += _changed("reader", run, "reader", spec)
        found += _changed("backbone", run, "backbone", spec, only=_SAMPLING)
    return tuple(found)


def _changed(
    name: str, run: StoredRun, part: str, spec: PaperSpec, only: Iterable[str] = (), leave_out: Iterable[str] = ()
) -> list[str]:
    """Settings of a part that are neither the preset's nor, where the spec names one, the paper's."""
    settings, expected = run.record["config"].get(part) or {}, spec.settings_of(part, run.backbone)
    changed, own = overrides(settings, CONF / part), flat(settings)
    differing = {key: value for key, value in changed.items() if expected.get(key, _UNNAMED) != value}
    differing |= {key: own[key] for key, value in expected.items() if key in own and own[key] != value}
    only, leave_out = set(only), set(leave_out)
    kept = {
        key: differing[key]
        for key in sorted(differing)
        if key.partition(".")[0] not in leave_out and (not only or key.partition(".")[0] in only)
    }
    return [f"{name} settings {variant_label(kept)}"] if kept else []
