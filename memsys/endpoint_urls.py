"""Base addresses of servers that speak OpenAI's protocol, as people write them."""

from urllib.parse import urlsplit

from memsys.credentials import check_url
from memsys.errors import ConfigError

#: Pages of the protocol, which clients add to the base address themselves.
_PAGES = ("/chat/completions", "/completions", "/responses", "/embeddings", "/models")


def check_base_url(setting: str, url: str) -> None:
    """Refuse an invalid address, one that may hold a key, or one that names one page of the protocol.

    Raises:
        ConfigError: names the setting.
    """
    _check_azure(setting, url)
    check_url(setting, url, "https://host/v1")
    for page in _PAGES:
        base = url.rstrip("/").removesuffix(page)
        if base != url.rstrip("/"):
            raise ConfigError(f"{setting}: {url} names the page {page}, which is added to each request; write {base}")


def _check_azure(setting: str, url: str) -> None:
    """Refuse the address of one deployment and version, as Azure's own pages show it, with the one to write."""
    try:
        parts = urlsplit(url)
        own = (parts.hostname or "").endswith(".azure.com")
    except (ValueError, AttributeError, TypeError):
        return  # no address at all
    if own and ("api-version=" in parts.query or parts.path.startswith("/openai/deployments/")):
        raise ConfigError(
            f"{setting}: Azure takes requests of OpenAI's protocol at https://{parts.hostname}/openai/v1, without "
            "api-version; write that, and name the deployment as the model"
        )


def asked_address(url: str, setting: str) -> str:
    """Return what to say of an address at which no such page is.

    Args:
        url: that was asked.
        setting: that holds its base; empty where none does.
    """
    parts = urlsplit(url)
    lacks = setting and parts.path in _PAGES
    hint = f"; most servers want /v1 in {setting}: {parts.scheme}://{parts.netloc}/v1" if lacks else ""
    return f"asked: {url}{hint}"
