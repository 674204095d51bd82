"""Digests of a user's memories: equal for equal source and settings."""

import hashlib
import inspect
import pickle
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

#: What pickling raises of an object that cannot be pickled.
UNPICKLABLE = (pickle.PicklingError, TypeError, AttributeError, ValueError, RuntimeError, OSError)
#: Methods of classes that say how their objects are pickled.
_PICKLED = {"__reduce__", "__reduce_ex__", "__getstate__"}


def digest_of(value: Any) -> str:
    """Return a digest of a class, function or object: the same in every process for equal source and settings.

    Raises:
        UNPICKLABLE: something in it cannot be pickled, such as a connection.
    """
    digest = hashlib.sha256()
    for part in _parts(value, {}):
        digest.update(part + b"\0")
    return digest.hexdigest()


def _parts(value: Any, seen: dict[int, Any]) -> Iterator[bytes]:
    """Yield what makes a value what it is.

    Args:
        value: of any kind.
        seen: what was met before, by id; held, so that no id is given twice.
    """
    if value is None or type(value) in {bool, int, float, complex, str, bytes}:
        yield repr(value).encode("utf-8", "backslashreplace")
        return
    if id(value) in seen:
        yield f"object {list(seen).index(id(value))}".encode()
        return
    seen[id(value)] = value
    yield type(value).__qualname__.encode()
    for part in _inside(value):
        yield part if type(part) is bytes else b"".join(_parts(part, seen))


def _inside(value: Any) -> Iterable[Any]:
    """Return what is in a value, as values of their own and as bytes."""
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if inspect.isclass(value) or inspect.isroutine(value):
        cells = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
        names = ("__defaults__", "__kwdefaults__", "__self__")
        return [_source(value), *cells, *(getattr(value, name, None) for name in names)]
    if type(value) in {list, tuple}:
        return list(value)
    if type(value) in {set, frozenset}:
        return sorted(value, key=repr)
    if type(value) is dict:
        return [part for pair in sorted(value.items(), key=repr) for part in pair]
    if hasattr(value, "__dict__") and _is_plain(type(value)):
        return [_source(type(value)), vars(value)]
    return [_source(type(value)), pickle.dumps(value)]


def _is_plain(kind: type) -> bool:
    """Return whether all that an object of a class holds is in its attributes."""
    own = [vars(base) for base in kind.__mro__ if base is not object]
    return not any(attributes.get("__slots__") or _PICKLED & attributes.keys() for attributes in own)


def _source(kind: Any) -> bytes:
    try:
        return inspect.getsource(kind).encode("utf-8", "backslashreplace")
    except (OSError, TypeError):  # made in an interpreter, or built in
        members: Mapping[str, Any] = vars(kind) if hasattr(kind, "__dict__") else {}
        return repr(sorted(members) or getattr(kind, "__qualname__", "")).encode()
