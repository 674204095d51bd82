"""A backbone that notes the prompt of every role that is asked."""

from collections.abc import Callable, Mapping

from memsys.errors import RunDirectoryError
from memsys.llm.attempt import CompletedAttempt
from memsys.llm.contract import LanguageModel, Reply, Role
from memsys.llm.passthrough import ForeignCall, complete


class PromptRecordingModel:
    """The backbone as memory and reader see it; notes each role's prompt so that the run can name it.

    Raises ``RunDirectoryError`` when a resumed run meets a role whose prompt is not the one it began with.

    Args:
        llm: the backbone.
        prompts: hashes by group and role, added to.
        group: name of the memory, or ``reader``.
        on_new: called when a role was added, before its first call: a run that is killed must leave it on disk.
    """

    def __init__(self, llm: LanguageModel, prompts: dict[str, str], group: str, on_new: Callable[[], None]) -> None:
        self._llm, self._prompts, self._group, self._on_new = llm, prompts, group, on_new

    @property
    def context_length(self) -> int:
        """See :class:`memsys.llm.contract.LanguageModel`."""
        return self._llm.context_length

    async def ask(self, role: Role, values: Mapping[str, str], *, key: str) -> Reply:
        """Note the role's prompt, then ask."""
        name = f"{self._group}.{role.name}"
        known = self._prompts.get(name)
        if known is None:
            self._prompts[name] = role.prompt.sha256
            self._on_new()
        elif known != role.prompt.sha256:
            raise RunDirectoryError(
                f"the prompt of role {name} is not the one this run began with; restore it or choose another run_dir"
            )
        return await self._llm.ask(role, values, key=key)

    async def complete(self, call: ForeignCall) -> CompletedAttempt:
        """Pass on a call whose request another program wrote; see :meth:`memsys.llm.client.BoundModel.complete`."""
        return await complete(self._llm, call)

    async def count_tokens(self, text: str) -> int:
        """See :class:`memsys.llm.contract.LanguageModel`."""
        return await self._llm.count_tokens(text)
