"""`LegacyEvents`: app-server's turns in the event names of the removed `codex mcp-server`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.codex.legacy import LegacyEvents, Level
from laneway.codex.legacy_shapes import COMPACT
from laneway.codex.thread import thread_info
from laneway.core.model import (
    Failure,
    Notice,
    Other,
    Text,
    Thought,
    Tokens,
    TurnDone,
    TurnStarted,
    Usage,
)
from laneway.core.ports import TextPart, TurnSpec
from laneway.testing.mcp_traces import event_type, load
from laneway.testing.tape import play
from tests.codex.legacy_support import fresh, messages_of, types
from tests.codex.support import real

GOLDEN = Path(__file__).parent.parent / "golden"
TAPES = sorted(path.stem for path in (GOLDEN / "0.163.0").glob("*.jsonl"))
WORDS = ["task_started", "agent_message", "token_count", "task_complete"]
TURN: dict[str, Any] = {"turn_id": "u", "item_id": "m"}


async def replayed(tape: str, level: Level) -> list[dict[str, Any]]:
    """A recorded trace of app-server, as the old server would have told it."""
    lines = (GOLDEN / "0.163.0" / f"{tape}.jsonl").read_bytes().splitlines()
    started = next(
        r for r in (msgspec.json.decode(line).get("result") or {} for line in lines) if "thread" in r
    )
    legacy = LegacyEvents(level, now=lambda: 100.0)
    return [
        *legacy.opening(thread_info(started["thread"], started)),
        *messages_of(legacy, *await play(lines)),
    ]


# ── recorded turns ─────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("tape", "expected"),
    [
        ("text", WORDS),
        ("thoughts", ["task_started", "agent_reasoning", *WORDS[1:]]),
        ("command", ["task_started", "exec_command_begin", "exec_command_end", "token_count", *WORDS[1:]]),
        (
            "command-approved",
            [
                "task_started",
                "exec_approval_request",
                "exec_command_begin",
                "exec_command_end",
                "token_count",
                *WORDS[1:],
            ],
        ),
        ("command-declined", ["task_started", "exec_approval_request", "token_count", *WORDS[1:]]),
        ("plan", ["task_started", "plan_update", "token_count", *WORDS[1:]]),
        ("question", ["task_started", "request_user_input", "token_count", *WORDS[1:]]),
        ("failure", ["task_started", "error", "task_complete", *WORDS]),
        ("interrupt", ["task_started", "turn_aborted", *WORDS]),
    ],
)
async def test_compact_tells_what_a_person_would_follow(tape: str, expected: list[str]) -> None:
    """In the order in which it happened; a command that was refused never began."""
    assert types(await replayed(tape, "compact")) == ["session_configured", *expected]


@pytest.mark.parametrize("tape", TAPES)
async def test_compact_is_full_without_the_details(tape: str) -> None:
    """The levels differ in what they leave out, never in what they tell."""
    full = await replayed(tape, "full")
    assert [one for one in full if one["type"] in COMPACT] == await replayed(tape, "compact")


@pytest.mark.parametrize("tape", TAPES)
async def test_every_turn_and_every_item_begins_and_ends_in_order(tape: str) -> None:
    """Whatever is begun is ended, once, or its turn was aborted or went on without it."""
    messages = await replayed(tape, "full")
    started = [m["item"]["id"] for m in messages if m["type"] == "item_started"]
    completed = [m["item"]["id"] for m in messages if m["type"] == "item_completed"]
    assert len(set(started)) == len(started)
    assert set(completed) <= set(started)
    begun = types(messages).count("task_started")
    assert begun == types(messages).count("task_complete") + types(messages).count("turn_aborted")


@pytest.mark.parametrize("tape", TAPES)
async def test_nothing_that_the_old_server_had_no_word_for_is_told_in_a_plain_turn(tape: str) -> None:
    """Old clients meet only names that they know."""
    new = {kind for kind in types(await replayed(tape, "full")) if "changed" in kind or "updated" in kind}
    assert new <= {"patch_apply_updated"}


async def test_a_real_turn_is_told_in_the_old_servers_events_in_its_order() -> None:
    """The same script that 0.153.4 was recorded with, played to today's app-server."""
    trace = load((GOLDEN / "mcp-server-0.153.4" / "words.json").read_bytes())
    recorded = [event_type(line.message) for line in trace.lines if line.call == "5" and line.who == "server"]
    prompt = next(line.message for line in trace.lines if line.call == "5")["params"]["arguments"]["prompt"]
    async with real() as stage:
        session = await stage.session(native={"experimentalRawEvents": True})
        legacy = LegacyEvents("full")
        opening = legacy.opening(await stage.rehearsal.engine.read(session.thread_id))
        turn = session.say(TurnSpec(parts=(TextPart(prompt),)), merge=False)
        events = [event async for event in turn.events]
    seen = types([*opening, *messages_of(legacy, *events)])
    assert sorted(seen) == sorted(kind for kind in recorded if kind)
    assert [kind for kind in seen if kind != "raw_response_completed"] == [
        kind for kind in recorded if kind and kind != "raw_response_completed"
    ]


# ── words ──────────────────────────────────────────────────────────────────


def raw_item(item_id: str, **more: Any) -> Other:
    return Other(
        method="rawResponseItem/completed", params={"item": {"type": "message", "id": item_id, **more}}
    )


def test_a_message_is_whole_when_its_raw_item_says_so_and_only_that_tells_its_phase() -> None:
    """Where the model's raw items come along, they are the truth."""
    legacy = fresh()
    messages_of(legacy, raw_item("other"), Text(**TURN, text="Hel"), Text(**TURN, text="lo"))
    counted = Usage(turn_id="u", last=Tokens(), total=Tokens())
    assert "agent_message" not in types(messages_of(legacy, counted))
    messages = messages_of(legacy, raw_item("m", phase="final_answer"))
    assert messages[1] == {
        "type": "agent_message",
        "message": "Hello",
        "phase": "final_answer",
        "memory_citation": None,
    }


@given(st.lists(st.text(max_size=8), min_size=1, max_size=8))
def test_however_a_message_is_cut_its_pieces_and_its_whole_are_the_same(pieces: list[str]) -> None:
    """Merged or not: each character once in the deltas, and once more in the message."""
    legacy = fresh()
    messages = messages_of(legacy, *(Text(**TURN, text=piece) for piece in pieces))
    messages += messages_of(legacy, TurnDone(turn_id="u", status="completed", text="".join(pieces)))
    deltas = [m["delta"] for m in messages if m["type"] == "agent_message_content_delta"]
    assert deltas == pieces
    assert [m["message"] for m in messages if m["type"] == "agent_message"] == ["".join(pieces)]


def test_half_a_message_of_an_interrupted_turn_is_not_told_as_a_whole_one() -> None:
    """The old server did not, either."""
    legacy = fresh()
    messages_of(legacy, TurnStarted(turn_id="u"), Text(**TURN, text="half"))
    assert types(messages_of(legacy, TurnDone(turn_id="u", status="interrupted"))) == ["turn_aborted"]


def test_a_thought_keeps_its_sections_whatever_blank_lines_they_have() -> None:
    """Sections are told by Codex; a blank line inside one is only text."""
    legacy = fresh()
    gap = b'{"method":"item/reasoning/summaryPartAdded","params":{}}'
    messages = messages_of(
        legacy,
        Thought(**TURN, text="**One**\n\nfirst"),
        Thought(**TURN, text="\n\n", frame=gap),
        Thought(**TURN, text="second"),
        TurnDone(turn_id="u", status="completed"),
    )
    assert [m["text"] for m in messages if m["type"] == "agent_reasoning"] == ["**One**\n\nfirst", "second"]
    assert [m["summary_index"] for m in messages if m["type"] == "reasoning_content_delta"] == [0, 1]
    assert types(messages).count("agent_reasoning_section_break") == 2


# ── turns ──────────────────────────────────────────────────────────────────


def test_a_count_of_tokens_waits_for_the_limits_that_come_right_behind_it() -> None:
    """The old server told both in one event."""
    legacy = fresh()
    counted = Usage(turn_id="u", last=Tokens(input=1), total=Tokens(input=2), window=9)
    limits = Other(method="account/rateLimits/updated", params={"rateLimits": {"limitId": "codex"}})
    assert messages_of(legacy, counted) == []
    (count,) = messages_of(legacy, limits)
    assert count["rate_limits"] == {"limit_id": "codex"}
    assert count["info"]["last_token_usage"]["input_tokens"] == 1
    assert messages_of(legacy, limits) == []
    (alone, _) = messages_of(legacy, counted, TurnDone(turn_id="u", status="completed"))
    assert alone["type"] == "token_count"
    assert messages_of(legacy, TurnStarted(turn_id="v"))[-1]["model_context_window"] == 9


def test_the_death_of_codex_is_an_error_and_the_end_of_the_turn() -> None:
    """Nobody else can tell of it: Codex cannot."""
    legacy = fresh()
    failure = Failure(kind="engine_lost", message="Codex ended unexpectedly: killed by SIGKILL")
    messages = messages_of(
        legacy, TurnStarted(turn_id="u"), TurnDone(turn_id="u", status="failed", failure=failure)
    )
    error = {"message": failure.message, "codex_error_info": "engine_lost"}
    assert messages[-2] == {"type": "error", **error}
    assert messages[-1]["error"] == error


def test_an_error_is_told_once_and_a_retry_is_no_error() -> None:
    """The turn's own end repeats what went wrong; it does not say it a second time."""
    info = {"httpConnectionFailed": {"httpStatusCode": 502}}
    frame = msgspec.json.encode({"method": "error", "params": {"error": {"codexErrorInfo": info}}})
    legacy = fresh()
    again = Notice(level="error", message="again", will_retry=True, frame=frame)
    last = Notice(level="error", message="no", frame=frame)
    done = TurnDone(turn_id="u", status="failed", failure=Failure(kind="other", message="no"))
    messages = messages_of(legacy, again, last, done)
    assert types(messages) == ["stream_error", "error", "task_complete"]
    assert messages[1]["codex_error_info"] == {"http_connection_failed": {"http_status_code": 502}}
    assert messages[2]["error"] == {"message": "no", "codex_error_info": messages[1]["codex_error_info"]}


def test_mcp_servers_are_told_one_by_one_and_together_when_none_is_left_starting() -> None:
    """And where there are none, that is told when the first turn begins."""
    method = "mcpServer/startupStatus/updated"
    legacy = fresh()
    messages = messages_of(
        legacy,
        Other(method=method, params={"name": "a", "status": "starting"}),
        Other(method=method, params={"name": "b", "status": "starting"}),
        Other(method=method, params={"name": "b", "status": "failed", "error": "no"}),
        TurnStarted(turn_id="u"),
        Other(method=method, params={"name": "a", "status": "ready"}),
    )
    assert types(messages) == [
        *["mcp_startup_update"] * 3,
        "task_started",
        "mcp_startup_update",
        "mcp_startup_complete",
    ]
    failed = [{"server": "b", "error": "no"}]
    assert messages[-1] == {
        "type": "mcp_startup_complete",
        "ready": ["a"],
        "failed": failed,
        "cancelled": [],
    }
    assert types(messages_of(fresh(), TurnStarted(turn_id="u"))) == ["mcp_startup_complete", "task_started"]


def test_an_old_codex_that_tells_everything_twice_is_told_once() -> None:
    """The app-server of 0.104 sends the old events along with the new ones; strangers pass on as they are."""
    legacy = fresh()
    assert (
        messages_of(legacy, Other(method="codex/event/agent_message", params={"msg": {"message": "x"}})) == []
    )
    assert messages_of(legacy, Other(method="thing/happened", params={"a": 1})) == [
        {"type": "thing_happened", "a": 1}
    ]
