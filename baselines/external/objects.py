"""Python objects as memories: their methods are called by what their signatures take."""

import asyncio
import copy
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from baselines.external.config import ObjectConfig
from baselines.external.found import ITEM_KEY, read_found, read_ids
from baselines.external.given import ADDS, USERS, find_object, is_memory, is_search_function, needed_by, parameters_of
from baselines.external.store import Found, Item
from memsys.credentials import redacted
from memsys.dates import parse_date
from memsys.errors import ConfigError, MemoryProtocolError, MemoryRaisedError, MemsysError, quoted
from memsys.vocabulary import Json

#: Names that a method that searches goes by, most telling first.
_SEARCHES = ("search", "similarity_search", "retrieve", "aretrieve", "invoke", "query")
#: Names of parameters by what they take.
_MESSAGES = ("messages", "turns", "conversation", "history")
_TEXT_LISTS = ("texts",)
_DOCUMENTS = ("document", "documents", "nodes")
_COUNTS = ("k", "top_k", "limit", "n", "num_results", "n_results", "max_results", "similarity_top_k")
_DATES = ("date", "timestamp", "created_at", "date_time", "time")
_METADATA = ("metadata", "meta")
_IDS = ("id", "key", "doc_id", "memory_id")
_NO_DATE = datetime(1970, 1, 1, tzinfo=UTC)


class ObjectStore:
    """A Python object as the memory of one conversation."""

    def __init__(self, config: ObjectConfig, conversation_id: str) -> None:
        self._config, self._user = config, conversation_id
        self._object: Any = None
        self._own = False
        self._items: list[Item] = []
        self._searches: Callable[..., Any] | None = None
        self._one_at_a_time = asyncio.Lock()

    async def open(self, lent: Mapping[str, Json]) -> None:
        """Make the object of this conversation.

        Raises:
            ConfigError: there is no such object, or it cannot be a memory.
        """
        given = find_object(self._config.object, self._config.given)
        if is_search_function(given):
            self._searches = given
            return
        self._object = await _of_conversation(given, self._config, self._user, lent)
        self._own = self._object is not given
        add_method(self._object), search_method(self._object, self._config.k)

    async def add(self, item: Item) -> Sequence[str]:
        """Call the object's ``add``."""
        self._items.append(item)
        if self._searches is not None:
            return ()
        add = add_method(self._object)
        arguments, named = bind_add(add, item, self._user)
        return read_ids(await self._called(add, arguments, named))

    async def settle(self) -> None:
        """Do nothing: what was added can be found."""

    async def search(self, query: str, k: int) -> Sequence[Found]:
        """Call the object's search, or the function with all that was said."""
        if self._searches is not None:
            said = [message for item in self._items for message in messages_of(item)]
            given = await self._called(self._searches, (said, query), filled(self._searches, 2, [(_COUNTS, k)]))
            return read_found(given, f"what {_name(self._searches)}() returned")
        search = search_method(self._object, k)
        offered: list[tuple[Sequence[str], Any]] = [(USERS, self._user), (("group_ids",), [self._user]), (_COUNTS, k)]
        if not set(USERS) & set(parameters_of(search)):  # Mem0 from version 2 on
            by = next((name for name in USERS if name in parameters_of(add_method(self._object))), "")
            offered += [(("filters",), {by: self._user})] if by else []
        given = await self._called(search, (query,), filled(search, 1, offered))
        return read_found(given, f"what {_name(search)}() returned")

    def statistics(self) -> Mapping[str, Json]:
        """Return nothing: an object has no statistics."""
        return {}

    async def close(self) -> None:
        """Let the object go; one that was made for this conversation is closed, if it can be."""
        given, self._object = self._object, None
        ends = next((end for name in ("aclose", "close") if callable(end := getattr(given, name, None))), None)
        if self._own and ends is not None and not needed_by(ends):
            await self._called(ends, (), {})

    async def _called(self, function: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Call a function in a thread, one call at a time, as it may not be thread-safe; await a coroutine function.

        Raises:
            MemoryRaisedError: it raised something.
        """
        if inspect.iscoroutinefunction(function):
            return await _guarded(function, function(*arguments, **named))
        async with self._one_at_a_time:
            given = await _guarded(function, asyncio.to_thread(function, *arguments, **named))
            return await _guarded(function, given) if inspect.isawaitable(given) else given


def add_method(given: object) -> Callable[..., Any]:
    """Find the method that adds.

    Raises:
        MemoryProtocolError: there is none.
    """
    return _method(given, ADDS, "add(messages) or add(text)")


def search_method(given: Any, k: int) -> Callable[..., Any]:
    """Find the method that searches; an index of LlamaIndex is asked through a retriever of ``k`` results.

    Raises:
        MemoryProtocolError: there is none.
    """
    if callable(getattr(given, "as_retriever", None)) and not any(hasattr(given, name) for name in _SEARCHES[:3]):
        retrieve: Callable[..., Any] = given.as_retriever(similarity_top_k=k).retrieve
        return retrieve
    return _method(given, _SEARCHES, "search(query, k)")


def _method(given: object, names: Sequence[str], wanted: str) -> Callable[..., Any]:
    """Return the first method of these names that there is, of which one that needs no more than its first argument.

    LangChain's stores have a ``search`` that wants a kind of search as well, next to ``similarity_search``.
    """
    found: list[Callable[..., Any]] = [method for name in names if callable(method := getattr(given, name, None))]
    if found:
        return next((method for method in found if not needed_by(method)[1:]), found[0])
    raise MemoryProtocolError(f"{type(given).__name__} has no {wanted}; a memory has add and search")


def bind_add(add: Callable[..., Any], item: Item, user: str) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments for an object's ``add``, by the names of its parameters.

    Raises:
        MemoryProtocolError: it needs an argument that nothing here can fill.
    """
    first, *others = list(parameters_of(add)) or [""]
    metadata = {
        ITEM_KEY: item.key, "date": item.date, "speaker": item.turns[0].speaker, "session_id": item.turns[0].session_id,
    }  # fmt: skip
    offered: list[tuple[Sequence[str], Any]] = [
        (_METADATA, metadata),
        (("metadatas",), [metadata]),
        (("ids",), [item.key]),
        (_IDS, item.key),
        (_DATES, item.date),
        (("reference_time",), parse_date(item.date) or _NO_DATE),
        (("source_description",), "conversation"),
        (("name",), item.key),
        (("episode_body",), item.text),
        (("speaker",), item.turns[0].speaker),
        (("role",), _role(item, 0)),
        (USERS, user),
    ]
    if "episode_body" in others:  # Graphiti, whose first parameter is a name
        return [], filled(add, 0, offered)
    if first in _DOCUMENTS:
        return [_document(first, item, metadata)], filled(add, 1, offered)
    content: Any = item.text
    if first in _MESSAGES or _takes_list(add, first):
        content = messages_of(item)
    elif first in _TEXT_LISTS:
        content = [item.text]
    return [content], filled(add, 1, offered)


def messages_of(item: Item) -> list[dict[str, str]]:
    """Return the turns of an item as chat messages, with id and date."""
    return [
        {"role": _role(item, place), "content": text, "name": turn.speaker, "date": turn.date_time, "id": turn.turn_id}
        for place, (turn, text) in enumerate(zip(item.turns, item.texts, strict=True))
    ]


def filled(
    function: Callable[..., Any], positional: int, offered: Sequence[tuple[Sequence[str], Any]]
) -> dict[str, Any]:
    """Return those of the offered values that a function has parameters for, by name.

    Args:
        function: is called with this many arguments by position.
        positional: their number.
        offered: values, each with the names that a parameter for it may have; the first of them is taken.

    Raises:
        MemoryProtocolError: the function needs another argument.
    """
    parameters = parameters_of(function)
    free = list(parameters)[positional:]
    found = [(next((name for name in names if name in free), ""), value) for names, value in offered]
    chosen = {name: value for name, value in found if name}
    missing = [name for name in free if parameters[name].default is inspect.Parameter.empty and name not in chosen]
    if missing:
        raise MemoryProtocolError(
            f"{_name(function)}() needs {', '.join(missing)}, which nothing here fills; give "
            "it a default, or wrap the object in a class with add(text) and search(query, k)"
        )
    return chosen


async def _of_conversation(given: Any, config: ObjectConfig, user: str, lent: Mapping[str, Json]) -> Any:
    """Call a class or function; share an object that separates users, copy any other."""
    if inspect.isclass(given) or (callable(given) and not is_memory(given)):
        own = {**lent, **(config.arguments or {})}
        offered = [*(((name,), value) for name, value in own.items()), (USERS, user)]
        made = filled(given, 0, offered)
        return await _guarded(given, _made(given, made))
    methods = add_method(given), search_method(given, config.k)
    if all({*USERS, "group_ids", "filters"} & set(parameters_of(each)) for each in methods):
        return given
    try:
        return copy.deepcopy(given)
    except (TypeError, AttributeError, ValueError, NotImplementedError, copy.Error) as error:
        raise ConfigError(
            f"{type(given).__name__} cannot be copied for each conversation ({type(error).__name__}: {error}); give "
            "the class, or a function without arguments that makes an empty memory"
        ) from error


def _takes_list(function: Callable[..., Any], name: str) -> bool:
    """Return whether a parameter is declared as a list of messages."""
    declared = parameters_of(function).get(name)
    written = "" if declared is None else str(declared.annotation)
    return ("list[dict" in written or "List[Dict" in written) and "str |" not in written.partition("list")[0]


def _role(item: Item, place: int) -> str:
    return "user" if item.turns[place].speaker == item.user else "assistant"


def _document(parameter: str, item: Item, metadata: Mapping[str, Any]) -> Any:
    """Return an item as a document of LangChain (``documents``) or LlamaIndex (``document``, ``nodes``)."""
    if parameter == "documents":
        from langchain_core.documents import Document

        return [Document(page_content=item.text, metadata=dict(metadata), id=item.key)]
    from llama_index.core import Document as LlamaDocument

    made = LlamaDocument(text=item.text, id_=item.key, metadata=dict(metadata))
    return [made] if parameter == "nodes" else made


async def _made(given: Callable[..., Any], named: Mapping[str, Any]) -> Any:
    made = given(**named)
    return await made if inspect.isawaitable(made) else made


async def _guarded(function: Callable[..., Any], call: Awaitable[Any]) -> Any:
    try:
        return await call
    except MemsysError:
        raise
    except Exception as error:
        _begin_in_theirs(error)
        raise MemoryRaisedError(redacted(f"{_name(function)}() raised {quoted(error, 300)}")) from error


def _name(function: Any) -> str:
    return getattr(function, "__qualname__", type(function).__name__)


def _begin_in_theirs(error: Exception) -> None:
    """Let the traceback of an error begin in the user's code: without this module, and what calls that in a thread."""
    ours, trace = (__name__, "asyncio", "concurrent"), error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith(ours):
        trace = trace.tb_next
    error.__traceback__ = trace
