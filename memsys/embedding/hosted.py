"""Embeddings from a server that speaks the OpenAI protocol: a provider's, vLLM's or Ollama's (POST ``/embeddings``).

xMemory and Mem0 embed with text-embedding-3-small, SAGE's open models with nomic-embed-text under Ollama. A provider
may give the same text slightly different vectors at different times; within a run every text is asked for once while
it is in the cache, and stored memories keep the vectors they got.
"""

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import numpy as np

from memsys.credentials import MASK, bearer, check_variable, redacted
from memsys.embedding.batching import BatchingEmbedder
from memsys.embedding.contract import Vectors
from memsys.embedding.store import fingerprint
from memsys.embedding.windows import cut_by_chars
from memsys.endpoint_urls import asked_address, check_base_url
from memsys.errors import BackboneError, BackboneUnusableError, ConfigError
from memsys.http_bodies import BodyError, BodyTooLargeError, exchange
from memsys.llm.refusals import MOVED, StatedError, advice, stated_error, status_of, unstated_error
from memsys.proxies import proxy_of
from memsys.retrying import LEAST_PAUSE, RETRIED_STATUS, asked_pause, pause_before
from memsys.scripts import estimated_tokens

_log = logging.getLogger(__name__)

_SETTING = "embedder.base_url"
#: A conflict is sent again too; of a backbone it counts as a fault of the request.
_RETRIED_STATUS = RETRIED_STATUS | {409}
#: Characters of a server's own words that are shown.
_LONGEST_MESSAGE = 600
#: Characters that are shown of a reply that is not JSON.
_BEGINNING = 80
_OK = 200
#: Names of the settings in what to do about an error.
_SETTINGS = {"part": "embedder", "key": "embedder.api_key_env", "model": "embedder.model", "address": _SETTING}
#: Bytes of a reply with few vectors, and of one more number in it.
_USUAL_REPLY, _BYTES_PER_NUMBER = 4 * 1024 * 1024, 64
#: Statuses of a page that is not there.
_NO_SUCH_PAGE = frozenset({404, 405})


@dataclass(frozen=True, slots=True)
class HostedEmbedderConfig:
    """Settings of a hosted embedder.

    Attributes:
        name: recorded in the run.
        model: the name the server knows the model by.
        dimension: length of a vector; checked against the reply.
        base_url: up to and including ``/v1``.
        api_key_env: environment variable that holds the key, ``None`` for servers without. Read for each request.
        max_batch: texts per request.
        max_chars: longer texts are cut here and counted; the server would refuse them.
        cache_entries: vectors kept in memory.
        timeout_s: of one request.
        retries: of a request that failed on the way.
        backoff_s: pause before the first retry; doubles with each.
        max_wait_s: seconds in all that one request waits because the server asks for it; these pauses are no retries.
    """

    #: Fields that cannot change a vector.
    RUNTIME_FIELDS: ClassVar[frozenset[str]] = frozenset(
        {"base_url", "api_key_env", "cache_entries", "timeout_s", "retries", "backoff_s", "max_wait_s"}
    )

    name: str
    model: str
    dimension: int
    base_url: str
    api_key_env: str | None
    max_batch: int
    max_chars: int
    cache_entries: int
    timeout_s: float
    retries: int
    backoff_s: float
    max_wait_s: float = 120

    def __post_init__(self) -> None:
        minima: Mapping[str, float] = {
            "dimension": 1, "max_batch": 1, "max_chars": 1, "retries": 0, "backoff_s": 0, "max_wait_s": 0
        }  # fmt: skip
        for key, least in minima.items():
            if getattr(self, key) < least:
                raise ConfigError(f"embedder.{key}={getattr(self, key)} must be at least {least}")
        if self.timeout_s <= 0:
            raise ConfigError(f"embedder.timeout_s={self.timeout_s} must be above 0")
        check_base_url("embedder.base_url", self.base_url)
        check_variable("embedder.api_key_env", self.api_key_env)

    def build(self) -> "HostedEmbedder":
        """Make the embedder.

        Raises:
            ConfigError: the key's environment variable is not set.
        """
        _headers(self)
        return HostedEmbedder(self)


class HostedEmbedder(BatchingEmbedder):
    """A micro-batching embedder over a server."""

    def __init__(self, config: HostedEmbedderConfig) -> None:
        self._server = _Server(config)
        super().__init__(
            config.name,
            config.dimension,
            self._server,
            max_batch=config.max_batch,
            cache_entries=config.cache_entries,
        )

    def keep(self, folder: Path | None) -> None:
        """See :class:`~memsys.embedding.contract.KeepsVectors`: what a provider gave once stays, and is paid once."""
        config = self._server.config
        settings = {"model": config.model, "dimension": config.dimension, "max_chars": config.max_chars}
        self._keep_in(folder and folder / f"{config.name}-{fingerprint(settings)}")

    def windows(self, text: str) -> Sequence[str]:
        """See :class:`~memsys.embedding.contract.CutsIntoWindows`; pieces of ``max_chars`` characters."""
        return cut_by_chars(text, self._server.config.max_chars)

    def statistics(self) -> Mapping[str, float]:
        """Return the counts since the embedder was made; ``truncated``: texts that were cut, ``tokens``: of all."""
        return {**super().statistics(), "truncated": self._server.truncated, "tokens": self._server.tokens.total}

    def paid(self, texts: Sequence[str]) -> int:
        """See :class:`~memsys.embedding.contract.PaidPerToken`."""
        return self._server.tokens.take(texts)


class _TransientError(Exception):
    """A failure on the way: the request is sent again. ``pause``: seconds the server asks to wait."""

    def __init__(self, what: str, pause: float = 0.0) -> None:
        super().__init__(what)
        self.pause = pause


class _TokenCounts:
    """Tokens of texts that were sent, until they are asked for; the worker thread adds, callers take."""

    def __init__(self) -> None:
        self.total = 0
        self._of_text: dict[str, int] = defaultdict(int)
        self._lock = threading.Lock()

    def add(self, texts: Sequence[str], tokens: int) -> None:
        """Share out the tokens of one request by the characters of its texts."""
        characters = sum(map(len, texts)) or 1
        seen = given = 0
        with self._lock:
            self.total += tokens
            for text in texts:
                seen += len(text)
                share = tokens * seen // characters - given
                given += share
                self._of_text[text] += share

    def take(self, texts: Sequence[str]) -> int:
        """Return the tokens of these texts since the last call."""
        with self._lock:
            return sum(self._of_text.pop(text, 0) for text in set(texts))


class _Server:
    """The blocking side: one request per batch, again where it failed on the way."""

    def __init__(self, config: HostedEmbedderConfig) -> None:
        self.config = config
        self._client: Any = None
        self.truncated = 0
        self.tokens = _TokenCounts()

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Ask for the vectors of one batch.

        Raises:
            BackboneError: the server refused, failed too often, or gave no vectors. The run can be resumed.
            ConfigError: the vectors have another dimension than the config says.
        """
        self.truncated += sum(len(text) > self.config.max_chars for text in texts)
        # providers refuse an empty string; a space replaces it
        sent = [text[: self.config.max_chars] or " " for text in texts]
        payload = self._request({"model": self.config.model, "input": sent})
        vectors = self._read(payload, len(sent))
        self.tokens.add(texts, _tokens(payload, sent))
        return vectors

    def _request(self, body: Mapping[str, Any]) -> Any:
        attempt, waited = 0, 0.0
        while True:
            try:
                return self._post(body)
            except _TransientError as error:
                if paused := self._pause(error, waited):
                    waited += paused
                    continue
                if attempt >= self.config.retries:
                    raise BackboneError(
                        f"{self._where()} failed {attempt + 1} times, last: {error}; check that the server is running "
                        "and reachable, then start the run again: it resumes"
                    ) from error
            time.sleep(pause_before(attempt, self.config.backoff_s))
            attempt += 1

    def _pause(self, error: _TransientError, waited: float) -> float:
        """Wait as the server asks, as long as the request has not waited ``max_wait_s``; uses up no retry."""
        pause = min(error.pause, self.config.max_wait_s - waited)
        if pause <= 0:
            return 0.0
        _log.warning("%s: %s; waiting %.0f s", self._where(), error, pause)
        time.sleep(pause)
        return max(pause, LEAST_PAUSE)

    def _post(self, body: Mapping[str, Any]) -> Any:
        """Make one exchange."""
        import httpx

        url = self.config.base_url.rstrip("/") + "/embeddings"
        proxy = proxy_of(url)
        through = proxy.explained(urlsplit(url).hostname or "") if proxy else ""
        if self._client is None:
            address = proxy.address if proxy else None
            self._client = httpx.Client(timeout=self.config.timeout_s, trust_env=False, proxy=address)
        headers = _headers(self.config)
        largest = _USUAL_REPLY + len(body["input"]) * self.config.dimension * _BYTES_PER_NUMBER
        try:
            response = exchange(self._client, "POST", url, largest, json=body, headers=headers)
        except BodyTooLargeError as error:
            raise BackboneError(f"{self._where()}: {error}") from error
        except BodyError as error:
            raise _TransientError(str(error)) from error
        except httpx.HTTPError as error:
            raise _TransientError(f"{type(error).__name__}: {redacted(str(error))}{through}") from error
        payload = _json(response)
        stated = stated_error(payload)
        if response.status_code != _OK or stated is not None:
            said = stated or unstated_error(payload, response.content)
            raise self._refusal(response, replace(said, message=_without_key(said.message, headers)), through)
        if payload is None:
            begin = " ".join(_without_key(response.text, headers)[:_BEGINNING].split())
            raise _TransientError(f"the reply is not JSON ({asked_address(url, _SETTING)}); it begins {begin!r}")
        return payload

    def _refusal(self, response: Any, error: StatedError, through: str) -> Exception:
        """Return the error of a status that is not 200, or of a reply that states an error."""
        status = status_of(response.status_code, error)
        place = response.headers.get("Location") if status in MOVED else None
        shown = status if response.status_code == _OK else response.status_code
        message = f"status {shown}: {f'requests are sent on to {redacted(place)}' if place else error.message}"
        if status in _RETRIED_STATUS:
            return _TransientError(message, asked_pause(response.headers, _json(response)))
        if response.status_code in _NO_SUCH_PAGE:
            message = f"{message} ({asked_address(str(response.request.url), _SETTING)}{through})"
        said = f"{self._where()} refused the request with {message}"
        remedy = advice(status, _SETTINGS, keyless=self.config.api_key_env is None)
        return (
            BackboneUnusableError(f"{said}; {remedy}; then run the same command again: it resumes")
            if remedy
            else BackboneError(said)
        )

    def _read(self, payload: Any, count: int) -> Vectors:
        """Read unit vectors in the order of the texts.

        A server may send them in any order, each with its index; without any index they are in order.
        """
        if not isinstance(payload, Mapping) or not isinstance(payload.get("data"), list):
            held = f"an object with {', '.join(payload)}" if isinstance(payload, Mapping) else "no object"
            raise BackboneError(
                f"{self._where()} gave no embeddings: its reply is {held}, where OpenAI's protocol has `data`; set "
                f"{_SETTING} to its address for that protocol"
            )
        try:
            found = payload["data"]
            numbered = found if any("index" in row for row in found) else _numbered(found)
            rows = sorted(numbered, key=lambda row: row["index"])
            vectors = np.array([row["embedding"] for row in rows], dtype=np.float64)
        except (KeyError, TypeError, ValueError) as error:
            raise BackboneError(f"{self._where()} gave no embeddings ({type(error).__name__}: {error})") from error
        if vectors.ndim != 2 or len(vectors) != count:
            raise BackboneError(f"{self._where()} gave vectors of shape {vectors.shape} for {count} texts")
        if [row["index"] for row in rows] != list(range(count)):
            raise BackboneError(f"{self._where()} gave vectors for other texts than it was sent, or one of them twice")
        if vectors.shape[1] != self.config.dimension:
            found = f"{self.config.model} has {vectors.shape[1]}"
            raise ConfigError(f"embedder.dimension={self.config.dimension}, but {found}; set it so")
        with np.errstate(over="ignore"):  # an infinite norm is refused
            norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.all((norms > 0) & np.isfinite(norms)):
            raise BackboneError(f"{self._where()} gave a vector that is zero or not finite")
        return np.ascontiguousarray(vectors / norms, dtype=np.float32)

    def _where(self) -> str:
        return f"embedder {self.config.name} ({self.config.base_url})"


def _numbered(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [{**row, "index": place} for place, row in enumerate(rows)]


def _json(response: Any) -> Any:
    """Return the JSON of a reply; ``None`` where it is not JSON."""
    try:
        return response.json()
    except (ValueError, RecursionError):
        return None


def _tokens(payload: Any, sent: Sequence[str]) -> int:
    """Return the tokens that the server says it read; estimated where it does not say."""
    usage = payload.get("usage")
    said = usage.get("prompt_tokens", usage.get("total_tokens")) if isinstance(usage, Mapping) else None
    if isinstance(said, int) and not isinstance(said, bool) and said >= 0:
        return said
    return sum(map(estimated_tokens, sent))


def _headers(config: HostedEmbedderConfig) -> Mapping[str, str]:
    """Return the headers with the key, which is read from the environment each time."""
    otherwise = "set embedder.api_key_env=null for a server without one, or choose embedder=minilm"
    return bearer(config.api_key_env, "embedder.api_key_env", otherwise)


def _without_key(text: str, headers: Mapping[str, str]) -> str:
    """Return the server's own words, without the key if it quotes it."""
    key = headers.get("Authorization", "").removeprefix("Bearer ")
    return redacted(text.replace(key, MASK) if key else text)[:_LONGEST_MESSAGE]
