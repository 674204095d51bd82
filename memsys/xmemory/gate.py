"""Stage II: which episodes are admitted, and which are expanded to their messages (paper, section 3.3)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from memsys.episodes.nodes import Episode
from memsys.vocabulary import Json
from memsys.xmemory.rules import GateRules
from memsys.xmemory.uncertainty import Coarse, UncertaintyProbe


@dataclass(slots=True)
class Admission:
    """Result of the gate.

    Attributes:
        admitted: episodes, in the order they were admitted.
        expanded: ids of those that bring their messages.
        before: uncertainty before any episode; ``None`` where nothing was asked.
        probes: per episode tried, what was measured.
        fallback: ``probe:empty`` if a probe said nothing at all: the first episodes by rank are then admitted.
    """

    admitted: list[Episode] = field(default_factory=list)
    expanded: list[str] = field(default_factory=list)
    before: float | None = None
    probes: list[dict[str, Json]] = field(default_factory=list)
    fallback: str | None = None

    def admit(self, episode: Episode, *, expand: bool) -> None:
        """Admit an episode."""
        self.admitted.append(episode)
        if expand:
            self.expanded.append(episode.episode_id)

    def note(self, episode: Episode, gain: float, **more: Json) -> None:
        """Keep what a probe measured."""
        self.probes.append({"episode": episode.episode_id, "gain": gain, **more})


class EmptyProbeError(Exception):
    """A probe's reply had no token."""


@dataclass(frozen=True, slots=True)
class Gate:
    """Admits episodes in the order of their rank."""

    rules: GateRules
    probe: UncertaintyProbe

    async def admit(self, coarse: Coarse, ranked: Sequence[Episode], limit: int) -> Admission:
        """Decide on episodes.

        Args:
            coarse: the question with its chosen themes and facts.
            ranked: candidates, best first.
            limit: episodes at most.
        """
        if self.rules.mode == "off":
            return Admission(admitted=list(ranked[:limit]))
        if not ranked or limit < 1:
            return Admission()
        tried = ranked[: self.rules.probes]
        try:
            admission = await (self._official if self.rules.mode == "official" else self._strict)(coarse, tried, limit)
        except EmptyProbeError:
            return Admission(admitted=list(ranked[:limit]), fallback="probe:empty")
        if not admission.admitted:
            admission.admit(ranked[0], expand=False)
        return admission

    async def _measure(self, coarse: Coarse, episodes: Sequence[Episode], raw: Sequence[str] = ()) -> float:
        return self._said(await self.probe.uncertainty(coarse, episodes, raw=frozenset(raw)))

    def _said(self, value: float | None) -> float:
        """Return what was measured, or what replaces it.

        Raises:
            EmptyProbeError: nothing was, and nothing does.
        """
        value = self.rules.silent if value is None else value
        if value is None:
            raise EmptyProbeError
        return value

    async def _official(self, coarse: Coarse, tried: Sequence[Episode], limit: int) -> Admission:
        """Return the uncertainty with each episode alone, relative to that without any."""
        rules = self.rules
        before = await self._measure(coarse, [])
        admission = Admission(before=before)
        ahead = await self._all_at_once(coarse, tried) if rules.speculative else None
        misses = 0
        for number, episode in enumerate(tried, start=1):
            value = self._said(ahead[number - 1]) if ahead is not None else await self._measure(coarse, [episode])
            gain = before - value
            admission.note(episode, gain)
            if gain <= rules.tau_stop:
                misses += 1
            elif gain > rules.tau_admit:
                admission.admit(episode, expand=gain > rules.tau_expand)
                if len(admission.admitted) >= limit:
                    break
            if rules.stops(number, misses):
                break
        return admission

    async def _all_at_once(self, coarse: Coarse, tried: Sequence[Episode]) -> list[float | None]:
        return list(await asyncio.gather(*(self.probe.uncertainty(coarse, [episode]) for episode in tried)))

    async def _strict(self, coarse: Coarse, tried: Sequence[Episode], limit: int) -> Admission:
        """Return the uncertainty with each episode added to those admitted, and its messages added to its summary."""
        rules = self.rules
        uncertainty, misses = await self._measure(coarse, []), 0
        admission = Admission(before=uncertainty)
        for number, episode in enumerate(tried, start=1):
            shown = [*admission.admitted, episode]
            value = await self._measure(coarse, shown, admission.expanded)
            gain = uncertainty - value
            if gain > rules.tau_admit:
                raw = await self._measure(coarse, shown, [*admission.expanded, episode.episode_id])
                expand = value - raw > rules.tau_expand
                admission.note(episode, gain, raw_gain=value - raw)
                admission.admit(episode, expand=expand)
                uncertainty = raw if expand else value
                if len(admission.admitted) >= limit:
                    break
            else:
                admission.note(episode, gain)
                misses += 1
            if rules.stops(number, misses):
                break
        return admission
