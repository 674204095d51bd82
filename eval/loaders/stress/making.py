"""A change in the making: the conversation, what is drawn, and turns put between others."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from memsys.texts import ShownTexts
from memsys.vocabulary import Conversation, Sample, Turn

TEXTS = ShownTexts(Path(__file__).with_name("texts.yaml"))


@dataclass(frozen=True, slots=True)
class Making:
    """Material of a change: a sample, a generator, whether its benign twin is wanted, turns of noise for a turn."""

    sample: Sample
    drawn: np.random.Generator
    twin: bool
    amount: int = 1

    @property
    def conversation(self) -> Conversation:
        """The conversation as it is."""
        return self.sample.conversation

    @property
    def gold(self) -> frozenset[str]:
        """Ids of all turns that are evidence of a question."""
        return frozenset(turn for reference in self.sample.references.values() for turn in reference.evidence)

    @property
    def speakers(self) -> Sequence[str]:
        """Who speaks; one nameless speaker if none is named."""
        return self.conversation.speaking or ("",)

    def other_than(self, speaker: str) -> str:
        """Return another speaker than this one; the same if there is no other."""
        return next((one for one in self.speakers if one != speaker), speaker)

    def one_of(self, name: str) -> str:
        """Draw one of the texts that a text of the file lists, separated by ``|``."""
        choices = TEXTS.by_name[name].split("|")
        return choices[int(self.drawn.integers(len(choices)))]

    def text_of(self, family: str, **places: str) -> str:
        """Draw one of the texts ``family_1``, ``family_2`` and so on, with its places filled."""
        names = [name for name in TEXTS.by_name if name.startswith(f"{family}_") and name[-1].isdigit()]
        return TEXTS(names[int(self.drawn.integers(len(names)))], **places)

    def noise_text(self) -> str:
        """Draw a sentence about nothing in the conversation."""
        return self.text_of("noise", thing=self.one_of("things"), place=self.one_of("places"))

    def turn_after(self, anchor: Turn, number: int, speaker: str, text: str) -> Turn:
        """Make a turn that is said in the session of another; ``number`` differs within a change."""
        return Turn(f"{anchor.turn_id}~{number}", anchor.session_id, speaker, text, anchor.date_time)

    def with_turns(self, added: Mapping[int, Iterable[Turn]]) -> Sample:
        """Return the sample with turns after those of some places."""
        turns: list[Turn] = []
        for place, turn in enumerate(self.conversation.turns):
            turns += [turn, *added.get(place, ())]
        return self.with_conversation(tuple(turns))

    def with_conversation(self, turns: tuple[Turn, ...]) -> Sample:
        """Return the sample with other turns."""
        return replace(self.sample, conversation=replace(self.conversation, turns=turns))
