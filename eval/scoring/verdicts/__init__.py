"""Verdicts of judges as scores, and what is known of how good each judge is.

``values`` names what a judge may say, ``store`` reads the verdicts of a run, ``orders`` scores orders of events,
``agreement`` compares two judges, ``figures`` holds what was measured of each judge, ``judge_quality`` says whether its
verdicts tell anything, and ``summary`` describes them for a run's summary. :mod:`eval.judge` asks the judges.
"""
