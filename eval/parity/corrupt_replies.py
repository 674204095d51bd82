"""Replies as small models give them: cut short, fenced, padded with prose, or no JSON at all."""

import random
from collections.abc import Callable, Mapping

SPOILERS: Mapping[str, Callable[[str], str]] = {
    "cut": lambda text: text[: len(text) // 2],
    "fenced": lambda text: f"```json\n{text}\n```",
    "prose_before": lambda text: f"Here is the object: {text}",
    "prose_after": lambda text: f"{text}\nI hope this helps.",
    "trailing_comma": lambda text: f"{text[:-1]},}}",
    "single_quotes": lambda text: text.replace('"', "'"),
    "white_space": lambda text: f"\n  {text}\n\n",
    "no_json": lambda text: "".join(mark for mark in text if mark.isalnum() or mark == " "),
    "empty": lambda text: "",
}


def spoil(text: str, chosen: random.Random) -> str:
    """Spoil a reply in one of these ways."""
    return SPOILERS[chosen.choice(sorted(SPOILERS))](text)
