"""What a run leaves on disk: records, run directory, snapshots, provenance."""
