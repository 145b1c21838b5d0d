"""A program for the inside of a sandbox: it opens an address or a file in a headless Chromium and writes what a person would see.

``argv``: the browser, the address, the directory for ``page.json`` and ``page.png``, the seconds it may take, and how many pixels
the picture may be high. Status 3: the page cannot be shown; why is on standard output.
"""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PROXY = "127.0.0.1:3128"
WIDTH, HEIGHT = 1280, 900
MOST_TEXT = 1_000_000
MOST_MESSAGE = 64 << 20
MOST_ERRORS, MOST_ERROR = 20, 400
SETTLES = 1.5
"""Seconds after a page was loaded in which its scripts may still change it."""
BLOCKED = "Blocked by sandbox network policy"
FLAGS = (
    "--headless",
    "--no-sandbox",  # the sandbox around this program is the boundary
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--hide-scrollbars",
    "--mute-audio",
    "--no-first-run",
    "--no-default-browser-check",
    "--password-store=basic",
    "--remote-debugging-pipe",
    f"--proxy-server=http://{PROXY}",
    "--proxy-bypass-list=<-loopback>",  # what the page calls localhost goes to the proxy, too, which refuses it
)
LOOK = f"""({{
  title: document.title.slice(0, 1000), url: location.href.slice(0, 2000),
  text: (document.body ? document.body.innerText : '').slice(0, {MOST_TEXT}),
  height: Math.max(document.documentElement.scrollHeight, document.body ? document.body.scrollHeight : 0),
}})"""


class Unshown(Exception):
    """``str`` goes on a sentence that begins with the address."""


class Browser:
    """Chromium behind a pair of pipes, over which it speaks its DevTools protocol. https://chromedevtools.github.io/devtools-protocol"""

    def __init__(self, binary: str, profile: Path, until: float) -> None:
        self.until, self.events, self._count, self._data = until, [], 0, b""
        self.session: str | None = None
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()

        def wire() -> None:
            # Elsewhere first: one of them may be 3 or 4.
            high = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [binary, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=wire,
            close_fds=False,
        )
        os.close(theirs_in)
        os.close(theirs_out)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """What it answers. Events that come meanwhile are kept. Raises Unshown."""
        self._count += 1
        self._send(self._count, method, params)
        while True:
            message = self._receive(self.until)
            if message is None:
                raise Unshown("keeps the browser busy, or does not answer in time. Try another source.")
            if message.get("id") == self._count:
                if "error" in message:
                    raise Unshown(f"cannot be shown: {message['error'].get('message', '')[:200]}")
                return message["result"]

    def wait(self, event: str, seconds: float) -> bool:
        """Whether it came, now or before."""
        until = min(self.until, time.monotonic() + seconds)
        while not any(one["method"] == event for one in self.events):
            if self._receive(until) is None:
                return False
        return True

    def settle(self, seconds: float) -> None:
        until = min(self.until, time.monotonic() + seconds)
        while self._receive(until) is not None:
            pass

    def _receive(self, until: float) -> dict[str, Any] | None:
        while b"\0" not in self._data:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._in], [], [], left)[0]:
                return None
            piece = os.read(self._in, 1 << 20)
            if not piece:
                raise Unshown("made the browser crash. Try another source.")
            self._data += piece
            if len(self._data) > MOST_MESSAGE:
                raise Unshown("is too large to be shown.")
        raw, _, self._data = self._data.partition(b"\0")
        message = json.loads(raw)
        if message.get("method") == "Page.javascriptDialogOpening":
            self._send(0, "Page.handleJavaScriptDialog", {"accept": False})
        elif "method" in message and len(self.events) < 10_000:
            self.events.append(message)
        return message

    def _send(self, number: int, method: str, params: dict[str, Any]) -> None:
        request = {"id": number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self._out, json.dumps(request).encode() + b"\0")


def shown(browser: Browser, url: str, seconds: float, most_height: int) -> tuple[dict[str, Any], bytes]:
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    browser.call("Browser.setDownloadBehavior", behavior="deny")
    browser.session = session
    for method in ("Page.enable", "Network.enable", *(("Runtime.enable", "Log.enable") if is_file(url) else ())):
        browser.call(method)
    size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", **size)
    navigation = browser.call("Page.navigate", url=url)
    failed = "errorText" in navigation
    loaded = not failed and browser.wait("Page.loadEventFired", seconds * 0.6)
    if not failed:
        browser.settle(SETTLES)
    refuse(browser.events, navigation)
    # A world of our own: the page's scripts have no say in what this reads.
    world = browser.call("Page.createIsolatedWorld", frameId=navigation["frameId"])["executionContextId"]
    look = browser.call("Runtime.evaluate", expression=LOOK, contextId=world, returnByValue=True, timeout=3000)
    page = look.get("result", {}).get("value")
    ordinary = ("http://", "https://", *(("file://",) if is_file(url) else ()))
    if not isinstance(page, dict) or not str(page["url"]).startswith(ordinary):
        raise Unshown("shows no page.")
    height = max(1, min(int(page["height"]), most_height))
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
    taken = browser.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
    page |= {"loaded": loaded, "shown_height": height, "errors": errors_of(browser.events)}
    return page, base64.b64decode(taken["data"])


def is_file(url: str) -> bool:
    return url.startswith("file://")


def errors_of(events: list[dict[str, Any]]) -> list[str]:
    """Return what a page's scripts and the browser wrote to the console as errors, the first ones."""
    found: list[str] = []
    for event in events:
        given = event["params"]
        if event["method"] == "Runtime.exceptionThrown":
            about = given["exceptionDetails"]
            text = about.get("exception", {}).get("description") or about["text"]
            found.append(f"{text} ({about.get('url', '')}:{about['lineNumber'] + 1})")
        elif event["method"] == "Runtime.consoleAPICalled" and given["type"] in ("error", "assert"):
            found.append(" ".join(str(one.get("value", one.get("description", ""))) for one in given["args"]))
        elif event["method"] == "Log.entryAdded" and given["entry"]["level"] == "error":
            found.append(f"{given['entry']['text']} ({given['entry'].get('url', '')})")
    return [text[:MOST_ERROR] for text in dict.fromkeys(found)][:MOST_ERRORS]


def refuse(events: list[dict[str, Any]], navigation: dict[str, Any]) -> None:
    """Raise what the page's own address, or the last one that redirects led to, answered if that is no page."""
    documents = [
        one["params"]
        for one in events
        if one["method"] == "Network.responseReceived"
        and one["params"]["type"] == "Document"
        and one["params"].get("frameId") == navigation.get("frameId")
    ]
    answer = documents[-1]["response"] if documents else {}
    if answer.get("statusText") == BLOCKED or "ERR_TUNNEL" in navigation.get("errorText", ""):
        raise Unshown("leads to where this installation does not go, or cannot be reached.")
    if answer.get("status", 200) >= 400:
        raise Unshown(f"answered {answer['status']}.")
    if text := navigation.get("errorText"):
        if text == "net::ERR_ABORTED":
            raise Unshown("is a file, not a page. Use web_fetch.")
        raise Unshown(f"cannot be loaded ({text}). Is the address right?")


def main(binary: str, url: str, directory: str, seconds: str, most_height: str) -> None:
    Path(directory).mkdir(parents=True, exist_ok=True)
    browser = Browser(binary, Path(directory, "profile"), time.monotonic() + float(seconds))
    try:
        page, picture = shown(browser, url, float(seconds), int(most_height))
        Path(directory, "page.png").write_bytes(picture)
        Path(directory, "page.json").write_text(json.dumps(page))
    except Unshown as error:
        sys.stdout.write(str(error))
        sys.exit(3)
    finally:
        browser.process.kill()


if __name__ == "__main__":
    main(*sys.argv[1:])
