"""Text embedding: the contract, sentence-transformers, a hashing embedder, and micro-batching."""
