"""Memory packages as their authors publish them, each in a process and a Python environment of its own."""
