"""How candidate clusters are shown to the router and to the selector."""

from collections.abc import Sequence
from dataclasses import dataclass

from memsys.clag.cluster import Cluster
from memsys.notes.store import NoteStore


@dataclass(frozen=True, slots=True)
class CardRules:
    """How much of a cluster is shown: number of example notes, and characters of each."""

    examples: int
    example_chars: int


def candidate_cards(clusters: Sequence[Cluster], store: NoteStore, rules: CardRules, *, show_size: bool) -> str:
    """Write one card per cluster: id, size where asked, summary, tags, examples (representatives, else the oldest).

    Line breaks inside an example become blanks: each stands on one line.
    """
    return "\n".join(_card(cluster, store, rules, show_size) for cluster in clusters)


def _card(cluster: Cluster, store: NoteStore, rules: CardRules, show_size: bool) -> str:
    examples = (cluster.representatives or list(cluster.members[: rules.examples]))[: rules.examples]
    lines = [f"id: {cluster.cluster_id}"]
    if show_size:
        lines.append(f"  size: {len(cluster)}")
    lines.append(f"  summary: {cluster.summary}")
    lines.append(f"  tags: {', '.join(cluster.tags)}")
    shown = [store[note_id].content[: rules.example_chars].replace("\n", " ") for note_id in examples]
    lines.extend(f"  example: {example}" for example in shown)
    return "\n".join(lines)
