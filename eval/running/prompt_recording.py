"""A backbone that notes the prompt of every role that is asked."""

from collections.abc import Mapping

from memsys.errors import RunDirectoryError
from memsys.llm.client import CompletedAttempt
from memsys.llm.contract import LanguageModel, Reply, Role
from memsys.llm.foreign import ForeignCall, complete


class PromptRecordingModel:
    """The backbone as memory and reader see it; notes each role's prompt so that the run can name it.

    Raises ``RunDirectoryError`` when a resumed run meets a role whose prompt is not the one it began with.
    """

    def __init__(self, llm: LanguageModel, prompts: dict[str, str], group: str) -> None:
        self._llm, self._prompts, self._group = llm, prompts, group

    @property
    def context_length(self) -> int:
        """See :class:`memsys.llm.contract.LanguageModel`."""
        return self._llm.context_length

    async def ask(self, role: Role, values: Mapping[str, str], *, key: str) -> Reply:
        """Note the role's prompt, then ask."""
        name = f"{self._group}.{role.name}"
        known = self._prompts.setdefault(name, role.prompt.sha256)
        if known != role.prompt.sha256:
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
