"""Core memory: blocks of text that every prompt shows, edited by functions alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from baselines.memgpt.roles import BLOCKS, TEXTS
from baselines.memgpt.rules import CoreRules


class FunctionFailedError(Exception):
    """A call has no effect.

    Args:
        reason: one word, for counts.
        text: what the agent is told.
    """

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason, self.text = reason, text


@dataclass(slots=True)
class CoreBlock:
    """A block.

    Attributes:
        name: that functions call it by.
        limit: characters.
        about: the speaker whose half it is; empty for other blocks. Functions may call it by that name too.
        text: what it holds.
        turn_ids: turns that the agent had in sight when it wrote here.
    """

    name: str
    limit: int
    about: str = ""
    text: str = ""
    turn_ids: tuple[str, ...] = ()

    def state(self) -> dict[str, Any]:
        """Return the block as JSON values."""
        return {"name": self.name, "about": self.about, "text": self.text, "turn_ids": list(self.turn_ids)}


class CoreMemory:
    """The blocks.

    Args:
        rules: their sizes.

    Attributes:
        blocks: by name.
    """

    def __init__(self, rules: CoreRules) -> None:
        names = BLOCKS[rules.human]
        half = rules.limit // (len(names) - 1)
        self.blocks = {name: CoreBlock(name, rules.limit if name == "persona" else half) for name in names}

    def introduce(self, speakers: Sequence[str]) -> None:
        """Write the first texts, once: whose memory it is, and who speaks; nobody where there is no talk."""
        persona, *humans = self.blocks.values()
        if persona.text:
            return
        talk = len(speakers) > 1
        names = TEXTS("and").join(speakers)
        self._begin(persona, TEXTS("persona", speakers=names) if talk else TEXTS("persona_record"))
        if not talk:
            return
        if len(humans) == 1:
            self._begin(humans[0], "\n".join(TEXTS("about", speakers=speaker) for speaker in speakers))
            return
        for block, named in zip(humans, (speakers[:1], speakers[1:]), strict=True):
            block.about = TEXTS("and").join(named)
            self._begin(block, TEXTS("about", speakers=block.about))

    def _begin(self, block: CoreBlock, text: str) -> None:
        block.text = text[: block.limit]

    def append(self, name: str, content: str, sources: Sequence[str]) -> None:
        """Add a line to a block.

        Raises:
            FunctionFailedError: there is no such block, or it would be over its limit.
        """
        block = self._find(name)
        self._set(block, f"{block.text}\n{content}" if block.text else content, sources)

    def replace(self, name: str, old: str, new: str, sources: Sequence[str], *, most: int = 1) -> None:
        """Replace a passage, the first of equal ones; an empty new one deletes it.

        Args:
            name: of the block.
            old: the passage.
            new: the text that replaces it.
            sources: turns that the agent had in sight.
            most: of equal passages that are replaced; -1 for all.

        Raises:
            FunctionFailedError: there is no such block or passage, or the block would be over its limit.
        """
        block = self._find(name)
        if old not in block.text:
            raise FunctionFailedError("not_in_block", TEXTS("not_in_block", name=block.name))
        self._set(block, block.text.replace(old, new, most), sources)

    def _find(self, name: str) -> CoreBlock:
        for block in self.blocks.values():
            if name == block.name or (block.about and name.lower() == block.about.lower()):
                return block
        known = ", ".join(self.blocks)
        raise FunctionFailedError("unknown_block", TEXTS("unknown_block", name=name, known=known))

    def _set(self, block: CoreBlock, text: str, sources: Sequence[str]) -> None:
        if len(text) > block.limit:
            words = TEXTS("over_limit", name=block.name, length=len(text), limit=block.limit)
            raise FunctionFailedError("over_limit", words)
        block.text = text
        block.turn_ids = tuple(dict.fromkeys((*block.turn_ids, *sources)))

    def shown(self) -> str:
        """Return all blocks, as the agent sees them."""
        return "\n".join(
            TEXTS("block", name=block.name, used=len(block.text), limit=block.limit, text=block.text)
            for block in self.blocks.values()
        )

    def state(self) -> list[dict[str, Any]]:
        """Return the blocks that hold something."""
        return [block.state() for block in self.blocks.values() if block.text]

    def load_state(self, state: Sequence[Mapping[str, Any]]) -> None:
        """Restore a snapshot."""
        for saved in state:
            block = self.blocks[saved["name"]]
            block.about, block.text, block.turn_ids = saved["about"], saved["text"], tuple(saved["turn_ids"])
