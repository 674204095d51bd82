"""Seeds that depend on what is done, never on when: order of calls and number of workers cannot move a result."""

import hashlib

import numpy as np


def stable_seed(*parts: object) -> int:
    """Hash the parts to a seed in ``[0, 2**31)``; the same on every machine and Python."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


def question_key(question: str) -> str:
    """Name a question within its conversation: the key of what a memory asks the backbone about it."""
    return hashlib.sha256(question.encode()).hexdigest()[:16]


def generator(*parts: object) -> np.random.Generator:
    """Make a generator from :func:`stable_seed` of the parts."""
    return np.random.default_rng(stable_seed(*parts))
