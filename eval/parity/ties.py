"""Questions whose contexts differ in tied memories alone, such as one of two at the edge of k: measured, not assumed.

Both sides sort by the cosines of the same vectors, ours rounded to six decimals, a release with all digits. Which of two
memories that are equally near comes first is then a matter of the last digit.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from eval.parity.endpoint import ParityEndpoint
from eval.parity.ours import SideResult
from memsys.vocabulary import Json

#: Cosines that round to the same six decimals differ by less.
TIED = 1e-6


def tied_questions(endpoint: ParityEndpoint, ours: SideResult, theirs: SideResult) -> set[str]:
    """Find the questions whose contexts differ, and only in memories that are equally near to the question.

    Args:
        endpoint: embeds as both sides did.
        ours: our side.
        theirs: theirs.
    """
    memories = dict(memory_texts(theirs.store))
    return {
        name
        for name, one in ours.answers.items()
        if _tied(endpoint, one.question, memories, one.context, theirs.answers[name].context)
    }


def memory_texts(store: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Texts of memories as contexts show them, each with what was embedded of it."""
    for part in store.values():
        named: Any = part.items() if isinstance(part, Mapping) else enumerate(part if isinstance(part, list) else ())
        for name, memory in named:
            if not isinstance(memory, Mapping):
                continue
            if "title" in memory:
                yield str(memory["content"]), f"{memory['title']}. {memory['content']}"
            elif isinstance(memory.get("text"), str):
                yield memory["text"], memory["text"]
            elif isinstance(name, str):
                yield name, name


def _tied(endpoint: ParityEndpoint, question: str, memories: Mapping[str, str], ours: str, theirs: str) -> bool:
    mine, yours = _shown(memories, ours), _shown(memories, theirs)
    if mine == yours or len(mine) != len(yours):
        return False
    cosines = _cosines(endpoint, question, {text: memories[text] for text in (*mine, *yours)})
    alone = [sorted(cosines[text] for text in one if text not in other) for one, other in ((mine, yours), (yours, mine))]
    shared = [[cosines[text] for text in one if text in other] for one, other in ((mine, yours), (yours, mine))]
    return _close(*alone) and _close(*shared)


def _close(ones: Sequence[float], others: Sequence[float]) -> bool:
    """Whether two lists of cosines are the same but for the last digits."""
    return len(ones) == len(others) and all(abs(one - other) < TIED for one, other in zip(ones, others, strict=True))


def _shown(memories: Mapping[str, str], context: str) -> list[str]:
    """Memories that a context shows, in its order."""
    places = {text: context.find(text) for text in memories if text and text in context}
    return sorted(places, key=places.__getitem__)


def _cosines(endpoint: ParityEndpoint, question: str, texts: Mapping[str, str]) -> dict[str, float]:
    vectors = endpoint.embed([question, *texts.values()]).astype(np.float64)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return dict(zip(texts, (units[1:] @ units[0]).tolist(), strict=True))
