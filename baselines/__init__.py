"""The systems that the papers' own are compared with, on the same protocol. Never imports a paper's system."""
