"""Metrics: pure functions of one prediction and one reference, named after the papers that use them.

:mod:`eval.metrics.registry` lists them all with their sources.
"""
