"""Plain retrieval whose passages are pruned by LLMLingua-2 before the reader sees them."""

#: Other systems whose code this one imports; every other import of a system is refused (tests/contract).
BUILT_ON = ("baselines.rag",)
