"""Summaries of chains: pages of which each goes on with the one before."""

from collections.abc import Mapping
from typing import Any

from baselines.memoryos.rules import ChainShown


class ChainSummaries:
    """Chain of each page, as prompts show it.

    With ``latest`` a chain has one summary, that of its latest page. With ``two_later`` each page keeps its own until
    the chain's second page after it brings another one, and keeps that: as it does so, the released code unlinks the
    page from those after it. A dropped page is part of its chain, but shows nothing and passes nothing on.

    Source of ``two_later``: BAI-LAB/MemoryOS 1d71706, ``eval/dynamic_update.py``, ``_update_connected_pages``.

    Args:
        shown: which summary a page shows.
    """

    def __init__(self, shown: ChainShown) -> None:
        self._one_per_chain = shown == "latest"
        self._summaries: list[str] = []
        self._place_of: dict[str, int] = {}
        self._starts: list[int] = []
        self._stored: list[str | None] = []

    def __len__(self) -> int:
        """Count the chains."""
        return len(self._summaries) if self._one_per_chain else len(self._starts)

    @property
    def latest(self) -> str:
        """Summary of the page that came last; empty before the first."""
        return self._summaries[-1] if self._summaries else ""

    def of(self, page_id: str) -> str:
        """Return what a page shows."""
        return self._summaries[self._place_of[page_id]]

    def add(self, page_id: str, summary: str, *, continues: bool, stored: bool) -> None:
        """Add the next page.

        Args:
            page_id: of the page.
            summary: of its chain up to it.
            continues: it goes on with the page before.
            stored: it is not a dropped page.
        """
        continues = continues and bool(self._summaries)
        if continues and self._one_per_chain:
            self._summaries[-1] = summary
        else:
            self._summaries.append(summary)
        if stored:
            self._place_of[page_id] = len(self._summaries) - 1
        if not self._one_per_chain:
            self._stored.append(page_id if stored else None)
            self._pass_on(continues)

    def _pass_on(self, continues: bool) -> None:
        """Show the new summary on the page two places before it, where that page and the next are of the chain."""
        place = len(self._summaries) - 1
        if not continues:
            self._starts.append(place)
        elif self._starts[-1] <= place - 2:
            first, second = self._stored[place - 2 : place]
            if first is not None and second is not None:
                self._place_of[first] = place

    def state(self) -> dict[str, Any]:
        """Return the summaries as JSON values."""
        told: dict[str, Any] = {"chain_of": dict(self._place_of), "chains": list(self._summaries)}
        return (
            told
            if self._one_per_chain
            else {**told, "chain_starts": list(self._starts), "chain_pages": list(self._stored)}
        )

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a snapshot."""
        self._place_of, self._summaries = dict(state["chain_of"]), list(state["chains"])
        self._starts, self._stored = list(state.get("chain_starts", ())), list(state.get("chain_pages", ()))
