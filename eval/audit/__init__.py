"""The audit of published answers: every run of the catalogue under every definition, without a model.

``memsys audit`` writes ``results/audit``: scores, counts and tests, and no word of a data set.
"""
