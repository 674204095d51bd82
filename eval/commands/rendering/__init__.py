"""Tables in every format: one model (:mod:`eval.commands.rendering.table`) and one function a format.

``render_markdown``, ``render_csv``, ``render_latex`` and ``render_terminal`` are each in the module of their format.
"""
