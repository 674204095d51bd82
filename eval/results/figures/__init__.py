"""The papers' figures from printed and measured numbers, and our own: ``memsys plots``.

``source`` gives the papers' figures their data and ``papers`` has a module for each paper; ``own``, ``funnel``,
``scale`` and ``life_cycle`` are of measured runs. :mod:`eval.results.drawing` draws them.
"""
