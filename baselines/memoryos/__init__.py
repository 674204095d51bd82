"""MemoryOS (Kang et al., 2025): a queue of recent pages, segments that heat up, and a profile with facts."""
