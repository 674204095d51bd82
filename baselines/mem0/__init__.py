"""Mem0 (Chhikara et al., 2025): the backbone extracts facts and decides what they change; Mem0g adds a graph."""
