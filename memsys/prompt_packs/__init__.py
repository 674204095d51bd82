"""Prompt packs: the authors' own prompts, fetched from their repositories and used instead of our wording.

A ``prompt_pack.yaml`` beside a system says where each prompt stands (repository, commit, file, checksums), how it is
cut out of the file and which of our placeholders its slots are. ``make prompts`` fetches and converts them into files
that are never committed. The authors' code is parsed, never run.
"""
