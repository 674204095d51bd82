"""ReadAgent's notebook as a worker: its pagination, gists and parallel look-up over a conversation as one text.

Settings:
    name: of the release, for the record.
    files: module name -> file of the authors, fetched by checksum; the notebook alone.
    speakers: of the conversation, in the data set's order.
    word_limit, start_threshold: words of a chunk, and before its first label.

The cells of its demonstration are run but for their calls, which follow here. It reads articles of Project Gutenberg
and answers multiple-choice questions, so that two things are replaced: what splits an article, by the turns as
paragraphs, the first one of a session below its date; and the letters of the options, of which there are none, so that
the reply as a whole is the answer.
"""

import ast
import copy
import datetime
import json
import re
import string
import time
from pathlib import Path
from typing import Any

from released_code import ReleasedWorker, prepare

#: Cells of the notebook: the client, the choice of it, helpers, pagination, gists, look-up.
CELLS = (2, 4, 6, 7, 8, 9)
#: Its look-up asks the second question of an article alone.
ASKED = 1
_QUESTION = "\0"


class _Article:
    """A conversation where the notebook has an article: words, or paragraphs where it splits by lines."""

    def __init__(self, paragraphs: list[str]) -> None:
        self._paragraphs = paragraphs

    def split(self, mark: str | None = None) -> list[str]:
        return self._paragraphs if mark else "\n".join(self._paragraphs).split()


class _NoLetters(tuple[str, ...]):
    """Empty letters of the options; any place of them holds ``None``."""

    __slots__ = ()

    def __getitem__(self, place: Any) -> Any:
        return None


class Worker(ReleasedWorker):
    """The authors' memory for one conversation."""

    def __init__(self, opening: dict[str, Any]) -> None:
        settings = opening["settings"]
        super().__init__(settings)
        prepare(opening, ())
        self._code = _defined(json.loads(Path(settings["files"]["notebook"]).read_text(encoding="utf-8"))["cells"])
        self._code |= {"quality_gutenberg_parser": lambda article: article, "choices": _NoLetters()}
        self._ask = self._code["query_model"]
        self._code["query_model"] = self._heard
        self._last = ("", "")
        self._paragraphs: list[str] = []
        self._session = None
        self._memory: dict[str, Any] = {}

    def _heard(self, prompt: str) -> str:
        """Ask, and keep what was asked and said."""
        self._last = (prompt, self._ask(prompt))
        return self._last[1]

    def add(self, unit: dict[str, Any]) -> list[dict[str, str]]:
        """Keep the turns as paragraphs."""
        for turn in unit["turns"]:
            dated = f"[{turn['date']}]\n" if turn["session"] != self._session and turn["date"] else ""
            self._paragraphs.append(f"{dated}{turn['line']}")
            self._session = turn["session"]
        return []

    def finish(self) -> list[dict[str, str]]:
        """Cut the text into pages and shorten each."""
        example = {"article": _Article(self._paragraphs), "title": self._settings["name"]}
        sizes = {name: self._settings[name] for name in ("word_limit", "start_threshold")}
        pages = self._code["quality_pagination"](example, **sizes)
        self._memory = self._code["quality_gisting"](example, pages)
        return []

    def export(self) -> list[dict[str, str]]:
        """Return the gists in order."""
        return [{"memory_id": str(place), "text": gist} for place, gist in enumerate(self._memory["shortened_pages"])]

    def store(self) -> dict[str, Any]:
        """Return pages and gists in the form that parity runs compare."""
        kept = zip(self._memory["pages"], self._memory["shortened_pages"], strict=True)
        return {"pages": [{"text": "\n".join(page), "gist": gist} for page, gist in kept]}

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Look pages up and answer; the context is what the answer's prompt shows of the memory."""
        asked = {"questions": ["", question["text"]], "options": [[], []], "gold_labels": [0, 0]}
        self._code["quality_parallel_lookup"](self._memory | asked)
        prompt, reply = self._last
        before, after = self._code["prompt_answer_template"].format(_QUESTION, question["text"], "").split(_QUESTION)
        return {"prediction": reply.strip(), "context": prompt.removeprefix(before).removesuffix(after)}


def _defined(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """Run the notebook's cells but for shell commands and the calls of its demonstration; returns their names."""
    names: dict[str, Any] = {
        "copy": copy, "datetime": datetime, "json": json, "re": re, "string": string, "time": time
    }  # fmt: skip
    for number in CELLS:
        lines = "".join(cells[number]["source"]).splitlines()
        tree = ast.parse("\n".join("" if line.startswith(("!", "%")) else line for line in lines))
        tree.body = [statement for statement in tree.body if not _demonstrates(statement)]
        exec(compile(tree, f"cell {number}", "exec"), names)
    return names


def _demonstrates(statement: ast.stmt) -> bool:
    """Return whether a statement runs a step of the demonstration."""
    called = getattr(statement, "value", None)
    if not (isinstance(called, ast.Call) and isinstance(called.func, ast.Name)):
        return False
    return called.func.id.startswith("quality_")
