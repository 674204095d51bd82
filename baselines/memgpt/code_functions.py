"""The functions of the released agent: Python functions that are called with whatever arguments the model wrote."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from baselines.memgpt.code_store import FoundPage, ReleasedStore
from baselines.memgpt.core import FunctionFailedError
from baselines.memgpt.functions import CallChain, FunctionResult
from baselines.memgpt.reading import FunctionCall
from baselines.memgpt.roles import ARGUMENTS, TEXTS
from baselines.memgpt.rules import SEND, AgentRules, FunctionName
from baselines.memgpt.storage import MemGptRecord
from memsys.embedding.contract import Embedder

#: Arguments that a call may leave out.
_OPTIONAL = frozenset({"page"})
_HEARTBEAT = "request_heartbeat"
_Run = Callable[[Mapping[str, Any], CallChain], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class ReleasedFunctions:
    """The functions on one agent's memory.

    Attributes:
        store: the memory.
        embedder: for new notes.
        rules: of calls.
        messages: what the agent said with ``send_message``, in order; changed here.
    """

    store: ReleasedStore
    embedder: Embedder
    rules: AgentRules
    messages: list[Any]

    async def run(self, call: FunctionCall, chain: CallChain) -> FunctionResult:
        """Run a call; whatever is wrong with it is a failed result, which says what."""
        try:
            text = await self._checked(call, chain)
        except FunctionFailedError as error:
            chain.failures.append(error.reason)
            return FunctionResult(False, error.text)
        chain.calls.append(call.name)
        return FunctionResult(True, text)

    async def _checked(self, call: FunctionCall, chain: CallChain) -> str:
        if not call.name:
            raise FunctionFailedError("unreadable", TEXTS("unreadable"))
        runs: Mapping[FunctionName, _Run] = {
            "send_message": self._send,
            "core_memory_append": self._append,
            "core_memory_replace": self._replace,
            "conversation_search": self._search,
            "conversation_search_date": self._search_days,
            "archival_memory_insert": self._insert,
            "archival_memory_search": self._search_notes,
        }
        name = next((known for known in chain.offered if known == call.name), None)
        if name is None:
            known = ", ".join(chain.offered)
            raise FunctionFailedError("unknown_function", TEXTS("unknown_function", name=call.name, known=known))
        args, wanted = _given(call), ARGUMENTS[name]
        if not set(wanted) - _OPTIONAL <= set(args):
            given = ", ".join(args) or TEXTS("no_arguments")
            words = TEXTS("wrong_arguments", function=name, wanted=", ".join(wanted), given=given)
            raise FunctionFailedError("bad_argument", words)
        try:
            return await runs[name](args, chain)
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise FunctionFailedError("bad_argument", TEXTS("not_done", function=name, problem=error)) from error

    async def _send(self, args: Mapping[str, Any], chain: CallChain) -> str:
        self.messages.append(args["message"])
        return TEXTS("done")

    async def _append(self, args: Mapping[str, Any], chain: CallChain) -> str:
        self.store.core.append(args["name"], _added(args["content"]), tuple(chain.sources))
        self.store.rebuild()
        return TEXTS("done")

    async def _replace(self, args: Mapping[str, Any], chain: CallChain) -> str:
        old, new = _added(args["old_content"]), _added(args["new_content"])
        self.store.core.replace(args["name"], old, new, tuple(chain.sources), most=-1)
        self.store.rebuild()
        return TEXTS("done")

    async def _insert(self, args: Mapping[str, Any], chain: CallChain) -> str:
        content, notes = args["content"], self.store.archival
        if isinstance(content, str):
            record = MemGptRecord(f"archival_{len(notes.records)}", chain.date, content, tuple(chain.sources))
            notes.add([record], await self.embedder.embed([content]))
        return TEXTS("done")

    async def _search(self, args: Mapping[str, Any], chain: CallChain) -> str:
        return _taken(chain, self.store.search_recall(args["query"], _page(args)))

    async def _search_days(self, args: Mapping[str, Any], chain: CallChain) -> str:
        return _taken(chain, self.store.search_days(args["start_date"], args["end_date"], _page(args)))

    async def _search_notes(self, args: Mapping[str, Any], chain: CallChain) -> str:
        return _taken(chain, await self.store.search_notes(_added(args["query"]), _page(args)))


def _added(text: Any) -> str:
    """Check a text that is joined with another and return it.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(text, str):
        raise TypeError(f"{text!r} is not text")
    return text


def _taken(chain: CallChain, page: FoundPage) -> str:
    chain.take_records(page.found)
    return page.shown


def _page(args: Mapping[str, Any]) -> int:
    """Return the page as the release reads it: the first one where none is given, even in words."""
    given = args.get("page")
    if given is None or (isinstance(given, str) and given.lower().strip() == "none"):
        return 0
    return int(given)


def _given(call: FunctionCall) -> dict[str, Any]:
    """Return the function's own arguments; with one schema for all functions a model also fills in others."""
    return {key: value for key, value in call.args.items() if key in ARGUMENTS.get(_known(call.name), ())}


def _known(name: str) -> FunctionName:
    return next((known for known in ARGUMENTS if known == name), SEND)


def as_queued(call: FunctionCall) -> FunctionCall:
    """Return the call as the queue keeps it: without arguments that its function does not take."""
    if call.name not in ARGUMENTS:
        return call
    asked = {key: value for key, value in call.args.items() if key == _HEARTBEAT}
    return FunctionCall(call.name, {**_given(call), **asked}, call.thought)


def asks_again(call: FunctionCall) -> bool:
    """Return whether a call requests another step, by a true value and not by the word; a message may too."""
    return call.args.get(_HEARTBEAT) is True
