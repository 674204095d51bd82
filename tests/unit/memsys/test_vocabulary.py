"""What a conversation knows of itself, and what a retrieval may not say."""

from typing import Any

import pytest

from memsys.vocabulary import Conversation, Hit, Retrieval, Turn


def test_who_speaks_is_looked_up_once() -> None:
    """Each of a long conversation's units asks: looked up again, a million turns cost 60 ms a unit."""
    said = tuple(Turn(str(number), "s", speaker, "hello") for number, speaker in enumerate(["Ben", "Ann", "", "Ben"]))
    conversation = Conversation("c", said, ("Ann", "Ben"))
    assert conversation.speaking == ("Ben", "Ann", "")
    assert conversation.speaking is conversation.speaking
    assert conversation == Conversation("c", said, ("Ann", "Ben"))


@pytest.mark.parametrize(
    ("rankings", "problem"),
    [
        ({"chosen": (0,)}, "rankings.chosen is not a ranking; there are named, searched"),
        ({"named": (1,)}, r"named=\[1\] must be indices into 1 hits"),
        ({"searched": (0, 0)}, "each once"),
        ({"named": (-1,)}, "must be indices"),
    ],
)
def test_a_ranking_lists_hits_that_are_there_once_each(rankings: Any, problem: str) -> None:
    hits = (Hit("text", 1.0, ("t",), "m"),)
    with pytest.raises(ValueError, match=problem):
        Retrieval(hits, "", rankings=rankings)
    assert Retrieval(hits, "", rankings={"named": (0,), "searched": ()}).rankings["searched"] == ()
