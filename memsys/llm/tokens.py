"""Counting tokens: by the server's tokenizer, by one loaded here, or by estimate."""

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from memsys.assets.paths import models_dir
from memsys.errors import ConfigError, quoted
from memsys.extras import need_package
from memsys.llm.config import BackboneConfig
from memsys.llm.token_usage import read_count
from memsys.llm.transport import Transport
from memsys.llm.wire import MalformedReplyError
from memsys.scripts import estimated_tokens, latin_length

logger = logging.getLogger(__name__)

_REMEMBERED = 8192
#: Most tokens that a text can have: normalisation may write a character as several, and some tokenizers add a few.
_TOKENS_PER_BYTE, _SPECIAL_TOKENS = 8, 32
_SHOWN = 60
#: Of a text that is mostly of another script than Latin.
_FAR = 1.5
#: Bytes of a reply that lists the tokens of a short text, and of one more token in it.
_USUAL_REPLY, _BYTES_PER_TOKEN = 1024 * 1024, 16

Counter = Callable[[str], Awaitable[int]]


class TokenCounter:
    """Counts the tokens of texts, without special tokens, and remembers the latest counts.

    Args:
        config: says how to count.
        dialect: name of the engine.
        transport: reaches the server's tokenizer.
    """

    def __init__(self, config: BackboneConfig, dialect: str, transport: Transport) -> None:
        self._dialect, self._transport = dialect, transport
        self._known: OrderedDict[bytes, int] = OrderedDict()
        self._tokenizer: Any = None
        self._said = False
        method, _, self._name = config.token_counter.partition(":")
        methods: dict[str, Counter] = {
            "server": self._ask_server,
            "transformers": self._tokenize,
            "characters": self._quarter,
            "characters_by_script": self._estimate,
        }
        self._count = methods[method]

    async def count(self, text: str) -> int:
        """Count the tokens of ``text``."""
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        if key not in self._known:
            self._known[key] = await self._count(text)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return self._known[key]

    async def _ask_server(self, text: str) -> int:
        """Return the token count of a server: llama.cpp replies with the tokens, vLLM also with their number."""
        body = (
            {"content": text, "add_special": False}
            if self._dialect == "llamacpp"
            else {"prompt": text, "add_special_tokens": False}
        )
        largest = _USUAL_REPLY + _BYTES_PER_TOKEN * len(text)
        sent = await self._transport.send(
            "//tokenize", body, lambda payload, _: _read_count(payload, text), largest=largest
        )
        return sent.reply

    async def _tokenize(self, text: str) -> int:
        if self._tokenizer is None:
            self._tokenizer = await asyncio.to_thread(_load_tokenizer, self._name)
        return len(self._tokenizer.encode(text, add_special_tokens=False))

    async def _estimate(self, text: str) -> int:
        return estimated_tokens(text)

    async def _quarter(self, text: str) -> int:
        """Count a quarter of the characters, and say once where that is far too little."""
        if not self._said and latin_length(text) > _FAR * len(text):
            self._said = True
            logger.warning(
                "backbone.token_counter=characters counts four characters as a token, which is too few tokens of a "
                "text of this script (%d for %d characters): limits of contexts and costs are wrong; set "
                "backbone.token_counter=characters_by_script", -(-len(text) // 4), len(text),
            )  # fmt: skip
        return -(-len(text) // 4)


def _read_count(payload: Any, text: str) -> int:
    """Read the reply of ``/tokenize``: a number, or the tokens.

    Raises:
        MalformedReplyError: it holds neither, or a number that a text of this length cannot have.
    """
    said = payload if isinstance(payload, Mapping) else {}
    tokens = said.get("tokens")
    count = read_count(said["count"]) if "count" in said else len(tokens) if isinstance(tokens, list) else None
    if count is None or count > _TOKENS_PER_BYTE * len(text.encode("utf-8", "replace")) + _SPECIAL_TOKENS:
        found = said.get("count", "nothing that is a number")
        raise MalformedReplyError(
            f"/tokenize says {quoted(found, _SHOWN)} of a text of {len(text)} characters; set backbone.token_counter "
            "to transformers:<folder> or to characters_by_script to count without the server"
        )
    return count


def _load_tokenizer(name: str) -> Any:
    need_package("transformers", "torch", "backbone.token_counter=transformers:...")
    from transformers import AutoTokenizer

    folder = models_dir() / name
    try:
        return AutoTokenizer.from_pretrained(folder if folder.is_dir() else name)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"backbone.token_counter: no tokenizer {name!r} under {models_dir()} nor on the hub; name an existing one, "
            "or choose server or characters_by_script"
        ) from error
