"""From closed blocks to drafts of episodes: side by side, since a story depends on its block alone."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memsys.episodes.boundary import Segmenter
from memsys.episodes.extraction import EpisodeStatements, extract_directly
from memsys.episodes.narrating import Story, narrate
from memsys.episodes.nodes import Episode, Message, MessageBlock
from memsys.episodes.roles import EpisodeRoles
from memsys.episodes.rules import EpisodeRules
from memsys.llm.contract import LanguageModel


@dataclass(frozen=True, slots=True)
class EpisodeDraft:
    """A block and its story; ``extracted`` are its facts where they do not depend on other episodes."""

    story: Story
    extracted: EpisodeStatements | None


@dataclass(frozen=True, slots=True)
class PendingExtraction:
    """A stored episode whose facts are not stored yet; ``extracted`` as in :class:`EpisodeDraft`."""

    episode_id: str
    key: str
    extracted: EpisodeStatements | None

    def state(self) -> dict[str, Any]:
        """Return it as JSON values."""
        found = self.extracted
        texts = None if found is None else {"statements": list(found.statements), "events": list(found.events)}
        return {"episode_id": self.episode_id, "key": self.key, "extracted": texts}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "PendingExtraction":
        """Make what :meth:`state` described."""
        found = state["extracted"]
        extracted = None if found is None else EpisodeStatements(tuple(found["statements"]), tuple(found["events"]))
        return cls(state["episode_id"], state["key"], extracted)


@dataclass(frozen=True, slots=True)
class EpisodeWriter:
    """Describes blocks.

    Attributes:
        llm: the backbone.
        roles: ``episode`` and, for ``directly``, ``extract``.
        rules: what an episode keeps.
        directly: facts are read off each story, at once.
    """

    llm: LanguageModel
    roles: EpisodeRoles
    rules: EpisodeRules
    directly: bool

    async def describe(self, block: MessageBlock) -> EpisodeDraft:
        """Describe a block and, where facts are read off the story, read them. Depends on the block alone."""
        story = await narrate(self.llm, self.roles.episode, block, self.rules)
        if not self.directly:
            return EpisodeDraft(story, None)
        episode = Episode("", story.title, story.content, story.time, block.messages)
        return EpisodeDraft(story, await extract_directly(self.llm, self.roles, episode, block.key))

    async def describe_all(self, blocks: Sequence[MessageBlock]) -> list[EpisodeDraft]:
        """Describe blocks side by side."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.describe(block)) for block in blocks]
        return [task.result() for task in tasks]

    async def describe_session(self, segmenter: Segmenter, messages: Iterable[Message]) -> tuple[EpisodeDraft, ...]:
        """Cut a session and describe each block as soon as it is closed."""
        tasks: list[asyncio.Task[EpisodeDraft]] = []
        async with asyncio.TaskGroup() as group:
            for message in messages:
                block = await segmenter.take(message)
                if block is not None:
                    tasks.append(group.create_task(self.describe(block)))
            last = segmenter.flush("session")
            if last is not None:
                tasks.append(group.create_task(self.describe(last)))
        return tuple(task.result() for task in tasks)
