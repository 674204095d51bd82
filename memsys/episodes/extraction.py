"""Lasting facts of an episode: roles ``extract``, ``predict`` and ``calibrate`` (paper, appendix C; Nemori)."""

from collections.abc import Sequence
from dataclasses import dataclass

from memsys.episodes.nodes import Episode, joined
from memsys.episodes.recovery import loose_object, texts_of
from memsys.episodes.roles import TEXTS, EpisodeRoles
from memsys.llm.contract import LanguageModel, Reply, Role


@dataclass(frozen=True, slots=True)
class EpisodeStatements:
    """Statements of an episode, and what happened on the way, to be counted."""

    statements: tuple[str, ...]
    events: tuple[str, ...] = ()


async def extract_directly(llm: LanguageModel, roles: EpisodeRoles, episode: Episode, key: str) -> EpisodeStatements:
    """Extract the facts of an episode, with one call.

    Fallback of ``extract``: the strings that the reply's list holds nevertheless; none where it has no list.
    """
    values = {"title": episode.title, "content": episode.content, "date": episode.time or TEXTS("unknown_date")}
    return _statements(roles.extract, await llm.ask(roles.extract, values, key=key))


async def extract_by_prediction(
    llm: LanguageModel, roles: EpisodeRoles, episode: Episode, known: Sequence[str], key: str, *, dated: bool = True
) -> EpisodeStatements:
    """Predict an episode from known facts, then keep what its messages add or correct; at most two calls.

    Without a known fact near the episode nothing is predicted. Fallback of ``predict``: a blank reply counts as no
    prediction. Fallback of ``calibrate``: as of ``extract``. The messages follow their times where ``dated``.
    """
    events: tuple[str, ...] = ("predict.nothing_known",)
    prediction = ""
    if known:
        values = {"title": episode.title, "facts": "\n".join(f"- {fact}" for fact in known)}
        reply = await llm.ask(roles.predict, values, key=key)
        prediction = reply.text.strip()
        events = ("predict.asked",) if prediction else ("predict.asked", "fallback.predict")
    values = {
        "messages": joined(episode.messages, dated=dated),
        "prediction": prediction or TEXTS("no_prediction", title=episode.title),
    }
    found = _statements(roles.calibrate, await llm.ask(roles.calibrate, values, key=key))
    return EpisodeStatements(found.statements, (*events, *found.events))


def _statements(role: Role, reply: Reply) -> EpisodeStatements:
    statements = tuple(dict.fromkeys(texts_of(loose_object(reply, role.reading), "statements", role.reading)))
    events = [] if reply.value is not None else [f"fallback.{role.name}"]
    if not statements:
        events.append(f"{role.name}.no_facts")
    return EpisodeStatements(statements, tuple(events))
