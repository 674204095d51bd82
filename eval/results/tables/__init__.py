"""The papers' tables again: printed number, measured number, difference, interval, and why a cell is empty.

``spec`` says what a table holds, ``candidates`` finds the runs of a cell and ``comparability`` what they did on other
terms, ``measure`` averages them, ``build`` puts the table together, ``paper_page`` and ``flat`` write it.
"""
