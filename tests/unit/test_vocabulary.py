"""What a conversation knows of itself."""

from memsys.vocabulary import Conversation, Turn


def test_who_speaks_is_looked_up_once() -> None:
    """Each of a long conversation's units asks: looked up anew, a million turns cost 60 ms a unit."""
    said = tuple(Turn(str(number), "s", speaker, "hello") for number, speaker in enumerate(["Ben", "Ann", "", "Ben"]))
    conversation = Conversation("c", said, ("Ann", "Ben"))
    assert conversation.speaking == ("Ben", "Ann", "")
    assert conversation.speaking is conversation.speaking
    assert conversation == Conversation("c", said, ("Ann", "Ben"))
