"""Two backbones seen as one: some roles ask a second model."""

from collections.abc import Collection, Mapping

from memsys.llm.attempt import CompletedAttempt
from memsys.llm.contract import LanguageModel, Reply, Role
from memsys.llm.passthrough import ForeignCall, complete


class DelegatingModel:
    """A :class:`memsys.llm.contract.LanguageModel` that hands some roles to another one.

    xMemory reads log-probabilities of GPT-4.1-mini where its answers come from GPT-5 nano, which gives none.

    Args:
        main: answers every other role, and counts tokens: what its window holds is what a memory plans by.
        second: answers the delegated roles.
        roles: names of the delegated roles.
    """

    def __init__(self, main: LanguageModel, second: LanguageModel, roles: Collection[str]) -> None:
        self._main, self._second, self._roles = main, second, frozenset(roles)

    @property
    def context_length(self) -> int:
        """Tokens that one request to the main model may hold."""
        return self._main.context_length

    async def ask(self, role: Role, values: Mapping[str, str], *, key: str) -> Reply:
        """Ask the model that the role belongs to.

        Raises:
            BackboneError: the server cannot be reached, or refuses.
        """
        model = self._second if role.name in self._roles else self._main
        return await model.ask(role, values, key=key)

    async def complete(self, call: ForeignCall) -> CompletedAttempt:
        """Let the main model make a call of another program, which has no role of ours."""
        return await complete(self._main, call)

    async def count_tokens(self, text: str) -> int:
        """Count with the main model's tokenizer."""
        return await self._main.count_tokens(text)
