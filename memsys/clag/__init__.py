"""CLAG: notes organised by the backbone into clusters; evolution and retrieval inside clusters."""
