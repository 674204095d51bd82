"""MemFly: notes, keywords and topics; gated merging and linking; three ways of retrieval, refined by asking again."""
