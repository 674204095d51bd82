"""The proxy of a request, as the environment names it; requests to this machine have none."""

import ipaddress
import os
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

from memsys.credentials import redacted
from memsys.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy.

    Attributes:
        address: with its scheme, and perhaps a user and a password.
        variable: of the environment that names it.
    """

    address: str
    variable: str

    def explained(self, host: str) -> str:
        """Return what to say of a request that failed on its way through the proxy."""
        return f" (through the proxy of the environment variable {self.variable}; NO_PROXY={host} leaves it out)"


def is_local(host: str) -> bool:
    """Return whether a host is this machine: ``localhost``, 127.0.0.0/8, ``::1``, or the unspecified address.

    Args:
        host: name or address, without brackets.
    """
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return _is_short_loopback(name)
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def _is_short_loopback(name: str) -> bool:
    """Return whether an address of fewer than four numbers, such as ``127.1``, is a loopback address."""
    if not name.replace(".", "").isdigit():
        return False
    try:
        return socket.inet_aton(name)[0] == 127
    except OSError:
        return False


def proxy_of(url: str) -> Proxy | None:
    """Return the proxy of an address; ``None`` where the environment names none, and for this machine.

    ``HTTP_PROXY`` or ``HTTPS_PROXY`` by the scheme of the address, else ``ALL_PROXY``; small letters go first.
    ``NO_PROXY`` leaves hosts out.

    Raises:
        ConfigError: it is a proxy of another kind than HTTP.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_local(host) or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    names = (f"{parts.scheme}_proxy", "all_proxy")
    for variable in (one for name in names for one in (name, name.upper())):
        address = os.environ.get(variable, "").strip()
        if address:
            return Proxy(_checked(address, variable, host), variable)
    return None


def _checked(address: str, variable: str, host: str) -> str:
    whole = address if "://" in address else f"http://{address}"
    try:
        parts = urlsplit(whole)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(
            f"environment variable {variable} names the proxy {redacted(address)!r}; requests go through HTTP proxies "
            f"alone: set it to http://host:port, unset it, or add {host} to NO_PROXY"
        )
    return whole
