"""Sweeps: which cells one consists of, what they will cost, what has become of them, and the servers they share.

A cell is one run of a sweep. Its overrides say what it is, its files what became of it: nothing here asks the
launcher that started it. Slurm is asked for what has no file yet: whether a job still waits.
"""
