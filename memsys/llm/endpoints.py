"""Choice of the server for the next request."""

from collections import Counter
from collections.abc import Sequence

from memsys.llm.engines.contract import Endpoint


class Endpoints:
    """Spreads requests.

    The least busy server is taken; among equals the one that has the conversation's prompts in its prefix cache, else
    the next in turn.

    Args:
        engine: name of the engine; labels are ``<engine>-<number>``, so that no record shows an address.
        endpoints: the servers.
    """

    def __init__(self, engine: str, endpoints: Sequence[Endpoint]) -> None:
        self._engine = engine
        self._busy: Counter[str] = Counter()  # by base URL
        self._homes: dict[str, Endpoint] = {}
        self._labels: dict[str, str] = {}
        self._turn = 0
        self._all: tuple[Endpoint, ...] = ()
        self.replace(endpoints)

    @property
    def first(self) -> Endpoint:
        """Server that is named first.

        Raises:
            IndexError: there is none.
        """
        return self._all[0]

    def replace(self, endpoints: Sequence[Endpoint]) -> None:
        """Go on with other servers; requests at the old ones end there."""
        self._all = tuple(endpoints)
        self._homes = {name: home for name, home in self._homes.items() if home in self._all}
        for index, endpoint in enumerate(self._all):
            self._labels.setdefault(endpoint.base_url, f"{self._engine}-{index}")

    def take(self, affinity: str, avoid: Endpoint | None = None) -> Endpoint:
        """Choose the server of a request and count it in.

        Args:
            affinity: name of the conversation.
            avoid: the server that just failed this request; a dead one is never busy and would draw every resend.
        """
        if len(self._all) == 1:
            (only,) = self._all
            self._busy[only.base_url] += 1
            return only
        offered = [endpoint for endpoint in self._all if endpoint != avoid] or self._all
        least = min(self._busy[endpoint.base_url] for endpoint in offered)
        idle = [endpoint for endpoint in offered if self._busy[endpoint.base_url] == least]
        chosen = self._homes.get(affinity)
        if chosen not in idle:
            chosen = idle[self._turn % len(idle)]
            self._turn += 1
        if affinity and len(self._all) > 1:
            self._homes[affinity] = chosen
        self._busy[chosen.base_url] += 1
        return chosen

    def give_back(self, endpoint: Endpoint) -> None:
        """Count a request out."""
        self._busy[endpoint.base_url] -= 1

    def label(self, endpoint: Endpoint) -> str:
        """Return the name of a server in records."""
        return self._labels[endpoint.base_url]
