"""What a failure says to people."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.base.errors import RemoteError, SessionUnknown
from laneway.doors.acp.faults import wire_error
from laneway.rendering.refusals import unwrapped_message


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "No such model.", "type": "invalid_request_error", "code": None}},
        {"detail": "No such model."},
        {"message": "No such model.", "error": "bad_request"},
    ],
    ids=["openai", "chatgpt", "others"],
)
def test_what_a_provider_answered_is_told_without_its_wrapping(body: dict[str, object]) -> None:
    """Every editor shows it as it comes: one sentence, no braces."""
    assert unwrapped_message(json.dumps(body)) == "No such model."


@pytest.mark.parametrize(
    "message", ["", "plain", "{not json", '{"error": {"message": ""}}', '{"error": 7}', "{}", "{" * 10_000]
)
def test_words_that_are_wrapped_in_nothing_known_stay_as_they_are(message: str) -> None:
    """Nothing that Codex says is lost."""
    assert unwrapped_message(message) == message


@given(st.text())
def test_any_message_comes_out_as_words(message: str) -> None:
    """Whatever a provider sends."""
    assert unwrapped_message(message) == message or message.startswith("{")


def test_the_message_is_in_the_details_too() -> None:
    """Toad shows nothing else of an error; facts that were there stay."""
    assert wire_error(RemoteError(-32602, "Wrong.")).data == {"details": "Wrong."}
    assert wire_error(RemoteError(1, "Wrong.", {"kind": "x"})).data == {"kind": "x", "details": "Wrong."}
    assert wire_error(RemoteError(1, "Wrong.", [7])).data == [7]
    unknown = wire_error(SessionUnknown("s"))
    assert unknown.data["details"] == unknown.message
