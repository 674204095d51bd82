"""Lay out LoCoMo's category-5 questions for reading: python scripts/category5_sheet.py --out FOLDER [--neighbours 2].

One Markdown file per conversation: each question with its false answer, the evidence turns with their neighbours, and
other turns that share words with question or answer. The files quote LoCoMo (CC BY-NC 4.0): keep them local.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from eval.loaders.locomo import LocomoConfig
from eval.metrics.locomo import CATEGORY_5
from memsys.vocabulary import Question, Reference, Sample, Turn

_WORD = re.compile(r"[a-z']{4,}")
#: Turns that share words with a question, shown at most.
MOST_RELATED = 6


def words(text: str) -> set[str]:
    """Lower-case words of four letters and more."""
    return set(_WORD.findall(text.lower()))


def shown(turn: Turn) -> str:
    """One turn on one line."""
    caption = f" [picture: {turn.caption}]" if turn.caption else ""
    return f"{turn.turn_id} {turn.speaker}: {' '.join(turn.text.split())}{caption}"


def neighbourhood(turns: Sequence[Turn], evidence: Sequence[str], reach: int) -> list[int]:
    """Positions of the evidence turns and of those at most ``reach`` away in the same session."""
    places = [place for place, turn in enumerate(turns) if turn.turn_id in evidence]
    near = {
        other
        for place in places
        for other in range(max(place - reach, 0), min(place + reach + 1, len(turns)))
        if turns[other].session_id == turns[place].session_id
    }
    return sorted(near)


def related(turns: Sequence[Turn], rarity: Mapping[str, int], wanted: set[str], left_out: set[int]) -> list[int]:
    """Positions of the turns that share the rarest words with ``wanted``, best first."""
    weights = {
        place: sum(1 / rarity[word] for word in words(turn.text) & wanted)
        for place, turn in enumerate(turns)
        if place not in left_out
    }
    ranked = sorted(weights, key=lambda place: (-weights[place], place))
    return sorted(place for place in ranked[:MOST_RELATED] if weights[place] > 0)


def lay_out(sample: Sample, reach: int) -> Iterator[str]:
    """Lines of one conversation's sheet."""
    turns = sample.conversation.turns
    rarity = Counter(word for turn in turns for word in words(turn.text))
    for question in sample.questions:
        if question.category == CATEGORY_5:
            yield from entry(question, sample.references[question.question_id], turns, rarity, reach)


def entry(
    question: Question, reference: Reference, turns: Sequence[Turn], rarity: Mapping[str, int], reach: int
) -> Iterator[str]:
    """Lines of one question."""
    yield f"## {question.question_id}"
    yield f"Q: {question.text}"
    yield f"False answer: {reference.adversarial_answer}"
    if reference.answers:
        yield f"True answer in the file: {reference.answers[0]}"
    near = neighbourhood(turns, reference.evidence, reach)
    yield from (("* " if turns[place].turn_id in reference.evidence else "  ") + shown(turns[place]) for place in near)
    wanted = words(f"{question.text} {reference.adversarial_answer}")
    elsewhere = related(turns, rarity, wanted, set(near))
    if elsewhere:
        yield "Elsewhere:"
        yield from ("  " + shown(turns[place]) for place in elsewhere)
    yield ""


def main(argv: Sequence[str] | None = None) -> int:
    """Write the sheets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the sheets; keep it out of the repository")
    parser.add_argument("--neighbours", type=int, default=2, help="turns shown before and after an evidence turn")
    parser.add_argument("--data-dir", type=Path, help="where locomo10.json lies (default: as a run finds it)")
    options = parser.parse_args(argv)
    options.out.mkdir(exist_ok=True)
    for sample in LocomoConfig(data_dir=options.data_dir and str(options.data_dir)).load().samples:
        path = options.out / f"{sample.conversation.conversation_id}.md"
        path.write_text("\n".join(lay_out(sample, options.neighbours)), encoding="utf-8")
        print(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
