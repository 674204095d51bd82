"""The definition lens, as the page shows it."""

from collections.abc import Sequence

from eval.audit.sensitivity.config import load_config
from eval.audit.sensitivity.ranking import Standing, StandingsRow
from eval.audit.sensitivity.standings import Lens, lenses_of
from eval.audit.sensitivity.text import LEGEND, heading, order_text, summary, tally_rows
from eval.report.runs import dataset_names
from eval.results.stored_run import StoredRun
from eval.scoring.protocols import load_protocol, protocol_names
from memsys.vocabulary import Json


def definitions(runs: Sequence[StoredRun]) -> Json:
    """Return the lenses of all data sets, and why one is missing."""
    found, missing = lenses_of(runs, load_config(), [load_protocol(name) for name in protocol_names()])
    names = dict(zip((run.run_id for run in runs), dataset_names(runs), strict=True))
    found.sort(key=lambda lens: -len(lens.systems))
    lenses = [_lens(lens, names[lens.runs[0]]) for lens in found]
    return {"lenses": lenses, "legend": list(LEGEND), "missing": missing}


def _lens(lens: Lens, dataset: str) -> Json:
    return {
        "heading": heading(lens),
        "dataset": dataset,
        "setting": lens.setting,
        "ranked": list(lens.ranked),
        "questions": lens.questions,
        "summary": summary(lens),
        "systems": list(lens.systems),
        "runs": list(lens.runs),
        "readings": lens.readings,
        "tallies": tally_rows(lens),
        "sections": [
            {"title": title, "lines": [_line(line, lines[0]) for line in lines]}
            for title, lines in lens.sections.items()
        ],
    }


def _line(line: StandingsRow, reference: StandingsRow) -> Json:
    return {
        "label": line.reading.label,
        "source": line.reading.source,
        "n": line.questions,
        "order": order_text(line, reference),
        "standings": [_standing(standing) for standing in line.standings],
    }


def _standing(standing: Standing) -> Json:
    value = None if standing.value is None else round(standing.value, 1)
    return {"value": value, "rank": standing.rank, "tied": standing.tied, "unsure": standing.unsure}
