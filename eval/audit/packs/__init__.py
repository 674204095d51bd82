"""Packs: a run in one file that can be passed on and checked by its recipient.

A pack is a zip archive with these files and no others (:mod:`eval.audit.packs.files`):

``manifest.json``       version of the format, whether texts are included and under which licence, sha256 of each file
``runs.jsonl``          record, settings of the scoring and summary, reduced as ``memsys export`` reduces them
``scores.parquet``      the scores of each question
``questions.jsonl``     digests of question, gold, answer and context of each question, and its text where it may be
                        passed on
``answers.jsonl``, ``retrievals.jsonl``, ``settled.jsonl``, ``conversations.jsonl``, ``calls.jsonl``  the rows of the
                        run; where texts may not be passed on, without them

``making`` writes packs, ``checking`` says what of one holds.
"""
