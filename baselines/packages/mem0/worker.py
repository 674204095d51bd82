"""mem0ai 1.0.11 as a worker: https://github.com/mem0ai/mem0, `Memory.add` and `Memory.search` as they are.

Settings:
    scopes: ``conversation``: one user, each message is its turn's line. ``speakers``: as in Mem0's own evaluation on
        LoCoMo every unit is added once for each speaker, whose turns are then the user's, the others' the assistant's,
        and each is searched.
    today: date that the extraction prompt states. The package states the day of the run, on which replies would then
        depend.
    llm: fields of mem0's OpenAIConfig: temperature, max_tokens, top_p.
    threshold: least score of a search; null for none.

The store is mem0's default, Qdrant within the process, in memory. The date of a unit's last turn is kept as metadata.
"""

import os
from importlib.metadata import version

os.environ["MEM0_TELEMETRY"] = "False"

#: Of clients: the run itself waits and tries again.
PATIENT = {"timeout": None, "max_retries": 0}
#: Digits of a score that do not depend on how often was searched before: Qdrant norms its vectors in place each time.
DIGITS = 6

#: More memories than a conversation gives.
MOST = 1_000_000


class Worker:
    """One ``mem0.Memory``."""

    lineage = "changes"

    def __init__(self, opening):
        os.environ["MEM0_DIR"] = opening["folder"]
        from mem0 import Memory

        self._settings = opening["settings"]
        self._state_date(self._settings["today"])
        self._memory = Memory.from_config(_config(opening, self._settings["llm"]))
        for part in (self._memory.llm, self._memory.embedding_model):
            part.client = part.client.with_options(**PATIENT)
        self._users = []

    def _state_date(self, today):
        """Put a fixed date in the place of today's in the extraction prompts."""
        import re

        from mem0.memory import utils

        for name in ("AGENT_MEMORY_EXTRACTION_PROMPT", "FACT_RETRIEVAL_PROMPT", "USER_MEMORY_EXTRACTION_PROMPT"):
            text, count = re.subn(r"Today's date is \d{4}-\d\d-\d\d", f"Today's date is {today}", getattr(utils, name))
            if count != 1:
                raise RuntimeError(f"mem0.memory.utils.{name} states its date in another way than in 1.0.11")
            setattr(utils, name, text)

    def describe(self):
        """Name and version."""
        return {"package": "mem0ai", "version": version("mem0ai")}

    def add(self, unit):
        """Add a unit for each user."""
        changes = []
        for user in self._scopes(unit):
            if user not in self._users:
                self._users.append(user)
            metadata = {"date": unit["turns"][-1]["date"]}
            done = self._memory.add(self._messages(unit, user), user_id=user, metadata=metadata)
            changes += [{"memory_id": one["id"], "change": one["event"].lower()} for one in done["results"]]
        return changes

    def _scopes(self, unit):
        return unit["speakers"] if self._settings["scopes"] == "speakers" else ["user"]

    def _messages(self, unit, user):
        if self._settings["scopes"] != "speakers":
            return [{"role": "user", "content": turn["line"]} for turn in unit["turns"]]
        return [
            {"role": "user" if turn["speaker"] == user else "assistant", "content": turn["line"]}
            for turn in unit["turns"]
        ]

    def retrieve(self, query, k):
        """Search each user's memories; nothing is found for an empty query or before the first write.

        Scores are rounded, and memories with the same score come by their ids: a run that is resumed has searched less.
        """
        hits = []
        for user in self._users if query.strip() else []:
            hits += [
                {
                    "memory_id": one["id"],
                    "text": one["memory"],
                    "score": round(one["score"], DIGITS),
                    "date": (one.get("metadata") or {}).get("date", ""),
                }
                for one in self._search(query, user, k)
            ]
        return sorted(hits, key=lambda hit: (-hit["score"], hit["memory_id"]))

    def _search(self, query, user, k):
        return self._memory.search(query, user_id=user, limit=k, threshold=self._settings["threshold"])["results"]

    def export(self):
        """Return all memories of all users."""
        return [
            {"memory_id": one["id"], "text": one["memory"], "user": user, "metadata": one.get("metadata")}
            for user in self._users
            for one in self._all(user)
        ]

    def _all(self, user):
        return self._memory.get_all(user_id=user, limit=MOST)["results"]


def _config(opening, llm):
    served, embedder = opening["llm"], opening["embedder"]
    access = {"model": served["model"], "api_key": served["api_key"], "openai_base_url": served["base_url"]}
    dimension, folder = embedder["dimension"], opening["folder"]
    return {
        "llm": {"provider": "openai", "config": {**access, **llm}},
        "embedder": {"provider": "openai", "config": {**access, "embedding_dims": dimension}},
        "vector_store": {
            "provider": "qdrant",
            "config": {
                "embedding_model_dims": dimension,
                "path": f"{folder}/qdrant",
                "collection_name": "memories",
            },
        },
        "history_db_path": f"{folder}/history.db",
    }
