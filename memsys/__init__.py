"""The library: vocabulary, memory protocol, backbone client, embedding, indexes and the papers' memory systems."""
