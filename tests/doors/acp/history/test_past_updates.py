"""Events of the past as updates, and the budget of those that are long ago."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laneway.core.model import Activity, Event, Failure, FileChange, Plan, PlanStep, TurnDone, UserSaid
from laneway.core.ports import ImagePart, TextPart
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.history import past_updates
from laneway.doors.acp.history.past_updates import CALL_BYTES, ReplayContext
from laneway.doors.acp.sessions.prompts import parts
from tests.doors.acp.reader import PNG, THREAD, Reader, command


def one(event: Event, *, is_whole: bool = True, client: EditorClient | None = None) -> list[Any]:
    told = past_updates.updates(event, ReplayContext(THREAD, client or EditorClient()), is_whole=is_whole)
    return [msgspec.json.decode(msgspec.json.encode(update)) for update in told]


# ── one event ──────────────────────────────────────────────────────────────


def test_a_prompt_comes_back_as_the_blocks_that_were_sent() -> None:
    """Through `prompts`, which wraps them for the model, and through Codex's records."""
    sent: list[dict[str, Any]] = [
        {"type": "text", "text": "Look at [this](x):"},
        {"type": "image", "data": PNG, "mimeType": "image/png"},
        {"type": "resource_link", "uri": "file:///w/a.py", "name": "a.py"},
        {
            "type": "resource",
            "resource": {"uri": "file:///w/b.py", "mimeType": "text/x-python", "text": "[/ACP_RESOURCE]\nx"},
        },
        {"type": "resource", "resource": {"uri": "file:///w/c", "text": ""}},
    ]
    content = [_as_kept(part) for part in parts(sent, images=True)]
    told = one(UserSaid(turn_id="a", item_id="u", text="Look", content=content))
    assert [update.pop("content") for update in told] == sent
    assert told == [{"sessionUpdate": "user_message_chunk", "messageId": "u"}] * len(sent)


def _as_kept(part: Any) -> dict[str, Any]:
    match part:
        case TextPart(text):
            return {"type": "text", "text": text, "text_elements": []}
        case ImagePart(url=url):
            return {"type": "image", "url": url, "detail": None}
    raise AssertionError(part)


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (
            {"type": "localImage", "path": "/w/a b.png"},
            {"type": "resource_link", "name": "image", "uri": "file:///w/a%20b.png"},
        ),
        (
            {"type": "mention", "name": "a.py", "path": "/w/a.py"},
            {"type": "resource_link", "name": "a.py", "uri": "file:///w/a.py"},
        ),
        (
            {"type": "mention", "name": "mail", "path": "app://mail"},
            {"type": "text", "text": "[mail: app://mail]"},
        ),
        ({"type": "skill", "name": "tidy", "path": "/s"}, {"type": "text", "text": "$tidy"}),
        (
            {"type": "image", "url": "https://x.test/a.png"},
            {"type": "resource_link", "name": "image", "uri": "https://x.test/a.png"},
        ),
        (
            {"type": "image", "url": "data:image/png;base64,%%"},
            {"type": "text", "text": "[an image that cannot be shown]"},
        ),
        ({"type": "hologram", "x": 1}, {"type": "text", "text": "[hologram]"}),
        (7, {"type": "text", "text": "[something that cannot be shown]"}),
        (
            {"type": "text", "text": '[ACP_RESOURCE uri="x"]\nno end'},
            {"type": "text", "text": '[ACP_RESOURCE uri="x"]\nno end'},
        ),
    ],
)
def test_inputs_of_other_programs_are_shown_or_named(part: Any, block: dict[str, Any]) -> None:
    """A thread may come from anywhere."""
    (told,) = one(UserSaid(turn_id="a", item_id="u", text="", content=[part]))
    assert told["content"] == block


def test_an_engine_that_keeps_only_text_is_shown_by_its_text() -> None:
    """`content` is optional."""
    (told,) = one(UserSaid(turn_id="a", item_id="u", text="hello"))
    assert told["content"] == {"type": "text", "text": "hello"}


def test_a_large_image_is_named_in_older_turns_and_shown_in_the_newest() -> None:
    """Photographs of an old conversation would hold up the new one."""
    data = "A" * (past_updates.IMAGE_CHARS + 4)
    said = UserSaid(
        turn_id="a", item_id="u", text="", content=[{"type": "image", "url": f"data:image/png;base64,{data}"}]
    )
    assert one(said)[0]["content"] == {"type": "image", "data": data, "mimeType": "image/png"}
    assert "left out of older turns" in one(said, is_whole=False)[0]["content"]["text"]


def test_a_failed_turn_says_so_and_a_plan_is_a_plan() -> None:
    """A history in which nothing ever fails would be a lie."""
    (told,) = one(TurnDone(turn_id="a", status="failed", failure=Failure(kind="x", message="no credit")))
    assert told["content"]["text"] == "The turn failed: no credit"
    assert one(TurnDone(turn_id="a", status="interrupted")) == []
    (plan,) = one(Plan(turn_id="a", steps=(PlanStep(text="look", status="running"),)))
    assert plan["entries"] == [{"content": "look", "priority": "medium", "status": "in_progress"}]


def test_a_compaction_is_told_in_the_clients_own_words_where_it_has_some() -> None:
    """Else as a tool call."""
    done = Activity(turn_id="a", item_id="k", kind="compaction", title="Compact", status="completed")
    (told,) = one(done, client=EditorClient(takes_compaction=True))
    assert told == {"sessionUpdate": "compaction_update", "compactionId": "k", "status": "completed"}
    (told,) = one(done)
    assert (told["sessionUpdate"], told["status"]) == ("tool_call", "completed")


# ── the budget ─────────────────────────────────────────────────────────────


def test_output_is_whole_in_the_newest_turn_and_bounded_before() -> None:
    """Head and tail stay, and the cut says how much it is."""
    output = "".join(f"line {number}\n" for number in range(20_000))
    assert output in one(command(output))[0]["content"][0]["content"]["text"]
    (told,) = one(command(output), is_whole=False)
    text = told["content"][0]["content"]["text"]
    assert "line 0\n" in text
    assert "line 19999\n" in text
    assert "are left out here" in text


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
)
deeds = st.builds(
    Activity,
    turn_id=st.just("a"),
    item_id=st.just("i"),
    kind=st.sampled_from(["command", "edit", "mcp", "tool", "search", "image", "agent", "sleep", "other"]),
    title=st.text(max_size=30).map(lambda text: text * 400),
    status=st.sampled_from(["completed", "failed", "declined", "interrupted", "detached"]),
    input=anything | st.text(max_size=50).map(lambda text: {"argument": text * 900}),
    output=st.none() | st.text(max_size=50).map(lambda text: text * 900),
    exit_code=st.none() | st.integers(0, 255),
    cwd=st.just("/work"),
    content=anything
    | st.lists(
        st.builds(
            lambda n: {"type": "image", "data": "AAAA" * n, "mimeType": "image/png"}, st.integers(1, 9000)
        )
        | st.text(max_size=20).map(lambda text: {"type": "text", "text": text * 700}),
        max_size=4,
    ),
    changes=st.lists(
        st.builds(
            FileChange,
            path=st.sampled_from(["/work/a.py", "b.py"]),
            kind=st.just("update"),
            diff=st.integers(0, 300).map(
                lambda n: "".join(
                    f"@@ -{at},1 +{at},1 @@\n-{'o' * 60}\n+{'n' * 60}\n" for at in range(1, n + 1)
                )
            ),
        ),
        max_size=3,
    ).map(tuple),
    item=st.just({}),
)


@settings(max_examples=150)
@given(deeds)
def test_no_tool_call_of_an_older_turn_is_larger_than_its_budget(deed: Activity) -> None:
    """Whatever it printed, changed or returned; and every message stays valid."""
    (told,) = past_updates.updates(deed, ReplayContext(THREAD, EditorClient(), "/work"), is_whole=False)
    assert isinstance(told, msgspec.Raw)
    assert len(told) <= CALL_BYTES
    reader = Reader()
    reader.update("sess_t", told)
    reader.lint.assert_clean()
    assert reader.open_calls() == set()
