"""Point 4: a failure is a failure. Typed errors, the protocol's words where it has them, retries shown."""

from __future__ import annotations

import pytest

from tests.doors.acp.answerers import odd_model
from tests.doors.acp.golden import golden
from tests.doors.acp.shared import Shared
from tests.doors.acp.support import FULL, Client, Message, Refused, Stage
from tests.doors.acp.telling import story

STOPPED = {
    "!incomplete max_output_tokens": ("max_tokens", "max_output_tokens"),
    "!incomplete content_filter": ("refusal", "content_filter"),
    "!failed context_length_exceeded": ("max_tokens", "context window"),
    "!failed cyber_policy": ("refusal", "The model says no."),
}
"""What the model did, the stop reason, and what the user is told besides."""
FAILED = {
    "!failed insufficient_quota": ("usage_limit_exceeded", None),
    "!failed rate_limit_exceeded": ("rate_limit_exceeded", None),
    "!failed server_is_overloaded": ("server_overloaded", None),
    "!failed invalid_prompt": ("other", None),
    "%fail 400": ("other", None),
    "%fail 401": ("http_connection_failed", 401),
    "%fail 404": ("http_connection_failed", 404),
    "%fail 413": ("http_connection_failed", 413),
    "%fail 429": ("response_too_many_failed_attempts", 429),
    "%fail 500": ("internal_server_error", None),
    "%fail 503": ("http_connection_failed", 503),
    "%say Half.\n%break": ("other", None),
}
"""What the model did; the kind and the HTTP status of the error."""
STORY = ("!cut 1\n%say Here again.", "%say Half.\n%break", "!incomplete max_output_tokens", "%say Fine.")


def retry_once(here: Stage) -> None:
    """Have Codex try again when a stream breaks."""
    config = here.home / "config.toml"
    config.write_text(config.read_text().replace("stream_max_retries = 0", "stream_max_retries = 1"))


async def outcome(client: Client, session: str, prompt: str) -> Message:
    """What a prompt was answered with, good or bad."""
    try:
        return await client.prompt(session, prompt)
    except Refused as refused:
        return refused.error


async def test_a_turn_that_failed_is_an_error_with_its_kind_and_the_session_goes_on(shared: Shared) -> None:
    """Whatever the model did; `data` is for programs, the message for people."""
    async with shared.stage(answerer=odd_model()) as here, here.agent() as client:
        session = await client.new()
        for prompt, (kind, status) in FAILED.items():
            error = await outcome(client, session, prompt)
            assert error["code"] == -32603, prompt
            assert (error["data"]["kind"], error["data"].get("httpStatus")) == (kind, status), prompt
            assert (error["data"]["source"], len(error["data"]["turnId"])) == ("codex", 36)
            assert error["message"]
            assert not error["message"].startswith("{")
            assert error["data"]["details"] == error["message"]
        assert await client.prompt(session, "%say Fine.") == {"stopReason": "end_turn"}
        assert client.messages(session) == ["Half.", "Fine."]


async def test_a_turn_that_ran_out_or_was_refused_has_its_stop_reason_and_says_why(shared: Shared) -> None:
    """Each in a session of its own: after a full context Codex compacts first."""
    async with (
        shared.stage(answerer=odd_model()) as here,
        here.agent(capabilities=FULL) as client,
    ):
        for prompt, (reason, words) in STOPPED.items():
            session = await client.new()
            assert await client.prompt(session, prompt) == {"stopReason": reason}, prompt
            (notice,) = client.of("notice", session)
            assert words in notice["title"], prompt
            assert await client.prompt(session, "%say Fine.") == {"stopReason": "end_turn"}


@pytest.mark.parametrize(("name", "capabilities"), [("bare", {}), ("full", FULL)], ids=["bare", "full"])
async def test_retries_are_shown_and_what_fails_after_them_fails(
    shared: Shared, name: str, capabilities: Message
) -> None:
    """As notices where the client takes them, else as thoughts: never as a part of the answer."""
    async with (
        shared.stage(retry_once, answerer=odd_model()) as here,
        here.agent(capabilities=capabilities) as client,
    ):
        session = await client.new()
        ends = [await outcome(client, session, prompt) for prompt in STORY]
    assert [end.get("stopReason") for end in ends] == ["end_turn", None, "max_tokens", "end_turn"]
    assert ends[1]["code"] == -32603
    shown = (
        [notice["title"] for notice in client.of("notice")]
        if name == "full"
        else client.messages(session, "agent_thought_chunk")
    )
    assert "Trying again: Reconnecting... 1/1" in shown[0]
    assert "Reconnecting" not in client.text(session)
    golden(f"point-04-failures-{name}", story(client))
