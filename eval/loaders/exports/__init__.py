"""Other people's formats, read for ``memsys convert_data``: one module per format, all in :mod:`.formats`.

A chat export has no questions; the user writes them. LoCoMo and LongMemEval are read by their own loaders.
"""
