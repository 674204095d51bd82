"""Cut a text out of Python source by its place in the syntax tree; the source is parsed, never run.

What is cut is a string expression: constants, f-strings, sums of them, and calls that only wrap a string
(``Template("...")``). What it inserts becomes a :class:`Slot` with the source of the inserted expression.
"""

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from string import Formatter
from typing import Literal

from memsys.errors import DataError

#: ``plain``: braces of constants are text; ``format``: they are ``str.format`` fields.
Syntax = Literal["plain", "format"]
Branch = Literal["body", "else"]

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class Cut:
    """Place of a text in a Python file.

    Attributes:
        scope: dotted classes and functions around it, such as ``Note.analyse``; empty for the module itself.
        assign: source of the target that it is assigned or added to, such as ``prompt`` or ``self.prompt``;
            empty: every string expression of the scope that has white space counts, docstrings aside.
        nth: which of those, in the order of the source; negative counts from the end.
        branch: which side of ``a if condition else b`` is meant.
        syntax: what braces in its constants are.
        cell: which cell of a notebook; ``None`` for a Python file.
        whole: the file is not code but the text itself, white space around it aside.
    """

    scope: str = ""
    assign: str = ""
    nth: int = 0
    branch: Branch | None = None
    syntax: Syntax = "plain"
    cell: int | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Slot:
    """A place where a text inserts a value: the source of the expression, or the name or number of the format field."""

    source: str


Segment = str | Slot


@dataclass(frozen=True, slots=True)
class Piece:
    """An extracted text: its source in the file, and the text that the source makes."""

    source: str
    segments: tuple[Segment, ...]


def cut(content: str, place: Cut, file: str) -> Piece:
    """Cut one text.

    Args:
        content: of a Python file, of a notebook where ``place.cell`` is given, or of a text where ``place.whole`` is.
        place: where the text is.
        file: its name, for errors.

    Raises:
        DataError: the source is not Python, has nothing at that place, or what is there is no string expression.
    """
    if place.whole:
        return Piece(content, (content.strip(),))
    code = content if place.cell is None else cell_source(content, place.cell, file)
    try:
        tree: ast.AST = ast.parse(code)
    except SyntaxError as error:
        raise DataError(f"{file}: line {error.lineno} is not Python that can be parsed: {error.msg}") from error
    found = list(_candidates(find_scope(tree, place.scope, file), place.assign))
    if not -len(found) <= place.nth < len(found):
        what = f"texts assigned to {place.assign}" if place.assign else "texts"
        raise DataError(
            f"{file}: {place.scope or 'the module'} has {len(found)} {what}, there is no number {place.nth}"
        )
    chosen = _chosen_branch(found[place.nth], place.branch, file)
    return Piece(ast.get_source_segment(code, chosen) or "", tuple(_joined(_segments(chosen, place.syntax, file))))


def cell_source(content: str, number: int, file: str) -> str:
    """Return the source of a notebook's cell, shell commands left out.

    Raises:
        DataError: there is no such cell.
    """
    try:
        source = json.loads(content)["cells"][number]["source"]
    except (ValueError, LookupError, TypeError) as error:
        raise DataError(f"{file}: there is no cell {number} in it, or it is not a notebook") from error
    lines = source.splitlines(keepends=True) if isinstance(source, str) else source
    return "".join("\n" if line.startswith(("!", "%")) else line for line in lines)


def find_scope(tree: ast.AST, dotted: str, file: str) -> ast.AST:
    """Find a class or function by its dotted name; an empty one is the tree itself.

    Raises:
        DataError: there is no such name.
    """
    for name in filter(None, dotted.split(".")):
        inside = [node for node in _inside(tree) if isinstance(node, _SCOPES) and node.name == name]
        if not inside:
            raise DataError(f"{file}: there is no {name} of {dotted} in it")
        tree = inside[0]
    return tree


def _inside(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a scope in the order of the source, those of inner functions and classes left out."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, _SCOPES):
            yield from _inside(child)


def _candidates(scope: ast.AST, target: str) -> Iterator[ast.expr]:
    if not target:
        yield from sorted(_texts(scope), key=lambda node: (node.lineno, node.col_offset))
        return
    for node in _inside(scope):
        if isinstance(node, ast.Assign):
            targets: list[ast.expr] = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        else:
            continue
        if node.value is not None and target in map(ast.unparse, targets):
            yield node.value


def _texts(scope: ast.AST) -> Iterator[ast.expr]:
    """Yield the string expressions of more than a word that are not part of a larger one."""
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, _SCOPES) or (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):
            continue
        if isinstance(child, ast.expr) and _is_text(child):
            if _has_space(child):
                yield child
        else:
            yield from _texts(child)


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add) and (_is_text(node.left) or _is_text(node.right))
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _has_space(node: ast.expr) -> bool:
    constants = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
    return any(isinstance(value, str) and any(map(str.isspace, value)) for value in constants)


def _chosen_branch(node: ast.expr, branch: Branch | None, file: str) -> ast.expr:
    if not isinstance(node, ast.IfExp):
        return node
    if branch is None:
        raise DataError(f"{file}, line {node.lineno}: the text depends on a condition; say branch: body or else")
    return node.body if branch == "body" else node.orelse


def _segments(node: ast.expr, syntax: Syntax, file: str) -> Iterator[Segment]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from _constant(node.value, syntax, file)
    elif isinstance(node, ast.JoinedStr):
        for part in node.values:
            if isinstance(part, ast.Constant):
                yield str(part.value)
            elif isinstance(part, ast.FormattedValue):
                yield Slot(ast.unparse(part.value))
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _segments(node.left, syntax, file)
        yield from _segments(node.right, syntax, file)
    elif isinstance(node, ast.Call) and len(node.args) == 1 and ast.unparse(node.func) == "Template":
        yield from _segments(node.args[0], syntax, file)
    elif isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call):
        yield Slot(ast.unparse(node))
    else:
        raise DataError(f"{file}, line {node.lineno}: {ast.unparse(node)[:80]!r} is not text that can be cut")


def _constant(text: str, syntax: Syntax, file: str) -> Iterator[Segment]:
    if syntax == "plain":
        yield text
        return
    try:
        number = count()
        for literal, field, _, _ in Formatter().parse(text):
            yield literal
            if field is not None:
                yield Slot(field or str(next(number)))
    except ValueError as error:
        raise DataError(f"{file}: a text is not a str.format template: {error}") from error


def _joined(segments: Iterator[Segment]) -> Iterator[Segment]:
    """Join neighbouring texts; drop empty ones."""
    text = ""
    for segment in segments:
        if isinstance(segment, str):
            text += segment
            continue
        if text:
            yield text
        text = ""
        yield segment
    if text:
        yield text
