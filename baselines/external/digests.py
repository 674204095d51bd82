"""Digests of a user's memories: equal for equal source and settings."""

import hashlib
import inspect
import pickle
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

#: What pickling raises of an object that cannot be pickled.
UNPICKLABLE = (pickle.PicklingError, TypeError, AttributeError, ValueError, RuntimeError, OSError)
#: Methods of classes that say how their objects are pickled.
_PICKLED = {"__reduce__", "__reduce_ex__", "__getstate__"}
_PLAIN = (bool, int, float, complex, str, bytes)
#: Packages of this project, which a run records by version and commit.
_OURS = ("memsys", "baselines", "eval")


def digest_of(value: Any) -> str:
    """Return a digest of a class, function or object: the same in every process for equal source and settings.

    Source is that of the class with its bases, or of the function, and of the functions, classes, constants and modules
    of the user that it names; not of installed packages.

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
    if value is None or type(value) in _PLAIN:
        yield repr(value).encode("utf-8", "backslashreplace")
        return
    if id(value) in seen:
        yield b"#%d" % list(seen).index(id(value))
        return
    seen[id(value)] = value
    yield type(value).__qualname__.encode()
    for part in _inside(value):
        yield part if type(part) is bytes else b"".join(_parts(part, seen))


def _inside(value: Any) -> Iterable[Any]:
    """Return what is in a value, as values of their own and as bytes."""
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, ModuleType):
        return [value.__name__.encode(), b"" if _is_installed(value.__name__) else _source(value)]
    if inspect.isclass(value):
        return _of_class(value)
    if inspect.isroutine(value):
        return _of_function(value)
    if type(value) in {list, tuple}:
        return list(value)
    if type(value) in {set, frozenset}:
        return sorted(value, key=repr)
    if type(value) is dict:
        return [part for pair in sorted(value.items(), key=repr) for part in pair]
    if hasattr(value, "__dict__") and _is_plain(type(value)):
        return [type(value), vars(value)]
    return [type(value), pickle.dumps(value)]


def _of_class(kind: type) -> list[Any]:
    """Return a class's name, and, of one of the user, its source, its bases and what its functions name."""
    name = f"{kind.__module__}.{kind.__qualname__}".encode()
    if _is_installed(kind.__module__):
        return [name]
    members = [
        inspect.unwrap(getattr(one, "fget", None) or getattr(one, "__func__", one)) for one in vars(kind).values()
    ]
    return [name, _source(kind), *kind.__bases__, *(one for one in members if isinstance(one, FunctionType))]


def _of_function(value: Any) -> list[Any]:
    """Return a function's source, what it was given, and what it names; of a method, its object too."""
    owner = getattr(value, "__self__", None)
    function = inspect.unwrap(getattr(value, "__func__", value))
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}".encode()
    if not isinstance(function, FunctionType) or _is_installed(function.__module__):
        return [name, owner]
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return [_source(function), owner, *cells, function.__defaults__, function.__kwdefaults__, *_named(function)]


def _named(function: FunctionType) -> Iterator[Any]:
    """Yield the modules, functions, classes and constants outside of a function that its code names."""
    for name in sorted(_names(function.__code__)):
        found = function.__globals__.get(name)
        is_code = isinstance(found, ModuleType) or inspect.isclass(found) or inspect.isroutine(found)
        if is_code or _is_constant(found):
            yield found


def _is_constant(value: Any) -> bool:
    if type(value) is dict:
        return all(map(_is_constant, [*value, *value.values()]))
    return type(value) in _PLAIN or (type(value) in {list, tuple, set, frozenset} and all(map(_is_constant, value)))


def _names(code: CodeType) -> set[str]:
    return set(code.co_names).union(*(_names(one) for one in code.co_consts if isinstance(one, CodeType)))


def _is_plain(kind: type) -> bool:
    """Return whether all that an object of a class holds is in its attributes."""
    own = [vars(base) for base in kind.__mro__ if base is not object]
    return not any(attributes.get("__slots__") or _PICKLED & attributes.keys() for attributes in own)


@cache
def _is_installed(module: str) -> bool:
    """Return whether a module is of Python, of an installed package or of this project."""
    top = module.partition(".")[0]
    if top in _OURS:
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:  # built in, or a notebook
        return top in sys.stdlib_module_names
    places = [*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages()]
    return any(Path(file).resolve().is_relative_to(Path(place).resolve()) for place in places)


def _source(value: Any) -> bytes:
    """Return the source of a class, function or module; of a function without a file, its code."""
    try:
        return inspect.getsource(value).encode("utf-8", "backslashreplace")
    except (OSError, TypeError):  # made in an interpreter
        return _code(value.__code__) if isinstance(value, FunctionType) else b""


def _code(code: CodeType) -> bytes:
    inner = [_code(one) if isinstance(one, CodeType) else repr(one).encode() for one in code.co_consts]
    return b"\0".join([code.co_code, repr(code.co_names).encode(), *inner])
