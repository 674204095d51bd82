"""SAGE: extracted facts are added, merged or ignored by their novelty; the backbone merges the uncertain ones alone."""
