"""LoCoMo and LongMemEval, as their own loaders read them, with questions and evidence."""

from collections import Counter
from collections.abc import Set
from dataclasses import replace
from pathlib import Path

from eval.loaders.exports.chats import WITHOUT_TEXT, Export, Options
from eval.loaders.exports.json_chats import chat_nodes
from eval.loaders.locomo import read_locomo
from eval.loaders.longmemeval import read_sample
from memsys.vocabulary import Reference, Sample


def locomo(source: Path, options: Options) -> Export:
    """Read a file as ``locomo10.json``."""
    return _without_blank(read_locomo(source)[0])


def longmemeval(source: Path, options: Options) -> Export:
    """Read LongMemEval: sessions by date, ids and kinds of its own, evidence of both levels."""
    return _without_blank([read_sample(node, Counter()) for node in chat_nodes(source, r"\.jsonl?$")])


def _without_blank(samples: list[Sample]) -> Export:
    """Leave out turns in which nothing is said, which no data set of one's own may have; and their ids as evidence."""
    said = [_said(sample) for sample in samples]
    turns = [sum(len(sample.conversation.turns) for sample in some) for some in (samples, said)]
    return Export(samples=said, left_out=Counter({WITHOUT_TEXT: turns[0] - turns[1]}))


def _said(sample: Sample) -> Sample:
    said = tuple(turn for turn in sample.conversation.turns if (turn.text + turn.caption).strip())
    gone = {turn.turn_id for turn in sample.conversation.turns} - {turn.turn_id for turn in said}
    references = {name: _resolved(reference, gone) for name, reference in sample.references.items()}
    return Sample(replace(sample.conversation, turns=said), sample.questions, references)


def _resolved(reference: Reference, gone: Set[str]) -> Reference:
    kept = tuple(name for name in reference.evidence if name not in gone)
    lost = tuple(name for name in reference.evidence if name in gone)
    return replace(reference, evidence=kept, unresolved_evidence=(*reference.unresolved_evidence, *lost))
