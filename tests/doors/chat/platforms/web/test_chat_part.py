"""The chat as a part of the page, over plain HTTP: what it answers, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from laneway.core.model import Activity
from laneway.doors.chat.messages import Place, TapResult
from laneway.doors.chat.outputs import ActivityShown, FileShown, TextDone, Told
from laneway.doors.chat.platforms.web.chat_part import MAX_MESSAGE_BYTES, MAX_TEXT_CHARS, ChatPart
from laneway.doors.console.event_feed import EventFeed
from laneway.testing.hand_chat import HandChat, approval
from tests.doors.console.support import TOKEN, Answered, PageWithoutSocket, served_page

LIST = "/api/chat/conversations"
STALLED = 100


class ChatClient:
    """A browser's requests, without a browser."""

    def __init__(self, chat: HandChat, page: PageWithoutSocket) -> None:
        self.chat, self.page = chat, page
        self._keys = 0

    async def get(self, path: str) -> Answered:
        return await self.page.ask("GET", path)

    async def post(self, path: str, value: object, key: str = "", **headers: str) -> Answered:
        self._keys += 1
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        key = key or f"client-key-{self._keys}"
        return await self.page.ask("POST", path, body, headers={"idempotency-key": key, **headers})

    async def begin(self) -> str:
        return (await self.post(LIST, {})).json()["id"]  # type: ignore[no-any-return]


@asynccontextmanager
async def client(folder: Path, **options: Any) -> AsyncIterator[ChatClient]:
    chat = HandChat(cwd=str(folder))
    part = ChatPart(chat, folder / "uploads", **options)
    page = PageWithoutSocket(part)
    async with part.running(page.feed.of("chat")):
        yield ChatClient(chat, page)


async def test_what_is_not_there_is_404(tmp_path: Path) -> None:
    async with client(tmp_path) as http:
        known = await http.begin()
        for path in (
            f"{LIST}/c99",
            f"{LIST}/..%2f..%2fetc",
            f"{LIST}/c99/export",
            f"{LIST}/c99/search?q=x",
            f"{LIST}/c99/outputs/1",
            f"{LIST}/{known}/outputs/1",
            f"{LIST}/{known}/outputs/-1",
            f"{LIST}/{known}/outputs/²",
            f"{LIST}/{known}/files/{'9' * 30}",
            f"{LIST}/{known}/nothing",
            "/api/chat",
            "/api/other",
        ):
            answer = await http.get(path)
            assert answer.status == 404, path
            assert "no such" in answer.json()["error"]
        for path in (f"{LIST}/c99/messages", f"{LIST}/c99/taps", f"{LIST}/c99/files/1/approve"):
            value = {"data": "q:1:0"} if path.endswith("taps") else {"text": "x"}
            assert (await http.post(path, value)).status == 404, path


async def test_what_cannot_be_a_message_is_refused_and_nothing_is_taken(tmp_path: Path) -> None:
    async with client(tmp_path) as http:
        path = f"{LIST}/{await http.begin()}/messages"
        for value, status in (
            ({"text": "  "}, 422),
            ({"text": "x" * (MAX_TEXT_CHARS + 1)}, 413),
            ({"text": "x", "uploads": ["a"] * 11}, 413),
            ({"text": "x", "uploads": ["../../etc/passwd"]}, 422),
            ({"text": "x", "uploads": ["0" * 24]}, 422),
            ({"text": 7}, 400),
            ({"text": "x", "owner": True}, 400),
            (b"\xff\xfe", 400),
            (b"[" * 200_000, 400),
            (b"x" * (MAX_MESSAGE_BYTES + 1), 413),
        ):
            answer = await http.post(path, value)
            assert (answer.status, "error" in answer.json()) == (status, True), value
        assert http.chat.taken == []


async def test_the_longest_message_is_taken_whatever_its_characters(tmp_path: Path) -> None:
    """As JSON, a control character takes six bytes, and one that is written as two escapes twelve."""
    async with client(tmp_path) as http:
        path = f"{LIST}/{await http.begin()}/messages"
        for letter in ("\x01", "語", "🦀"):
            assert (await http.post(path, {"text": letter * MAX_TEXT_CHARS})).status == 200
        assert len(http.chat.taken) == 3


async def test_a_message_that_is_sent_again_is_taken_once(tmp_path: Path) -> None:
    """By the key, which is the message's id in the conversation, too: also after a restart of the server."""
    async with client(tmp_path) as http:
        path = f"{LIST}/{await http.begin()}/messages"
        first = await http.post(path, {"text": "once"}, key="the-same-key")
        again = await http.post(path, {"text": "once"}, key="the-same-key")
        assert (first.json(), again.json()) == ({"input": 1}, {"input": 1})
        assert [message.message_id for message in http.chat.taken] == ["the-same-key"]
        # A server that was started anew knows no keys; the conversation does.
        other = ChatPart(http.chat, tmp_path / "uploads")
        page = PageWithoutSocket(other)
        async with other.running(page.feed.of("chat")):
            answer = await ChatClient(http.chat, page).post(path, {"text": "once"}, key="the-same-key")
        assert (answer.status, answer.json()) == (200, {"input": None})
        assert len(http.chat.taken) == 1


async def test_a_conversation_of_another_process_is_refused_with_its_holder(tmp_path: Path) -> None:
    async with client(tmp_path) as http:
        conversation = http.chat.add()
        conversation.holder = "laneway chat, process 4711"
        answer = await http.get(f"{LIST}/{conversation.record.conversation_id}")
        assert answer.status == 409
        assert "laneway chat, process 4711" in answer.json()["error"]


async def test_a_tap_says_what_became_of_it(tmp_path: Path) -> None:
    async with client(tmp_path) as http:
        conversation = await http.begin()
        http.chat.ask(conversation, approval())
        http.chat.tap_result = TapResult("Ben has answered that.", is_done=False, is_stale=True)
        answer = await http.post(f"{LIST}/{conversation}/taps", {"data": "q:1:0", "words": "no"})
        assert answer.json() == {"text": "Ben has answered that.", "done": False, "stale": True}
        assert (http.chat.taps[0].data, http.chat.taps[0].words) == ("q:1:0", "no")


async def test_ten_thousand_lines_are_cut_in_events_and_whole_when_asked_for(tmp_path: Path) -> None:
    async with client(tmp_path) as http:
        conversation = await http.begin()
        output = "".join(f"line {number}\n" for number in range(10_000))
        activity = Activity(
            turn_id="t", item_id="c1", kind="command", title="make", status="completed", output=output
        )
        before = http.page.feed.last
        http.chat.show(conversation, ActivityShown(lane="codex", ticket="t", activity=activity))
        events, _ = http.page.feed.events_after(before)
        assert max(map(len, events)) < 130_000
        item = (await http.get(f"{LIST}/{conversation}")).json()["items"][0]
        assert (item["lines"], item["is_whole"]) == (10_000, False)
        whole = await http.get(f"{LIST}/{conversation}/outputs/{item['n']}")
        assert whole.json() == {"text": output}


async def test_the_state_has_what_is_missing_and_earlier_things_are_asked_for(tmp_path: Path) -> None:
    async with client(tmp_path) as http:
        conversation = await http.begin()
        for number in range(1, 1101):
            http.chat.show(
                conversation, TextDone(lane="codex", ticket="t", part=f"p{number}", text=f"no. {number}")
            )
        state = (await http.get(f"{LIST}/{conversation}")).json()
        assert (state["first"], state["last"], len(state["items"])) == (601, 1100, 500)
        earlier = (await http.get(f"{LIST}/{conversation}?before=601")).json()
        assert [item["n"] for item in earlier["items"]] == list(range(101, 601))
        first = (await http.get(f"{LIST}/{conversation}?before=101")).json()
        assert [item["n"] for item in first["items"]] == list(range(1, 101))
        found = (await http.get(f"{LIST}/{conversation}/search?q=NO.%20107")).json()
        assert (found["count"], [each["n"] for each in found["found"]]) == (
            11,
            [107, *range(1070, 1080)],
        )
        assert (await http.get(f"{LIST}/{conversation}/search?q=")).json() == {"found": [], "count": 0}


async def test_what_is_for_another_place_is_neither_shown_nor_found_nor_exported(tmp_path: Path) -> None:
    async with client(tmp_path) as http:
        conversation = await http.begin()
        elsewhere = Place(platform="telegram", chat="1")
        http.chat.show(conversation, Told(text="only for Telegram", only=elsewhere))
        http.chat.show(conversation, Told(text="for all"))
        everything = b"".join(
            [
                (await http.get(f"{LIST}/{conversation}{rest}")).body
                for rest in ("", "/search?q=only%20for", "/export")
            ]
        )
        assert b"only for" not in everything
        # Its number is there: a number that is missing would look like a lost event.
        state = (await http.get(f"{LIST}/{conversation}")).json()
        assert [item["n"] for item in state["items"]] == [1, 2]


async def test_a_file_name_ends_no_header_and_files_are_never_shown_as_pages(tmp_path: Path) -> None:
    async with client(tmp_path) as http:
        conversation = await http.begin()
        (tmp_path / "page.html").write_text("<script>alert(1)</script>")
        name = 'evil\r\nset-cookie: a=b; "x.html'
        http.chat.show(conversation, FileShown(lane="codex", path="page.html", name=name))
        answer = await http.get(f"{LIST}/{conversation}/files/1")
        assert answer.status == 200
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"].startswith("attachment; filename*=UTF-8''evil%0D%0Aset")
        assert "set-cookie" not in answer.headers
        assert (
            "sandbox" in answer.headers["content-security-policy"]
            or "default-src 'self'" in (answer.headers["content-security-policy"])
        )


async def test_an_upload_that_is_too_large_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    async with client(tmp_path) as http:
        await http.begin()
        said = await http.post("/api/chat/uploads", b"", **{"content-length": str(20 * 1024 * 1024 + 1)})
        assert said.status == 413
        pieces = [b"x" * (4 * 1024 * 1024)] * 6
        headers = {"idempotency-key": "an-upload-1"}
        answer = await http.page.ask("POST", "/api/chat/uploads", pieces=pieces, headers=headers)
        assert answer.status == 413
        assert list((tmp_path / "uploads").iterdir()) == []


async def test_a_hundred_stalled_readers_slow_nobody(tmp_path: Path) -> None:
    """On real sockets: they never read, and everybody else hears and is answered as before."""
    chat = HandChat(cwd=str(tmp_path))
    feed = EventFeed()
    async with (
        asyncio.timeout(60),
        served_page(ChatPart(chat, tmp_path / "uploads"), feed=feed) as address,
    ):
        port = urlsplit(address).port
        assert port
        conversation = chat.add().record.conversation_id
        stalled = [await stream(port) for _ in range(STALLED)]
        reader, writer = await stream(port)
        await request(port, f"{LIST}/{conversation}")
        chunk = "words " * 2000
        for number in range(100):  # a megabyte for each of them: more than their sockets hold
            chat.show(
                conversation, TextDone(lane="codex", ticket="t", part=f"p{number}", text=f"{number} {chunk}")
            )
            await asyncio.sleep(0)
        heard = b""
        while b'"99 words' not in heard:
            piece = await reader.read(1 << 20)
            assert piece
            heard = heard[-4096:] + piece
        assert (await request(port, f"{LIST}/{conversation}/commands")).startswith(b"HTTP/1.1 200")
        for _, each in [*stalled, (reader, writer)]:
            each.transport.abort()


async def stream(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A stream of events, of which nothing was read yet."""
    with socket.socket() as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", port))
        reader, writer = await asyncio.open_connection(sock=made.dup(), limit=4096)
    writer.write(head(port, "/api/events"))
    await writer.drain()
    return reader, writer


async def request(port: int, path: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head(port, path, "connection: close\r\n"))
    answer = await reader.read()
    writer.close()
    return answer


def head(port: int, path: str, more: str = "") -> bytes:
    lines = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {TOKEN}\r\n{more}\r\n"
    return lines.encode()


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"authorization": ""}, 401),
        ({"authorization": "Bearer wrong-token-0123456789"}, 401),
        ({"host": "attacker.test:8123"}, 421),
        ({"host": "127.0.0.1:9"}, 421),
        ({"origin": "http://127.0.0.1:9"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "https://attacker.test"}, 403),
    ],
)
async def test_who_may_not_speak_is_told_nothing(tmp_path: Path, change: dict[str, str], status: int) -> None:
    """Neither for reading nor for writing nor for the stream of events."""
    async with client(tmp_path) as http:
        conversation = await http.begin()
        for method, path in (
            ("GET", LIST),
            ("GET", f"{LIST}/{conversation}/export"),
            ("GET", "/api/events"),
            ("POST", f"{LIST}/{conversation}/messages"),
            ("POST", "/api/chat/uploads"),
        ):
            answer = await http.page.ask(method, path, b'{"text": "x"}', headers=change)
            assert answer.status == status
            assert str(tmp_path).encode() not in answer.body
        assert http.chat.taken == []
