"""xMemory: messages, episodes, semantic facts and themes; retrieval from themes down to messages (arXiv 2602.02007)."""
