"""A language model that says of each answer whether it is right.

``config`` says how it asks, ``judging`` asks, ``aligner`` asks of the events of an order, ``probe`` and ``people``
measure the judge on answers whose grade is known. ``memsys judge RUN...`` does all. What was said is read and scored by
:mod:`eval.scoring.verdicts`.
"""
