"""A memory over one's own conversation. Usage: python examples/own_conversation.py [MEMORY [BACKBONE [EMBEDDER]]].

Without arguments: CLAG on the embedded model (`memsys models` fetches it once; the rest needs no network).
"""

import sys

import memsys

CHOICES = dict(zip(("memory", "backbone", "embedder"), sys.argv[1:], strict=False))

with memsys.open_memory(
    CHOICES.get("memory", "clag_quickstart"),
    backbone=CHOICES.get("backbone", "smollm2_135m"),
    embedder=CHOICES.get("embedder", "minilm"),
) as memory:
    memory.add(
        [
            ("Ann", "I have adopted a grey cat; she is called Pixel.", "3 May 2024"),
            ("Ben", "Lovely! I am learning to bake sourdough.", "3 May 2024"),
        ]
    )
    memory.add([("Ann", "Pixel had to see the vet because of her ear.", "10 May 2024")])
    for hit in memory.retrieve("What is the cat called?").hits:
        print(f"{hit.score:.3f}  {', '.join(hit.turn_ids)}  {hit.text}")
    print(memory.answer("What is the cat called?").prediction)
    print(f"{len(memory.calls)} calls of the backbone")
