"""The shape of files for which none was named: that of their columns, or the one known shape that fits."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eval.audit.recorded.rows import PLACES_NEEDED, nodes_at, settings_found
from eval.audit.recorded.shapes import Shape, ValuePlace, column_shape, listed
from eval.loaders.trees import is_table, read_tree
from memsys.errors import DataError

#: The key that the first star of a path met.
_KEY = ValuePlace("@1")


@dataclass(frozen=True, slots=True)
class _Fit:
    """Fit of a shape: its places that no row has, and those that some row has, as (setting, path)."""

    shape: Shape
    lacking: tuple[str, ...]
    places: frozenset[tuple[str, str]]


def guess_shape(files: Sequence[Path], known: Iterable[Shape]) -> Shape:
    """Return the shape of some files: that of their columns, unless a known one that fits says more.

    Args:
        files: of one run; known shapes are tried on the first.
        known: shapes to choose from.

    Raises:
        DataError: no shape fits, or several do; names the nearest, with what it lacks.
    """
    fits = list(_fits(files[0], known))
    whole = _most_specific([fit for fit in fits if not fit.lacking])
    try:
        columns = _columns(files)
    except DataError as error:
        if len(whole) == 1:
            return whole[0].shape
        raise DataError(f"{error}{_nearest(whole, fits)}") from error
    places = frozenset(_places(columns))
    return next((fit.shape for fit in whole if places <= fit.places and columns.rows == fit.shape.rows), columns)


def _fits(path: Path, known: Iterable[Shape]) -> Iterator[_Fit]:
    """Try shapes on a file; those of another encoding where it is not UTF-8 text."""
    shapes = [shape for shape in known if shape.prediction != shape.gold]
    trees: dict[str, Any] = {}
    try:
        trees["utf-8"] = read_tree(path)
    except DataError:
        trees = {one: tree for one in {shape.encoding for shape in shapes} for tree in _readable(path, one)}
        if not trees:
            raise
    for shape in shapes:
        if shape.encoding in trees:
            yield from _fit(path, trees[shape.encoding], shape)


def _readable(path: Path, encoding: str) -> Iterator[Any]:
    try:
        yield read_tree(path, encoding)
    except DataError:
        return


def _fit(path: Path, tree: Any, shape: Shape) -> Iterator[_Fit]:
    """Yield how a shape fits, nothing where the path of its rows leads nowhere."""
    try:
        found = settings_found(path, tree, shape)
    except DataError:
        return
    if found:
        places = _places(shape)
        lacking = tuple(path for name, path in places if name not in found)
        yield _Fit(shape, lacking, frozenset(one for one in places if one[0] in found))


def _places(shape: Shape) -> list[tuple[str, str]]:
    """Return the settings of a shape that rows must have, each with its path."""
    named = [(name, place.path) for name in PLACES_NEEDED if (place := getattr(shape, name)) is not None]
    return named + [("verdicts", place.path) for places in shape.verdicts.values() for place in places]


def _most_specific(fits: Sequence[_Fit]) -> list[_Fit]:
    """Leave out the fits whose places another one has as well, and more."""
    return [one for one in fits if not any(one.places < other.places for other in fits)]


def _nearest(whole: Sequence[_Fit], fits: Sequence[_Fit]) -> str:
    """Return what a message says of known shapes."""
    if whole:
        return f"; the shapes {listed(fit.shape.name for fit in whole)} all fit: choose one with --shape"
    if not fits:
        return ""
    near = min(fits, key=lambda fit: len(fit.lacking) - len(fit.places))
    lacking = ", ".join(f"`{path}`" for path in near.lacking)
    return f"; of the known shapes {near.shape.name} is nearest (--shape {near.shape.name}), but no row has {lacking}"


def _columns(files: Sequence[Path]) -> Shape:
    """Return the shape of rows by the names of their columns: of all rows, since JSON leaves out what is not there.

    Raises:
        DataError: a file has no rows, or their columns do not say what is asked and answered.
    """
    trees = [read_tree(path) for path in files]
    where, outside = _place_of_rows(trees[0], files[0])
    holds: dict[str, bool] = {}
    for path, tree in zip(files, trees, strict=True):
        for found in nodes_at(path, tree, where):
            for key, value in found.node.items() if isinstance(found.node, dict) else ():
                blank = value is None or value == [] or (is_table(path) and not value.strip())
                holds[str(key)] = holds.get(str(key), False) or not blank
    if not holds:
        header = is_table(files[0]) and files[0].stat().st_size > 0
        raise DataError(f"{files[0]}: has {'a header and ' if header else ''}no rows; write one for each answer")
    shape = column_shape(list(holds), files[0], {key for key, held in holds.items() if not held}, outside)
    index = shape.conversation == _KEY and all(str(key).isdecimal() for key in trees[0])
    return replace(shape, rows=where, conversation_is="index" if index else "id")


def _place_of_rows(tree: Any, path: Path) -> tuple[str, dict[str, ValuePlace]]:
    """Return the path of the only rows that a file has, and what the keys before them are.

    Raises:
        DataError: it has none.
    """
    if isinstance(tree, list) and (not tree or isinstance(tree[0], dict)):
        return "[]", {}
    lists = [key for key, one in tree.items() if _is_rows(one)] if isinstance(tree, dict) else []
    if len(lists) == 1 and not {*"*.["} & {*lists[0]}:
        return f"{lists[0]}[]", {}
    if lists and len(lists) == len(tree):
        return "*[]", {"conversation": _KEY}
    if isinstance(tree, dict) and tree and all(isinstance(one, dict) for one in tree.values()):
        return "*", {"question_id": _KEY}
    raise DataError(f"{path}: is not a list of rows; say with --shape where the rows and their values are")


def _is_rows(node: Any) -> bool:
    return isinstance(node, list) and bool(node) and all(isinstance(one, dict) for one in node)
