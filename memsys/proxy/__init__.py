"""A server of OpenAI's protocol in front of a run's backbone and embedder, for programs that are not part of memsys."""
