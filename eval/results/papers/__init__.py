"""The papers' printed numbers: cells, arithmetic, claims."""
