"""Facts about people, as SAGE and Mem0 keep them: batches of messages, extraction, a stored fact, the context."""
