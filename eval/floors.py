"""Score constant answers on the data sets, without a model: ``memsys floors``.

A system that cannot beat these has read nothing. Three policies answer every question:

* ``always_abstain``: the reader's own abstention;
* ``always_trap``: the false answer that category 5 offers, the abstention elsewhere;
* ``coin_flip``: in category 5 one of these two with equal odds. Its scores are the expected ones, so no coin is thrown.

Each is written under ``results/summaries/floors`` as an exported run is, for ``memsys tables`` to read.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from eval.commands.commands import explains_errors, program, start
from eval.commands.places import check_folder, tracked_remark
from eval.commands.terminal import say
from eval.config.compose import choice_settings
from eval.export import exported_row
from eval.inspect_data import read_config, read_overrides
from eval.loaders.contract import LoadedData
from eval.loaders.question_types import ADVERSARIAL
from eval.loaders.registry import DATASETS
from eval.metrics.locomo import abstains, is_trapped
from eval.metrics.metric import Metric
from eval.metrics.registry import METRICS, TOKEN_F1, groups
from eval.results.stored_run import FLOOR
from eval.runs.exports import ExportedRun, write_export
from eval.runs.folders import SUMMARIES, summary_folder
from eval.runs.identity import identity_hash
from eval.runs.records import SCHEMA_VERSION, ReferenceRecord, ScoreRow
from eval.scoring.answers import gold_answers, in_known_words, score_answer
from eval.scoring.config import Scores
from memsys.vocabulary import Json

Policy = Literal["always_abstain", "always_trap", "coin_flip"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
#: Presets on which the data sets want constant answers scored.
PRESETS = tuple(info.floor_preset for info in DATASETS.values() if info.floor_preset)


def floor_metrics() -> list[Metric]:
    """Return the metrics of texts that score a constant answer: those of comparisons and all token F1s."""
    lexical = (METRICS[name] for name in groups()["lexical"])
    return [metric for metric in lexical if metric.listed or metric.group == TOKEN_F1]


def floor_answer(policy: Policy, reference: ReferenceRecord, abstention: str) -> str:
    """Return the answer of a policy that gives one; ``coin_flip`` gives none."""
    if policy == "always_trap" and reference.kind == ADVERSARIAL and reference.adversarial_answer is not None:
        return reference.adversarial_answer
    return abstention


def floor_row(policy: Policy, reference: ReferenceRecord, abstention: str) -> ScoreRow:
    """Score a policy on one question.

    Args:
        policy: which.
        reference: gold of the question.
        abstention: the reader's words for an abstention.
    """
    if policy == "coin_flip":
        sides: tuple[Policy, ...] = ("always_abstain", "always_trap")
        heads, tails = (_scores(floor_answer(side, reference, abstention), reference, abstention) for side in sides)
        scores = {name: _middle(heads[name], tails[name]) for name in heads}
    else:
        scores = _scores(floor_answer(policy, reference, abstention), reference, abstention)
    row = ScoreRow(reference.question_id, reference.conversation_id, reference.category, scores, reference.kind)
    return exported_row(row)


def _scores(answer: str, reference: ReferenceRecord, abstention: str) -> Scores:
    gold = gold_answers(reference)
    false_answer = reference.adversarial_answer if reference.kind == ADVERSARIAL else None
    reply = in_known_words(answer, (abstention,), false_answer)
    scores: Scores = {
        metric.name: score_answer(
            metric, answer if metric.rule is None else reply, gold, reference.category, reference.kind
        )
        if gold
        else None
        for metric in floor_metrics()
    }
    scores["abstained"] = float(answer == abstention or abstains(reply))
    scores["trapped"] = None if false_answer is None else float(is_trapped(reply, false_answer))
    return scores


def _middle(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else (one + other) / 2


def policies_of(references: Sequence[ReferenceRecord]) -> tuple[Policy, ...]:
    """Return the policies that differ on a data set: without a false answer all of them abstain."""
    offered = any(reference.adversarial_answer is not None for reference in references)
    return POLICIES if offered else ("always_abstain",)


def write_floors(dataset: str, reader: str, out: Path, overrides: Mapping[str, Json] | None = None) -> list[Path]:
    """Score every policy on a data set and write one summary each.

    Args:
        dataset: name in ``conf/dataset``.
        reader: name in ``conf/reader``, whose abstention is given.
        out: folder of the summaries.
        overrides: settings of the data set that replace its preset's; the summaries' names then end in a checksum of
            them and of the data.

    Returns:
        The folders written.

    Raises:
        ConfigError: no such data set or reader.
        DataError: the data are missing or broken.
    """
    from eval.running.recording import reference_records

    overrides = overrides or {}
    data = read_config(dataset, overrides).load()
    references, abstention = reference_records(data.samples), _abstention(reader)
    chosen = {key: value for key, value in overrides.items() if key not in ("path", "data_dir")}  # not of this machine
    config = {"dataset": {"name": dataset, **chosen}, "reader": {"name": reader, "abstention": abstention}}
    name = f"{dataset}-{identity_hash({**config, 'data_sha256': data.sha256})}" if overrides else dataset
    return [_write(policy, references, _record(policy, name, data, config), out) for policy in policies_of(references)]


def _abstention(reader: str) -> str:
    return str(choice_settings("reader", reader)["abstention"])


def _record(policy: Policy, name: str, data: LoadedData, config: Mapping[str, Mapping[str, Json]]) -> dict[str, Any]:
    """Return the record of the numbers' origin; without time and machine, because nothing ran."""
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": f"floors/{policy}-{name}",
        "experiment": "floors",
        "status": "complete",
        "started": "",
        "finished": "",
        "seed": 0,
        "mode": FLOOR,
        "config": {"memory": {"name": policy}, **config},
        "data": {
            "name": config["dataset"]["name"],
            "sha256": data.sha256,
            "notes": {"pinned": data.notes.get("pinned")},
        },
        "settings": f"{policy}-{name}",
    }


def _write(policy: Policy, references: Sequence[ReferenceRecord], record: Mapping[str, Any], out: Path) -> Path:
    abstention = record["config"]["reader"]["abstention"]
    target = summary_folder(out, record)
    rows = [floor_row(policy, reference, abstention) for reference in references]
    meta = {"config": {"metrics": [metric.name for metric in floor_metrics()]}, "models": {}}
    write_export(target, ExportedRun(record, meta, {}, rows))
    return target


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and write the floors; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog=program("floors"), description="Score constant answers on the data sets, without a model."
    )
    parser.add_argument(
        "datasets",
        nargs="*",
        metavar="NAME",
        help=f"data sets, default: {' '.join(PRESETS)}; or one with settings: custom dataset.data_dir=FOLDER",
    )
    parser.add_argument("--reader", default="clag", help="reader whose abstention text is scored (default: clag)")
    parser.add_argument(
        "--out", type=Path, default=SUMMARIES, help="folder of the summaries (default: results/summaries)"
    )
    options = parser.parse_args(arguments)
    check_folder(options.out)
    datasets, overrides = _asked(options.datasets, parser)
    for dataset in datasets:
        read_config(dataset, overrides)  # before the first is scored
    for dataset in datasets:
        for path in write_floors(dataset, options.reader, options.out, overrides):
            say(f"written: {path}")
    if remark := tracked_remark(options.out):
        say(remark)
    return 0


def _asked(words: Sequence[str], parser: argparse.ArgumentParser) -> tuple[Sequence[str], dict[str, Json]]:
    """Return the named data sets, by name or as ``dataset=NAME``, and settings of one of them."""
    overrides = read_overrides([word for word in words if "=" in word], parser)
    named = [str(overrides.pop("dataset"))] if "dataset" in overrides else []
    datasets = [*named, *(word for word in words if "=" not in word)]
    if overrides and len(datasets) != 1:
        parser.error(
            f"{next(iter(overrides))}= is a setting of one data set: name that one, as in "
            "custom dataset.data_dir=FOLDER"
        )
    return datasets or PRESETS, overrides


if __name__ == "__main__":
    start(main)
