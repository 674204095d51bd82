"""Prompt packs: the authors' own prompts, fetched from their repositories and used instead of our prompts.

A ``prompt_pack.yaml`` next to a system says where each prompt is (repository, commit, file, checksums; or the lines
of a paper's text, which the user provides), how it is cut out and which of our placeholders its slots are.
``make prompts`` fetches and converts them into files that are never committed. The authors' code is parsed, never run.
"""
