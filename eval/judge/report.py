"""A judge's verdicts on a run, for its summary and the terminal, always with the judge's measured quality."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from eval.commands.rendering.table import DASH, Table, columns
from eval.commands.rendering.terminal import show as show_table
from eval.commands.terminal import console, say
from eval.metrics.ordering import MODEL_ORDER_METRICS
from eval.scoring.beam import ORDERING, meaning, title
from eval.scoring.verdicts.agreement import agreement, majority
from eval.scoring.verdicts.figures import BY_PEOPLE, OF_GOLD, JudgeFigures, corrected_share, figures_for
from eval.scoring.verdicts.judge_quality import RECORDED, judge_name, judge_quality, order_quality
from eval.scoring.verdicts.store import StoredVerdicts
from memsys.vocabulary import Json


def _interval_text(interval: Json) -> str:
    """Return an interval as percent, clipped to the range of a share."""
    return f"[{_percent(max(0.0, interval['low']))}, {_percent(min(1.0, interval['high']))}]" if interval else ""


def show(run_id: str, judges: Mapping[str, Json], judged: Sequence[StoredVerdicts]) -> None:
    """Print what every judge said of a run, and how far judges agree."""
    say(run_id, style="bold")
    show_table(_verdicts(judges))
    if len(judged) > 1:
        show_table(_agreements(judged))
    for entry in judges.values():
        for metric, found in (entry.get("beam") or {}).items():
            show_table(_beam_means(metric, entry, found))
        _show_order(entry)
        quality = judge_quality(entry)
        if entry["judge"] != RECORDED and quality.missing:
            text = f"comparisons and reports leave {quality.name} out until it is measured: {quality.missing}"
            say(text, style="yellow")


def _beam_means(metric: str, entry: Mapping[str, Json], found: Mapping[str, Json]) -> Table:
    """Return BEAM's score with the means behind it."""
    rows = [(judge_name(entry), _percent(found["score"]), _interval_text(found["interval"]), "")]
    for name, mean in found["kinds"].items():
        how = f" ({found['order']})" if name == ORDERING else ""
        rows.append((f"  {name}{how}", _percent(mean["mean"]), "", f"{mean['scored']} ({mean['unscored']})"))
    heading = f"{title(metric)}, percent; halves: {found['halves']}"
    notes = [f"{title(metric)}: {meaning(metric, found['missing'])}"]
    return Table(heading, columns(("kind", "mean", "95 %", "n (null)")), rows, notes)


def _show_order(entry: Mapping[str, Json]) -> None:
    """Print the means of orders that a judge aligned itself, and what is known of how well it does that."""
    found, quality = entry.get("order"), order_quality(entry)
    if not found or quality is None:
        return
    means = ", ".join(f"{name} {_percent(found[name]['mean'])}" for name in MODEL_ORDER_METRICS)
    scored = found[MODEL_ORDER_METRICS[0]]
    text = (
        f"orders aligned by {judge_name(entry)}, percent: {means}; n (null): {scored['scored']} ({scored['unscored']})"
        f"; verdicts on pairs: {found['verdicts']}, unreadable and so not the same: {found['unreadable']}; "
        f"{quality.text}"
    )
    console().print(text, highlight=False, markup=False)
    if quality.missing:
        say(f"comparisons and reports leave these orders out until it is measured: {quality.missing}", style="yellow")


def show_probe(name: str, probe: Mapping[str, Json]) -> None:
    """Print how a judge did on answers whose grade is known."""
    rows = [
        ("all", _percent(probe["accuracy"])),
        ("always the commoner verdict", _percent(probe["always"])),
        ("wrong ones called right", _percent(probe["false_accept"])),
        ("right ones called wrong", _percent(probe["false_reject"])),
        *((f"  {kind}", _percent(value)) for kind, value in probe["by_kind"].items()),
    ]
    unscored = f"{probe['unscored']} replies contained no verdict and are excluded from all of these"
    heading = f"{name}: {probe['items']} answers of known grade, percent"
    show_table(Table(heading, columns(("answers", "right")), rows, [unscored] if probe["unscored"] else ()))


def show_people(name: str, found: Sequence[JudgeFigures]) -> None:
    """Print how a judge did on answers whose grade is known: that people labelled, wrong ones, gold ones."""
    headings = ("answers", "n (null)", "right", "always one", "kappa", "wrong accepted", "right rejected")
    digits = {"kappa": 2}
    shown = [replace(column, digits=digits.get(column.heading, 1)) for column in columns(headings)]
    rows = [
        [
            *(one.answers_of, f"{one.answers} ({one.unreadable})", one.accuracy, one.one_verdict, one.kappa),
            *(one.wrong_accepted, one.right_rejected),
        ]
        for one in found
    ]
    show_table(Table(f"{name}, percent", shown, rows))


def _verdicts(judges: Mapping[str, Json]) -> Table:
    headings = (
        *("judge", "right", "95 %", "corrected", "kappa", "n (null)", "repeats", "probe", "always one"),
        "wrong accepted",
    )
    note = (
        "right: answers called correct; corrected: without the wrong answers that the judge accepts, by its error "
        "rates on answers labelled by people; kappa: agreement with people; probe, always one, wrong accepted: on "
        "answers of known grade"
    )
    return Table("Verdicts, percent", columns(headings), [_verdict_cells(entry) for entry in judges.values()], [note])


def _verdict_cells(entry: Mapping[str, Json]) -> list[str]:
    probe, repeats = entry["probe"], entry["repeats"]
    spread = f"{len(repeats['accuracies'])}, sd {_percent(repeats['std'])}, {repeats['changed']} changed"
    return [
        judge_name(entry),
        _percent(entry["correct"]),
        _interval_text(entry["interval"]),
        *_by_people(entry),
        f"{entry['scored']} ({entry['unscored']})",
        spread if len(repeats["accuracies"]) > 1 else "1",
        *(_percent(probe[name]) for name in ("accuracy", "always", "false_accept")),
    ]


def _by_people(entry: Mapping[str, Json]) -> tuple[str, str]:
    """Return the corrected share and kappa, or a note that the judge was not measured."""
    known = figures_for(entry)
    people = known.get(BY_PEOPLE)
    if people is None and OF_GOLD in known:  # a mean over a rubric's items cannot be corrected like a share
        return DASH, DASH
    if people is None:
        return "not measured", DASH
    share = None if entry["correct"] is None else corrected_share(entry["correct"], people)
    return _percent(share), DASH if people.kappa is None else f"{people.kappa:.2f}"


def _agreements(judged: Sequence[StoredVerdicts]) -> Table:
    rows = []
    for one, two in combinations(judged, 2):
        found = agreement(majority(one.shares()), majority(two.shares()))
        kappa = "undefined" if found.kappa is None else f"{found.kappa:.2f}"
        rows.append((f"{one.column} / {two.column}", found.answers, _percent(found.agree), kappa))
    return Table("agreement of two judges", columns(("judges", "answers", "agree", "Cohen's kappa")), rows)


def _percent(value: float | None) -> str:
    return DASH if value is None else f"{100 * value:.1f}"
