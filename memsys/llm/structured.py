"""From a model's text to the object its role asked for.

The ladder: parse; cut to the outermost braces; let ``json_repair`` close what was left open. Every
object must validate against the role's schema. Whatever needed more than the first step counts as repaired. Whether
an empty string or list is an answer is the memory system's business, not the parser's.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from memsys.llm.schemas import OncePerSchema
from memsys.llm.values import MAX_DEPTH, check_value
from memsys.vocabulary import Json


@dataclass(frozen=True, slots=True)
class Parsed:
    """Result of parsing a text.

    Attributes:
        value: the object; ``None`` when there is no valid one.
        repaired: the object needed more than parsing.
        problem: why there is none, in a few words.
    """

    value: Mapping[str, Any] | None
    repaired: bool = False
    problem: str = ""


def clean(text: str) -> str:
    """Replace half surrogate pairs, which small models emit as JSON escapes and no file can hold."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def parse_object(text: str, schema: Mapping[str, Json], *, repair: bool, cut: bool = True) -> Parsed:
    """Climb the ladder.

    Args:
        text: the reply without thinking.
        schema: JSON schema of the object.
        repair: whether the last step may be taken.
        cut: whether the outermost braces may be cut out.
    """
    value = _loads(text)
    problem = _problem(value, schema)
    if not problem:
        return Parsed(value)
    start, end = text.find("{"), text.rfind("}") + 1
    candidates = [_loads(text[start:end])] if cut and 0 <= start < end else []
    if repair and (start == 0 or (cut and start > 0)):
        candidates.append(_repair(text[start:]))
    for candidate in candidates:
        if not _problem(candidate, schema):
            return Parsed(candidate, repaired=True)
    return Parsed(None, problem=problem)


def parse_bare_list(text: str, name: str, schema: Mapping[str, Json]) -> Mapping[str, Any] | None:
    """Read a reply that is only a list as the object that should contain it; ``None`` if it is not a list.

    Args:
        text: the list.
        name: under which the object holds it.
        schema: JSON schema of the object.
    """
    return parse_object(f'{{"{name}": {text}}}', schema, repair=False, cut=False).value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _loads(text: str) -> Any:
    """Parse JSON; ``None`` if it is not JSON (or the value ``null``, which no role asks for)."""
    try:
        return _clean_tree(_DECODER.decode(text))
    except (ValueError, RecursionError):
        return None


def _repair(text: str) -> Any:
    import json_repair

    try:
        return _clean_tree(json_repair.loads(text, skip_json_loads=True))
    except (ValueError, RecursionError):
        return None


def _clean_tree(value: Any, depth: int = 0) -> Any:
    """Clean every text; a ``ValueError`` where a value cannot be used, see :func:`memsys.llm.values.check_value`."""
    if isinstance(value, str) and depth <= MAX_DEPTH:
        return clean(value)
    check_value(value, depth)
    if isinstance(value, list):
        return [_clean_tree(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {clean(name): _clean_tree(item, depth + 1) for name, item in value.items()}
    return value


def _problem(value: Any, schema: Mapping[str, Json]) -> str:
    """Say why a value is not what the schema asks for; empty when it is."""
    if not isinstance(value, dict):
        return "not a JSON object"
    validator = _validator(schema)
    if validator.accepts(value):
        return ""
    for error in validator.explains(value):
        return f"{error.json_path}: {error.message}"[:200]
    return ""


class _Validator(NamedTuple):
    """A compiled schema: ``accepts`` takes a hundredth of the time of ``explains``, whose words messages quote."""

    accepts: Callable[[Any], bool]
    explains: Callable[[Any], Iterator[Any]]


def _compiled(schema: Mapping[str, Json]) -> _Validator:
    import jsonschema_rs
    from jsonschema import Draft202012Validator

    plain = json.loads(json.dumps(schema))
    return _Validator(jsonschema_rs.Draft202012Validator(plain).is_valid, Draft202012Validator(plain).iter_errors)


_validator = OncePerSchema(_compiled)
