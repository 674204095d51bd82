"""A worker for tests: keeps what the backbone says of each turn, finds by embeddings; can misbehave.

Settings: ``fault`` is one of ``raise``, ``hang``, ``nonsense``, ``exit``, met at the unit ``at``; ``lineage``;
``ask``: whether the backbone is asked when it writes, or the turns are kept as they are; ``temperature`` of its calls;
``key``: what it shows the backbone in place of its own; ``swallow``: it goes on without a reply, as many packages do;
``probe``: it asks, when it is opened, what is not served.
"""

import contextlib
import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid


class Worker:
    def __init__(self, opening):
        self.opening = opening
        self.settings = opening["settings"]
        self.lineage = self.settings.get("lineage", "changes")
        self.lineage_reason = "it is told not to say" if self.lineage == "none" else ""
        self.memories = {}
        if self.settings.get("probe"):
            with contextlib.suppress(urllib.error.HTTPError):
                self._call("responses", input="a")
        sys.stdout.write("a package may print what it likes\n")

    def describe(self):
        return {"package": "tiny", "version": "1"}

    def add(self, unit):
        if self._fail(unit["unit_id"]):
            return {"a set", "for which JSON has no form"}
        try:
            text = self._said(_shown(unit))
        except urllib.error.HTTPError:
            if not self.settings.get("swallow"):
                raise
            return []
        changes = []
        if len(self.memories) > 2:  # the oldest memory takes up what is new
            oldest = next(iter(self.memories))
            self._keep(oldest, self.memories[oldest][0] + " " + text, unit)
            changes.append({"memory_id": oldest, "change": "update"})
        else:
            made = str(uuid.uuid4())
            self._keep(made, text, unit)
            changes.append({"memory_id": made, "change": "add"})
        return changes if self.lineage == "changes" else []

    def _said(self, shown):
        if not self.settings.get("ask", True):
            return shown
        temperature = self.settings.get("temperature", 0.5)
        said = self._call("chat/completions", messages=[{"role": "user", "content": shown}], temperature=temperature)
        return said["choices"][0]["message"]["content"]

    def _keep(self, memory_id, text, unit):
        vector = self._call("embeddings", input=text)["data"][0]["embedding"]
        self.memories[memory_id] = (text, vector, unit["turns"][-1]["date"])

    def finish(self):
        if len(self.memories) < 2 or self.lineage != "changes":
            return []
        newest = list(self.memories)[-1]
        del self.memories[newest]
        return [{"memory_id": newest, "change": "delete"}]

    def retrieve(self, query, k):
        asked = self._call("embeddings", input=query or " ")["data"][0]["embedding"]
        hits = [
            {
                "memory_id": name,
                "text": text,
                "date": date,
                "score": sum(a * b for a, b in zip(asked, vector, strict=True)),
            }
            for name, (text, vector, date) in self.memories.items()
        ]
        return sorted(hits, key=lambda hit: -hit["score"])[:k]

    def export(self):
        return [{"memory_id": name, "text": text, "date": date} for name, (text, _, date) in self.memories.items()]

    def _fail(self, unit_id):
        fault = self.settings.get("fault")
        if unit_id != self.settings.get("at"):
            return False
        if fault == "raise":
            raise KeyError("no such thing")
        if fault == "hang":
            time.sleep(60)
        if fault == "exit":
            os._exit(3)
        return fault == "nonsense"

    def _call(self, path, **body):
        access = self.opening["llm"]
        request = urllib.request.Request(
            f"{access['base_url']}/{path}",
            json.dumps({"model": access["model"], **body}).encode(),
            {
                "Authorization": f"Bearer {self.settings.get('key', access['api_key'])}",
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(request) as reply:
            return json.loads(reply.read())


def _shown(unit):
    return "\n".join(turn["line"] for turn in unit["turns"])
