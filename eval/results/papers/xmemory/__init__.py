"""xMemory: what its printed numbers follow from, and its figures."""
