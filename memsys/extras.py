"""Packages that are installed on request: what needs one says which extra brings it."""

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from memsys.errors import ConfigError


def need_package(package: str, extra: str, what: str) -> None:
    """Check that a package of an extra is installed.

    Args:
        package: name that is imported.
        extra: of ``pyproject.toml``, such as ``torch``.
        what: that needs it, as the message begins.

    Raises:
        ConfigError: it is not installed.
    """
    if find_spec(package) is None:
        raise ConfigError(f"{what} needs the package {package}, which is not installed: pip install 'memsys[{extra}]'")


def installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution; ``None`` where it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
