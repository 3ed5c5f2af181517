"""Notifications that are no events of ours, but matter to people, carry a sentence for them."""

from __future__ import annotations

from typing import Any

import pytest

from laneway.base.errors import EngineRefused, RemoteError
from laneway.codex.link import engine_error
from laneway.codex.translate import Translator
from laneway.core.model import Event, Other
from laneway.doors.mcp.codes import wire_error

FAILED = {"name": "docs\x1b[2J", "status": "failed", "error": "no such program"}


@pytest.mark.parametrize(
    ("method", "params", "notice"),
    [
        (
            "mcpServer/startupStatus/updated",
            FAILED,
            "The MCP server docs\\x1b[2J did not start: no such program",
        ),
        ("mcpServer/startupStatus/updated", {**FAILED, "status": "ready"}, ""),
        (
            "model/rerouted",
            {"fromModel": "big", "toModel": "small"},
            "The model big was not used, but small.",
        ),
        ("skills/changed", {}, ""),
    ],
)
def test_a_notification_that_matters_to_people_carries_a_sentence(
    method: str, params: dict[str, Any], notice: str
) -> None:
    """Front ends show it without knowing whose notification it was."""
    events: list[Event] = []
    Translator(events.append).notification(method, params, b"")
    assert events == [Other(method=method, params=params, notice=notice)]


def test_a_thread_that_cannot_be_resumed_is_refused_with_what_the_user_can_do() -> None:
    """And what else Codex refuses in its own words alone."""
    refused = engine_error("thread/resume", {"threadId": "t"}, RemoteError(-32600, "broken"))
    assert isinstance(refused, EngineRefused)
    assert wire_error(refused).message == (
        "Codex refused thread/resume: broken. If Codex never wrote its transcript, start a new session."
    )
    refused = engine_error("turn/start", {"threadId": "t"}, RemoteError(-32600, "broken"))
    assert wire_error(refused).message == "Codex refused turn/start: broken."
