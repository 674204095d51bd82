"""A real headless Chromium for tests of pages, driven over its own debugging protocol; no further package needed."""

import asyncio
import base64
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
#: Seconds the browser may take to come up, or to answer, on a busy machine.
PATIENCE = 60


def find_chromium() -> str:
    """Path of a Chromium, or skip the test."""
    for name in (os.environ.get("MEMSYS_CHROMIUM", ""), *NAMES):
        path = shutil.which(name) if name else None
        if path:
            return path
    pytest.skip("no Chromium here: install one (Debian: apt-get install chromium) or set MEMSYS_CHROMIUM to its path")


class Page:
    """One tab.

    Attributes:
        problems: errors that the page met: exceptions, console errors, refused loads, dialogs.
        requests: addresses that it asked for.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._loop, self._socket, self._number = loop, socket, 0
        self._events: list[dict[str, Any]] = []
        self.problems: list[str] = []
        self.requests: list[str] = []

    def send(self, method: str, **params: Any) -> Any:
        """Call the protocol and wait for its answer."""
        return self._loop.run_until_complete(asyncio.wait_for(self._send(method, params), PATIENCE))

    async def _send(self, method: str, params: Mapping[str, Any]) -> Any:
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": params})
        while True:
            message = await self._socket.receive_json()
            if message.get("id") == self._number:
                assert "error" not in message, message["error"]
                return message["result"]
            self._note(message)

    def _note(self, message: Mapping[str, Any]) -> None:
        method, params = message.get("method"), message.get("params", {})
        self._events.append(dict(message))
        if method == "Runtime.exceptionThrown":
            self.problems.append(str(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            self.problems.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.problems.append(params["entry"]["text"])
        elif method == "Page.javascriptDialogOpening":
            self.problems.append(f"dialog {params['message']}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def open(self, address: str) -> None:
        """Load an address and wait until it is there."""
        self.send("Page.navigate", url="about:blank")
        self.send("Page.navigate", url=address)
        self.wait("document.readyState === 'complete'")

    def run(self, expression: str) -> Any:
        """Value of a JavaScript expression."""
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until an expression holds."""
        end = time.monotonic() + PATIENCE
        while not self.run(expression):
            assert time.monotonic() < end, f"never became true: {expression}"
            time.sleep(0.02)

    def press(self, key: str, text: str = "") -> None:
        """Press a key where the focus is."""
        code = {"Tab": 9, "Enter": 13, "ArrowDown": 40, "ArrowUp": 38, "End": 35, "Home": 36}.get(key, 0)
        typed = {"text": text} if text else {"text": "\r"} if key == "Enter" else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **typed)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def size(self, width: int, height: int = 900, *, mobile: bool = False) -> None:
        """Set the window's size in CSS pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        self.send("Emulation.setDeviceMetricsOverride", **metrics)

    def prefer(self, scheme: str) -> None:
        """Let the system prefer ``light`` or ``dark``."""
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def pdf(self, width: float, height: float) -> bytes:
        """The page as it is printed on paper of this size, in inches."""
        made = self.send("Page.printToPDF", paperWidth=width, paperHeight=height, printBackground=True)
        return base64.b64decode(made["data"])

    def screenshot(self, path: Path) -> None:
        """Write what is seen as PNG."""
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def chromium(profile: Path) -> Iterator[Page]:
    """Start a browser with an empty profile and yield its tab."""
    command = [
        find_chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
        "--remote-debugging-port=0", "--remote-allow-origins=*", f"--user-data-dir={profile}", "about:blank",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    loop = asyncio.new_event_loop()
    try:
        session, socket = loop.run_until_complete(_connect(_port(profile, process)))
        page = Page(loop, socket)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.send(f"{domain}.enable")
        try:
            yield page
        finally:
            loop.run_until_complete(_close(session, socket))
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=20)
        if process.poll() is None:
            process.kill()
            process.wait(timeout=20)
        loop.close()


def _port(profile: Path, process: "subprocess.Popen[bytes]") -> int:
    file, end = profile / "DevToolsActivePort", time.monotonic() + PATIENCE
    while not (file.is_file() and file.read_text().strip()):
        assert process.poll() is None, f"Chromium ended with status {process.returncode}"
        assert time.monotonic() < end, "Chromium did not come up"
        time.sleep(0.05)
    return int(file.read_text().splitlines()[0])


async def _connect(port: int) -> tuple[aiohttp.ClientSession, aiohttp.ClientWebSocketResponse]:
    session = aiohttp.ClientSession()
    async with session.get(f"http://127.0.0.1:{port}/json") as reply:
        tabs = [tab for tab in await reply.json() if tab["type"] == "page"]
    return session, await session.ws_connect(tabs[0]["webSocketDebuggerUrl"], max_msg_size=0)


async def _close(session: aiohttp.ClientSession, socket: aiohttp.ClientWebSocketResponse) -> None:
    await socket.close()
    await session.close()
