"""Advice in messages that differs between a source checkout and an installed package."""

from memsys.assets import paths


def in_checkout(advice: str, otherwise: str) -> str:
    """Choose between the advice for a source checkout and that for an installed package."""
    return otherwise if paths.is_installed() else advice


def of_source(path: str) -> str:
    """Name a page or script that only the source has, such as ``docs/models.md``."""
    return in_checkout(path, f"{path} of memsys's source")
