"""Stand-ins for backbone and embedder: what they reply is a function of what they are asked."""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jsonschema
import numpy as np

from memsys.embedding.contract import Vectors
from memsys.llm.contract import Reply, Role
from memsys.vocabulary import Completion

#: (role name, prompt values, key) -> the object, or raw text (which is malformed for a role with a schema).
ReplyFunction = Callable[[str, Mapping[str, str], str], Mapping[str, Any] | str]


class FakeModel:
    """A backbone that answers by a function and keeps a list of its calls."""

    context_length = 8192

    def __init__(self, function: ReplyFunction) -> None:
        self.function = function
        self.calls: list[tuple[str, str]] = []
        self.prompts: list[str] = []

    async def ask(self, role: Role, values: Mapping[str, str], *, key: str) -> Reply:
        """Answer; an object that breaks the role's schema is malformed."""
        self.calls.append((role.name, key))
        self.prompts.append(role.prompt.render(values))
        await asyncio.sleep(0)
        given = self.function(role.name, values, key)
        text = given if isinstance(given, str) else json.dumps(given)
        completion = Completion(text=text, prompt_tokens=1, completion_tokens=1, seconds=0.0, finish_reason="stop")
        valid = not isinstance(given, str)
        if valid and role.schema is not None:
            valid = jsonschema.Draft202012Validator(role.accepts or role.schema).is_valid(given)
        if role.schema is None or not valid:
            return Reply(None, text, completion, malformed=role.schema is not None)
        return Reply(given, text, completion)  # type: ignore[arg-type]

    async def count_tokens(self, text: str) -> int:
        """Count words."""
        return len(text.split())

    def count(self, role: str) -> int:
        """Return how often a role was called."""
        return Counter(name for name, _ in self.calls)[role]


class WordEmbedder:
    """Each word is a fixed random direction; a text is the normalised sum of its words."""

    name = "words"

    def __init__(self, dimension: int = 64) -> None:
        self.dimension = dimension
        self.calls: list[list[str]] = []
        self._words: dict[str, Vectors] = {}

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts."""
        self.calls.append(list(texts))
        await asyncio.sleep(0)
        return np.stack([self._text(text) for text in texts]) if texts else np.zeros((0, self.dimension), np.float32)

    def _text(self, text: str) -> Vectors:
        total = np.sum([self._word(word) for word in text.lower().split() or [""]], axis=0)
        return np.asarray(total / np.linalg.norm(total), dtype=np.float32)

    def _word(self, word: str) -> Vectors:
        if word not in self._words:
            seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
            self._words[word] = np.random.default_rng(seed).standard_normal(self.dimension).astype(np.float32)
        return self._words[word]


class TableEmbedder:
    """Gives texts the vectors it was told; any other text is an error."""

    name = "table"

    def __init__(self, table: Mapping[str, Sequence[float]]) -> None:
        self.table = {text: np.asarray(vector, dtype=np.float32) for text, vector in table.items()}
        self.dimension = len(next(iter(self.table.values())))

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Look the texts up."""
        found = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in enumerate(texts):
            found[row] = self.table[text]
        return found
