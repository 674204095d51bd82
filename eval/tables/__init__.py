"""The papers' tables again: printed number, measured number, difference, interval, and why a cell is empty.

``spec`` says what a table holds, ``stored`` reads runs, ``select`` finds the runs of a cell, ``measure`` averages them,
``build`` puts the table together, ``markdown``, ``latex`` and ``flat`` write it. ``python -m eval.tables`` does all.
"""
