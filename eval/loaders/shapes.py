"""Sizes of loaded data, from which follows how many calls a memory system is expected to make."""

from collections import Counter

from eval.loaders.contract import DatasetConfig, LoadedData
from eval.loaders.question_types import kind_of
from memsys.call_model import CHARS_PER_TOKEN, DataShape
from memsys.scripts import latin_length


def shape_of(config: DatasetConfig, data: LoadedData) -> DataShape:
    """Return the sizes of loaded data."""
    turns = [turn for sample in data.samples for turn in sample.conversation.turns]
    questions = [question for sample in data.samples for question in sample.questions]
    chars = sum(latin_length(config.turn_format.render(turn)) for turn in turns)
    sessions = Counter(
        (s.conversation.conversation_id, t.session_id) for s in data.samples for t in s.conversation.turns
    )
    return DataShape(
        turns=[len(sample.conversation.turns) for sample in data.samples],
        sessions=list(sessions.values()),
        questions=dict(sorted(Counter(kind_of(question.kind, question.category) for question in questions).items())),
        turn_tokens=chars / CHARS_PER_TOKEN / max(len(turns), 1),
        question_tokens=sum(latin_length(q.text) for q in questions) / CHARS_PER_TOKEN / max(len(questions), 1),
    )
