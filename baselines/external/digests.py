"""Digests of a user's memories: equal for equal source and settings."""

import copyreg
import dis
import hashlib
import inspect
import pickle
import sys
from collections.abc import Iterable, Iterator
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from memsys.assets.paths import is_library

#: What pickling raises of an object that cannot be pickled.
UNPICKLABLE = (pickle.PicklingError, TypeError, AttributeError, ValueError, RuntimeError, OSError)
_PLAIN = (bool, int, float, complex, str, bytes)
#: Packages of this project, which a run records by version and commit.
_OURS = ("memsys", "baselines", "eval")


class _Named(NamedTuple):
    """A value that code names, rather than one that a memory was given."""

    value: Any


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
    if type(value) is _Named:
        try:
            yield b"".join(_parts(value.value, seen))
        except UNPICKLABLE:  # a client or a lock that a module holds
            yield type(value.value).__qualname__.encode()
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
        return _of_module(value)
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
    return _reduced(value)


def _reduced(value: Any) -> list[Any]:
    """Return what pickling an object would store, by which contents of sets and mappings have no order."""
    reduce = copyreg.dispatch_table.get(type(value))
    reduced = value.__reduce_ex__(4) if reduce is None else reduce(value)
    if isinstance(reduced, str):
        return [type(value), reduced]
    make, arguments, *rest = reduced
    state, items, pairs = [*rest[:3], None, None, None][:3]
    if isinstance(value, set | frozenset):
        arguments = frozenset(value)
    return [type(value), make, arguments, state, list(items or ()), dict(pairs or ())]


def _of_module(module: ModuleType) -> list[Any]:
    """Return a module's name, and, of one of the user, its source and the user's modules that it takes names from."""
    name = module.__name__.encode()
    if _is_installed(module.__name__):
        return [name]
    folders = [Path(folder) for folder in getattr(module, "__path__", ())]
    inside = [path.read_bytes() for folder in folders for path in sorted(folder.rglob("*.py"))]
    origins = (one if isinstance(one, ModuleType) else sys.modules.get(str(getattr(one, "__module__", "")))
               for one in vars(module).values())  # fmt: skip
    others = {one.__name__: one for one in origins if one is not None and not _is_installed(one.__name__)}
    return [name, _source(module), *inside, *(others[one] for one in sorted(others))]


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
    """Yield what a function's code names outside of it, and the user's modules that it imports."""
    for code in _codes(function.__code__):
        for name in code.co_names:
            if name in function.__globals__:
                yield _Named(function.__globals__[name])
        for step in dis.get_instructions(code):
            if step.opname == "IMPORT_NAME":
                yield from _imported(step.argval)


def _imported(name: str) -> list[bytes]:
    """Return the source of a module of the user that a function imports, without importing it."""
    top = name.partition(".")[0]
    try:
        found = find_spec(top) if top and top not in _OURS else None
    except (ImportError, ValueError):
        return []
    file = Path(found.origin) if found is not None and found.has_location and found.origin else None
    if file is None or is_library(file):
        return []
    files = sorted(file.parent.rglob("*.py")) if file.name == "__init__.py" else [file]
    return [one.read_bytes() for one in files]


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code and those of the functions in it."""
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _codes(one)


@cache
def _is_installed(module: str) -> bool:
    """Return whether a module is of Python, of an installed package or of this project."""
    top = module.partition(".")[0]
    if top in _OURS:
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:  # built in, or a notebook
        return top in sys.stdlib_module_names
    return is_library(Path(file))


def _source(value: Any) -> bytes:
    """Return the source of a class, function or module; of a function without a file, its code."""
    try:
        return inspect.getsource(value).encode("utf-8", "backslashreplace")
    except (OSError, TypeError):  # made in an interpreter
        return _code(value.__code__) if isinstance(value, FunctionType) else b""


def _code(code: CodeType) -> bytes:
    inner = [_code(one) if isinstance(one, CodeType) else repr(one).encode() for one in code.co_consts]
    return b"\0".join([code.co_code, repr(code.co_names).encode(), *inner])
