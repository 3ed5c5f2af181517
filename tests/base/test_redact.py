"""Secrets by shape and by name; and what must stay readable."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.base.redact import HIDDEN, redact

SECRETS = [
    "sk-proj-AbCdEf0123456789abcdef",
    "sk-ant-api03-AbCdEf0123456789",
    "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "github_pat_11ABCDEFG0123456789_abcdefghij",
    "xoxb-1234567890-abcdefghij",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA0123456789abcdefghijklmnopqrstuv",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP",
    "123456789:AAF0123456789abcdefghijklmnopqrstuv",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("around", ["{}", "the key is {}, keep it", '{{"text": "{}"}}', "a={}&b=1", "[{}]"])
def test_a_secret_of_a_known_shape_is_hidden_wherever_it_stands(secret: str, around: str) -> None:
    """In prose, JSON, queries."""
    assert secret not in redact(around.format(secret))
    assert HIDDEN in redact(around.format(secret))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abc.def-123", f"Authorization: {HIDDEN}"),
        ('{"authorization": "Basic dXNlcjpwYXNz"}', f'{{"authorization": "{HIDDEN}"}}'),
        ("bearer 0123456789", f"bearer {HIDDEN}"),
        ("OPENAI_API_KEY=hunter2", f"OPENAI_API_KEY={HIDDEN}"),
        ("export DB_PASSWORD='two words'", f"export DB_PASSWORD='{HIDDEN}'"),
        ('"bot_token": "x y", "n": 1', f'"bot_token": "{HIDDEN}", "n": 1'),
        ("client-secret: s3", f"client-secret: {HIDDEN}"),
        ("https://ann:pw@example.invalid/x", f"https://ann:{HIDDEN}@example.invalid/x"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----", HIDDEN),
        ("-----BEGIN PRIVATE KEY-----\nMII (cut)", HIDDEN),
        (
            '{"mcp_servers.a.env":{"MY_KEY":"x","b":"}\\""},"n":1}',
            f'{{"mcp_servers.a.env":{{{HIDDEN}}},"n":1}}',
        ),
        ('"http_headers": {"X-Mine": "x"}', f'"http_headers": {{{HIDDEN}}}'),
        ('"env":{"MY_KEY":"x (cut)', f'"env":{{{HIDDEN}}}'),
    ],
)
def test_a_secret_is_known_by_its_name_and_the_name_stays(text: str, expected: str) -> None:
    """So that one can still see which one it was."""
    assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        '{"input_tokens": 100, "total_tokens": 5}',
        "thread 01a1e340-a768-7df3-80a7-1b1cac5b0742",
        "the token was refused",
        "api_key=null",
        '"env":{}',
        '"environment":{"a":"b"}',
        "commit 94954abda49de8615a048f8d2e64b5de848e27a1",
        "12:30:59 INFO a turn took 0.5 s",
        "https://example.invalid/a:b@c",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    """A log that hides everything tells nothing."""
    assert redact(text) == text


@given(st.text())
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    """And any text can be redacted."""
    once = redact(text)
    assert redact(once) == once


@given(st.dictionaries(st.text(max_size=10), st.text(max_size=20), max_size=4))
def test_json_stays_json(value: dict[str, str]) -> None:
    """An audit line must be readable after redaction."""
    text = json.dumps({**value, "api_key": 'a "quoted" one', "password": "p\\w"})
    told = json.loads(redact(text))
    assert (told["api_key"], told["password"]) == (HIDDEN, HIDDEN)


def test_a_hostile_text_costs_no_more_than_its_length() -> None:
    """A megabyte of near misses is done while we wait."""
    for piece in ("token", "://a:", '"api_key":"', "sk-", "eyJaaaaaaaa.", "A" * 28 + "."):
        redact(piece * (1_000_000 // len(piece)))
