"""The papers' tables again: printed number, measured number, difference, interval, and why a cell is empty.

``spec`` says what a table holds, ``stored`` reads runs, ``candidates`` finds the runs of a cell and ``terms`` what
they did on other terms, ``measure`` averages them, ``build`` puts the table together, ``markdown``, ``latex`` and
``flat`` write it. ``memsys tables`` does all.
"""
