"""Groups of hyperparameters, as they are under ``memory.<group>`` in the presets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from memsys.episodes.context import ContextTexts
from memsys.episodes.rules import BoundaryRules, EpisodeRules
from memsys.errors import ConfigError
from memsys.settings import check_choices, check_cosines, check_flags, check_minimum, check_optional
from memsys.xmemory.objective import Bell

SemanticMode = Literal["direct", "predict_calibrate"]
Schedule = Literal["arrival", "end"]
OnlineSplit = Literal["components", "scored"]
ScoreScope = Literal["global", "local"]
Normaliser = Literal["total", "max_gain"]
GateMode = Literal["off", "official", "strict"]
Naming = Literal["once", "every_change"]
Summaries = Literal["one_line", "as_written"]
Estimator = Literal["nll", "entropy"]


def is_list(value: object) -> bool:
    """Return whether a setting is a list; a text is none."""
    return isinstance(value, Sequence) and not isinstance(value, str)


def is_early_rule(value: Any) -> bool:
    """Return whether a setting is a pair of whole numbers, both at least 1."""
    return is_list(value) and len(value) == 2 and all(type(part) is int and part >= 1 for part in value)


@dataclass(frozen=True, slots=True)
class SemanticRules:
    """Settings of the extraction of facts from an episode.

    Attributes:
        mode: ``direct`` reads them off the episode (the paper's prompt); ``predict_calibrate`` predicts the episode
            from known facts and keeps what its messages add (the code). The first episode is always read directly.
        max_known: facts that the prediction may use.
        min_cos: least cosine of such a fact with the episode.
        dedup_cos: a fact more similar than this to a stored one is dropped; 1 drops none.
    """

    mode: SemanticMode
    max_known: int
    min_cos: float
    dedup_cos: float

    def __post_init__(self) -> None:
        check_choices(self, "memory.semantic", mode=SemanticMode)
        check_minimum(self, "memory.semantic", max_known=1)
        check_cosines(self, "memory.semantic", "min_cos", "dedup_cos")


@dataclass(frozen=True, slots=True)
class ThemeRules:
    """Settings of the organisation of facts.

    Attributes:
        schedule: ``arrival`` revises the themes after every episode's facts, ``end`` once, when all facts are known.
        cap: facts of a theme.
        attach: a fact joins its nearest theme from this cosine on.
        lenient: ... and from this one on if the theme has room; ``None`` for no second threshold.
        split: whether themes are ever split.
        online_split: a theme that grew beyond ``cap`` is cut into ``components`` unseen, or in the way that scores best
            (``scored``: components, runs along the first principal component, two and three parts by linkage).
        revise_full: with ``schedule: end``, themes of exactly ``cap`` facts that hang together loosely are split too;
            each gets new ids even where it stays whole.
        edge: least cosine of an edge between facts, for components.
        whole_below: up to so many facts are never cut into components.
        min_intra: mean pairwise cosine below which a full theme counts as loose.
        merge: whether themes are ever merged.
        pair_merges: merges of any two themes at most, per revision.
        pair_min: least cosine of such a pair.
        tiny_size: themes of up to so many facts look for another to merge into.
        tiny_min: least cosine with it.
        tiny_neighbours: how many of the nearest themes are considered; ``None`` for all.
        scope: ``f`` of all themes (paper), or of those concerned and the nearest around them (code).
        scope_neighbours: how many around them.
        eps: of the bell, see :class:`memsys.xmemory.objective.Bell`.
        sigma_floor: of the bell.
        naming: ``once`` names the themes that there are in the end, with one call each; ``every_change`` asks for a
            name whenever the code does, and keeps a theme's last: when a theme is made, cut or merged into, and once
            more for every theme that the revision leaves as it is. The themes have the same facts either way, and their
            last names come from the same prompts; what differs is the cost of building. Needs ``schedule: end``.
        summaries: ``one_line`` writes a name on one line, and takes the fact nearest the centroid for a blank one;
            ``as_written`` keeps what the model wrote, blank or of several lines (code).
    """

    schedule: Schedule
    cap: int
    attach: float
    lenient: float | None
    split: bool
    online_split: OnlineSplit
    revise_full: bool
    edge: float
    whole_below: int
    min_intra: float
    merge: bool
    pair_merges: int
    pair_min: float
    tiny_size: int
    tiny_min: float
    tiny_neighbours: int | None
    scope: ScoreScope
    scope_neighbours: int
    eps: float
    sigma_floor: float
    naming: Naming
    summaries: Summaries

    def __post_init__(self) -> None:
        group = "memory.theme"
        check_choices(self, group, schedule=Schedule, online_split=OnlineSplit, scope=ScoreScope, naming=Naming,
                      summaries=Summaries)  # fmt: skip
        check_flags(self, group, "split", "revise_full", "merge")
        check_minimum(self, group, cap=2, whole_below=1, pair_merges=0, tiny_size=0, scope_neighbours=1, sigma_floor=0)
        check_cosines(self, group, "attach", "edge", "min_intra", "pair_min", "tiny_min")
        check_optional(self, group, tiny_neighbours=1, lenient=-1.0)
        if self.lenient is not None and self.lenient > self.attach:
            raise ConfigError(f"{group}.lenient={self.lenient} must not exceed {group}.attach={self.attach}")
        if self.naming == "every_change" and self.schedule != "end":
            raise ConfigError(f"{group}.naming=every_change needs {group}.schedule=end, not {self.schedule}")
        if self.eps <= 0:
            raise ConfigError(f"{group}.eps={self.eps} must be above 0: it keeps the bell from having no width")

    @property
    def bell(self) -> Bell:
        """Width of the bell in ``f``."""
        return Bell(self.eps, self.sigma_floor)


@dataclass(frozen=True, slots=True)
class NeighborGraphRules:
    """The k-nearest-neighbour graphs that Stage I walks on.

    Attributes:
        facts: neighbours of a fact.
        themes: neighbours of a theme.
        rebuild: make the facts' graph of all facts at the end; else each fact has edges only to those that were stored
            with it or before it, as in the code.
    """

    facts: int
    themes: int
    rebuild: bool

    def __post_init__(self) -> None:
        check_minimum(self, "memory.graph", facts=1, themes=1)
        check_flags(self, "memory.graph", "rebuild")


@dataclass(frozen=True, slots=True)
class XMemoryRetrievalRules:
    """Stage I, and which episodes Stage II looks at.

    Attributes:
        representatives: Stage I; off takes the facts of highest cosine, and their themes in that order.
        pool: facts that are candidates, by cosine.
        alpha: weight of coverage against relevance.
        coverage: share of the candidates that is enough.
        normaliser: Z of equation 4. ``total``: the sum of all candidates' gains, which makes coverage all but vanish
            (code); ``max_gain``: the largest first gain, which puts coverage on the scale of relevance (paper).
        themes: budget of themes.
        facts: budget of facts.
        whole_themes: facts of a chosen theme are candidates even outside of ``pool``.
        vector_episodes: episodes found by their own cosine.
        linked_episodes: episodes of the chosen facts are candidates too.
        episodes: episodes shown at most.
        support: weight of a fact's relevance in the rank of its episode.
    """

    representatives: bool
    pool: int
    alpha: float
    coverage: float
    normaliser: Normaliser
    themes: int
    facts: int
    whole_themes: bool
    vector_episodes: int
    linked_episodes: bool
    episodes: int
    support: float

    def __post_init__(self) -> None:
        group = "memory.retrieval"
        check_choices(self, group, normaliser=Normaliser)
        check_flags(self, group, "representatives", "whole_themes", "linked_episodes")
        check_minimum(self, group, pool=1, alpha=0, coverage=0, themes=1, facts=1, vector_episodes=0, episodes=0,
                      support=0)  # fmt: skip
        for key in ("alpha", "coverage"):
            if getattr(self, key) > 1:
                raise ConfigError(f"{group}.{key}={getattr(self, key)} must be at most 1")


@dataclass(frozen=True, slots=True)
class GateRules:
    """Stage II: which episodes are worth their tokens.

    Attributes:
        mode: ``official`` compares each episode alone with the uncertainty before any; ``strict`` compares with the
            uncertainty after those already admitted, and expands to messages after a probe of its own; where either
            admits none, the first by rank is shown, as in the code. ``off`` admits the first ``retrieval.episodes``
            without a probe.
        estimator: ``nll`` is the mean negative log-likelihood of the greedy reply (code); ``entropy`` the mean entropy
            of the distributions over the next token, as far as the server shows them.
        probes: episodes that are tried at most.
        tau_stop: ``official``: a gain up to this is a miss.
        tau_admit: a gain above this admits. In ``official`` it acts only above ``tau_stop``, so that the code's value,
            which lies below, never decides.
        tau_expand: a gain above this expands an admitted episode to its messages.
        early: pairs (n, misses): stop when that many missed among the first n.
        speculative: ``official``: send all probes at once. Same result, more tokens.
        silent: uncertainty, in nats per token, that a reply without a token counts as (code: 5); ``None``: the first
            ``retrieval.episodes`` by rank are then admitted.
    """

    mode: GateMode
    estimator: Estimator
    probes: int
    tau_stop: float
    tau_admit: float
    tau_expand: float
    early: Sequence[Sequence[int]]
    speculative: bool
    silent: float | None

    def __post_init__(self) -> None:
        check_choices(self, "memory.gate", mode=GateMode, estimator=Estimator)
        check_minimum(self, "memory.gate", probes=1, tau_stop=-1e9, tau_admit=-1e9, tau_expand=-1e9)
        check_flags(self, "memory.gate", "speculative")
        check_optional(self, "memory.gate", silent=0)
        if not is_list(self.early) or not all(map(is_early_rule, self.early)):
            raise ConfigError(
                f"memory.gate.early={self.early!r} must be pairs (first n probes, misses), both at least 1"
            )
        if self.mode == "strict":
            self._check_strict()

    def _check_strict(self) -> None:
        if self.tau_admit < 0 or self.tau_expand < 0:
            raise ConfigError(
                f"memory.gate.mode=strict admits what lowers the uncertainty: tau_admit={self.tau_admit} and "
                f"tau_expand={self.tau_expand} must be at least 0"
            )
        if self.speculative:
            raise ConfigError("memory.gate.speculative=true needs mode=official: in strict each probe needs the last")

    def stops(self, tried: int, misses: int) -> bool:
        """Return whether to stop after so many probes with so many misses."""
        return any(tried <= first and misses >= enough for first, enough in self.early)


@dataclass(frozen=True, slots=True)
class XMemoryContextRules:
    """Settings of the reader's context.

    Attributes:
        raw_first: episodes, from the first, that bring their messages where the gate is off.
        raw_expanded: expanded episodes that bring their messages where it is on.
        episodes_first: episodes precede facts.
        max_tokens: limit, counted with the backbone's tokenizer; what does not fit is left out from there on. ``None``
            for no limit.
    """

    raw_first: int
    raw_expanded: int
    episodes_first: bool
    max_tokens: int | None

    def __post_init__(self) -> None:
        check_minimum(self, "memory.context", raw_first=0, raw_expanded=0)
        check_flags(self, "memory.context", "episodes_first")
        check_optional(self, "memory.context", max_tokens=1)


#: Name of each group in the config, and its type.
GROUPS: Mapping[str, Any] = {
    "boundary": BoundaryRules,
    "episode": EpisodeRules,
    "semantic": SemanticRules,
    "theme": ThemeRules,
    "graph": NeighborGraphRules,
    "retrieval": XMemoryRetrievalRules,
    "gate": GateRules,
    "context": XMemoryContextRules,
    "context_texts": ContextTexts,
}
