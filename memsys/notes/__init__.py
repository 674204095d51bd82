"""Notes: the memories of A-Mem and CLAG, from analysis through evolution to the reader's context."""
