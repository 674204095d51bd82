"""The novelty gate: how well a store covers a candidate, and a filter on that score for any memory system."""
