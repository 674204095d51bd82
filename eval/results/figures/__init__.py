"""The papers' figures from printed and measured numbers, and our own: ``memsys plots``.

``sheet`` says what a figure is made of, ``draw`` draws it, ``papers`` and ``own`` make the figures.
"""
