"""Show Sphinx's roles in docstrings (``:func:`name```) as code: an extension of Griffe, which zensical.toml names."""

import re

import griffe

_ROLE = re.compile(r":\w+:`~?([^`]+)`")


class PlainRoles(griffe.Extension):
    """Replaces roles by their names."""

    def on_object(self, *, obj: griffe.Object, **arguments: object) -> None:
        """Change the docstring of an object that was read."""
        if obj.docstring:
            obj.docstring.value = _ROLE.sub(r"`\1`", obj.docstring.value)
