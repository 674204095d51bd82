"""Cards that describe candidate clusters to the router and to the selector."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memsys.clag.cluster import Cluster
from memsys.notes.store import NoteStore
from memsys.settings import check_texts

Profiles = Literal["own", "none", "exchanged"]


@dataclass(frozen=True, slots=True)
class CardLabels:
    """Labels of the lines of a card (``memory.card_labels``), indentation included.

    Attributes:
        id: the cluster's id.
        size: its number of notes.
        summary: its summary.
        tags: its tags.
        example: each example note.
    """

    id: str
    size: str
    summary: str
    tags: str
    example: str

    def __post_init__(self) -> None:
        check_texts(self, "memory.card_labels")


@dataclass(frozen=True, slots=True)
class CardRules:
    """Settings of a cluster's card.

    Attributes:
        examples: number of example notes.
        example_chars: characters of each.
        labels: precede the lines.
        profiles: summary and tags that a card shows: its cluster's ``own``, ``none``, or those of the next candidate
            (``exchanged``), which measures what profiles are good for.
    """

    examples: int
    example_chars: int
    labels: CardLabels
    profiles: Profiles = "own"


def candidate_cards(clusters: Sequence[Cluster], store: NoteStore, rules: CardRules, *, show_size: bool) -> str:
    """Write one card per cluster: id, size where asked, summary, tags, examples (representatives, else the oldest).

    Line breaks inside an example become blanks: each is on one line.
    """
    described = [*clusters[1:], *clusters[:1]] if rules.profiles == "exchanged" else clusters
    return "\n".join(
        _card(cluster, profile, store, rules, show_size) for cluster, profile in zip(clusters, described, strict=True)
    )


def _card(cluster: Cluster, profile: Cluster, store: NoteStore, rules: CardRules, show_size: bool) -> str:
    examples = (cluster.representatives or list(cluster.members[: rules.examples]))[: rules.examples]
    labels = rules.labels
    lines = [f"{labels.id}{cluster.cluster_id}"]
    if show_size:
        lines.append(f"{labels.size}{len(cluster)}")
    if rules.profiles != "none":
        lines.append(f"{labels.summary}{profile.summary}")
        lines.append(f"{labels.tags}{', '.join(profile.tags)}")
    shown = [store[note_id].content[: rules.example_chars].replace("\n", " ") for note_id in examples]
    lines.extend(f"{labels.example}{example}" for example in shown)
    return "\n".join(lines)
