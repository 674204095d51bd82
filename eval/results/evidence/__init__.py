"""Memory quality without a reader: how much of the gold evidence is stored, retrieved and shown, and what it costs.

``places`` says where a system's snapshot keeps its entries, ``storage`` counts them for a run's summary, ``stages``
follows the evidence of each question from the memory to the answer, ``report`` makes the tables.
"""
