"""Model and corpus files: where each comes from, its checksum, and how it is unpacked under ``models/``."""
