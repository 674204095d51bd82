"""Some questions with the gold answer and the answer of each system, for people who want to see before they believe."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eval.commands.terminal import console
from eval.results.compare.pairs import on_the_same_data
from eval.results.stored_run import StoredRun
from eval.runs.load import load_answers, load_references
from eval.runs.records import ReferenceRecord

#: Characters of an answer that are shown; a reply may be long.
_SHOWN = 120


@dataclass(frozen=True, slots=True)
class NamedRun:
    """A run's name next to its answers.

    Attributes:
        name: of its system.
        run: the run itself, for the data that it answered.
    """

    name: str
    run: StoredRun


def show_answers(systems: Sequence[NamedRun], count: int) -> None:
    """Print the first questions that all systems on the same data answered, in the order of their ids.

    Args:
        systems: the runs; those without answers (exported summaries, runs that only retrieved) are left out.
        count: questions to print of each data.
    """
    groups = _by_data([system for system in systems if count and _answered(system)])
    listed = [(group[0].run.dataset, lines) for group in groups if (lines := list(_lines(group, count)))]
    for place, (dataset, lines) in enumerate(listed):
        begin, on = "" if place else "\n", f" on {dataset}" if len(listed) > 1 else ""
        console().print(f"{begin}Some of the answers{on}\n", style="bold", highlight=False, markup=False)
        for line in lines:
            console().print(line, highlight=False, markup=False)
    if count and not listed:
        console().print("no answers to show: no question was answered by all the runs that hold answers")


def _answered(system: NamedRun) -> bool:
    files = ("answers.jsonl", "references.jsonl")
    return not system.run.retrieval_only and all((system.run.path / name).is_file() for name in files)


def _by_data(systems: Sequence[NamedRun]) -> list[list[NamedRun]]:
    """Return the systems whose questions are the same: other data may have other questions of the same ids."""
    groups: list[list[NamedRun]] = []
    for system in systems:
        home = next((group for group in groups if on_the_same_data(system.run, group[0].run)), None)
        if home is None:
            groups.append([system])
        else:
            home.append(system)
    return groups


def _lines(systems: Sequence[NamedRun], count: int) -> Iterator[str]:
    """Yield the up to ``count`` questions of one data; none where no question is common."""
    references = load_references(systems[0].run.path)
    answered = [(system.name, load_answers(system.run.path)) for system in systems]
    common = set.intersection(*(set(answers) for _, answers in answered)) & set(references)
    width = max(len(name) for name in ("gold", *(name for name, _ in answered)))
    for question_id in sorted(common)[:count]:
        yield f" {answered[0][1][question_id].question}"
        yield f"   {'gold':{width}}  {_gold(references[question_id])}"
        yield from (f"   {name:{width}}  {_cut(answers[question_id].prediction)}" for name, answers in answered)
        yield ""


def _gold(reference: ReferenceRecord) -> str:
    if reference.answers:
        return _cut(" / ".join(reference.answers))
    false = reference.adversarial_answer
    return f"nothing; the false answer is: {_cut(false)}" if false else "nothing"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 3] + "..."
