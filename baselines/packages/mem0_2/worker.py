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

from functools import partial
from pathlib import Path

from released_code import load

mem0_1 = load("mem0_1", str(Path(__file__).parents[1] / "mem0" / "worker.py"))


class Worker(mem0_1.Worker):
    """One ``mem0.Memory``; what mem0ai 2 calls otherwise than 1.0.11 is here."""

    def _state_date(self, today):
        """Put a fixed date into the prompt."""
        from mem0.memory import main

        main.generate_additive_extraction_prompt = partial(main.generate_additive_extraction_prompt, current_date=today)

    def _search(self, query, user, k):
        threshold = self._settings["threshold"]
        return self._memory.search(query, filters={"user_id": user}, top_k=k, threshold=threshold)["results"]

    def _all(self, user):
        return self._memory.get_all(filters={"user_id": user}, top_k=mem0_1.MOST)["results"]
