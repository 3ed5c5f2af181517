"""The page's requests: who is refused and how, what is public, what is answered twice with one answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from laneway.doors.page_parts import MAX_JSON_BYTES
from tests.doors.console.support import HOST, ORIGIN, PORT, NotesPart, PageWithoutSocket


@pytest.fixture
def notes(tmp_path: Path) -> NotesPart:
    (tmp_path / "notes.js").write_text("export function mount() {}")
    (tmp_path / "private.txt").write_text("no static file")
    return NotesPart(tmp_path)


@pytest.fixture
async def page(notes: NotesPart) -> AsyncIterator[PageWithoutSocket]:
    made = PageWithoutSocket(notes)
    async with notes.running(made.feed.of("notes")):
        yield made


async def test_the_page_itself_and_static_files_need_no_token(page: PageWithoutSocket) -> None:
    """And nothing else is a file: neither other kinds, nor what is elsewhere."""
    for path, kind in (
        ("/", "text/html"),
        ("/static/page/wire.js", "text/javascript"),
        ("/static/notes/notes.js", "text/javascript"),
    ):
        found = await page.ask("GET", path, drop=("authorization",))
        assert (found.status, found.headers["content-type"].partition(";")[0]) == (200, kind)
        again = await page.ask("GET", path, if_none_match=found.headers["etag"])
        assert (again.status, again.body) == (304, b"")
    for path in (
        "/static/notes/private.txt",
        "/static/page/../page_app.py",
        "/static/notes/%2e%2e/x.js",
        "/favicon.ico",
    ):
        assert (await page.ask("GET", path)).status == 404


@pytest.mark.parametrize("path", ["/api/page", "/api/events", "/api/notes/all", "/api/nothing"])
async def test_without_the_token_nothing_is_answered(page: PageWithoutSocket, path: str) -> None:
    """Neither without one nor with a wrong one; in the address it does not count."""
    wrong: tuple[dict[str, str], ...] = (
        {},
        {"authorization": "Bearer wrong-token-0123456789"},
        {"authorization": "Basic x"},
    )
    for headers in wrong:
        refused = await page.ask("GET", path, drop=() if headers else ("authorization",), headers=headers)
        assert refused.status == 401
    refused = await page.ask("GET", f"{path}?token=page-token-0123456789", drop=("authorization",))
    assert refused.status == 401


async def test_another_name_for_this_machine_is_refused(page: PageWithoutSocket) -> None:
    """A name that somebody made lead here, another port, none at all: also for static files."""
    for path in ("/", "/static/page/page.js", "/api/page"):
        for host in ("evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", ""):
            assert (await page.ask("GET", path, host=host)).status == 421
        assert (await page.ask("GET", path, drop=("host",))).status == 421
        assert (await page.ask("GET", path, host=f"localhost:{PORT}")).status == 200


async def test_a_page_of_another_origin_is_refused_even_with_the_token(page: PageWithoutSocket) -> None:
    """Other ports of this machine are other origins."""
    foreign = (
        "https://evil.example",
        f"http://127.0.0.1:{PORT + 1}",
        "http://127.0.0.1",
        "http://localhost:5173",
        "null",
    )
    for origin in foreign:
        assert (await page.ask("GET", "/api/page", origin=origin)).status == 403
        assert (await page.ask("GET", "/", origin=origin)).status == 403
        assert (await page.ask("POST", "/api/notes/new", b'{"text": "x"}', origin=origin)).status == 403
    assert (await page.ask("GET", "/api/page", origin=ORIGIN)).status == 200


async def test_a_post_says_where_it_comes_from(page: PageWithoutSocket, notes: NotesPart) -> None:
    assert (await page.ask("POST", "/api/notes/new", b'{"text": "x"}', drop=("origin",))).status == 403
    assert notes.notes == []


async def test_every_answer_has_the_headers_that_keep_browsers_strict(page: PageWithoutSocket) -> None:
    """Refusals, too."""
    for path, drop in (("/", ()), ("/api/page", ()), ("/api/page", ("authorization",)), ("/nothing", ())):
        answered = await page.ask("GET", path, drop=drop)
        policy = answered.headers["content-security-policy"]
        assert policy.startswith("default-src 'self'; img-src 'self' blob:;")
        assert "unsafe" not in policy
        assert answered.headers["referrer-policy"] == "no-referrer"
        assert answered.headers["x-content-type-options"] == "nosniff"
        assert "set-cookie" not in answered.headers
        assert path == "/" or answered.headers["cache-control"] == "no-store"


async def test_a_body_too_large_or_unreadable_is_refused(page: PageWithoutSocket, notes: NotesPart) -> None:
    """By its declared length, or by what arrives."""
    declared = await page.ask("POST", "/api/notes/new", b"{}", content_length=str(MAX_JSON_BYTES + 1))
    assert declared.status == 413
    arriving = await page.ask("POST", "/api/notes/new", pieces=[b" " * 65536] * (MAX_JSON_BYTES // 65536 + 1))
    assert arriving.status == 413
    for body in (b"", b"{", b"[]", b'{"text": 1}', b'{"text": "\xff"}', b"[" * 2000):
        assert (await page.ask("POST", "/api/notes/new", body)).status == 400
    assert notes.notes == []


async def test_what_is_not_there_is_said(page: PageWithoutSocket) -> None:
    for path in ("/api/", "/api/nothing", "/api/notes/missing", "/nothing"):
        assert (await page.ask("GET", path)).status == 404
    assert (await page.ask("DELETE", "/api/notes/all", origin=ORIGIN)).status == 405
    assert (await page.ask("POST", "/", b"{}")).status == 405
    assert (await page.ask("GET", "/api/notes/all?after=-1")).status == 400


async def test_a_bug_in_a_part_tells_nothing_of_itself(
    page: PageWithoutSocket, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has it."""
    failed = await page.ask("GET", "/api/notes/bug")
    assert failed.status == 500
    assert b"secret detail" not in failed.body
    assert "secret detail" in caplog.text


async def test_a_post_that_is_sent_again_is_carried_out_once(
    page: PageWithoutSocket, notes: NotesPart
) -> None:
    """The answer is the one of the first time. Another key is another request."""
    for _ in range(3):
        answered = await page.ask("POST", "/api/notes/new", b'{"text": "once"}')
        assert (answered.status, answered.json()) == (200, {"count": 1})
    other = await page.ask("POST", "/api/notes/new", b'{"text": "twice"}', idempotency_key="key-00000002")
    assert other.json() == {"count": 2}
    assert notes.notes == ["once", "twice"]


async def test_a_post_needs_a_key_and_a_key_is_for_one_thing(
    page: PageWithoutSocket, notes: NotesPart
) -> None:
    for key in ("", "short", "x" * 65, "with space", "key:00000001"):
        assert (await page.ask("POST", "/api/notes/new", b'{"text": "x"}', idempotency_key=key)).status == 400
    assert (
        await page.ask("POST", "/api/notes/new", b'{"text": "x"}', drop=("idempotency-key",))
    ).status == 400
    assert notes.notes == []
    await page.ask("POST", "/api/notes/new", b'{"text": "x"}')
    assert (await page.ask("POST", "/api/notes/other", b'{"text": "x"}')).status == 409


async def test_a_refused_post_may_be_tried_again_with_the_same_key(
    page: PageWithoutSocket, notes: NotesPart
) -> None:
    assert (await page.ask("POST", "/api/notes/new", b'{"text": ""}')).status == 422
    assert (await page.ask("POST", "/api/notes/new", b'{"text": "x"}')).json() == {"count": 1}


async def test_a_browser_learns_which_parts_there_are(page: PageWithoutSocket) -> None:
    about = (await page.ask("GET", "/api/page", host=HOST)).json()
    assert about["parts"] == [{"name": "notes", "title": "Notes", "has_style": False}]
    assert about["position"] == "run.0"
