"""Keep the numbers that tables need of a run, without a word of the data set: ``memsys export RUN...``.

Writes its record (reduced), summary and scores into ``results/summaries/<experiment>/`` (:mod:`eval.runs.exports`).
Tables made from them are those made from the run. ``--to`` writes a format of another project instead.
"""

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from eval.commands.commands import explains_errors, program, start
from eval.commands.places import check_folder, tracked_remark
from eval.commands.terminal import console, say
from eval.loaders.contract import DatasetConfig, DatasetInfo
from eval.results.exchange.every_eval_ever import write_every_eval_ever
from eval.results.exchange.mteb import write_mteb
from eval.results.frame import Skipped, read_run
from eval.results.stored_run import StoredRun
from eval.running.composed import make_part
from eval.runs.exports import ExportedRun, write_export
from eval.runs.folders import SUMMARIES, named_run_folders, summary_folder
from eval.runs.load import read_record
from eval.runs.machine_paths import without_places
from eval.runs.records import ScoreRow
from eval.runs.run_json import has_random_weights
from eval.runs.trec import write_trec
from eval.scoring.config import STORED_DECIMALS
from memsys.errors import RunDirectoryError
from memsys.vocabulary import Json, Sample

#: Formats of other projects.
FORMATS = ("trec", "mteb", "every_eval_ever")
_RANKED = "these rank turns: a tool's recall at ten is recall_turns@10, not recall@10, which counts memories"
#: Parts of ``run.json`` that are kept.
_KEPT = (
    "schema_version", "run_id", "experiment", "status", "started", "finished", "seed", "mode", "config", "data",
    "model", "commit", "dirty", "earlier_code", "packages", "hardware", "prompts", "counts", "departures",
    "recorded", "prompt_sources",
)  # fmt: skip
#: Parts of ``summary.json`` that are left out: means, which follow from the scores.
_MEANS = ("metrics", "protocols", "audited")
#: Counted values of traces that are names; anything else might quote the data set.
_NAME = re.compile(r"^[A-Za-z][A-Za-z0-9_-]{0,31}$")
#: Values of traces that are texts, also where each is a single word.
_TEXTS = ("query", "keywords")


def export_run(path: Path, out: Path = SUMMARIES) -> Path:
    """Export one complete, scored run.

    Args:
        path: its directory.
        out: folder of the summaries.

    Returns:
        Its address among the exported runs.

    Raises:
        RunDirectoryError: the run is not complete, not scored, or not summarised, its id leads elsewhere, or its model
            had random weights.
    """
    run = read_run(path)
    if isinstance(run, Skipped):
        raise RunDirectoryError(f"{path} cannot be exported: {run.reason}")
    if has_random_weights(run.record):
        raise RunDirectoryError(
            f"{path} cannot be exported: its model had random weights, so its answers measure nothing"
        )
    if not run.summary:
        raise RunDirectoryError(f"{path} has no summary.json; run `memsys score {path}`")
    meta = without_places({"config": run.meta["config"], "models": run.meta.get("models", {})})
    summary = without_places(reduced_summary(run.summary))
    target = summary_folder(out, run.record)
    write_export(target, ExportedRun(reduced_record(run), meta, summary, [exported_row(row) for row in run.rows]))
    return target


def reduced_record(run: StoredRun) -> dict[str, Any]:
    """Keep provenance, drop problems, identity and every place; note what makes runs repetitions of each other.

    Of what the loader noted, texts are counted: they may quote the data.
    """
    record = {key: run.record[key] for key in _KEPT if key in run.record}
    data = record.get("data") or {}
    if data.get("notes"):
        record["data"] = {**data, "notes": {name: _counted(value) for name, value in data["notes"].items()}}
    return {**without_places(record), "settings": run.settings_hash()}


def _counted(note: Json) -> Json:
    """Return a loader's note; for a list of texts their number."""
    return len(note) if isinstance(note, list) and any(isinstance(each, str) for each in note) else note


def reduced_summary(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Drop means, and counted trace values that are no names: questions and keywords are the data set's own text."""
    trace = dict(summary.get("trace") or {})
    values = trace.get("values") or {}
    kept = {
        path: counts
        for path, counts in values.items()
        if path.rpartition(".")[2] not in _TEXTS and all(_NAME.match(word) for word in counts)
    }
    parts = {name: part for name, part in summary.items() if name not in _MEANS}
    return {**parts, "trace": {**trace, "values": kept}}


def exported_row(row: ScoreRow) -> ScoreRow:
    """Round a row as stored scores are."""
    metrics = {name: None if value is None else round(value, STORED_DECIMALS) for name, value in row.metrics.items()}
    return replace(row, metrics=metrics)


def export_to(path: Path, to: str, out: Path, model_id: str | None) -> str:
    """Write a run in the format of another project; returns what was written.

    Args:
        path: the run directory.
        to: one of :data:`FORMATS`.
        out: folder of the files.
        model_id: of the backbone, for ``every_eval_ever``.

    Raises:
        MemsysError: the run is not complete, not scored, or has nothing of what the format holds.
    """
    if to == "trec":
        return " ".join(map(str, write_trec(path, out)))
    run = read_run(path)
    if isinstance(run, Skipped):
        raise RunDirectoryError(f"{path} cannot be exported: {run.reason}")
    if to == "every_eval_ever":
        return str(write_every_eval_ever(run, out, model_id))
    samples, info = _read_data(run)
    return str(write_mteb(run, samples, info.language, out))


def _read_data(run: StoredRun) -> tuple[Sequence[Sample], DatasetInfo]:
    """Read the data set of a run as it was read for it.

    Raises:
        RunDirectoryError: its file is another one by now.
    """
    from omegaconf import OmegaConf

    config: DatasetConfig = make_part(OmegaConf.create({"dataset": run.record["config"]["dataset"]}), "dataset")
    data = config.load()
    if data.sha256 != run.data_sha256:
        raise RunDirectoryError(f"{run.path}: the data set {run.dataset} has changed since; fetch that of the run")
    return data.samples, config.info


def _check_names(folders: Sequence[Path], *, trec: bool) -> None:
    """Refuse different runs that would be written to one place; a run and its own summary are one.

    Raises:
        RunDirectoryError: names two of them.
    """
    found: dict[str, tuple[Path, Json]] = {}
    for path in folders:
        record = read_record(path)
        name = path.resolve().name if trec else str(record.get("run_id"))
        first, started = found.setdefault(name, (path, record.get("started")))
        if started != record.get("started"):
            raise RunDirectoryError(
                f"{first} and {path} would both be written to {name}; export one of them, or each with its own --out"
            )


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and export; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog=program("export"), description="Keep what tables need of a run under results/summaries."
    )
    parser.add_argument("runs", type=Path, nargs="+", help="run directories, or folders of them")
    parser.add_argument("--to", choices=FORMATS, help="a format of another project; mteb quotes the data set")
    parser.add_argument("--out", type=Path, help="folder of the files (default: results/summaries; with --to: RUN/TO)")
    parser.add_argument("--model-id", metavar="DEVELOPER/MODEL", help="of the backbone, for --to every_eval_ever")
    options = parser.parse_args(arguments)
    if options.out is not None:
        check_folder(options.out)
    folders = named_run_folders(options.runs)
    if options.to is None or options.out is not None:
        _check_names(folders, trec=options.to is not None)
    for path in folders:
        if options.to is not None:
            _say(export_to(path, options.to, options.out or path / options.to, options.model_id))
        else:
            _say(str(export_run(path, options.out or SUMMARIES)))
    remark = _RANKED if options.to == "trec" else "" if options.to else tracked_remark(options.out or SUMMARIES)
    if remark:
        console().print(remark, highlight=False, markup=False)
    return 0


def _say(written: str) -> None:
    say(f"exported: {written}")


if __name__ == "__main__":
    start(main)
