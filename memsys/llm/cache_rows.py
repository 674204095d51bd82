"""A row of the reply cache: a line of JSON that holds the key and the reply, and ends with a checksum of both.

A row that was altered, or is of another shape, does not pass for a reply. Rows of earlier versions have no checksum and
are checked for their shape alone: nothing could tell an altered one, and to refuse them all would mean to pay for them
again.
"""

import hashlib
import json
from dataclasses import asdict
from dataclasses import fields as fields_of
from typing import Any

from memsys.llm.outcomes import is_failed, is_withheld
from memsys.rows import record_from
from memsys.vocabulary import Completion

_PREFIX = b'{"key": "'
_KEY_LENGTH = 64  # hexadecimal digits of a sha256
_HEAD = len(_PREFIX) + _KEY_LENGTH
_SUM = b', "sum": "'
#: What is stored of a reply; ``refusal`` is of replies that are not.
_FIELDS = tuple(field.name for field in fields_of(Completion) if field.name != "refusal")
_SUM_BYTES = 8
#: Bytes of a row behind its reply: the checksum in hexadecimal digits, and what closes the row.
_TAIL = len(_SUM) + 2 * _SUM_BYTES + len(b'"}\n')


def written_row(key: str, reply: Completion) -> bytes:
    """Write a row.

    Args:
        key: sha256 in hexadecimal digits.
        reply: any.
    """
    fields: dict[str, Any] = {name: getattr(reply, name) for name in _FIELDS}  # asdict takes twenty times as long
    fields["logprobs"] = [asdict(one) for one in reply.logprobs]
    if not reply.estimated:  # as rows were before there was the field
        del fields["estimated"]
    if not reply.tool_calls:  # only programs behind the proxy have tools
        del fields["tool_calls"]
    row = _PREFIX + key.encode() + b'", "reply": ' + json.dumps(fields, allow_nan=False).encode()
    return row + _SUM + _checksum(row) + b'"}\n'


def read_row(line: bytes, key: str) -> Completion:
    """Read a row.

    Raises:
        ValueError: it is not a row of this key, was altered, or holds what older versions took for a reply.
    """
    if line[-_TAIL:].startswith(_SUM) and line[-_TAIL + len(_SUM) : -3] != _checksum(line[:-_TAIL]):
        raise ValueError("its checksum is another")
    row = json.loads(line)
    if not isinstance(row, dict) or row.get("key") != key or not set(row) <= {"key", "reply", "sum"}:
        raise ValueError("it is not a row of this key")
    if "sum" in row and not line[-_TAIL:].startswith(_SUM):
        raise ValueError("its checksum is not at its end")
    reply = record_from(Completion, row.get("reply"))
    if is_failed(reply.finish_reason) or is_withheld(reply.finish_reason):
        raise ValueError(f"it holds no whole reply: finish_reason {reply.finish_reason}")
    return reply


def key_of_row(line: bytes) -> bytes | None:
    """Read the key at the start of a line, as bytes, without the reply; ``None`` where the line is not a row."""
    if not line.startswith(_PREFIX) or not line.endswith(b"}\n"):
        return None
    try:
        return bytes.fromhex(line[len(_PREFIX) : _HEAD].decode("ascii"))
    except ValueError:
        return None


def _checksum(row: bytes) -> bytes:
    return hashlib.blake2b(row, digest_size=_SUM_BYTES).hexdigest().encode()
