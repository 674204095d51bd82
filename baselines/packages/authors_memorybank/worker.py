"""MemoryBank's released code as a worker: its summaries of days, its portraits and its digest of a conversation.

What it stores is compared, and no search: its program is a chat with one user, which finds two pieces by the vectors of
its own layout, and has no evaluation.

Settings:
    name: of the release, for the record.
    files: module name -> file of the authors, fetched by checksum.
    speakers: of the conversation, in the data set's order; the first one is the user.

Replaced is the function of openai's old client that it calls; the exchange of greetings before each request is left
out. Turns are put into pairs of what the user says and what is answered, as the program saves them.
"""

import json
import types
from pathlib import Path
from typing import Any

from released_code import ConversationWorker, load, prepare

#: Fields of a request that it sends besides its messages.
SAMPLING = ("model", "temperature", "max_tokens", "top_p", "frequency_penalty", "presence_penalty", "stop", "n")


class Worker(ConversationWorker):
    """The authors' memory for one conversation."""

    def __init__(self, opening: dict[str, Any]) -> None:
        settings = opening["settings"]
        super().__init__(settings)
        prepare(opening, ())
        self._module = load("summarize_memory", settings["files"]["summarize_memory"])
        self._module.openai = types.SimpleNamespace(ChatCompletion=_completions())
        self._file = Path(opening["folder"]) / "memories.json"
        self._user = settings["speakers"][0]
        self._memory: dict[str, Any] = {}

    def finish(self) -> list[dict[str, str]]:
        """Save the conversation as the program does, and let it summarise."""
        saved = {self._user: {"name": self._user, "history": self._history()}}
        self._file.write_text(json.dumps(saved), encoding="utf-8")
        self._memory = self._module.summarize_memory(str(self._file), self._user, language="en")[self._user]
        return []

    def _history(self) -> dict[str, list[dict[str, str]]]:
        """Return the pairs of each day; consecutive turns of one speaker are joined."""
        days: dict[str, list[dict[str, str]]] = {}
        spoke = ""
        for turn in self._turns:
            pairs = days.setdefault(turn["date"], [])
            side = "query" if turn["speaker"] == self._user else "response"
            if not pairs or (side == "query" and spoke != self._user):
                pairs.append({"query": "", "response": ""})
            pairs[-1][side] = "\n".join(filter(None, (pairs[-1][side], turn["text"])))
            spoke = turn["speaker"]
        return days

    def export(self) -> list[dict[str, str]]:
        """Return the summaries in the order of their days."""
        return [{"memory_id": date, "text": one["content"]} for date, one in self._memory["summary"].items()]

    def store(self) -> dict[str, Any]:
        """Return the summaries, descriptions and the portrait in the form that parity runs compare."""
        described = self._memory["personality"]
        return {
            "days": [
                {"date": date, "summary": one["content"].strip(), "personality": described[date].strip()}
                for date, one in self._memory["summary"].items()
            ],
            "portrait": {"portrait": {"text": self._memory["overall_personality"].strip()}},
        }


def _completions() -> Any:
    from openai import OpenAI

    client = OpenAI()

    def create(messages: list[dict[str, str]], **named: Any) -> dict[str, Any]:
        asked = {name: named[name] for name in SAMPLING if name in named}
        reply = client.chat.completions.create(messages=[messages[0], messages[-1]], **asked)
        return json.loads(reply.model_dump_json())

    return types.SimpleNamespace(create=create)
