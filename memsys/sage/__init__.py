"""SAGE: extracted facts are added, merged or ignored by their novelty; the backbone merges the uncertain ones alone."""

#: Other systems whose code this one imports; every other import of a system is refused (tests/contract).
BUILT_ON = ("memsys.gate",)
