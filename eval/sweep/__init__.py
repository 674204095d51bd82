"""Sweeps: which cells one consists of, what they will cost, what has become of them, and the servers they share.

A cell is one run of a sweep. What it is stands in its overrides, what became of it in its files: nothing here asks the
launcher that started it. Slurm is asked for what has no file yet: whether a job still waits.
"""
