"""Rich's console for text that others wrote: no control sequence of it reaches the terminal, none of it is markup."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from eval.cli.escaping import terminal


class SafeConsole(Console):
    """A console that writes control characters out and takes no markup and no names of emoji from texts."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, **settings)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render to segments; those that rich makes to steer the terminal itself stay as they are."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(terminal(segment.text), segment.style)
