"""Corrected gold answers of LoCoMo from dial481/locomo-audit, read from the fetched file and never committed."""

import json
import re
from collections.abc import Mapping
from functools import cache

from eval.loaders.label_problems import answer_is_doubtful
from eval.loaders.locomo import LOCOMO
from eval.loaders.locomo_labels import read_audit
from eval.loaders.published_files import VARIABLE, PublishedFiles, recorded_folder
from memsys.assets.checksums import sha256
from memsys.errors import DataError

#: The audit's file of objections; its text is CC BY-NC 4.0.
CORRECTIONS = PublishedFiles(
    name="locomo_corrections",
    repository="dial481/locomo-audit",
    commit="9493fb4b4af4256ed17a18e8fd0b3cfdeec29539",
    licence="CC-BY-NC-4.0",
    files={"errors.json": "f298ef46263fada20688a1d672be37d4f488c6da3b19343eea55ae5c1b5fe55e"},
)
#: Conversations of locomo10.json in its order; the audit numbers them.
_CONVERSATIONS = (26, 30, 41, 42, 43, 44, 47, 48, 49, 50)
_ID = re.compile(r"locomo_(\d+)_qa(\d+)")


@cache
def corrected_answers() -> Mapping[str, str] | None:
    """Return the question id -> the audit's answer, for the questions whose printed answer is wrong or debatable.

    Returns:
        ``None`` where the file is not there: then there is no corrected view.

    Raises:
        DataError: the file is another one, or is damaged.
    """
    path = recorded_folder() / CORRECTIONS.pinned[0].name
    if not path.is_file():
        return None
    if sha256(path) != CORRECTIONS.pinned[0].sha256:
        raise DataError(f"{path}: not the published file (sha256 differs); fetch it with `memsys recorded fetch`")
    doubtful = {name for name, kind in read_audit(LOCOMO.files[0].sha256).items() if answer_is_doubtful(kind)}
    found = {}
    for entry in json.loads(path.read_text(encoding="utf-8")):
        match = _ID.fullmatch(entry["question_id"])
        assert match is not None  # the checksum holds
        question_id = f"conv-{_CONVERSATIONS[int(match[1])]}:q{int(match[2]):03d}"
        if question_id in doubtful and entry.get("correct_answer"):
            found[question_id] = str(entry["correct_answer"])
    return found


def need_corrections() -> Mapping[str, str]:
    """Return the corrections; raise with advice where they are absent.

    Raises:
        DataError: the file is not there.
    """
    found = corrected_answers()
    if found is None:
        file = CORRECTIONS.pinned[0]
        raise DataError(
            f"{recorded_folder() / file.name}: no such file. The corrected labels are not part of this project; "
            f"`memsys recorded fetch` fetches them ({file.url}), or {VARIABLE} names the folder that holds them"
        )
    return found
