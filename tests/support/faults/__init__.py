"""Fault injection: kills, bad replies, damaged files and full disks, over every preset; see ``__main__``."""
