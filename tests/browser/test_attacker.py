"""A page of somebody else, on another port of this machine, gets nothing and changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from laneway.doors.chat.messages import Place
from laneway.doors.chat.outputs import FileShown, Said, TextDelta, TextDone, Told
from laneway.testing.hand_chat import HandChat, approval
from tests.browser.chromium import ATTACKER_HOST
from tests.browser.support import TOKEN, Tab, chat_page, conversation_of, window

pytestmark = pytest.mark.asyncio(loop_scope="session")
ATTEMPTS = """
async ([target, token]) => {
  const results = {};
  const attempt = async (name, work) => {
    try { results[name] = String(await work()); } catch (problem) { results[name] = "refused"; }
  };
  const opened = (make) => new Promise((done, failed) => {
    const thing = make();
    thing.onopen = thing.onload = () => done("open");
    thing.onerror = failed;
  });
  const withToken = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const post = { method: "POST", headers: { ...withToken, "idempotency-key": "attacker-000" }, body: "{}" };
  await attempt("read", async () => (await fetch(`${target}/api/chat/conversations`)).status);
  const read = { headers: withToken };
  await attempt("read with the token", async () => (await fetch(`${target}/api/page`, read)).status);
  const conversations = `${target}/api/chat/conversations`;
  await attempt("write with the token", async () => (await fetch(conversations, post)).status);
  await attempt("the page itself", async () => (await fetch(`${target}/`)).status);
  await attempt("a module of it", async () => (await import(`${target}/static/page/wire.js`)).takeToken);
  await attempt("events", () => opened(() => new EventSource(`${target}/api/events`)));
  await attempt("socket", () => opened(() => new WebSocket(`${target.replace("http", "ws")}/api/events`)));
  await attempt("script", () => opened(() => document.head.appendChild(
    Object.assign(document.createElement("script"), { src: `${target}/api/page` }))));
  await attempt("picture", () => opened(() => document.body.appendChild(
    Object.assign(document.createElement("img"), { src: `${target}/static/page/icon.svg` }))));
  // Sent without asking: opaque to this page, and refused by the server.
  await attempt("blind write", async () => (await fetch(`${target}/api/chat/conversations`,
    { method: "POST", mode: "no-cors", body: "{}" })).type);
  return results;
}
"""


class AttackerServer:
    """Serves one empty page, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.asked.append(head.split(b" ")[1].decode())
        body = b"<!doctype html><title>Free prizes</title><body>"
        length = b"content-length: %d\r\n" % len(body)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n" + length)
        writer.write(b"\r\n" + body)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def attacker_server() -> AsyncIterator[AttackerServer]:
    attacker = AttackerServer()
    server = await asyncio.start_server(attacker.serve, "127.0.0.1", 0)
    attacker.port = server.sockets[0].getsockname()[1]
    async with server:
        yield attacker


async def test_a_page_on_another_port_gets_nothing(browser: Browser, tmp_path: Path) -> None:
    """By fetch, stream, socket, script, picture and form; not even if it knew the token."""
    async with (
        asyncio.timeout(90),
        chat_page(HandChat(), tmp_path) as served,
        attacker_server() as attacker,
        window(browser) as context,
    ):
        chat: Any = served.chat
        tab = Tab(await context.new_page())
        await tab.open(served.address)
        before = list(chat.conversations)
        page = await context.new_page()
        await page.goto(f"http://127.0.0.1:{attacker.port}/")
        results = await page.evaluate(ATTEMPTS, [served.origin, TOKEN])
        assert results.pop("blind write") in ("opaque", "refused")
        assert set(results.values()) == {"refused"}, results
        # A form, which browsers let any page send; its answer replaces the attacker's page.
        await page.evaluate(
            """(action) => {
              const form = Object.assign(document.createElement("form"), { method: "POST", action });
              document.body.append(form);
              form.submit();
            }""",
            f"{served.origin}/api/chat/conversations",
        )
        await expect(page.locator("body")).to_contain_text("Pages of this origin may not speak")
        # In a frame, where it could be clicked on unseen.
        await page.goto(f"http://127.0.0.1:{attacker.port}/")
        await page.evaluate(
            """(src) => new Promise((done) => {
              const frame = Object.assign(document.createElement("iframe"), { src, onload: done });
              document.body.append(frame);
            })""",
            served.origin,
        )
        (frame,) = page.frames[1:]
        assert "Laneway" not in await frame.content()
        # In a window that it has opened.
        opened = await page.evaluate(
            """async (url) => {
              const other = open(url);
              while (!other.closed) await new Promise((done) => setTimeout(done, 20));
              return "cut off";
            }""",
            served.origin,
        )
        assert opened == "cut off"
        assert list(chat.conversations) == before
        assert (chat.taken, chat.taps) == ([], [])
        await tab.say("still mine")
        await tab.see("still mine")


async def test_another_name_that_leads_here_gets_nothing(browser: Browser, tmp_path: Path) -> None:
    """A name of the attacker's that resolves to this machine: the browser takes it for the same origin."""
    async with chat_page(HandChat(), tmp_path) as served, window(browser) as context:
        page = await context.new_page()
        for path in ("/", "/api/page", "/static/page/page.js"):
            answer = await page.goto(f"http://{ATTACKER_HOST}:{served.port}{path}")
            assert answer
            assert answer.status == 421


async def test_hostile_texts_and_names_run_nothing_and_load_nothing(browser: Browser, tmp_path: Path) -> None:
    """Wherever a text of an agent, a person or a program is shown."""
    async with (
        asyncio.timeout(90),
        attacker_server() as attacker,
        chat_page(HandChat(cwd="/work/<img src=x onerror=alert(0)>"), tmp_path) as served,
        window(browser) as context,
    ):
        chat: Any = served.chat
        asked: list[str] = []
        context.on("request", lambda request: asked.append(request.url))
        steal = f"http://127.0.0.1:{attacker.port}/steal"
        evil = (
            f"<img src={steal} onerror=alert(1)> ![p]({steal}) [a](javascript:alert(2)) "
            "<script>alert(3)</script> <svg onload=alert(4)> [b](data:text/html,x) "
            f'<style>@import "{steal}"</style> \u202egnp.\x1b[2J'
        )
        tab = Tab(await context.new_page())
        await tab.open(served.address)
        await tab.say(evil)
        conversation = conversation_of(tab.page)
        said = Said(
            input_id=9,
            place=Place(platform="x", chat="1"),
            message_id="m9",
            sender=evil,
            platform=evil,
            text=evil,
        )
        for output in (
            said,
            TextDelta(lane="codex", ticket="t1", part="p0", offset=0, text=f"# {evil}\n\n{evil}\n"),
            TextDone(
                lane="codex",
                ticket="t1",
                part="p1",
                text=f"{evil}\n\n```{evil}\n{evil}\n```\n\n| {evil} |\n|---|",
            ),
            FileShown(lane="codex", path=evil, name=evil, caption=evil),
            Told(text=evil, level="error"),
        ):
            chat.show(conversation, output)
        chat.ask(conversation, approval(evil), lane="codex")
        await expect(tab.page.locator(".question")).to_have_count(1)
        await tab.page.reload()
        await expect(tab.page.locator(".question")).to_have_count(1)
        assert await tab.page.locator("main script, main style, main iframe, main object").count() == 0
        assert await tab.page.locator("main img, main svg:not(.icon)").count() == 0
        links = await tab.page.locator(".talk a").evaluate_all("(all) => all.map((each) => each.protocol)")
        assert set(links) <= {"http:"}
        assert tab.faults == []
        assert attacker.asked == []
        assert all(url.startswith(served.origin) for url in asked)
        content = await tab.page.content()
        assert "\u202e" not in content, content[content.index("\u202e") - 200 :][:300]
