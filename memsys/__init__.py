"""The library: vocabulary, memory protocol, language-model client, embedding, indexes and the papers' memory systems."""
