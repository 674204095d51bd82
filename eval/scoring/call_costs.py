"""Costs of a run's calls: by phase and role, per question and per conversation."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import fsum

from eval.runs.embeddings import EmbeddingRecord
from eval.runs.records import JUDGING
from memsys.llm.ledger import CallRecord
from memsys.vocabulary import Json

#: Phases whose tokens are the price of a question; the others are the price of a memory.
READ_PHASES = ("retrieve", "answer")


def _call_totals(calls: Sequence[CallRecord]) -> Json:
    fresh = [call for call in calls if not call.cache_hit]
    return {
        "calls": len(calls),
        "cache_hits": len(calls) - len(fresh),
        "prompt_tokens": sum(call.prompt_tokens for call in calls),
        "completion_tokens": sum(call.completion_tokens for call in calls),
        "malformed": sum(call.malformed for call in calls),
        "repaired": sum(call.repaired for call in calls),
        "second_attempts": _second_attempts(calls),
        "transport_retries": sum(call.transport_retries for call in calls),
        "fresh_seconds": fsum(call.seconds for call in fresh),
        "cut_short": sum(call.finish_reason == "length" for call in calls),
        **_prefixes(fresh),
        **_doubtful(calls),
        **_batched(calls),
    }


def _second_attempts(calls: Sequence[CallRecord]) -> int:
    """Return the calls that repeat one with a malformed reply; an external program may also repeat requests itself."""
    malformed = {(*_asked(call), call.attempt) for call in calls if call.malformed}
    return sum((*_asked(call), call.attempt - 1) in malformed for call in calls)


def _asked(call: CallRecord) -> tuple[str, str, str, str, str]:
    return call.conversation_id, call.phase, call.role, call.key, call.item


def _prefixes(fresh: Sequence[CallRecord]) -> dict[str, Json]:
    """Return the prompt tokens from the server's prefix cache and their share; null where no call reports them.

    The share is over the calls that report it: replies from our own cache asked no server.
    """
    known = [(call.cached_tokens, call.prompt_tokens) for call in fresh if call.cached_tokens is not None]
    cached, prompts = sum(tokens for tokens, _ in known), sum(prompt for _, prompt in known)
    return {"cached_tokens": cached if known else None, "cached_share": cached / prompts if prompts else None}


def _doubtful(calls: Sequence[CallRecord]) -> dict[str, Json]:
    """Return the calls whose tokens the server did not report or whose prompt it truncated.

    Left out if there are none, so that summaries of before there were such calls stay as they are.
    """
    counts = {name: sum(getattr(call, name) for call in calls) for name in ("estimated", "shortened")}
    return {name: count for name, count in counts.items() if count}


def _batched(calls: Sequence[CallRecord]) -> dict[str, Json]:
    """Return the tokens of calls sent as batches, whose price is lower; left out if there are none, likewise."""
    sent = [call for call in calls if call.batched]
    if not sent:
        return {}
    return {
        "batched": {
            "calls": len(sent),
            "prompt_tokens": sum(call.prompt_tokens for call in sent),
            "completion_tokens": sum(call.completion_tokens for call in sent),
            "cached_tokens": sum(call.cached_tokens or 0 for call in sent),
        }
    }


def calls_by_role(calls: Sequence[CallRecord]) -> Json:
    """Add up calls by phase and role, and over all that are no judge's."""
    by_phase: dict[str, dict[str, list[CallRecord]]] = defaultdict(lambda: defaultdict(list))
    for call in calls:
        by_phase[call.phase][call.role].append(call)
    return {
        # A judge's calls are no part of what the method costs.
        "total": _call_totals([call for call in calls if call.phase != JUDGING]),
        "by_phase": {
            phase: {
                "total": _call_totals([call for group in roles.values() for call in group]),
                "by_role": {role: _call_totals(group) for role, group in roles.items()},
            }
            for phase, roles in by_phase.items()
        },
    }


def cost_per_unit(calls: Sequence[CallRecord], questions: int, conversations: int) -> Json:
    """Return the tokens and calls per unit. Cached calls count, since they belong to the method's cost.

    Args:
        calls: of the whole run; a judge's are no part of what the method costs.
        questions: number of them that the read phases are divided by.
        conversations: number of them that the other phases are divided by.

    Returns:
        Null instead of a quotient by 0.
    """

    def per(chosen: Sequence[CallRecord], units: int) -> Json:
        if not units:
            return None
        return {
            "calls": len(chosen) / units,
            "prompt_tokens": sum(call.prompt_tokens for call in chosen) / units,
            "completion_tokens": sum(call.completion_tokens for call in chosen) / units,
        }

    read = [call for call in calls if call.phase in READ_PHASES]
    write = [call for call in calls if call.phase not in (*READ_PHASES, JUDGING)]
    return {"read_per_question": per(read, questions), "write_per_conversation": per(write, conversations)}


def embedded_tokens(rows: Iterable[EmbeddingRecord]) -> Json:
    """Return the tokens that were embedded and paid for, in all and by phase."""
    by_phase: dict[str, int] = defaultdict(int)
    for row in rows:
        by_phase[row.phase] += row.tokens
    return {"tokens": sum(by_phase.values()), "by_phase": dict(by_phase)}
