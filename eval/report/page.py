"""The page: templates, styles and scripts in one file, with a policy that lets nothing else run or load.

Models produce the text that is shown, so none of it is trusted: data reach the page as JSON with every character
escaped that HTML could read, the scripts write text nodes alone, and the policy names the two scripts by checksum.
"""

import base64
import hashlib
from pathlib import Path
from string import Template

from eval.commands.escaping import script_json
from memsys.vocabulary import Json

TEMPLATES = Path(__file__).parent / "templates"
#: In this order: each uses what precedes it.
SCRIPTS = (
    "core.js", "charts.js", "answer.js", "compare.js", "leaderboard.js", "plots.js", "definitions.js", "tables.js",
    "own_tables.js", "audit.js", "questions.js", "answers.js", "runs.js", "main.js",
)  # fmt: skip


def render_page(data: Json, refresh: int | None = None) -> str:
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
    again = f' data-refresh="{refresh}"' if refresh else ""
    return Template(_read("page.html")).substitute(
        policy=policy, style=style, script=script, data=script_json(data), refresh=again
    )


def _read(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _checksum(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
