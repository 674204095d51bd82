"""Files of a run: records, run directory, snapshots, provenance."""
