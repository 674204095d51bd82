"""Interface of the backbone to memory systems and reader: roles in, replies out.

A *role* is one purpose a language model is called for (analyse, route, evolve, answer ...), with its prompt file,
schema and sampling. The same role with the same values, conversation, key and run seed always makes the same request,
whichever system asks: ablations that share calls share replies.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from memsys.llm.correction import Correction
from memsys.llm.outcomes import Outcome, outcome_of
from memsys.llm.prompt import Prompt
from memsys.llm.reading import TOLERANT, ReplyReading
from memsys.vocabulary import Completion, Json


@dataclass(frozen=True, slots=True)
class Role:
    """One purpose the backbone is called for.

    Attributes:
        name: ledger and cache name, e.g. ``analyse``.
        prompt: template of the user message (or of the whole prompt in completion mode).
        temperature: sampling temperature.
        max_tokens: limit of new tokens.
        schema: JSON schema the reply must follow (the server constrains decoding to it); ``None`` for free text.
        system: system message in chat mode; left out in completion mode.
        system_prompt: template of the system message, rendered with the same values, where an authors' prompt has one
            (:mod:`memsys.prompt_packs`); then ``system`` is not read.
        system_first: in completion mode, where there are no system messages, it precedes the prompt.
        top_logprobs: alternatives to report per generated token; 0 asks for none.
        malformed_retries: further attempts, with other seeds, when the reply does not parse or validate and was not
            withheld; see :meth:`retries_at`.
        raw: the prompt goes to the completion endpoint without chat template, whatever the backbone's prompt mode.
        reading: how the reply is read; it changes no request.
        accepts: JSON schema that the reply must follow where it is not ``schema`` (see :attr:`Reading.check`).
        correction: how a malformed reply is asked for again; ``None``: with the same request and another seed.
        exchange: messages after the prompt, the model's and the user's in turn.
    """

    name: str
    prompt: Prompt
    temperature: float
    max_tokens: int
    schema: Mapping[str, Json] | None = None
    system: str | None = None
    top_logprobs: int = 0
    malformed_retries: int = 1
    raw: bool = False
    reading: ReplyReading = TOLERANT
    accepts: Mapping[str, Json] | None = None
    system_prompt: Prompt | None = None
    system_first: bool = False
    correction: Correction | None = None
    exchange: tuple[str, ...] = ()

    def retries_at(self, temperature: float | None) -> int:
        """Return how often a malformed reply is retried; at temperature 0 the same request gives the same reply.

        Args:
            temperature: that the backbone asks the role at; ``None`` leaves it to the server.
        """
        varies = self.correction is not None or temperature != 0
        return self.malformed_retries if self.schema is not None and varies else 0

    def after(self, reply: str) -> "Role":
        """Return the role of the attempt after a malformed reply; only the first such reply is shown."""
        if self.correction is None:
            return self
        warmer, exchange = self.correction.warmer(self.temperature), (reply, self.correction.text)
        return replace(self, temperature=warmer, exchange=self.exchange or exchange)

    def with_system(self, values: Mapping[str, str]) -> "Role":
        """Return the role with its system message rendered.

        Raises:
            ConfigError: a placeholder has no value.
        """
        return self if self.system_prompt is None else replace(self, system=self.system_prompt.render(values))


@dataclass(frozen=True, slots=True)
class Reply:
    """The backbone's reply to a role.

    Attributes:
        value: the parsed object that validates against the role's schema; ``None`` when every attempt was malformed,
            or when the role has no schema. The caller then takes the role's documented fallback.
        text: the last attempt's text, thinking blocks removed.
        completion: the last attempt.
        malformed: no attempt gave a valid object. Always ``False`` for a role without schema.
        repaired: the object was valid only after repair (cut to its braces, or closed after truncation).
    """

    value: Mapping[str, Any] | None
    text: str
    completion: Completion
    malformed: bool = False
    repaired: bool = False

    @property
    def outcome(self) -> Outcome:
        """Outcome of the call; see :mod:`memsys.llm.outcomes`."""
        ended, tools = self.completion.finish_reason, bool(self.completion.tool_calls)
        return outcome_of(self.text, ended, malformed=self.malformed, called_tools=tools)


class LanguageModel(Protocol):
    """The backbone as one conversation sees it."""

    @property
    def context_length(self) -> int:
        """Tokens of prompt and reply together that one request may hold."""

    async def ask(self, role: Role, values: Mapping[str, str], *, key: str) -> Reply:
        """Make one call (and its retries).

        Args:
            role: the purpose.
            values: fills the prompt's placeholders.
            key: what the call is about within the conversation (turn id, question id, "profile:3:cluster_0");
                together with conversation, role and run seed it fixes the sampling seed.

        Raises:
            BackboneError: the server cannot be reached or gave no completion.
        """

    async def count_tokens(self, text: str) -> int:
        """Count the tokens of ``text`` with the backbone's own tokenizer, without special tokens."""
