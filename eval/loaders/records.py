"""Records that several released files write alike, and the checksum of a set of several files."""

import hashlib
from collections.abc import Mapping

from eval.loaders.contract import DatasetInfo
from eval.loaders.jsonfile import JsonNode
from memsys.vocabulary import Question

_SPEAKERS: Mapping[str, str] = {"user": "User", "assistant": "Assistant"}


def read_question(node: JsonNode, question_id: str, conversation_id: str, info: DatasetInfo) -> Question:
    """Read ``question`` and ``category`` of a record, the latter a number.

    Raises:
        DataError: one of them is missing, or the data set has no such category.
    """
    category = node.get("category")
    if category.integer() not in info.category_names:
        known = ", ".join(f"{number} {name}" for number, name in info.category_names.items())
        raise category.error(f"unknown category {category.value}; known are {known}")
    return Question(
        question_id=question_id,
        conversation_id=conversation_id,
        text=node.get("question").text(),
        category=category.integer(),
        kind=info.kinds[category.integer()],
    )


def read_speaker(message: JsonNode) -> str:
    """Return who wrote a message of a chat with an assistant, by its ``role``.

    Raises:
        DataError: the role is neither ``user`` nor ``assistant``.
    """
    role = message.get("role")
    speaker = _SPEAKERS.get(role.text())
    if speaker is None:
        raise role.error("must be user or assistant")
    return speaker


def hash_of_files(hashes: Mapping[str, str]) -> str:
    """Return the sha256 of the lines ``sha256  name`` that ``sha256sum`` would print of some files, in this order."""
    return hashlib.sha256("".join(f"{sha256}  {name}\n" for name, sha256 in hashes.items()).encode()).hexdigest()
