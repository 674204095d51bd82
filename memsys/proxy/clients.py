"""Foreign programs that may use the proxy: each has a token, a place in the run, and its first failure."""

import asyncio
import hmac
import logging
import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from memsys.errors import MemsysError
from memsys.llm.attempt import CompletedAttempt
from memsys.llm.passthrough import ForeignCall
from memsys.llm.scope import Phase
from memsys.proxy.requests import CompletionRequest

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProxyScope:
    """Step of a program, as the ledger records it.

    Attributes:
        conversation_id: part of every seed.
        phase: of the run.
        item: id of the unit or the question.
    """

    conversation_id: str = ""
    phase: Phase = "write"
    item: str = ""


@dataclass(eq=False, slots=True)
class AskedReply:
    """A reply that a program asked for and has not got yet.

    Attributes:
        place: step, request and number of choices; equal for equal requests.
        completed: one per choice.
        left: whether the program has hung up.
    """

    place: tuple[ProxyScope, str, int]
    completed: asyncio.Future[list[CompletedAttempt]]
    left: Callable[[], bool]


@dataclass(slots=True)
class ProxyClient:
    """A program with access.

    Attributes:
        name: in messages.
        token: what it shows, in its URL or as its key.
        scope: of calls that name no other; who drives the program sets it.
        failure: why the first request that got an error got none of what it asked for: a call that failed, a request
            that was refused, a fault of the proxy. Programs continue without a reply; who drives them must not. A
            request to an address that is not served is none: a program may try which ones are.
        embedded: texts that were embedded for it.
    """

    name: str
    token: str
    scope: ProxyScope = ProxyScope()
    failure: MemsysError | None = None
    embedded: int = 0
    _made: Counter[tuple[ProxyScope, str]] = field(default_factory=Counter)
    _said: set[str] = field(default_factory=set)
    _asked: defaultdict[tuple[ProxyScope, str, int], list[AskedReply]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def ask(
        self,
        request: CompletionRequest,
        scope: ProxyScope,
        make: Callable[[Sequence[ForeignCall]], "asyncio.Future[list[CompletedAttempt]]"],
        left: Callable[[], bool],
    ) -> AskedReply:
        """Ask for a reply: for that of an equal request whose sender hung up before it had it, else for another sample.

        A program whose patience is shorter than the backbone's time hangs up and asks again. What it gets then is what
        it would have got, and it is booked once; a run that is taken up, whose replies are there at once, goes the
        same way.

        Args:
            request: what is asked.
            scope: of the call.
            make: makes the calls.
            left: whether the sender has hung up.
        """
        place = (scope, request.call.key, request.choices)
        waiting = self._asked[place]
        for one in waiting:
            if one.left():
                one.left = left
                self.complain("it disconnected and retried; it gets the reply to its first request")
                return one
        waiting.append(AskedReply(place, make(self.calls(request, scope)), left))
        return waiting[-1]

    def got(self, reply: AskedReply) -> None:
        """Record that a reply has reached the program, or that there is none; may be called twice."""
        waiting = self._asked.get(reply.place, [])
        if reply in waiting:
            waiting.remove(reply)
        if not waiting:
            self._asked.pop(reply.place, None)

    def calls(self, request: CompletionRequest, scope: ProxyScope) -> list[ForeignCall]:
        """Return the calls of a request, one per choice; a call repeated in this scope gets another seed."""
        place = (scope, request.call.key)
        first = self._made[place]
        self._made[place] += request.choices
        return [replace(request.call, attempt=first + number) for number in range(request.choices)]

    def begin(self, scope: ProxyScope) -> None:
        """Go on to another step, or to one again: equal requests that were made before are no repetitions."""
        self.scope = scope
        self._made.clear()
        self._asked.clear()

    def complain(self, message: str) -> None:
        """Write a message about the program to the log, each once."""
        if message not in self._said:
            self._said.add(message)
            logger.warning("%s: %s", self.name, message)


class ProxyClients:
    """All programs with access."""

    def __init__(self) -> None:
        self._clients: list[ProxyClient] = []

    def admit(self, name: str, scope: ProxyScope | None = None) -> ProxyClient:
        """Give a program access."""
        client = ProxyClient(name, secrets.token_urlsafe(24), scope or ProxyScope())
        self._clients.append(client)
        return client

    def find(self, token: str) -> ProxyClient | None:
        """Return the program with this token."""
        shown = token.encode("utf-8", "surrogateescape")  # of a header, in which any bytes may come
        return next((one for one in self._clients if hmac.compare_digest(one.token.encode(), shown)), None)
