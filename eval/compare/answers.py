"""Some questions with the gold answer and the answer of each system, for people who want to see before they believe."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from eval.cli.terminal import console
from eval.runs.records import AnswerRecord, ReferenceRecord
from eval.runs.stored import load_answers, load_references

#: Characters of an answer that are shown; a reply may be long.
_SHOWN = 120


def show_answers(systems: Sequence[tuple[str, Path]], count: int) -> None:
    """Print the first questions that all systems answered, in the order of their ids.

    Args:
        systems: name and run directory of each; those without answers (exported summaries) are left out.
        count: questions to print.
    """
    answered = [(name, load_answers(path)) for name, path in systems if (path / "answers.jsonl").is_file()]
    if not answered or not count:
        return
    references = load_references(next(path for _, path in systems if (path / "references.jsonl").is_file()))
    console().print("\nSome of the answers\n", style="bold")
    for line in _lines(answered, references, count):
        console().print(line, highlight=False, markup=False)


def _lines(
    answered: Sequence[tuple[str, Mapping[str, AnswerRecord]]], references: Mapping[str, ReferenceRecord], count: int
) -> Iterator[str]:
    common = set.intersection(*(set(answers) for _, answers in answered)) & set(references)
    width = max(len(name) for name, _ in [("gold", {}), *answered])
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
