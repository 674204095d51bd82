"""Keys of servers: read from the environment for each use, written nowhere, and taken out of whatever is written.

Settings that would hold a key are refused (:func:`check_settings` for a whole command line, :func:`check_url`,
:func:`check_variable`, :func:`check_arguments` for each part): a key belongs into an environment variable.
:func:`redacted` is for texts that may hold one all the same, such as a server's reply, a log or the command line of a
run that was refused.
"""

import os
import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from memsys.errors import ConfigError
from memsys.vocabulary import Json

MASK = "***"
#: Names of settings, arguments, query fields and environment variables whose values are secret.
_SECRET_NAME = (
    r"(?:[\w.-]*[._-])?(?:api[_-]?key|key|auth|authorization|token|secret|password|passwd|credentials?|signature|sig)"
)
_IS_SECRET = re.compile(_SECRET_NAME, re.IGNORECASE)
_USER = re.compile(r"(?<=://)[^\s/,'\"]*@")
#: A user and a password before a host, without a scheme.
_BARE_USER = re.compile(r"(?<![\w/@])[\w.+-]+\\?:[^\s:/@,'\"\[\]{}*]+@(?=[\w.-])")
_FRAGMENT = re.compile(r"(?<=://)([^\s#,'\"\]})]+)#[^\s,'\"\]})]+")
_QUERY = re.compile(r"(?<=[?&])([^\s=&#?]+)=[^\s&#'\"\]\),]+")
_ASSIGNED = re.compile(
    rf"(?<![\w.?&-])(\+*{_SECRET_NAME}=|--{_SECRET_NAME}[ =,]|"
    r"(?:api[_-]?key|password|secret):\s*|"
    rf"[\"']{_SECRET_NAME}[\"']:\s*)[^\s,&\]}}]+",
    re.IGNORECASE,
)
_BEARER = re.compile(r"\b(Bearer|Basic)\s+(?=\S*\d|\S{16})[\w.~+/=-]{8,}", re.IGNORECASE)
#: A setting that names the environment variable with a key; its value is often the key itself.
_NAMES_VARIABLE = re.compile(rf"({_SECRET_NAME}_env[\"']?\s*[=:]\s*)([^\s}}]+)", re.IGNORECASE)
_IS_VARIABLE_SETTING = re.compile(rf"{_SECRET_NAME}_env", re.IGNORECASE)
#: How the keys of known services begin, wherever they are written.
_KNOWN_KEY = re.compile(
    r"(?<![\w-])(?:sk-(?:proj|ant|or|svcacct)-[\w-]{8,}|sk-(?=[\w-]*\d)[\w-]{16,}|hf_\w{20,}|gh[pousr]_\w{20,}|"
    r"github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|gsk_\w{20,}|"
    r"nvapi-[\w-]{20,}|pplx-\w{20,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]+)"
)
#: Query fields that are no secret.
_PUBLIC_FIELDS = frozenset({"api-version", "version"})
#: Shorter values of environment variables are not looked for in texts: they would be found in ordinary words.
_SHORTEST_KEY = 8
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
#: What a variable's name may be: its name, nothing, or what OmegaConf fills in.
_NO_KEY = re.compile(r"[A-Z_][A-Z0-9_]*|null|None|(?:)|\$\{.*|\*+", re.DOTALL)


def bearer(variable: str | None, setting: str, otherwise: str) -> Mapping[str, str]:
    """Return the header that carries a server's key; none for a server without one.

    Args:
        variable: environment variable that holds the key; ``None``: the server asks for none.
        setting: where the configuration names the variable, for the message.
        otherwise: what to do other than export the key, for the message.

    Raises:
        ConfigError: the variable is not set, or its value cannot be sent in a header.
    """
    if variable is None:
        return {}
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ConfigError(f"environment variable {variable} ({setting}) is not set; export the key, {otherwise}")
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(
            f"environment variable {variable} ({setting}) holds a line break or another character that no key has; "
            "export the key alone, in one line"
        )
    return {"Authorization": f"Bearer {key}"}


def check_variable(setting: str, variable: str | None) -> None:
    """Refuse what is not a name of an environment variable: often the key itself.

    Raises:
        ConfigError: names the setting, not its value.
    """
    if variable is not None and not (isinstance(variable, str) and _VARIABLE.fullmatch(variable)):
        raise ConfigError(
            f"{setting} must be the name of an environment variable, in capital letters, digits and underscores, not "
            "the key itself; export the key under such a name"
        )


def check_settings(overrides: Sequence[str]) -> None:
    """Refuse settings of a command line, ``key=value``, that hold a key or a password.

    Raises:
        ConfigError: shows the setting without its value.
    """
    for override in overrides:
        if _without_named(override) != override:
            raise ConfigError(
                f"{redacted(override)}: a key or password does not belong on a command line, which is recorded; put it "
                "into an environment variable and name that, in capital letters, with api_key_env"
            )


def check_url(setting: str, url: str, example: str) -> None:
    """Refuse an invalid address, or one that holds a user, a password or a query, where keys are put.

    Raises:
        ConfigError: names the setting; an address that may hold a key is not quoted.
    """
    try:
        parts = urlsplit(url)
        wrong = parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0
    except (ValueError, AttributeError, TypeError):
        raise ConfigError(f"{setting} holds no address of the form {example}") from None
    if "@" in url or parts.query or parts.fragment:
        name = setting.rpartition(".")[0]
        raise ConfigError(
            f"{setting} must hold no user, password or query: addresses are recorded; use {name}.api_key_env"
        )
    if wrong:
        raise ConfigError(f"{setting}: {url!r} is not an address of the form {example}")


def check_arguments(setting: str, arguments: Sequence[str], instead: str) -> None:
    """Refuse arguments of a command line that hold a key: all processes see them, and runs record them.

    Raises:
        ConfigError: names the argument, not its value.
    """
    for argument in arguments:
        name = str(argument).partition("=")[0]
        if name.startswith("-") and _IS_SECRET.fullmatch(name.lstrip("-")):
            raise ConfigError(f"{setting} must not hold {name}: arguments are recorded; {instead}")


def redacted(text: str) -> str:
    """Take keys out of a text: of addresses, behind names such as ``api_key=``, values of the environment's keys."""
    for key in _environment_keys():
        text = text.replace(key, MASK)
    return _without_named(text)


def _without_named(text: str) -> str:
    """Take out what addresses and names mark as a key; the same on every machine.

    Functions and no templates, which :mod:`re` imports when they are first used: lines of a log are also written while
    Python is shutting down.
    """
    text = _USER.sub(f"{MASK}@", text)
    text = _BARE_USER.sub(f"{MASK}@", text)
    text = _FRAGMENT.sub(lambda match: f"{match[1]}#{MASK}", text)
    text = _QUERY.sub(_field, text)
    text = _NAMES_VARIABLE.sub(_variables, text)
    text = _KNOWN_KEY.sub(MASK, text)
    text = _ASSIGNED.sub(lambda match: f"{match[1]}{MASK}", text)
    return _BEARER.sub(lambda match: f"{match[1]} {MASK}", text)


def _field(match: re.Match[str]) -> str:
    return match[0] if match[1].lower() in _PUBLIC_FIELDS else f"{match[1]}={MASK}"


def _variables(match: re.Match[str]) -> str:
    """Return the names of environment variables among some values; values that cannot be names are removed."""
    values = match[2].split(",")
    ours = next((number for number, each in enumerate(values) if number and re.search(r"[=:]", each)), len(values))
    kept = [each if _NO_KEY.fullmatch(each.strip("[]()\"'`.;:")) else MASK for each in values[:ours]]
    return match[1] + ",".join([*kept, *values[ours:]])


def _environment_keys() -> list[str]:
    """Return the values of the environment's variables that are named like keys, longest first."""
    found = {
        value.strip() for name, value in os.environ.items() if _IS_SECRET.fullmatch(name) and not name.endswith("_SOCK")
    }
    return sorted((key for key in found if len(key) >= _SHORTEST_KEY), key=len, reverse=True)


def without_secrets(tree: Json) -> Json:
    """Copy a tree of settings without keys, for records and hashes."""
    if isinstance(tree, Mapping):
        return {
            key: MASK if isinstance(value, str) and _is_secret(str(key), value) else without_secrets(value)
            for key, value in tree.items()
        }
    if isinstance(tree, list | tuple):
        return _without_arguments(tree)
    return _without_named(tree) if isinstance(tree, str) else tree


def _is_secret(name: str, value: str) -> bool:
    """Return whether a setting of this name and value holds a key."""
    named = _IS_VARIABLE_SETTING.fullmatch(name) and not _NO_KEY.fullmatch(value)
    return bool(value and (_IS_SECRET.fullmatch(name) or named))


def _without_arguments(items: Sequence[Json]) -> list[Json]:
    """Copy a list; a value that follows an argument such as ``--api-key`` is taken out."""
    copied: list[Json] = []
    secret = False
    for item in items:
        copied.append(MASK if secret and isinstance(item, str) else without_secrets(item))
        secret = isinstance(item, str) and item.startswith("-") and bool(_IS_SECRET.fullmatch(item.lstrip("-")))
    return copied
