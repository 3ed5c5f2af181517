"""Who gets in over HTTP: names, origins, tokens, and headers that must repeat the body."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.inbound import encode_header_value

from laneway.base.errors import UsageError
from laneway.doors.gate import AccessDenied, Gate, Headers, host_names, principal_of
from laneway.doors.mcp import http_guard as guard

TOKEN = "a-token-of-some-length"


def headers(**values: str) -> Headers:
    return Headers(
        (name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in values.items()
    )


def gate(**more: object) -> Gate:
    return Gate([TOKEN], host_names("127.0.0.1", 8000), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "LocalHost:8000", "[::1]:8000"])
def test_every_name_of_this_machine_is_ours(host: str) -> None:
    """Clients write the loopback address in three ways."""
    gate().check_place(headers(host=host))


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:8000",
        "evil.example",
        "127.0.0.1",
        "127.0.0.1:8001",
        "localhost:8000.evil.example",
        "localhost:8000@evil.example",
        "",
        "127.1:8000",
    ],
)
def test_a_request_for_another_name_is_misdirected(host: str) -> None:
    """A page whose name was made to resolve to this machine still says its own name."""
    with pytest.raises(AccessDenied) as refused:
        gate().check_place(headers(host=host))
    assert refused.value.status == 421


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "http://localhost.evil.example",
        "http://localhost:80:80",
        "https://127.0.0.1.evil.example:8000",
        "file://",
        "http://localhost/..",
        "",
    ],
)
def test_a_foreign_page_is_refused(origin: str) -> None:
    """Whatever resembles a loopback origin and is none."""
    with pytest.raises(AccessDenied) as refused:
        gate().check_place(headers(host="localhost:8000", origin=origin))
    assert refused.value.status == 403


def test_pages_of_this_machine_and_of_the_list_may_speak() -> None:
    """And the list is only for what it names."""
    place = gate(origins=["https://Console.example/"])
    for origin in ("http://localhost:3000", "https://[::1]", "https://console.example"):
        place.check_place(headers(host="localhost:8000", origin=origin))
    with pytest.raises(AccessDenied):
        place.check_place(headers(host="localhost:8000", origin="http://console.example"))


def test_only_the_bound_name_counts_where_other_machines_may_come() -> None:
    """An address that is not loopback has no loopback names, but those that were given."""
    names = host_names("192.0.2.7", 80, ["Laneway.example"])
    assert names == {"192.0.2.7", "192.0.2.7:80", "laneway.example", "laneway.example:80"}


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer x{TOKEN}"],
)
def test_nobody_gets_in_without_the_token(authorization: str) -> None:
    """Each time with the challenge that HTTP asks for."""
    with pytest.raises(AccessDenied) as refused:
        gate().admit(headers(authorization=authorization))
    assert refused.value.status == 401
    assert dict(refused.value.headers)["www-authenticate"].startswith("Bearer ")


def test_a_token_names_its_owner_without_giving_itself_away() -> None:
    """The same one each time, another for another token."""
    place = Gate([TOKEN, TOKEN + "2"], ["x"])
    first = place.admit(headers(authorization=f"bearer {TOKEN}"))
    assert first == place.admit(headers(authorization=f"Bearer {TOKEN}")) == principal_of(TOKEN)
    assert first != place.admit(headers(authorization=f"Bearer {TOKEN}2"))
    assert TOKEN not in first


@pytest.mark.parametrize(
    "tokens", [[], [""], ["short"], ["with a space in it 123"], ["ünprintable-token-1234"]]
)
def test_a_poor_token_is_refused_at_the_start(tokens: list[str]) -> None:
    """Before anybody can try to guess it."""
    with pytest.raises(UsageError):
        Gate(tokens, ["x"])


@pytest.mark.parametrize("name", ["host", "authorization", "mcp-session-id", "Mcp-Method", "ORIGIN"])
def test_a_header_that_decides_stands_there_once(name: str) -> None:
    """Two readers of two copies would disagree."""
    with pytest.raises(AccessDenied) as refused:
        Headers([(name.encode(), b"a"), (name.lower().encode(), b"a")])
    assert refused.value.status == 400


@pytest.mark.parametrize(
    ("accept", "is_accepted"),
    [
        ("application/json, text/event-stream", True),
        ("*/*", True),
        ("application/*;q=0.5,text/*", True),
        ("TEXT/EVENT-STREAM , application/json;q=1", True),
        ("application/json", False),
        ("text/event-stream", False),
        ("text/html", False),
    ],
)
def test_a_client_must_take_both_forms_of_an_answer(accept: str, *, is_accepted: bool) -> None:
    """By name or by wildcard."""
    given_headers = headers(accept=accept)
    both = given_headers.accepts("application/json") and given_headers.accepts("text/event-stream")
    assert both is is_accepted


@given(st.text())
def test_a_name_in_a_header_is_read_as_the_official_client_writes_it(name: str) -> None:
    """Whatever characters it has."""
    assert guard.decoded(encode_header_value(name)) == name


@given(st.text(alphabet="abQQ==?64/+ ").map(lambda text: f"=?base64?{text}?="))
def test_a_badly_encoded_name_matches_nothing_by_accident(value: str) -> None:
    """Only the one spelling that an honest client writes is read."""
    found = guard.decoded(value)
    assert found is None or value == f"=?base64?{base64.b64encode(found.encode()).decode()}?="


@pytest.mark.parametrize("value", ["=?base64?QQ?=", "=?base64?QR==?=", "=?base64?/w==?=", "=?base64?Q Q=?="])
def test_a_name_that_is_almost_encoded_is_none(value: str) -> None:
    """Without its padding, with bits too many, not UTF-8, with a space."""
    assert guard.decoded(value) is None
    assert guard.decoded("=?base64?QQ==?=") == "A"
