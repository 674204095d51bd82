"""The page: one file that works from a disk and from a server, offline, and decodes a part when it is opened.

Models produce the text that is shown, so none of it is trusted: data reach the page as JSON that is escaped or packed,
the scripts write text nodes alone, and the policy names script and style by checksum and lets nothing else load.
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import Template

from eval.commands.escaping import script_json
from memsys.vocabulary import Json

TEMPLATES = Path(__file__).parent / "templates"
#: In this order: each uses what is before it.
SCRIPTS = (
    "core.js", "table.js", "results.js", "questions.js", "compare.js", "tables.js", "runs.js", "site.js", "main.js",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PageData:
    """Data and templates of the page.

    Attributes:
        first: what every view needs.
        parts: name -> what is decoded when a view asks for it.
    """

    first: dict[str, Json]
    parts: dict[str, Json] = field(default_factory=dict)


def render_page(data: PageData, refresh: int | None = None) -> str:
    """Return the page as HTML; the same bytes for the same data.

    Args:
        data: what it shows.
        refresh: seconds after which it loads itself again; ``None``: never.
    """
    style = _read("style.css")
    script = '"use strict";\n(() => {\n' + "\n".join(_read(name) for name in SCRIPTS) + "})();\n"
    policy = (
        f"default-src 'none'; script-src '{_checksum(script)}'; style-src '{_checksum(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    first, parts = script_json({**data.first, "refresh": refresh}), _packed(data.parts)
    page = Template(_read("page.html"))
    return page.substitute(policy=policy, style=style, script=script, data=first, parts=parts)


def _packed(parts: Mapping[str, Json]) -> str:
    """Return parts as elements that hold gzip in base64: no HTML can be read in them, and nothing is parsed yet."""
    return "\n".join(
        f'<script type="text/plain" id="part-{name}">{base64.b64encode(_compressed(part)).decode()}</script>'
        for name, part in parts.items()
    )


def _compressed(part: Json) -> bytes:
    return gzip.compress(json.dumps(part, allow_nan=False, separators=(",", ":")).encode(), 6, mtime=0)


def _read(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _checksum(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
