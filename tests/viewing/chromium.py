"""Pages in headless Chromium, by its DevTools protocol: pictures, scripts, and what the console says."""

import base64
import contextlib
import io
import itertools
import json
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = "--headless=new --no-sandbox --disable-dev-shm-usage --use-gl=angle --use-angle=swiftshader"
OPTIONS += " --enable-unsafe-swiftshader --no-first-run --remote-debugging-port=0"


class Page:
    """One page; `said` are warnings and errors of its console, `failed` the requests that went wrong."""

    def __init__(self, socket):
        self.socket, self.numbers = socket, itertools.count(1)
        self.errors: list[str] = []
        self.fetched: list[str] = []  # addresses of a network
        self.port = "None"  # of the page's server
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        """Return the result of a command; retry while the browser changes the page."""
        end = time.monotonic() + 20.0
        while True:
            answer = self._asked(method, params)
            if "error" not in answer:
                return answer["result"]
            assert "Not attached" in str(answer["error"]) and time.monotonic() < end, answer  # noqa: PT018
            time.sleep(0.2)

    def _asked(self, method, params):
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.recv(timeout=120))
            if message.get("id") == number:
                return message
            self._listen(message)

    def _listen(self, message):
        params = message.get("params", {})
        if message.get("method") == "Network.requestWillBeSent" and re.match("https?:", params["request"]["url"]):
            self.fetched.append(params["request"]["url"])
        if message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(params["exceptionDetails"])[:500])
        if message.get("method") == "Runtime.consoleAPICalled" and params["type"] == "error":
            self.errors.append(json.dumps(params["args"])[:500])
        if message.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            text = params["entry"]["text"]
            if not re.search(rf"'ws://localhost:(?!{self.port}\b)", text):  # of an earlier page, whose server has ended
                self.errors.append(text)

    def open(self, url, width=1300, height=800):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url="about:blank")  # so that the last page writes nothing more
        self.wait("location.href === 'about:blank' && document.readyState === 'complete'")
        self.errors.clear()
        self.fetched.clear()
        self.port = str(urlsplit(url).port)
        self.call("Page.navigate", url=url)

    def run(self, script):
        """The value of an expression."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait(self, script, seconds=60.0):
        """Wait until an expression is true, and return its value."""
        end = time.monotonic() + seconds
        while not (value := self.run(script)):
            assert time.monotonic() < end, f"not within {seconds} s: {script}"
            time.sleep(0.1)
        return value

    def picture(self, clip=None, path=None):
        """Return the picture (h, w, 3); clip: x, y, width, height in pixels."""
        options = {} if clip is None else {"clip": dict(zip(("x", "y", "width", "height"), clip)) | {"scale": 1}}
        data = base64.b64decode(self.call("Page.captureScreenshot", format="png", **options)["data"])
        if path is not None:
            Path(path).write_bytes(data)
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)

    @contextlib.contextmanager
    def another_tab(self):
        """Another Page of the same browser, which is closed at the end."""
        from websockets.sync.client import connect

        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        host, port = self.socket.remote_address[:2]
        with connect(f"ws://{host}:{port}/devtools/page/{target}", max_size=None, open_timeout=60) as socket:
            yield Page(socket)
        self.call("Target.closeTarget", targetId=target)

    def press(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


@contextlib.contextmanager
def chromium():
    """A Page of a separate browser; the test is skipped without one."""
    program = next((result for name in NAMES if (result := shutil.which(name))), None)
    if program is None:
        pytest.skip("no Chromium on this machine")
    from websockets.sync.client import connect

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = [program, *OPTIONS.split(), f"--user-data-dir={folder}", "about:blank"]
        browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            port = _port(Path(folder) / "DevToolsActivePort", browser)
            with connect(_address(port), max_size=None, open_timeout=60) as socket:
                yield Page(socket)
        finally:
            browser.terminate()
            browser.wait(30)


def _port(file, browser):
    """the file that the browser writes when it is ready"""
    end = time.monotonic() + 60.0
    while not file.exists() or "\n" not in file.read_text():
        if browser.poll() is not None or time.monotonic() > end:
            pytest.skip("Chromium does not start here")
        time.sleep(0.05)
    return int(file.read_text().split()[0])


def _address(port):
    import urllib.request

    end = time.monotonic() + 60.0
    while time.monotonic() < end:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=30) as answer:
            pages = [x for x in json.load(answer) if x["type"] == "page"]
        if pages:
            return pages[0]["webSocketDebuggerUrl"]
        time.sleep(0.05)
    pytest.skip("Chromium shows no page")
