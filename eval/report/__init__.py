"""One self-contained HTML page of everything measured: leaderboard, tables, definitions, plots, every question.

``scores``, ``papers``, ``definitions``, ``questions`` and ``runs`` make the parts of its data, ``data`` joins them, and
``page`` puts them into the templates. ``memsys report`` does all. The page quotes the data sets: it stays
local.
"""
