"""What a browser sees of the page, for `bench.page`: `WORK CONVERSATIONS ROUNDS WORDS`.

A real Chromium, driven by Playwright, in front of a server in a process of its own. "On the screen" is the
second frame after the change is in the document.
"""

from __future__ import annotations

import http.client
import http.server
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from playwright.sync_api import Browser, Page, sync_playwright
from tests.browser.chromium import chromium_arguments, find_chromium

from bench.page_host import TOKEN
from bench.rig import CHILD_S, tell

PAUSE_S = 0.2
"""Between two words, so that none of them is held back to join the one before."""
WATCH = """
  window.laneway = { words: {}, readable: 0 };
  const afterFrames = (act) => requestAnimationFrame(() => requestAnimationFrame(act));
  const look = () => {
    const log = document.querySelector(".log");
    if (!laneway.readable && log && log.querySelector(".entry")) {
      laneway.readable = -1;
      afterFrames(() => { laneway.readable = performance.now(); });
    }
    const { wanted } = laneway;
    if (wanted && !(wanted in laneway.words) && log && log.textContent.includes(wanted)) {
      laneway.words[wanted] = 0;
      afterFrames(() => { laneway.words[wanted] = Date.now(); });
    }
  };
  new MutationObserver(look).observe(document, { childList: true, subtree: true, characterData: true });
"""
CHOOSE = """
  ([id, title]) => new Promise((done) => {
    const began = performance.now();
    const look = () => {
      const isShown = document.querySelector("h1").textContent === title && document.querySelector(".entry");
      requestAnimationFrame(isShown ? () => done(performance.now() - began) : look);
    };
    location.hash = `#/chat/${id}`;
    look();
  })
"""
UNTIL = """
  () => new Promise((done) => {
    const look = () => { const value = EXPRESSION; if (value > 0) done(value); else setTimeout(look, 10); };
    look();
  })
"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


class Host:
    """The server's process, and orders to it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.address: str = self._read()["address"]
        self.port = urlsplit(self.address).port or 0

    def order(self, *words: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(words).encode() + b"\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        answer: dict[str, Any] = msgspec.json.decode(self._process.stdout.readline())
        return answer

    def get(self, path: str) -> bytes:
        return self.request(path).read()

    def request(self, path: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=CHILD_S)
        connection.request("GET", path, headers={"authorization": f"Bearer {TOKEN}"})
        return connection.getresponse()


@contextmanager
def host(work: Path) -> Iterator[Host]:
    arguments = [sys.executable, "-m", "bench.page_host", str(work), "serve"]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield Host(process)
        finally:
            process.communicate(timeout=CHILD_S)  # closes its standard input, which ends it


class BareReader:
    """Reads the stream of events as a program would, and notes when each word came."""

    def __init__(self, host: Host) -> None:
        self.words: dict[str, float] = {}
        self.wanted = ""
        self._response = host.request("/api/events")
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while line := self._response.readline():
            if self.wanted and self.wanted not in self.words and self.wanted.encode() in line:
                self.words[self.wanted] = time.time()


@contextmanager
def static_file(folder: Path) -> Iterator[str]:
    """Serves a folder, as plainly as can be."""
    handler = partial(_Silent, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


class _Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def tab(browser: Browser) -> Iterator[Page]:
    """In a browser of its own: nothing is cached."""
    context = browser.new_context()
    context.add_init_script(WATCH)
    try:
        yield context.new_page()
    finally:
        context.close()


def until_positive(page: Page, expression: str) -> float:
    """Its value. The page's policy forbids what Playwright's own waiting does."""
    value: float = page.evaluate(UNTIL.replace("EXPRESSION", expression))
    return value


def opening(browser: Browser, host: Host, first: str, work: Path, rounds: int) -> list[dict[str, float]]:
    """The page on a long conversation, and the same conversation as one static file (its export)."""
    taken: list[dict[str, float]] = []
    (work / "static").mkdir()
    (work / "static" / "export.html").write_bytes(host.get(f"/api/chat/conversations/{first}/export"))
    with static_file(work / "static") as origin:
        for number in range(rounds + 1):
            with tab(browser) as page:
                page.goto(f"{origin}/export.html")
                static = until_positive(page, PAINT)
            with tab(browser) as page:
                page.goto(f"{host.address}&to=/chat/{first}")
                paint = until_positive(page, PAINT)
                readable = until_positive(page, "laneway.readable")
            if number:  # the first one warms both servers
                taken.append({"static": static, "paint": paint, "readable": readable})
    return taken


def words(page: Page, host: Host, reader: BareReader, first: str, count: int) -> list[dict[str, float]]:
    """Milliseconds from a lane's word to a bare reader of the stream, and to the screen."""
    taken: list[dict[str, float]] = []
    for _ in range(count):
        time.sleep(PAUSE_S)
        # The words are numbered, so the next one is known before it is told.
        wanted = f"word{len(reader.words) + 1:05}."
        page.evaluate("(word) => { laneway.wanted = word; }", wanted)
        reader.wanted = wanted
        told = host.order("word", first)
        assert told["word"] == wanted, told
        seen = until_positive(page, f"laneway.words['{wanted}']")
        taken.append({"read": (reader.words[wanted] - told["at"]) * 1e3, "seen": seen - told["at"] * 1e3})
    return taken


def heap_mb(page: Page) -> float:
    """What the page's JavaScript holds after a collection."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics = session.send("Performance.getMetrics")["metrics"]
    session.detach()
    return next(float(each["value"]) for each in metrics if each["name"] == "JSHeapUsedSize") / 1e6


def visit(
    browser: Browser, host: Host, ids: list[str], work: Path, rounds: int, count: int
) -> dict[str, Any]:
    first, others = ids[0], ids[1:]
    result: dict[str, Any] = {"opening": opening(browser, host, first, work, rounds)}
    with tab(browser) as page:
        page.goto(f"{host.address}&to=/chat/{first}")
        until_positive(page, "laneway.readable")
        reader = BareReader(host)
        host.order("hold", first)
        result["idle"] = words(page, host, reader, first, count)
        result["memory_one"], result["heap_one"] = host.order("memory")["kb"], heap_mb(page)
        title = "conversation {}, turn 0".format
        result["choosing"] = [
            page.evaluate(CHOOSE, [each, title(number)]) for number, each in enumerate(others, start=1)
        ]
        page.evaluate(CHOOSE, [first, title(0)])
        result["memory_all"], result["heap_all"] = host.order("memory")["kb"], heap_mb(page)
        host.order("hold", *others)
        host.order("busy", *others)
        result["busy"] = words(page, host, reader, first, count)
    return result


def measure(work: Path, conversations: int, rounds: int, count: int) -> dict[str, Any]:
    prepared = subprocess.run(
        [sys.executable, "-m", "bench.page_host", str(work), "prepare", str(conversations)],
        stdout=subprocess.PIPE,
        check=True,
    )
    ids: list[str] = msgspec.json.decode(prepared.stdout)["conversations"]
    with host(work) as served, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=chromium_arguments())
        result = visit(browser, served, ids, work, rounds, count)
        result["chromium"] = browser.version
        browser.close()
    return result


if __name__ == "__main__":
    tell(measure(Path(sys.argv[1]), *map(int, sys.argv[2:5])))
