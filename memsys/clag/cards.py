"""Cards that describe candidate clusters to the router and to the selector."""

from collections.abc import Sequence
from dataclasses import dataclass

from memsys.clag.cluster import Cluster
from memsys.notes.store import NoteStore
from memsys.settings import check_texts


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
    """

    examples: int
    example_chars: int
    labels: CardLabels


def candidate_cards(clusters: Sequence[Cluster], store: NoteStore, rules: CardRules, *, show_size: bool) -> str:
    """Write one card per cluster: id, size where asked, summary, tags, examples (representatives, else the oldest).

    Line breaks inside an example become blanks: each is on one line.
    """
    return "\n".join(_card(cluster, store, rules, show_size) for cluster in clusters)


def _card(cluster: Cluster, store: NoteStore, rules: CardRules, show_size: bool) -> str:
    examples = (cluster.representatives or list(cluster.members[: rules.examples]))[: rules.examples]
    labels = rules.labels
    lines = [f"{labels.id}{cluster.cluster_id}"]
    if show_size:
        lines.append(f"{labels.size}{len(cluster)}")
    lines.append(f"{labels.summary}{cluster.summary}")
    lines.append(f"{labels.tags}{', '.join(cluster.tags)}")
    shown = [store[note_id].content[: rules.example_chars].replace("\n", " ") for note_id in examples]
    lines.extend(f"{labels.example}{example}" for example in shown)
    return "\n".join(lines)
