"""Getting a request to a server and its reply back: endpoints, retries on what fails on the way, recovery."""

import asyncio
import json
import logging
import os
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit

from memsys.credentials import MASK, bearer, redacted
from memsys.endpoint_urls import asked_address
from memsys.errors import BackboneError, BackboneUnusableError
from memsys.http_bodies import BodyError, BodyTooLargeError
from memsys.llm.batches import AT_ONCE, Batches
from memsys.llm.config import BackboneConfig
from memsys.llm.endpoints import Endpoints
from memsys.llm.engines.contract import Answered, AnswersItself, Endpoint, Engine, OtherServerError, SendsBatches
from memsys.llm.engines.openai import OTHERWISE
from memsys.llm.http_client import ConnectionFailedError, ExchangeError, HttpClient, HttpRequest, Upload
from memsys.llm.rate_limits import RateLimits
from memsys.llm.refusals import (
    MOVED,
    SETTINGS,
    RepeatedFailureError,
    StatedError,
    TransientServerError,
    advice,
    refusal,
    stated_error,
    unstated_error,
)
from memsys.llm.scope import CallScope
from memsys.llm.token_usage import believed
from memsys.llm.wire import MalformedReplyError, asked_tokens
from memsys.proxies import Proxy, proxy_of
from memsys.retrying import LEAST_PAUSE, asked_pause, pause_before
from memsys.vocabulary import Json

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: Characters of a server's own words that are shown.
_LONGEST_MESSAGE = 600
#: Bytes that are shown of a reply that is not JSON: a login page, or an unrequested stream.
_BEGINNING = 80
#: Bytes of a reply that answers a small question.
_USUAL_REPLY = 4 * 1024 * 1024
_TYPE = "Content-Type"
#: Bytes of a request for each of its tokens, roughly.
_BYTES_PER_TOKEN = 4
#: Seconds that a page may take by which a server describes itself.
_LOOK_SECONDS = 10.0
#: What to do about a server that gives no reply, and about one that takes no more for now.
_AWAY = "check that the server is running and reachable"
_BUSY = "wait for its rate limit to reset, or lower backbone.max_in_flight if the limit is per minute"
#: Seconds that a file of a batch may take on its way.
_FILE_SECONDS = 600.0
#: Seconds of a pause that is said on the console.
_LONG_PAUSE = 2.0


#: Statuses of a page that is not there, and LM Studio's words for it, which it sends with status 200.
_NO_SUCH_PAGE = frozenset({404, 405})
_UNEXPECTED_PAGE = "unexpected endpoint"
_PROXY_WANTS_KEY = 407
#: OpenSSL's words for a reply that is no TLS.
_NO_TLS = "wrong version number"


class _ConnectionLostError(TransientServerError):
    """No server answers at the endpoint: the engine is asked to check its server."""


class Sent(NamedTuple, Generic[T]):
    """A reply, read, with the resends it took and the endpoint that gave it."""

    reply: T
    retries: int
    endpoint: str


class Written(NamedTuple):
    """More about a request.

    Attributes:
        text: of its body, where the caller has written it; JSON.
        later: key of the call, where its reply may come by a batch; see :meth:`Transport.takes_later`.
    """

    text: str = ""
    later: str = ""


_UNWRITTEN = Written()


class Transport:
    """Sends requests to an engine's endpoints. Belongs to one event loop.

    Args:
        config: timeouts and retries.
        engine: gives endpoints, and repairs them after a lost connection.
        log_dir: for the engine's log.
        batch_dir: for what is known of batches, where the engine sends some.
        resumes: what is sent is of a command that continues where it ended, which its errors then say.
    """

    def __init__(
        self,
        config: BackboneConfig,
        engine: Engine,
        log_dir: Path,
        batch_dir: Path | None = None,
        *,
        resumes: bool = True,
    ) -> None:
        self._config, self._engine, self._log_dir = config, engine, log_dir
        self._batch_dir, self._resumes = batch_dir or log_dir / "batches", resumes
        self._batches: Batches | None = None
        self._itself = engine if isinstance(engine, AnswersItself) else None
        self._http: HttpClient | None = None
        self._endpoints = Endpoints(engine.name, ())
        self._recovering = asyncio.Lock()
        self._recoveries = 0
        self._problem = ""  # why the last recovery failed; what answers before the next one may be another server
        self._lost = ""  # how the server was lost for which that recovery was
        self._other: OtherServerError | None = None
        self._limits: defaultdict[str, RateLimits] = defaultdict(RateLimits)  # by the base URL of the server
        self._places: dict[tuple[str, str], tuple[str, Proxy | None]] = {}  # looked up once: it takes 0.1 ms
        self._paused_until = 0.0  # of the last pause that was said
        self._disbelieved = False

    async def open(self) -> None:
        """Start the engine and open the client.

        Raises:
            BackboneError: the engine did not come up.
        """
        self._endpoints = Endpoints(self._engine.name, await asyncio.to_thread(self._engine.start, self._log_dir))
        self._http = HttpClient()
        if isinstance(self._engine, SendsBatches):
            server = self._endpoints.first.base_url
            self._batches = Batches(self._batch_dir, server, self, self._engine.batch_times)

    def takes_later(self, scope: CallScope) -> bool:
        """Return whether a call of this origin goes into a batch."""
        return self._batches is not None and self._batches.takes(scope)

    async def close(self) -> None:
        """Close the client; the engine runs on."""
        if self._batches is not None:
            await self._batches.close()
            self._batches = None
        if self._http is not None:
            await self._http.close()

    def limits(self) -> Mapping[str, float]:
        """Return the first server's limits by the minute, as far as its replies state them."""
        return self._limits[self._endpoints.first.base_url].known()

    @property
    def model(self) -> str:
        """Name by which the first server knows the model.

        Raises:
            IndexError: it is not open.
        """
        return self._endpoints.first.model

    async def look(self, path: str) -> Any:
        """Read a page by which the first server describes itself; ``None`` where it has no such page.

        Args:
            path: below its base URL; starting with ``//``, below its root.
        """
        endpoint = self._endpoints.first
        url, proxy = self._place(endpoint, path)
        try:
            request = HttpRequest("GET", url, _headers(endpoint), _address(proxy))
            answered = await self._client().exchange(request, timeout=_LOOK_SECONDS, largest=_USUAL_REPLY)
        except (ExchangeError, TimeoutError, BodyError):
            return None
        return _payload(answered.body) if answered.status == 200 else None

    async def send(
        self,
        path: str,
        body: Mapping[str, Json],
        read: Callable[[Any, float], T],
        *,
        written: Written = _UNWRITTEN,
        affinity: str = "",
        largest: int = _USUAL_REPLY,
    ) -> Sent[T]:
        """Send a request, again where it failed on the way.

        Args:
            path: below the endpoint's base URL; starting with ``//``, below the server's root.
            body: without the model's name.
            read: makes the result from the JSON reply and the seconds it took; a ``MalformedReplyError`` is retried.
            written: more about the request.
            affinity: requests of equal affinity prefer one endpoint among equally busy ones.
            largest: bytes of the reply; one that is larger is refused before it is read.

        Raises:
            BackboneError: the server refused, or failed more often than ``transport_retries`` allows.
            PromptWithheldError: a filter of the server withheld the prompt, or the reply to it.
            BackboneUnusableError: no request of this run would be taken.
            OtherServerError: another server answers at the address of ours.
        """
        retries, resent, waited, endpoint = 0, 0, 0.0, None
        text = written.text or json.dumps(body)
        while True:
            known = self._recoveries
            endpoint = self._endpoints.take(affinity, avoid=endpoint)
            try:
                await self._check_server()
                post = self._post_later(written.later) if written.later else self._post
                payload, seconds = await post(endpoint, path, body, text, largest)
                return Sent(read(self._believed(payload, text), seconds), resent, self._endpoints.label(endpoint))
            except (TransientServerError, MalformedReplyError) as error:
                failure = error
            finally:
                self._endpoints.give_back(endpoint)
            resent += 1
            if paused := await self._pause(failure, endpoint, waited):
                waited += paused
                continue
            await self._after_failure(failure, endpoint, retries, known)
            retries += 1

    def _believed(self, payload: Any, text: str) -> Any:
        """Return a reply without numbers of tokens that cannot be, and say so once."""
        payload, wrong = believed(payload, len(text if text.isascii() else text.encode()))
        if wrong and not self._disbelieved:
            self._disbelieved = True
            logger.warning(
                "backbone %s: server reported usage %s for a %d-character request; implausible counts are discarded, "
                "missing counts are computed locally and marked estimated",
                self._config.name, redacted(wrong)[:_LONGEST_MESSAGE], len(text),
            )  # fmt: skip
        return payload

    async def _pause(self, failure: Exception, endpoint: Endpoint, waited: float) -> float:
        """Wait as the server asks, as long as the request has not waited ``max_wait_s``; uses up no retry.

        Returns:
            Seconds by which the request has waited longer; 0 where the server asks for no pause, or for one too many.
        """
        asked = failure.pause if isinstance(failure, TransientServerError) else 0.0
        left = self._config.max_wait_s - waited
        if not asked or left <= 0:
            return 0.0
        pause = min(asked, left)
        self._limits[endpoint.base_url].hold(pause)
        loop = asyncio.get_running_loop()
        if pause >= _LONG_PAUSE and loop.time() + pause > self._paused_until + _LONG_PAUSE:
            self._paused_until = loop.time() + pause
            longer = f" of the {asked:.0f} s that it asks for (backbone.max_wait_s)" if pause < asked else ""
            logger.warning("%s: %s; waiting %.0f s%s", self._endpoints.label(endpoint), failure, pause, longer)
        await asyncio.sleep(pause)
        return max(pause, LEAST_PAUSE)

    async def _post(
        self, endpoint: Endpoint, path: str, body: Mapping[str, Json], text: str, largest: int
    ) -> tuple[Any, float]:
        """Make one HTTP exchange."""
        url, proxy = self._place(endpoint, path)
        headers = _headers(endpoint)
        data = _with_model(text, endpoint.model)
        through = proxy.explained(urlsplit(url).hostname or "") if proxy else ""
        limits = self._limits[endpoint.base_url]
        if limits.may_hold:
            await limits.wait(len(data) / _BYTES_PER_TOKEN + asked_tokens(body))
        begun = perf_counter()
        try:
            if self._itself is not None:
                answered = await self._itself.answer(path, body, self._config.timeout_s)
            else:
                request = HttpRequest("POST", url, headers, _address(proxy), data)
                answered = await self._client().exchange(
                    request, timeout=self._config.timeout_s, largest=largest, setting="backbone.max_reply_bytes"
                )
            limits.learn(answered.headers)
        except TimeoutError as error:
            raise TransientServerError(f"no reply within {self._config.timeout_s} s (backbone.timeout_s)") from error
        except ConnectionFailedError as error:
            plain = endpoint.setting and not through and _NO_TLS in str(error)
            hint = f"; does the server speak http, not https ({endpoint.setting})?" if plain else through
            raise _ConnectionLostError(f"{redacted(str(error))}{hint}") from error
        except ExchangeError as error:
            raise TransientServerError(f"{redacted(str(error))}{through}") from error
        except BodyTooLargeError as error:
            raise MalformedReplyError(str(error)) from error
        except BodyError as error:  # damaged on the way, as where a connection broke
            raise _ConnectionLostError(str(error)) from error
        return self._payload(answered, endpoint, url, through), perf_counter() - begun

    def _payload(self, answered: Answered, endpoint: Endpoint, url: str, through: str = "") -> Any:
        """Return the JSON of a reply.

        Raises:
            TransientServerError: it is none, or states an error that may pass.
            BackboneError: it states another error.
        """
        raw, status = answered.body, answered.status
        payload = _payload(raw)
        stated = stated_error(payload)
        if status != 200 or stated is not None:
            said = _without_key(stated or unstated_error(payload, raw), endpoint)
            if status in _NO_SUCH_PAGE or _UNEXPECTED_PAGE in said.message.lower():
                said = replace(said, message=f"{said.message} ({asked_address(url, endpoint.setting)}{through})")
            if status in MOVED and (place := answered.headers.get("location")):
                said = replace(said, message=f"requests are sent on to {redacted(place)[:_LONGEST_MESSAGE]}")
            if status == _PROXY_WANTS_KEY and through:
                raise BackboneUnusableError(
                    f"the proxy refused the request with status {status}: {said.message}{through}; put the required "
                    "user and password into its address, with @ before the host"
                )
            raise refusal(
                status, asked_pause(answered.headers, payload), said, lambda known: self._remedy(known, endpoint)
            )
        if payload is None:
            begin = _without_key(StatedError(" ".join(raw[:_BEGINNING].decode("utf-8", "replace").split())), endpoint)
            raise TransientServerError(
                f"the reply is not JSON ({asked_address(url, endpoint.setting)}); it begins {begin.message!r}"
            )
        return payload

    def _remedy(self, status: int, endpoint: Endpoint) -> str:
        """Return what to do about an error that would meet every request."""
        settings, keyless = {**SETTINGS, "address": endpoint.setting}, endpoint.api_key_env is None
        said = advice(status, settings, keyless=keyless, finds_key=keyless and self._itself is not None)
        if self._resumes:
            return f"{said}; then run the same command again: it resumes"
        return said.replace("=VARIABLE", "=VARIABLE (memsys probe: --key)")

    def _post_later(self, key: str) -> Callable[..., Awaitable[tuple[Any, float]]]:
        """Return what gets a reply by a batch, whose seconds are not known: 0."""

        async def post(
            endpoint: Endpoint, path: str, body: Mapping[str, Json], text: str, largest: int
        ) -> tuple[Any, float]:
            assert self._batches is not None
            answered = await self._batches.answer(path, _with_model(text, endpoint.model), key)
            return self._payload(answered, endpoint, endpoint.base_url + path), 0.0

        return post

    async def page(self, path: str, body: Json = None, *, file: bytes = b"", largest: int = 0) -> bytes:
        """See :class:`memsys.llm.batches.BatchPages`; tried again where that cannot do anything twice."""
        retries = 0 if body is not None else self._config.transport_retries
        for retry in count():
            try:
                return await self._page(path, body, file, largest or _USUAL_REPLY)
            except TransientServerError as error:
                if retry >= retries:
                    raise
                await asyncio.sleep(max(error.pause, pause_before(retry, self._config.backoff_s)))
        raise AssertionError

    async def _page(self, path: str, body: Json, file: bytes, largest: int) -> bytes:
        endpoint = self._endpoints.first
        url, proxy = self._place(endpoint, path)
        headers = {name: value for name, value in _headers(endpoint).items() if body is not None or name != _TYPE}
        data = None if body is None else json.dumps(body).encode()
        upload = Upload("batch", "memsys.jsonl", "application/jsonl", file) if file else None
        method = "GET" if data is None and upload is None else "POST"
        request = HttpRequest(method, url, headers, _address(proxy), data, upload)
        try:
            answered = await self._client().exchange(request, timeout=_FILE_SECONDS, largest=largest)
        except (ExchangeError, TimeoutError, BodyError) as error:
            raise TransientServerError(redacted(str(error)) or f"no reply within {_FILE_SECONDS:.0f} s") from error
        if upload is not None and answered.status in _NO_SUCH_PAGE:
            raise BackboneUnusableError(f"the server takes no batches (there is no {url}); {AT_ONCE}")
        if answered.status != 200 or not path.endswith("/content"):
            self._payload(answered, endpoint, url)
        return answered.body

    def _place(self, endpoint: Endpoint, path: str) -> tuple[str, Proxy | None]:
        """Return the address of a page, and the proxy that leads there: for hosted servers alone, not for ours."""
        known = self._places.get((endpoint.base_url, path))
        if known is None:
            url = endpoint.base_url + path
            if path.startswith("//"):
                url = endpoint.base_url.removesuffix("/v1") + path[1:]
            known = url, proxy_of(url) if self._engine.name == "openai" else None
            self._places[endpoint.base_url, path] = known
        return known

    def _client(self) -> HttpClient:
        assert self._http is not None, "the backbone is not open: use `async with Backbone(...)`"
        return self._http

    async def _after_failure(self, failure: Exception, endpoint: Endpoint, retries: int, known: int) -> None:
        """Look after the server and wait, or give up."""
        label = self._endpoints.label(endpoint)
        repair = ""
        if isinstance(failure, _ConnectionLostError):
            repair = await self._recover(known)
            if repair:
                self._lost = self._lost or str(failure)
        if retries >= self._config.transport_retries:
            busy = isinstance(failure, TransientServerError) and failure.busy
            then = ", then start the run again: it resumes" if self._resumes else ""
            raise _lasting(failure)(
                f"backbone {self._config.name} ({label}, {endpoint.base_url}) failed {retries + 1} times, last: "
                f"{failure}{repair}; {_BUSY if busy else _AWAY}{then}"
            ) from failure
        logger.info("%s: %s; sending again (%d of %d)", label, failure, retries + 1, self._config.transport_retries)
        await asyncio.sleep(pause_before(retries, self._config.backoff_s) * random.uniform(0.5, 1.0))

    async def _check_server(self) -> None:
        """See that the server is ours before anything is sent, where it was lost and has not been found since.

        Raises:
            OtherServerError: another one is in its place.
            _ConnectionLostError: it is not there yet.
        """
        self._refuse_other()
        if self._problem and (problem := await self._recover(self._recoveries)):
            raise _ConnectionLostError(f"{self._lost}{problem}")

    def _refuse_other(self) -> None:
        if self._other is not None:
            raise OtherServerError(str(self._other)) from self._other

    async def _recover(self, known: int) -> str:
        """Let the engine repair its server, once for all callers that lost it; returns what went wrong, if anything.

        Raises:
            OtherServerError: another one is in its place, which would answer if the request were sent again.
        """
        async with self._recovering:
            self._refuse_other()
            if self._recoveries != known:
                return self._problem  # another caller's recovery has come since the request was sent
            try:
                found = await asyncio.to_thread(self._engine.recover, self._log_dir)
            except OtherServerError as error:
                self._other = error
                raise
            except BackboneError as error:
                self._problem = f" ({error})"
                return self._problem
            finally:
                self._recoveries += 1
            self._endpoints.replace(found)
            self._problem = self._lost = ""
            return ""


def _lasting(failure: Exception) -> type[BackboneError]:
    """Return the error of a lasting failure: if the server responds and is not busy, one of this request alone."""
    away = isinstance(failure, _ConnectionLostError) or (isinstance(failure, TransientServerError) and failure.busy)
    return BackboneError if away else RepeatedFailureError


def _headers(endpoint: Endpoint) -> Mapping[str, str]:
    """Return the headers of a request; the key is read from the environment for each."""
    key = bearer(endpoint.api_key_env, "backbone.engine.api_key_env", OTHERWISE)
    return {_TYPE: "application/json", **key}


def _address(proxy: Proxy | None) -> str:
    return proxy.address if proxy else ""


def _with_model(text: str, model: str) -> bytes:
    """Return a request as it is sent: its body with the server's name of the model at the beginning."""
    named = _named(model)
    return (f"{named}, {text[1:]}" if text != "{}" else f"{named}}}").encode()


@lru_cache(maxsize=64)
def _named(model: str) -> str:
    return f'{{"model": {json.dumps(model)}'


def _payload(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _without_key(error: StatedError, endpoint: Endpoint) -> StatedError:
    """Return the error without the key, if the server quotes it."""
    key = os.environ.get(endpoint.api_key_env or "", "").strip()
    message = error.message.replace(key, MASK) if key else error.message
    return replace(error, message=redacted(message)[:_LONGEST_MESSAGE])
