"""Rich's console for text that others wrote: no control sequence of it reaches the terminal, none of it is markup."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from eval.commands.escaping import ascii_marks, terminal


class SafeConsole(Console):
    """A console that writes control characters out and takes no markup and no names of emoji from texts."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, **settings)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render to segments; those that rich makes to steer the terminal itself stay as they are."""
        written = ascii_marks if self.options.ascii_only else str
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(written(terminal(segment.text)), segment.style)
