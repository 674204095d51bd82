"""Exact dense search, BM25, and the fusion of ranked lists."""
