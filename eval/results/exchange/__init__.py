"""Runs in the formats of other projects."""
