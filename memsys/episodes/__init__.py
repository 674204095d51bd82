"""Episodes: what Nemori and xMemory share, from messages through boundaries and stories to lasting facts.

xMemory's code is a fork of Nemori's; these steps and their prompts are the same in both, and so are their requests.
"""
