"""Punkt sentence-boundary model: Python literals in, the four tables of NLTK's ``punkt_tab`` out."""

import ast
from collections.abc import Mapping

from memsys.errors import AssetError
from memsys.vocabulary import Json


def punkt_tables(module_source: str) -> Mapping[str, str]:
    """Turn a Punkt model written as Python literals into the files ``nltk`` reads.

    The module is parsed, never executed. Rows are sorted, so the files have one checksum.

    Args:
        module_source: source of a module that assigns ``ABBREV_TYPES``, ``COLLOCATIONS``, ``SENT_STARTERS`` and
            ``ORTHO_CONTEXT``.

    Returns:
        File name to content, in the layout of ``nltk.tokenize.punkt.save_punkt_params``.

    Raises:
        AssetError: a table is missing.
    """
    literals = dict(_literals(ast.parse(module_source)))
    try:
        return {
            "abbrev_types.txt": "\n".join(sorted(literals["ABBREV_TYPES"])),
            "collocations.tab": "\n".join("\t".join(pair) for pair in sorted(literals["COLLOCATIONS"])),
            "ortho_context.tab": "\n".join(
                f"{word}\t{flags}" for word, flags in sorted(literals["ORTHO_CONTEXT"].items())
            ),
            "sent_starters.txt": "\n".join(sorted(literals["SENT_STARTERS"])),
        }
    except KeyError as error:
        raise AssetError(f"the Punkt model has no table {error}; the package's layout changed") from error


def _literals(tree: ast.Module) -> list[tuple[str, Json]]:
    found: list[tuple[str, Json]] = []
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            value = statement.value
            if isinstance(value, ast.Call) and value.args:  # frozenset((...)) and dict((...)) wrap a literal
                value = value.args[0]
            if isinstance(target, ast.Name) and isinstance(value, ast.Tuple | ast.Dict | ast.Set | ast.List):
                found.append((target.id, ast.literal_eval(value)))
    return found
