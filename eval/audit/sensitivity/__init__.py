"""Stored answers under every metric definition, reading of unanswerable questions and mean: who leads under which.

``config`` and ``readings`` list the ways to read a score, ``standings`` ranks the systems under each, ``terminal`` and
``markdown`` show it. ``memsys lens RUN...`` does all; runs and committed summaries will do alike.
"""
