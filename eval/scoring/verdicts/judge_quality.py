"""Was a judge measured on answers whose grade is known, and is it better there than one verdict for all of them?"""

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass

from eval.commands.places import RESULTS
from eval.config.presets import CONF, preset_names
from eval.loaders.locomo import LOCOMO
from eval.scoring.inference import ALPHA
from eval.scoring.verdicts.figures import (
    BY_PEOPLE,
    OF_GOLD,
    OF_PAIRS,
    ON_PURPOSE,
    JudgeFigures,
    figures_for,
    pair_figures_for,
    people_text,
)
from memsys.errors import DataError
from memsys.vocabulary import Json

#: Judge of imported verdicts, and its backbone where their file names none.
RECORDED = "recorded"
#: What the audit found of judges whose verdicts were recorded with the answers.
RECORDED_FILE = RESULTS / "audit" / "judges.csv"
#: The judge of verdicts that are people's own labels.
PEOPLE = "people"
#: Option of the commands that leave judges out.
SHOW_ANYWAY = "--unmeasured-judges"
SHOW_ANYWAY_HELP = "also show judges that were never measured on answers of known grade"


@dataclass(frozen=True, slots=True)
class JudgeQuality:
    """Measured quality of a judge.

    Attributes:
        name: judge and model.
        text: how it did where the grade is known, or that it was not measured.
        missing: how to measure it, empty for a judge that was measured on answers labelled by people and on wrong
            ones, or, where it judges rubrics, on gold answers.
        fault: why its verdicts are uninformative; empty for one that was measured and beats one verdict for all.
    """

    name: str
    text: str
    missing: str
    fault: str


@dataclass(frozen=True, slots=True)
class GradeCounts:
    """Answers with a known grade, counted.

    Attributes:
        right: right answers.
        wrong: wrong answers.
        right_rejected: right answers that the judge calls wrong.
        wrong_accepted: wrong answers that it calls right.
    """

    right: int
    wrong: int
    right_rejected: int
    wrong_accepted: int

    @classmethod
    def of(
        cls, answers: int, right: float, right_rejected: float | None, wrong_accepted: float | None
    ) -> "GradeCounts":
        """Return the counts behind shares in percent; a share that is ``None`` has no answers."""
        count = round(answers * right / 100)
        rejected, accepted = right_rejected or 0, wrong_accepted or 0
        return cls(count, answers - count, round(count * rejected / 100), round((answers - count) * accepted / 100))

    @property
    def accuracy(self) -> float:
        """Share that it grades as they are, percent."""
        return 100 - 100 * (self.right_rejected + self.wrong_accepted) / (self.right + self.wrong)

    @property
    def one_verdict(self) -> float:
        """Accuracy of always giving the commoner verdict, percent."""
        return 100 * max(self.right, self.wrong) / (self.right + self.wrong)

    @property
    def chance(self) -> float:
        """One-sided p of the exact sign test against one verdict for all, on the answers where the two differ."""
        if self.right >= self.wrong:
            better, worse = self.wrong - self.wrong_accepted, self.right_rejected
        else:
            better, worse = self.right - self.right_rejected, self.wrong_accepted
        if not better + worse:
            return 1.0
        from scipy.special import bdtrc

        return float(bdtrc(better - 1, better + worse, 0.5))


def judge_quality(entry: Mapping[str, Json], repository: str = "", dataset: str = "") -> JudgeQuality:
    """Return the measured quality of the judge of some verdicts.

    Args:
        entry: of a run's summary, see :func:`eval.scoring.verdicts.summary.judge_summary`.
        repository: where recorded answers come from.
        dataset: preset of the data that recorded answers are about; people labelled answers to LoCoMo alone.

    Raises:
        DataError: the file with the figures is damaged.
    """
    return _of_recorded(entry, repository, dataset) if entry["judge"] == RECORDED else _of_own(entry)


def publisher(entry: Mapping[str, Json], record: Mapping[str, Json]) -> str:
    """Return who recorded verdicts; each publisher counts as a judge, whatever its name in the files.

    Args:
        entry: of a run's summary.
        record: the run's.

    Returns:
        Repository or file; empty for verdicts that were given here.
    """
    found = record.get("recorded")
    if entry["judge"] != RECORDED or not isinstance(found, Mapping):
        return ""
    return str(found.get("repository") or found.get("path") or "")


def order_quality(entry: Mapping[str, Json]) -> JudgeQuality | None:
    """Return a judge's measured accuracy on pairs of events; ``None`` for one that aligned no order."""
    if not entry.get("order"):
        return None
    name, known = judge_name(entry), pair_figures_for(entry)
    if known is None:
        missing = _command("--known 100", entry, "of BEAM-100K", "judge.order=model")
        fault = f"no measurement of {name} on {OF_PAIRS}"
        return JudgeQuality(name, fault, missing, fault)
    return JudgeQuality(name, _pairs_text(known), "", _known_fault(name, known))


def _pairs_text(known: JudgeFigures) -> str:
    if known.accuracy is None or known.one_verdict is None:
        return f"it gave no readable verdict on {OF_PAIRS}"
    always = f"always one verdict: {known.one_verdict:.1f}"
    return f"right on {known.accuracy:.1f} % of {known.answers} {OF_PAIRS} ({always})"


def _of_own(entry: Mapping[str, Json]) -> JudgeQuality:
    known, name = figures_for(entry), judge_name(entry)
    asked = (entry.get("identity") or {}).get("judge") or {}
    rubric = asked.get("unit") == "rubric"
    wanted = {OF_GOLD} if rubric else {BY_PEOPLE, ON_PURPOSE}
    missing = "" if wanted <= known.keys() else _how_to_measure(entry, rubric=rubric)
    fault = _probe_fault(name, entry["probe"]) or _unmeasured(name, missing, rubric=rubric)
    fault = fault or _known_fault(name, known[OF_GOLD if rubric else BY_PEOPLE])
    return JudgeQuality(name, "; ".join([name, probe_text(entry["probe"]), people_text(entry)]), missing, fault)


def _how_to_measure(entry: Mapping[str, Json], *, rubric: bool) -> str:
    option, files = ("--known 100", "of BEAM-100K") if rubric else ("--people 200", "of `memsys recorded fetch`")
    return _command(option, entry, files)


def _command(option: str, entry: Mapping[str, Json], files: str, *settings: str) -> str:
    """Return how a judge is measured; of one that a preset does not make, settings besides its name are left out."""
    judge, backbone = (
        f"{part}={entry[part]}" if entry[part] in preset_names(CONF / part) else f"{part}.name={entry[part]} ..."
        for part in ("judge", "backbone")
    )
    command = " ".join(("memsys judge", option, judge, *settings, backbone))
    rest = "; ...: the settings that it judged with" if "..." in command else ""
    return f"`{command}` measures it (files {files}{rest})"


def _unmeasured(name: str, missing: str, *, rubric: bool = False) -> str:
    what = OF_GOLD if rubric else "answers labelled by people and on wrong ones"
    return f"no measurement of {name} on {what}" if missing else ""


def _probe_fault(name: str, probe: Mapping[str, Json]) -> str:
    if not probe["items"]:
        return ""
    if probe["accuracy"] is None:
        return f"{name} gave no readable verdict on its probe"
    if probe["accuracy"] > probe["always"]:
        return ""
    right, constant = 100 * probe["accuracy"], 100 * probe["always"]
    return (
        f"{name} is not better than a constant on its probe ({right:.1f} % right, always one verdict {constant:.1f} %)"
    )


def _known_fault(name: str, figures: JudgeFigures) -> str:
    of = figures.answers_of
    what = of if of in (OF_GOLD, OF_PAIRS) else f"answers {of}"
    if figures.right is None:
        return f"{name} gave no readable verdict on {what}"
    shares = figures.right, figures.right_rejected, figures.wrong_accepted
    return _constant_fault(name, GradeCounts.of(figures.answers, *shares), what)


def _constant_fault(name: str, counts: GradeCounts, what: str = f"answers {BY_PEOPLE}") -> str:
    if counts.chance <= ALPHA:
        return ""
    return (
        f"{name} is not shown to be better than a constant on {counts.right + counts.wrong} {what} "
        f"({counts.accuracy:.1f} % right, always one verdict {counts.one_verdict:.1f} %)"
    )


def _of_recorded(entry: Mapping[str, Json], repository: str, dataset: str) -> JudgeQuality:
    """Return the quality of a recorded judge, from its verdicts on answers that people labelled word for word."""
    name = judge_name(entry)
    if entry["backbone"] == PEOPLE:
        return JudgeQuality(name, f"{name}: labels by people", "", "")
    elsewhere = bool(dataset) and not dataset.startswith(LOCOMO.key)
    row = None if elsewhere else _recorded_figures(repository, str(entry["backbone"]))
    if row is None:
        unknown = "it cannot be asked again, and its answers share too few with those that people labelled"
        missing = f"people labelled answers to {LOCOMO.title} alone" if elsewhere else unknown
        return JudgeQuality(name, f"{name}; not probed", missing, _unmeasured(name, missing))
    shares = [float(row[key]) if row[key] else None for key in ("right_rejected", "wrong_accepted")]
    counts = GradeCounts.of(int(row["answers"]), float(row["right_by_people"]), *shares)
    text = (
        f"{name}; on {row['answers']} answers that people labelled too it agrees with them on {counts.accuracy:.1f} % "
        f"(always one verdict: {counts.one_verdict:.1f}), and accepts {counts.wrong_accepted} of the {counts.wrong} "
        "that are wrong"
    )
    return JudgeQuality(name, text, "", _constant_fault(name, counts))


def _recorded_figures(repository: str, judge: str) -> Mapping[str, str] | None:
    """Return the row of the audit's table of recorded judges; ``None`` where it has none.

    Raises:
        DataError: a column is missing.
    """
    if not RECORDED_FILE.is_file():
        return None
    rows = list(csv.DictReader(io.StringIO(RECORDED_FILE.read_text(encoding="utf-8"))))
    wanted = {"judge", "answers", "right_by_people", "right_rejected", "wrong_accepted"}
    if rows and not wanted <= rows[0].keys():
        raise DataError(f"{RECORDED_FILE} lacks {', '.join(sorted(wanted - rows[0].keys()))}; `memsys audit` writes it")
    return next((row for row in rows if row["judge"] == f"{repository}: {judge}"), None)


def probe_text(probe: Mapping[str, Json]) -> str:
    """Return ``probe 72.5 % right (always one verdict: 55.0)``, the note of every judge column.

    Verdicts that were recorded with the answers come from a judge that cannot be probed here.
    """
    if not probe["items"]:
        return "not probed"
    if probe["accuracy"] is None:
        return f"probe: no readable verdict on {probe['items']} items"
    return f"probe {100 * probe['accuracy']:.1f} % right (always one verdict: {100 * probe['always']:.1f})"


def judge_name(entry: Mapping[str, Json]) -> str:
    """Judge and backbone; of verdicts that came with the answers what the file calls their judge."""
    if entry["judge"] != RECORDED:
        return f"{entry['judge']} on {entry['backbone']}"
    named = "" if entry["backbone"] == RECORDED else f" ({entry['backbone']})"
    return f"verdicts recorded with the answers{named}"
