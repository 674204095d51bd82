"""A-Mem (Xu et al., NeurIPS 2025): linked, evolving notes in one index."""
