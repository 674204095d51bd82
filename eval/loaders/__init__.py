"""Data sets: each loader turns one published file format into samples of the shared vocabulary."""
