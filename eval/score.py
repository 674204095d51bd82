"""Score stored answers again, without a backbone: ``memsys score RUN... [--preset NAME] [--metrics NAME...]``.

An encoder is loaded only for ``bert_*``, ``sbert`` and BEAM's ``order_*_semantic``. Exit code 2 with one line on an
error.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.commands.commands import explains_errors, program, start
from eval.commands.int_options import count
from eval.commands.rendering.table import DASH, Column, Table, columns, texts
from eval.commands.rendering.terminal import show
from eval.commands.terminal import say, stage
from eval.config.presets import CONF, find_preset, made
from eval.metrics.evidence import SUBSTRING
from eval.metrics.metric import GROUPS
from memsys.errors import ConfigError, MemsysError

if TYPE_CHECKING:
    from eval.scoring.config import ScoringConfig
    from eval.scoring.labels import LabelView

PRESETS = CONF / "scoring"


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Score each run, write its scores and summary, and show its means."""
    options = _parser().parse_args(arguments)
    from eval.scoring.labels import check_view

    if options.list and options.runs:
        raise ConfigError(f"--list shows every metric and scores nothing; leave {options.runs[0]} out, or --list")
    if options.list:
        _list_metrics()
        return 0
    options = separate_runs(options)
    config = make_config(options)
    check_view(options.labels)
    for run in _runs_in(options.runs):
        with stage(f"scoring {run}"):
            _score(run, config, options.metrics or (), options.labels)
    return 0


def _runs_in(named: Sequence[Path]) -> list[Path]:
    """Return the runs that were named, and of each folder of runs those below it; exports have no answers to score."""
    from eval.runs.folders import find_run_folders, holds_texts

    found: list[Path] = []
    for place in named:
        own = holds_texts(place) or not place.is_dir()
        below = [] if own else [run for run in find_run_folders([place]) if holds_texts(run)]
        found += below or [place]
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program("score"), description="Score stored runs, no backbone needed.")
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="run directory, or a folder of them")
    parser.add_argument("--preset", default="default", help="file of conf/scoring (default: %(default)s)")
    parser.add_argument("--metrics", nargs="+", metavar="NAME", help=f"further metrics or groups: {', '.join(GROUPS)}")
    parser.add_argument("--bertscore-model", metavar="PATH|NAME", help="encoder behind bert_f1")
    parser.add_argument("--bertscore-layers", type=count(1), metavar="N", help="its layers to use")
    parser.add_argument(
        "--labels",
        default="printed",
        help="show the means under printed, masked, corrected or adversarial_masked labels",
    )
    parser.add_argument("--list", action="store_true", help="list the metrics with their sources and stop")
    return parser


def separate_runs(options: argparse.Namespace) -> argparse.Namespace:
    """Return the runs that were typed behind ``--metrics``: a word that is not a metric and exists on disk is a run."""
    from eval.metrics.registry import METRICS, groups

    given = options.metrics or ()
    runs = [name for name in given if name not in METRICS and name not in groups() and Path(name).exists()]
    if runs:
        options.metrics = [name for name in given if name not in runs] or None
        options.runs = [*options.runs, *map(Path, runs)]
    return options


def make_config(options: argparse.Namespace) -> "ScoringConfig":
    """Read the preset, add the metrics that are asked for, and put the command line's other choices on top.

    Raises:
        ConfigError: unknown preset or metric, or no run named.
    """
    from eval.metrics.registry import select_metrics

    if not options.runs:
        raise ConfigError("name at least one run directory, e.g. results/runs/quickstart/<run>")
    config = load_preset(options.preset)
    chosen: dict[str, Any] = {
        "metrics": None if options.metrics is None else (*config.metrics, *options.metrics),
        "bertscore_model": options.bertscore_model,
        "bertscore_layers": options.bertscore_layers,
    }
    config = replace(config, **{key: value for key, value in chosen.items() if value is not None})
    given = [key for key in ("bertscore_model", "bertscore_layers") if chosen[key] is not None]
    if given and not any("bertscore_model" in metric.needs for metric in select_metrics(config.metrics)):
        option = f"--{given[0].replace('_', '-')}"
        raise ConfigError(f"{option} changes nothing: no metric here needs it; add one, as --metrics bert_f1")
    return config


def load_preset(name: str) -> "ScoringConfig":
    """Read ``conf/scoring/<name>.yaml``.

    Raises:
        ConfigError: there is no such preset, or a setting is wrong.
    """
    from eval.config.compose import choice_settings
    from eval.scoring.config import ScoringConfig

    path = find_preset(name, PRESETS, "scoring preset")
    return made(ScoringConfig, choice_settings("scoring", name), path)


def _score(run: Path, config: "ScoringConfig", asked: Sequence[str], labels: "LabelView") -> None:
    from eval.commands.terminal import console
    from eval.scoring.run_files import RunFiles
    from eval.scoring.score_run import score_run
    from eval.scoring.summary import summarise
    from eval.scoring.unanswered import OUTCOMES, unanswered_text

    earlier = _scored_before(run)
    files = RunFiles(run)
    score_run(run, config, files)
    _report_dropped(earlier, _scored_before(run))
    summary = summarise(run, files)
    if labels != "printed":
        summary = _under(run, summary, labels)
    counts = summary["counts"]
    answered = counts["answered"] - counts.get(OUTCOMES, {}).get("empty", 0)
    say(f"{run}: {answered} of {counts['questions']} questions answered, {counts['malformed']} malformed")
    if unanswered := unanswered_text(summary):
        say(f"{unanswered} (scoring.unanswered; `memsys settle {run}` names them)", style="yellow")
    if counts["answered"]:
        show(_answer_table(summary))
        _warn_of_unlabelled(run, summary)
        floor = ", ".join(f"{name} {_percent(mean)}" for name, mean in summary["echo"].items())
        console().print(f"the questions themselves as answers, without those that have no answer: {floor}", style="dim")
    if counts["retrieved"] or not counts["answered"]:
        show(_evidence_table(summary))
    else:
        console().print("no retrievals were recorded: there is no evidence to score", style="dim")
    _warn_of_no_entries(summary.get("storage"))
    if asked := (*asked, *_mixed_metrics(summary)):
        show(_asked_table(summary, asked))


def _mixed_metrics(summary: Any) -> list[str]:
    """Return the metrics for text in any script that the run was scored with, which no protocol names."""
    from eval.metrics.registry import groups

    return [name for name in groups()["mixed"] if any(name in found for found in summary["metrics"].values())]


def _scored_before(run: Path) -> tuple[str, set[str]]:
    """Return preset and metrics of the last scoring; empty where there was none or its file is unreadable."""
    from eval.runs.load import SCORES_META, load_json

    try:
        meta = load_json(run / SCORES_META)
        return str(meta["config"]["name"]), {str(name) for name in meta["metrics"]}
    except (MemsysError, LookupError, TypeError):
        return "", set()


def _report_dropped(earlier: tuple[str, set[str]], now: tuple[str, set[str]]) -> None:
    """Say which metrics the run had before and has no more: they need a model, which the default preset has not."""
    from eval.metrics.registry import METRICS

    preset, metrics = earlier
    dropped = sorted((metrics - now[1]) & METRICS.keys())
    if dropped:
        say(f"note: no longer scored: {', '.join(dropped)}; the last time was with --preset {preset}")


def _under(run: Path, summary: Any, labels: "LabelView") -> Any:
    """Return the summary's means under a view of disputed labels; the file keeps those of the printed labels."""
    from eval.runs.load import data_sha256, load_scores
    from eval.scoring.labels import VIEW_TEXT, under
    from eval.scoring.summary import with_means

    rows = load_scores(run)
    seen = under(rows, labels, str(run), data_sha256(run))
    say(f"labels: {VIEW_TEXT[labels]}; {len(seen)} of {len(rows)} questions (summary.json has the labels as printed)")
    return with_means(summary, seen)


def _percent(mean: float | None) -> str:
    return DASH if mean is None else f"{100 * mean:.2f}"


def _in_unit(metric: str, mean: float | None) -> str:
    """Return a mean in the unit of its metric: percent for a share, seconds, words."""
    from eval.metrics.registry import scale_of

    return DASH if mean is None else f"{scale_of(metric) * mean:.2f}"


def _answer_table(summary: Any) -> Table:
    """Return one line per protocol and column: the categories by their meaning, then the overall mean."""
    audited = ("audited", "n") if summary["audited"] else ()
    remark = "; audited: without doubtful gold answers" if audited else ""
    labels = {
        int(number): means["label"]
        for protocol in summary["protocols"].values()
        for number, means in protocol["categories"].items()
    }
    figures = (*(labels[number] for number in sorted(labels)), "overall", "n", *audited)
    return Table(
        f"answers, percent; adv: reading of questions without an answer; n: scored (unscored){remark}",
        [*columns(("protocol", "column"), left=2), *_left("metric", "adv"), *map(Column, figures)],
        [
            _answer_row(summary, name, column, sorted(labels))
            for name, protocol in summary["protocols"].items()
            for column, overall in protocol["overall"].items()
            if overall["scored"]
        ],
    )


def _left(*headings: str) -> list[Column]:
    return [Column(heading, "left") for heading in headings]


def _answer_row(summary: Any, name: str, column: str, categories: Sequence[int]) -> list[str]:
    protocol = summary["protocols"][name]
    metric, overall = protocol["metrics"][column], protocol["overall"][column]
    return [
        *(name, column, metric, protocol["adversarial"]),
        *(_cell(protocol["categories"].get(str(number)), column, metric) for number in categories),
        _in_unit(metric, overall["mean"]),
        f"{overall['scored']} ({overall['unscored']})",
        *_audited_cells(summary, name, column),
    ]


def _warn_of_unlabelled(run: Path, summary: Any) -> None:
    """Name the kinds that the run's own protocol has no label for, or none has; kinds of one's own are expected."""
    from eval.commands.terminal import console
    from eval.loaders.registry import is_own
    from eval.runs.load import find_record

    record = find_record(run)
    config = (record or {}).get("config", {})
    if is_own(str((config.get("dataset") or {}).get("name"))):
        return
    own = (config.get("protocol") or {}).get("name")
    protocols = summary["protocols"]
    nowhere = set.intersection(*(set(protocol["unlabelled_kinds"]) for protocol in protocols.values()))
    kinds = sorted({*nowhere, *protocols.get(own, {}).get("unlabelled_kinds", ())})
    if kinds:
        console().print(
            f"warning: the protocol has no label for questions of the kind {', '.join(kinds)}; they count in its means",
            style="yellow",
        )


def _warn_of_no_entries(storage: Any) -> None:
    """Say where a memory gave hits and none of the places that its ``entries.yaml`` names holds an entry."""
    from eval.commands.terminal import console

    kinds = storage and storage["hits"] and storage["kinds"]
    if kinds and not any(found["entries"] for found in kinds.values()):
        console().print(
            f"warning: the snapshots hold nothing at the places of {', '.join(kinds)} that the system's entries.yaml "
            "names, so the tables of what is stored count no entry; correct `at` there",
            style="yellow",
        )


def _audited_cells(summary: Any, protocol: str, column: str) -> list[str]:
    """Return the mean and number of questions whose gold answer is not in doubt; nothing where none is."""
    if not summary["audited"]:
        return []
    mean = summary["audited"]["protocols"][protocol][column]
    metric = summary["protocols"][protocol]["metrics"][column]
    return [_in_unit(metric, mean["mean"]), str(mean["scored"])]


def _cell(category: Any, column: str, metric: str) -> str:
    return "" if category is None else _in_unit(metric, category["columns"][column]["mean"])


def _evidence_table(summary: Any) -> Table:
    names = ["e_precision", "e_recall", "e_f1", "recall@5", "recall@10", "ndcg@10", "ndcg@10_retrieved", "hit_rate"]
    populations = dict(summary["evidence"])
    if summary["audited"]:
        populations |= {f"audited, {name}": means for name, means in summary["audited"]["evidence"].items()}
    rows = [
        [
            *(matching, population),
            *(_percent(means[name + suffix]["mean"]) for name in names),
            means["e_recall" + suffix]["scored"],
        ]
        for population, means in populations.items()
        for matching, suffix in (("lineage", ""), ("substring", SUBSTRING))
    ]
    headings = ("matching", "questions", *names, "n")
    return Table("evidence in the first 10 memories, percent", columns(headings, left=2), rows)


def _asked_table(summary: Any, asked: Sequence[str]) -> Table:
    """Return one line per named metric: its unscaled mean overall and in each category, under no protocol."""
    from eval.metrics.registry import select_metrics

    groups = summary["metrics"]
    rows = []
    for metric in select_metrics(asked):
        means = [groups[name].get(metric.name, {}).get("mean") for name in groups]
        unit = "" if metric.unit == "percent" else f" ({metric.unit})"
        rows.append([metric.name + unit, *(_in_unit(metric.name, mean) for mean in means)])
    shown = columns(("metric", *(name.replace("_", " ") for name in groups)))
    return Table("metrics asked for, percent unless a unit is named, every category as it is", shown, rows)


def _list_metrics() -> None:
    from eval.metrics.registry import METRICS

    rows = [
        (metric.name, ", ".join(metric.needs), metric.references if metric.lexical else "", metric.source)
        for metric in METRICS.values()
    ]
    show(Table("metrics", texts(("name", "needs", "references", "source")), rows))


if __name__ == "__main__":
    start(main)
