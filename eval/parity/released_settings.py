"""The settings of a release, read from its own sources: what parity runs compare the values of our presets with.

A source is parsed and never run; ``{}`` stands for the value in a piece of code as :func:`ast.unparse` writes it, such
as ``k1: float={}`` (no comments, one layout, single quotes).
"""

import ast
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from memsys.errors import ConfigError, DataError
from memsys.prompt_packs.cutting import cell_source, find_scope
from memsys.vocabulary import Json

_VALUE = r"(-?\d[\d._]*(?:e[+-]?\d+)?|'[^'\n]*'|\"[^\"\n]*\"|True|False|None|true|false|null|\[[^\]\n]*\])(?![\w.])"


@dataclass(frozen=True, slots=True)
class ReleasedSetting:
    """Place of a release's value of our setting, and the way to give its worker another.

    Attributes:
        text: code with ``{}`` in the place of the value.
        file: module of the released code (``files`` of the counterpart).
        scope: dotted classes and functions around it; empty for the whole file.
        cell: number of a notebook's cell.
        value: in place of ``text``, where the value is a library's and no file of the release has it.
        of: whose ``value`` is: the library, and the name of its default.
        means: value of the release, as YAML writes it -> the value of ours that does the same, where scales differ.
        attribute: dotted attribute of the released objects that gets the value in a parity run.
        driver: name under which the worker is told the value.
    """

    text: str = ""
    file: str = ""
    scope: str = ""
    cell: int | None = None
    value: Json = None
    of: str = ""
    means: Mapping[Any, Json] | None = None
    attribute: str = ""
    driver: str = ""

    def __post_init__(self) -> None:
        if bool(self.of) == bool(self.text):
            raise ConfigError("eval/parity/released: a setting has text with {} in it, or value and of")

    def read(self, sources: Mapping[str, str]) -> Json:
        """Return the release's value, as ours would be.

        Args:
            sources: texts of the released files by module.

        Raises:
            DataError: the code is not there, or is there with several values.
        """
        value = self.value if self.of else self._found(sources)
        return self.means[value] if self.means and value in self.means else value

    def _found(self, sources: Mapping[str, str]) -> Json:
        before, _, after = self.text.partition("{}")
        pattern = re.escape(before) + _VALUE + re.escape(after)
        found = set(re.findall(pattern, self._code(sources)))
        if len(found) != 1:
            place = f"{self.file}: {self.scope or 'the file'}"
            raise DataError(f"{place} has {len(found)} values of {self.text!r}, there must be one: {sorted(found)}")
        return _literal(found.pop())

    def _code(self, sources: Mapping[str, str]) -> str:
        content = sources[self.file]
        try:
            tree = ast.parse(content if self.cell is None else cell_source(content, self.cell, self.file))
        except SyntaxError:
            return content  # JSON, or a script of the shell
        return ast.unparse(find_scope(tree, self.scope, self.file))


def _literal(text: str) -> Json:
    """Return a value as Python or JSON writes it."""
    value: Json = json.loads(text) if text in ("true", "false", "null") else ast.literal_eval(text)
    return value


def released_values(settings: Mapping[str, ReleasedSetting], sources: Mapping[str, str]) -> dict[str, Json]:
    """Return the release's values by the names of our settings.

    Raises:
        DataError: one is not where the counterpart says.
    """
    return {name: setting.read(sources) for name, setting in settings.items()}


def given_values(values: Mapping[str, Json], memory: Mapping[str, Any], shared: Collection[str]) -> dict[str, Json]:
    """Return the values that the released code runs with: its own, but for those that both sides share.

    Args:
        values: of the release.
        memory: settings of our run.
        shared: names of settings that both sides get the value of ours for: what the command line moves, and what the
            preset deviates in as documented.
    """
    return {name: value_of(memory, name) if name in shared else value for name, value in values.items()}


def value_of(memory: Mapping[str, Any], name: str) -> Any:
    """Return a setting of a preset by its dotted name; places of a list are numbers.

    Raises:
        ConfigError: there is no such name.
    """
    found: Any = memory
    for key in name.split("."):
        try:
            found = found[int(key) if isinstance(found, list | tuple) else key]
        except (LookupError, TypeError, ValueError) as error:
            raise ConfigError(f"eval/parity/released: settings: the preset has no {name}") from error
    return found
