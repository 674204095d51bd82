"""Plain retrieval: turns or chunks of turns, found by dense vectors, by BM25, or by both."""
