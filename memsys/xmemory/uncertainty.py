"""Uncertainty of the backbone about its answer, from log-probabilities of a short greedy reply (role ``probe``)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from memsys.episodes.nodes import Episode, joined
from memsys.errors import ConfigError
from memsys.llm.contract import LanguageModel, Role
from memsys.seeding import question_key
from memsys.vocabulary import Completion, TokenLogprob
from memsys.xmemory.roles import TEXTS
from memsys.xmemory.rules import Estimator

#: A server's floor for impossible tokens must not decide on its own.
_FLOOR = -100.0
_THINKING_ENDS = "</think>"


@dataclass(frozen=True, slots=True)
class Coarse:
    """Parts of every probe of a question: the question, and the chosen themes' and facts' texts."""

    question: str
    themes: tuple[str, ...]
    facts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UncertaintyProbe:
    """Asks for short answers and says how unsure each is."""

    llm: LanguageModel
    role: Role
    estimator: Estimator

    async def uncertainty(
        self, coarse: Coarse, episodes: Sequence[Episode], *, raw: frozenset[str] = frozenset()
    ) -> float | None:
        """Return the uncertainty given these episodes, in nats per token; ``None`` where no token was said.

        Args:
            coarse: what precedes the episodes.
            episodes: shown by their content.
            raw: ids of episodes that also show their messages.

        Raises:
            ConfigError: the backbone replied without log-probabilities.
        """
        values = {
            "question": coarse.question,
            "themes": _lines(coarse.themes),
            "facts": _lines(coarse.facts),
            "episodes": _lines([_episode_text(episode, episode.episode_id in raw) for episode in episodes]),
        }
        shown = "+".join(f"{episode.episode_id}{'*' if episode.episode_id in raw else ''}" for episode in episodes)
        question = question_key(coarse.question)
        reply = await self.llm.ask(self.role, values, key=f"{question}:{shown or 'none'}")
        completion = reply.completion
        if reply.outcome == "withheld":
            return None
        if completion.text.strip() and not completion.logprobs:
            raise ConfigError(
                "xMemory's uncertainty gate reads log-probabilities of tokens, and this backbone gives none; choose "
                "another backbone, or a memory without the gate (memory.gate.mode=off, as in memory=xmemory_repsel)"
            )
        tokens = answer_tokens(completion)
        return None if not tokens else estimate(tokens, self.estimator)


def answer_tokens(completion: Completion) -> tuple[TokenLogprob, ...]:
    """Return the tokens that count: up to the end of thinking, without the token that ended the reply.

    Where that token is all there is, it stays: being sure to say nothing is a kind of certainty.
    """
    tokens = completion.logprobs
    for place, token in enumerate(tokens):
        if _THINKING_ENDS in token.token:
            tokens = tokens[:place]
            break
    if len(tokens) > 1 and completion.finish_reason == "stop" and _is_end(tokens, completion.text):
        return tokens[:-1]
    return tokens


def _is_end(tokens: Sequence[TokenLogprob], text: str) -> bool:
    """Return whether the last token is the end-of-sequence token, which servers list or leave out."""
    last = tokens[-1].token
    return not last or not text.endswith(last)


def estimate(tokens: Sequence[TokenLogprob], estimator: Estimator) -> float:
    """Return the uncertainty of one reply, at least one token.

    ``nll``: mean of ``-log p`` of the tokens. ``entropy``: mean of ``-sum p log p`` over the alternatives that the
    server lists, which leaves out the tail of the distribution.
    """
    values = [_surprise(token) if estimator == "nll" else _entropy(token) for token in tokens]
    return math.fsum(values) / len(values)


def _surprise(token: TokenLogprob) -> float:
    return -max(token.logprob, _FLOOR)


def _entropy(token: TokenLogprob) -> float:
    shown = {**token.top, token.token: token.logprob}
    return math.fsum(-math.exp(logprob) * max(logprob, _FLOOR) for logprob in shown.values())


def _episode_text(episode: Episode, raw: bool) -> str:
    return f"{episode.content}\n{joined(episode.messages, dated=False)}" if raw else episode.content


def _lines(texts: Sequence[str]) -> str:
    return "\n".join(f"- {text}" for text in texts if text) or TEXTS("nothing")
