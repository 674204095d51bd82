"""Printing what follows a cell."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eval.commands.escaping import one_line
from eval.config.preset_settings import flat
from eval.metrics.registry import METRICS
from eval.results.explain.find import CellPlace
from eval.results.explain.questions import ExplainedQuestion, is_trap
from eval.results.explain.settings import SettingDifference
from eval.results.stored_run import StoredRun
from eval.results.tables.measure import Measured
from eval.results.tables.text import number
from eval.runs.machine_paths import without_places
from eval.scoring.equivalence import Equivalence

NOTHING = "none"


def heading(place: CellPlace) -> str:
    """Return the heading of a cell."""
    table = f"{place.table.paper.label} Table {place.table.number}"
    return ", ".join(filter(None, (table, place.block.label, place.row.label, place.column.heading)))


def cell_lines(place: CellPlace, protocol: str) -> Iterator[str]:
    """Yield the printed number, measured number, verdict, metric; of a setting, what our preset has."""
    printed, measured = place.cell.printed, place.cell.measured
    yield f"printed    {printed.text if printed else NOTHING}{_note(printed.note) if printed else ''}"
    if place.cell.setting:
        yield f"setting    {place.cell.setting}"
        return
    yield f"measured   {_measured(measured) if measured else f'{NOTHING}: {place.cell.missing}'}"
    if place.cell.equivalence is not None:
        yield f"verdict    {_verdict(place.cell.equivalence)}"
    name = measured.metric if measured else place.table.paper.metric_of(place.column.metric, place.row.key.backbone)
    source = f" ({METRICS[name].source})" if name in METRICS else ""
    category = "all counted categories" if place.column.category is None else f"category {place.column.category}"
    yield f"metric     {name}{source}, {category}, protocol {protocol}"
    if measured and measured.caveats and printed:
        yield f"not compared with the printed number: {'; '.join(measured.caveats)}"


def _note(note: str) -> str:
    return f" ({note})" if note else ""


def _measured(measured: Measured) -> str:
    text = number(measured.value)
    interval = measured.shown_interval
    if interval is not None:
        text += f" [{number(interval.low)}, {number(interval.high)}], 95 % over {interval.units} {interval.by}s"
    seeds = f", mean of seeds {', '.join(map(str, measured.seeds))}" if len(measured.seeds) > 1 else ""
    return f"{text}; {measured.questions} of {measured.covered} questions{seeds}"


def _verdict(found: Equivalence) -> str:
    """Return the answer and what it rests on."""
    text = f"{found.answer}: measured minus printed {number(found.difference)}, margin {number(found.margin)}"
    if found.low is not None and found.high is not None and found.low < found.high:
        text += f"; the test's interval of the difference {number(found.low)} to {number(found.high)}"
    if found.needed is not None:
        text += f"; {found.needed} seeds would decide"
    return text + (f" ({found.reason})" if found.reason else "")


def further_lines(places: Sequence[CellPlace]) -> Iterator[str]:
    """Yield the measured cells of blocks that the paper does not have, and how to see them whole."""
    if places:
        yield "measured too, in blocks that the paper does not have (--block LABEL shows one whole):"
    for place in places:
        if place.cell.measured is not None:
            yield f"  {number(place.cell.measured.value):>8}  {place.block.label}, {place.row.label}"


def _code(made_by: Mapping[str, Any]) -> str:
    """Return the commit, and whether the code differed from it."""
    changes = {True: ", with uncommitted changes", False: "", None: ", state unknown"}[made_by.get("dirty")]
    return f"{made_by.get('commit') or 'unknown'}{changes}"


def run_lines(run: StoredRun, where: str) -> Iterator[str]:
    """Yield the provenance of one run."""
    record = run.record
    data = record["data"]
    yield f"run        {run.run_id}"
    yield f"files      {where}"
    yield f"data       {', '.join(filter(None, (run.dataset, data.get('source'))))}, sha256 {data.get('sha256')}"
    if run.floor:
        yield "answers    constants, made without a model"
        return
    if run.recorded:
        yield f"answers    recorded elsewhere: {run.recorded}"
        yield f"backbone   {run.backbone}"
        yield "not known  calls, times, hardware, seed, and which memories were retrieved"
        return
    begun = "".join(f"; begun by {_code(one)}" for one in record.get("earlier_code") or ())
    yield f"commit     {_code(record)}{begun}"
    yield f"backbone   {run.backbone}"
    for key, value in flat(without_places(record.get("model") or {})).items():
        yield f"  {key} = {value if isinstance(value, str) else json.dumps(value)}"
    hardware = record.get("hardware") or {}
    yield f"hardware   {', '.join([str(hardware.get('cpu', 'unknown')), *(hardware.get('gpus') or [])])}"
    yield f"seed       {record.get('seed')}; finished {record.get('finished') or 'unknown'}"


def setting_lines(found: Sequence[SettingDifference]) -> Iterator[str]:
    """Yield the settings that are not the paper's."""
    yield "settings that differ from the paper's:" if found else "settings: the paper's"
    width = max((len(difference.setting) for difference in found), default=0)
    for difference in found:
        yield f"  {difference.setting:{width}}  {json.dumps(difference.paper)} -> {json.dumps(difference.run)}"


def question_lines(asked: ExplainedQuestion) -> Iterator[str]:
    """Yield one question; texts where the run directory was at hand."""
    yield f"  {asked.question_id}, category {asked.category}, score {asked.score:g}"
    if not asked.has_texts:
        return
    yield f"    question  {one_line(asked.question)}"
    trap = " (the false answer)" if is_trap(asked.kind) else ""
    yield f"    gold      {one_line(' | '.join(asked.gold)) or NOTHING}{trap}"
    yield f"    answer    {NOTHING if asked.answer is None else one_line(asked.answer)}"
    ranks = [
        f"{turn} {'not retrieved' if rank is None else f'at rank {rank}'}" for turn, rank in asked.evidence.items()
    ]
    turns = "; ".join(ranks if asked.retrieved else asked.evidence) or "no gold turn"
    yield f"    evidence  {turns}{'' if asked.retrieved else ' (what was retrieved is not recorded)'}"
