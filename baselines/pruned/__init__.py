"""Plain retrieval whose passages are pruned by LLMLingua-2 before the reader sees them."""
