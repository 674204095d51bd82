"""Keys of hosted servers: read from the environment for each use, and kept nowhere."""

import os
from collections.abc import Mapping

from memsys.errors import ConfigError


def bearer(variable: str | None, setting: str, otherwise: str) -> Mapping[str, str]:
    """Header that carries a server's key; none for a server without one.

    Args:
        variable: environment variable that holds the key; ``None``: the server asks for none.
        setting: where the configuration names the variable, for the message.
        otherwise: what to do other than export the key, for the message.

    Raises:
        ConfigError: the variable is not set.
    """
    if variable is None:
        return {}
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ConfigError(f"environment variable {variable} ({setting}) is not set; export the key, {otherwise}")
    return {"Authorization": f"Bearer {key}"}
