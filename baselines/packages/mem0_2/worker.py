"""mem0ai 2.2.1 as a worker: https://github.com/mem0ai/mem0, `Memory.add` and `Memory.search` as they are.

Another algorithm than that of Mem0's paper and of 1.0.11: one call per add, whose prompt has 34,000 characters, and
which only adds memories; none is changed or deleted.

Settings:
    scopes: ``conversation``: one user, each message is its turn's line. ``speakers``: every unit is added once for each
        speaker, whose turns are then the user's, the others' the assistant's, and each is searched.
    today: date that the prompt states as the present day and as the day of the messages. The package states the day of
        the run, on which replies would then depend.
    llm: fields of mem0's OpenAIConfig: temperature, max_tokens, top_p.
    threshold: least score of a search.

The store is mem0's default, Qdrant within the process. Its keyword search and its entities need models that the package
fetches at run time (`Qdrant/bm25` and `en_core_web_sm`, of two extras): without them, as after
`pip install mem0ai`, search goes by vectors alone. The date of a unit's last turn is kept as metadata.
"""

import os
from functools import partial
from importlib.metadata import version

os.environ["MEM0_TELEMETRY"] = "False"

#: Digits of a score that do not depend on how often was searched before: Qdrant norms its vectors in place each time.
DIGITS = 6


class Worker:
    """One ``mem0.Memory``."""

    lineage = "changes"

    def __init__(self, opening):
        os.environ["MEM0_DIR"] = opening["folder"]
        from mem0 import Memory
        from mem0.memory import main

        self._settings = opening["settings"]
        main.generate_additive_extraction_prompt = partial(
            main.generate_additive_extraction_prompt, current_date=self._settings["today"]
        )
        self._memory = Memory.from_config(_config(opening, self._settings["llm"]))
        self._users = []

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
        """Search each user's memories; nothing is found for an empty query or before the first write."""
        hits = []
        for user in self._users if query.strip() else []:
            threshold = self._settings["threshold"]
            found = self._memory.search(query, filters={"user_id": user}, top_k=k, threshold=threshold)["results"]
            hits += [
                {
                    "memory_id": one["id"],
                    "text": one["memory"],
                    "score": round(one["score"], DIGITS),
                    "date": (one.get("metadata") or {}).get("date", ""),
                }
                for one in found
            ]
        return sorted(hits, key=lambda hit: (-hit["score"], hit["memory_id"]))

    def export(self):
        """All memories of all users."""
        return [
            {"memory_id": one["id"], "text": one["memory"], "user": user, "metadata": one.get("metadata")}
            for user in self._users
            for one in self._memory.get_all(filters={"user_id": user}, top_k=1_000_000)["results"]
        ]

    def close(self):
        """Close the history's database."""
        self._memory.close()


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
