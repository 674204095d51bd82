"""A language model that says of each answer whether it is right, and what is known of how well it does that.

``config`` says how it asks, ``judging`` asks, ``store`` keeps verdicts next to the run, ``probe`` measures the judge on
answers whose grade is known, ``agreement`` compares two judges. ``aligner`` asks of the events of an order, ``orders``
scores what was said. ``memsys judge RUN...`` does all.
"""
