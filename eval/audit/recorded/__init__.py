"""Externally recorded answers, made into run folders: reading, aligning with a data set, writing.

``memsys recorded`` is the command line; ``catalogue.yaml`` lists the published files and their shapes.
"""
