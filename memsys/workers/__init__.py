"""Memory packages in processes of their own: the line protocol, the process, and the memory system that drives it."""
