"""Results that depend on a schema alone, made once: roles hand over the same schema at each call."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from memsys.vocabulary import Json

T = TypeVar("T")

_MOST = 256


class OncePerSchema(Generic[T]):
    """A function of a schema that remembers what it made, by the identity of the schemas, which it keeps alive.

    Args:
        make: the function; what it takes besides a schema can be hashed.
    """

    def __init__(self, make: Callable[..., T]) -> None:
        self._make = make
        self._made: dict[tuple[Any, ...], tuple[Mapping[str, Json], T]] = {}

    def __call__(self, schema: Mapping[str, Json], *more: Any) -> T:
        """Return what is made of a schema."""
        key = (id(schema), *more)
        found = self._made.get(key)
        if found is None:
            if len(self._made) >= _MOST:
                self._made.clear()
            found = self._made[key] = (schema, self._make(schema, *more))
        return found[1]
