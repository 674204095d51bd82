"""The backbone as one conversation sees it: renders the role's prompt, asks, parses, asks again, books every call."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, NamedTuple

from memsys.errors import BackboneError, BackboneUnusableError
from memsys.llm.accepted import AcceptedFields, probe_role
from memsys.llm.attempt import CompletedAttempt
from memsys.llm.bounded import Bounds, parse_apart, parse_at_once
from memsys.llm.budget import Expected, SpendingMeter
from memsys.llm.cache import ReplyCache
from memsys.llm.config import BackboneConfig
from memsys.llm.contract import Reply, Role
from memsys.llm.engines.contract import OF_OTHERS
from memsys.llm.ledger import CallRecord
from memsys.llm.limiter import Limiter
from memsys.llm.outcomes import is_withheld
from memsys.llm.passthrough import ForeignCall, foreign_request, foreign_role
from memsys.llm.refusals import (
    ContextLengthError,
    PromptWithheldError,
    RepeatedFailureError,
    RequestRefusedError,
    refusal_words,
    stated_window,
)
from memsys.llm.scope import CallScope, call_scope
from memsys.llm.structured import Parsed
from memsys.llm.thoughts import read_text, strip_thinking
from memsys.llm.token_usage import is_shortened, prompt_text, read_usage, with_counted_tokens
from memsys.llm.tokens import TokenCounter
from memsys.llm.transport import Sent, Transport, Written
from memsys.llm.wire import (
    MalformedReplyError,
    WireRequest,
    asked_tokens,
    effective_temperature,
    generated_text,
    largest_reply,
    make_request,
    read_completion,
)
from memsys.scripts import estimated_tokens
from memsys.seeding import stable_seed
from memsys.vocabulary import Completion, Json

logger = logging.getLogger(__name__)

#: Errors that stay what they are when the call is named in them; others are a backbone's.
_KINDS = (BackboneUnusableError, RequestRefusedError, RepeatedFailureError)


@dataclass(slots=True)
class TokenCounts:
    """Tokens of calls made; ``cached_tokens``: of the prompts', those that the server took from its cache."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0


@dataclass(slots=True)
class Counters(TokenCounts):
    """Counts of a backbone's work since it was opened; tokens of calls made, not of cached ones.

    ``shortened``: calls of whose prompt the server read only a part. ``batched``: the share of batches.
    """

    calls: int = 0
    cache_hits: int = 0
    shortened: int = 0
    batched: TokenCounts = field(default_factory=TokenCounts)


@dataclass(frozen=True, slots=True)
class SharedBackbone:
    """State of an open backbone that all conversations share."""

    config: BackboneConfig
    dialect: str
    model: Mapping[str, Json]
    model_text: str
    run_seed: int
    transport: Transport
    limiter: Limiter
    tokens: TokenCounter
    cache: ReplyCache | None
    counters: Counters
    on_call: Callable[[CallRecord], None] | None
    on_rejected: Callable[[CallRecord], None] | None
    accepted: AcceptedFields
    meter: SpendingMeter | None = None


class _Asked(NamedTuple):
    """A call that is being made.

    ``in_flight`` is to be closed once it is booked: until then it counts as in flight for the budget, whose end would
    cancel it between its reply and its row in the ledger.
    """

    role: Role
    key: str
    attempt: int
    scope: CallScope
    in_flight: ExitStack


class BoundModel:
    """A :class:`memsys.llm.contract.LanguageModel` of one conversation."""

    def __init__(self, shared: SharedBackbone, conversation_id: str) -> None:
        self._shared, self._conversation_id = shared, conversation_id

    @property
    def context_length(self) -> int:
        """Tokens of prompt and reply together that one request may hold."""
        return self._shared.config.window

    async def count_tokens(self, text: str) -> int:
        """Count tokens as ``backbone.token_counter`` says."""
        return await self._shared.tokens.count(text)

    async def ask(self, role: Role, values: Mapping[str, str], *, key: str) -> Reply:
        """Make one call; again, as the role says, while the reply is malformed and retries are left.

        Raises:
            BackboneError: the server cannot be reached, or refuses (a prompt longer than the context, say).
            RuntimeError: called outside a call scope.
        """
        scope = _current_scope(role)
        prompt, role = role.prompt.render(values), role.with_system(values)
        retries = role.retries_at(effective_temperature(self._shared.accepted.config, role))
        reply: Reply | None = None
        for attempt in range(retries + 1):
            try:
                reply = await self._attempt(role, prompt, key, attempt, scope)
            except ContextLengthError:
                if reply is None or not role.exchange:
                    raise
                break  # the malformed reply is too long to be shown to the model
            if not reply.malformed or reply.outcome == "withheld":  # a filter would most likely withhold the next too
                break
            role = role.after(reply.text)
        assert reply is not None
        return reply

    async def _attempt(self, role: Role, prompt: str, key: str, attempt: int, scope: CallScope) -> Reply:
        seed = stable_seed(self._shared.run_seed, self._conversation_id, role.name, key, attempt)

        def write(config: BackboneConfig) -> WireRequest:
            return make_request(config, self._shared.dialect, role, prompt, seed)

        with ExitStack() as in_flight:
            asked = _Asked(role, key, attempt, scope, in_flight)
            answered = await self._accepted(write, asked)
            text = _said(answered.completion)
            parsed = self._parse_at_once(text, role)
            parsing = None if parsed is not None else asyncio.ensure_future(self._parse(text, role))
            try:
                if parsing is not None:
                    await asyncio.shield(parsing)
            finally:  # the caller may be gone by now, but the call was paid for
                parsed = parsed if parsing is None else await parsing
                assert parsed is not None
                reply = Reply(parsed.value, text, answered.completion, _is_malformed(role, parsed), parsed.repaired)
                self._book(asked, answered, reply)
        return reply

    async def complete(self, call: ForeignCall) -> CompletedAttempt:
        """Make a call whose request another program wrote: its reply is not parsed, and no malformed one asked again.

        Raises:
            BackboneError: the server cannot be reached, or refuses.
            RuntimeError: called outside a call scope.
        """
        shared = self._shared
        role = foreign_role(shared.accepted.config, call)
        scope = _current_scope(role)
        # At temperature 0 another seed would give the same reply; a server that is sent none has one of its own.
        varied = 0 if effective_temperature(shared.accepted.config, role) == 0 else call.attempt
        seed = stable_seed(shared.run_seed, self._conversation_id, call.role, call.key, varied)

        def write(config: BackboneConfig) -> WireRequest:
            return foreign_request(config, shared.dialect, call, role, seed)

        with ExitStack() as in_flight:
            asked = _Asked(role, call.key, call.attempt, scope, in_flight)
            answered = await self._accepted(write, asked)
            completion = answered.completion
            self._book(asked, answered, Reply(None, _said(completion), completion))
        return answered

    def _parse_at_once(self, text: str, role: Role) -> Parsed | None:
        if role.schema is None:
            return Parsed(None)
        repair = role.reading.repair and self._shared.config.json_repair
        schema = role.accepts or role.schema
        return parse_at_once(self._bounds(), text, schema, repair=repair, cut=role.reading.cut)

    async def _parse(self, text: str, role: Role) -> Parsed:
        schema = role.accepts or role.schema or {}
        return await parse_apart(self._bounds(), text, schema, cut=role.reading.cut)

    def _bounds(self) -> Bounds:
        return Bounds(self._shared.config.max_reply_chars, self._shared.config.max_parse_s)

    async def _accepted(self, write: Callable[[BackboneConfig], WireRequest], asked: _Asked) -> CompletedAttempt:
        """Get a completion; of a server that refuses a field by a request that is written without it.

        External servers only: what managed servers accept is known.
        """
        accepted = self._shared.accepted
        while True:
            config = accepted.config
            request = write(config)
            body = accepted.body(request.body)
            request = request if body is request.body else WireRequest.of(request.path, body, request.unsent_seed)
            try:
                return await self._answer(request, asked)
            except RequestRefusedError as error:
                others = self._shared.dialect in OF_OTHERS
                if not others or not accepted.adapt(config, request.body, refusal_words(error)):
                    raise

    async def _probe(self) -> None:
        """See that the server takes what the user set, before anything large is sent to it.

        Raises:
            BackboneUnusableError: it does not.
        """
        shared = self._shared
        accepted = shared.accepted
        async with accepted.probing:
            role = None if accepted.probed or shared.dialect not in OF_OTHERS else probe_role(accepted.config)
            while role is not None:
                request = make_request(accepted.config, shared.dialect, role, role.prompt.text, shared.run_seed)
                try:
                    await shared.transport.send(request.path, request.body, lambda payload, seconds: None)
                    role = None
                except RequestRefusedError as error:
                    role = role if accepted.adapt(accepted.config, request.body, refusal_words(error)) else None
            accepted.probed = True

    async def _answer(self, request: WireRequest, asked: _Asked) -> CompletedAttempt:
        """Get a completion from the cache or the server."""
        digest = request.digest(self._shared.model_text)
        try:
            if self._shared.cache is None or asked.scope.fresh:
                answered = await self._send(request, digest, asked)
            else:
                answered = await self._fetch(self._shared.cache, request, digest, asked)
        except ContextLengthError as error:
            raise ContextLengthError(await self._explain_length(request, asked, str(error))) from error
        except BackboneError as error:
            kind = next((one for one in _KINDS if isinstance(error, one)), BackboneError)
            raise kind(f"{self._where(asked)}: {error}") from error
        return self._noted(answered, request)

    async def _fetch(self, cache: ReplyCache, request: WireRequest, digest: str, asked: _Asked) -> CompletedAttempt:
        made: list[CompletedAttempt] = []

        async def call() -> Completion:
            made.append(await self._send(request, digest, asked))
            return made[0].completion

        completion, hit = await cache.fetch(digest, call)
        return CompletedAttempt(completion, digest, cache_hit=True) if hit else made[0]

    def _noted(self, answered: CompletedAttempt, request: WireRequest) -> CompletedAttempt:
        """Note, and say once, that the server read only a part of a prompt."""
        if not is_shortened(answered.completion, prompt_text(request.body)):
            return answered
        if not self._shared.counters.shortened:
            logger.warning(
                "backbone %s: the server read %d tokens of a prompt of %d words, so it truncated the prompt; give it "
                "a context of %d tokens (Ollama: num_ctx, vLLM: --max-model-len), or lower backbone.context_length; "
                "further such prompts are counted",
                self._shared.config.name, answered.completion.prompt_tokens,
                len(prompt_text(request.body).split()), self.context_length,
            )  # fmt: skip
        self._shared.counters.shortened += 1
        return replace(answered, shortened=True)

    async def _send(self, request: WireRequest, digest: str, asked: _Asked) -> CompletedAttempt:
        shared = self._shared
        if shared.transport.takes_later(asked.scope):  # one batch, however many calls there are
            sent = await self._exchange(request, asked, later=digest)
            return CompletedAttempt(sent.reply, digest, False, 0.0, sent.retries, sent.endpoint, batched=True)
        async with shared.limiter.slot(asked.scope.phase) as waited:
            sent = await self._exchange(request, asked)
        return CompletedAttempt(sent.reply, digest, False, waited, sent.retries, sent.endpoint)

    async def _exchange(self, request: WireRequest, asked: _Asked, later: str = "") -> Sent[Completion]:
        """Send a request, if the run may still spend on it.

        One that a filter withheld has a reply, which says so, as where the reply was withheld.

        Raises:
            BudgetSpentError: the run may not spend more.
        """
        shared, meter = self._shared, self._shared.meter
        with ExitStack() as counted:  # out of the budget's count where it fails: it may be made again in another form
            if meter is not None:
                expected = self._expected(request, meter) if later else Expected()
                await meter.budget.begin(expected)
                counted.callback(meter.budget.end, expected)
            begun = perf_counter()
            if not shared.accepted.probed:
                await self._probe()
            generated = ""

            def read(payload: Any, seconds: float) -> Completion:
                nonlocal generated
                try:
                    completion = read_completion(payload, seconds)
                except MalformedReplyError:
                    self._count_rejected(asked, payload, seconds, batch=bool(later))
                    raise
                generated = generated_text(payload) if completion.estimated else ""
                return completion

            try:
                sent = await shared.transport.send(
                    request.path, request.body, read, written=Written(request.text, later),
                    affinity=self._conversation_id, largest=largest_reply(shared.config, request.body),
                )  # fmt: skip
            except PromptWithheldError as error:
                sent = Sent(Completion("", 0, 0, perf_counter() - begun, "content_filter", refusal=str(error)), 0, "")
            if sent.reply.estimated:
                prompt = prompt_text(request.body)
                sent = sent._replace(reply=await with_counted_tokens(sent.reply, prompt, generated, self.count_tokens))
            if meter is not None:
                spent = sent.reply.prompt_tokens, sent.reply.completion_tokens, sent.reply.cached_tokens
                meter.spend(*spent, batch=bool(later))
            asked.in_flight.push(counted.pop_all())
        return sent

    def _count_tokens(self, prompt: int, reply: int, cached: int | None, *, batch: bool) -> None:
        counters = self._shared.counters
        for counts in (counters, counters.batched) if batch else (counters,):
            counts.prompt_tokens += prompt
            counts.completion_tokens += reply
            counts.cached_tokens += cached or 0

    def _count_rejected(self, asked: _Asked, payload: Any, seconds: float, *, batch: bool) -> None:
        """Count the tokens of a reply that is asked for again: its server was paid for them."""
        usage = payload.get("usage") if isinstance(payload, Mapping) else None
        prompt, reply, cached, _ = read_usage(usage, says_something=False)
        self._count_tokens(prompt, reply, cached, batch=batch)
        if self._shared.meter is not None:
            self._shared.meter.spend(prompt, reply, cached, batch=batch)
        if self._shared.on_rejected is not None and (prompt or reply):
            none = Completion("", prompt, reply, seconds, "error", cached_tokens=cached)
            attempt = CompletedAttempt(none, request_hash="", cache_hit=False, batched=batch)
            self._shared.on_rejected(self._record(asked, attempt, Reply(None, "", none)))

    def _expected(self, request: WireRequest, meter: SpendingMeter) -> Expected:
        """Return the most that a call can cost."""
        reply = asked_tokens(request.body) or self._shared.config.window
        return meter.expected(estimated_tokens(prompt_text(request.body)), reply)

    async def _explain_length(self, request: WireRequest, asked: _Asked, server: str) -> str:
        prompt = prompt_text(request.body)
        try:
            size = f"{await self._shared.tokens.count(prompt)} tokens"
        except BackboneError:
            size = f"{len(prompt)} characters"
        window = stated_window(server)
        context = f"context of {self.context_length} tokens (backbone.context_length)"
        remedy = "retrieve less, lower the role's max_tokens, or choose a backbone with a longer context"
        if window is not None and window < self.context_length:
            context = f"server's context of {window} tokens, where backbone.context_length says {self.context_length}"
            remedy = f"set backbone.context_length={window}, or start the server with a longer one"
        return (
            f"{self._where(asked)}: a prompt of {size} and up to {asked.role.max_tokens} new tokens do not fit into "
            f"the {context}; {remedy}. The server says: {server}"
        )

    def _where(self, asked: _Asked) -> str:
        return f"role {asked.role.name}, {asked.key}, conversation {self._conversation_id}"

    def _book(self, asked: _Asked, answered: CompletedAttempt, reply: Reply) -> None:
        """Count the attempt and write its row of the ledger."""
        shared, completion = self._shared, answered.completion
        shared.counters.calls += 1
        if answered.cache_hit:
            shared.counters.cache_hits += 1
        else:
            tokens = completion.prompt_tokens, completion.completion_tokens, completion.cached_tokens
            self._count_tokens(*tokens, batch=answered.batched)
        if shared.on_call is not None:
            shared.on_call(self._record(asked, answered, reply))

    def _record(self, asked: _Asked, answered: CompletedAttempt, reply: Reply) -> CallRecord:
        completion = answered.completion
        return CallRecord(
            conversation_id=self._conversation_id,
            phase=asked.scope.phase,
            role=asked.role.name,
            key=asked.key,
            item=asked.scope.item,
            attempt=asked.attempt,
            prompt_tokens=completion.prompt_tokens,
            completion_tokens=completion.completion_tokens,
            seconds=completion.seconds,
            queue_seconds=answered.queue_seconds,
            finish_reason=completion.finish_reason,
            cache_hit=answered.cache_hit,
            malformed=reply.malformed,
            repaired=reply.repaired,
            transport_retries=answered.transport_retries,
            request_hash=answered.request_hash,
            endpoint=answered.endpoint,
            cached_tokens=None if answered.cache_hit else completion.cached_tokens,
            outcome=reply.outcome,
            thought=read_text(completion.text).rule,
            estimated=completion.estimated,
            shortened=answered.shortened,
            batched=answered.batched,
        )


def _said(completion: Completion) -> str:
    """Return the text of a reply without its reasoning; empty if the reply was withheld."""
    return "" if is_withheld(completion.finish_reason) else strip_thinking(completion.text)


def _is_malformed(role: Role, parsed: Parsed) -> bool:
    return role.schema is not None and parsed.value is None


def _current_scope(role: Role) -> CallScope:
    try:
        return call_scope.get()
    except LookupError as error:
        raise RuntimeError(
            f"role {role.name} was asked outside a call scope; set memsys.llm.scope.call_scope around the step"
        ) from error
