"""What a person sees of each kind of activity: title, kind, name, what went in and what came out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.codex.items import activity
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.updates.tool_calls import changed, ended, ended_without, opened, printed, replayed
from tests.doors.acp.calls import (
    BARE,
    CALL,
    CWD,
    TERMINAL,
    THREAD,
    TURN,
    command,
    done,
    problems,
    running,
    texts,
)

PNG = "iVBORw0KGgo="


def over(kind: str, **fields: Any) -> dict[str, Any]:
    """The end of a call; it must be valid ACP."""
    made = ended(done(kind, **fields), THREAD, BARE, cwd=CWD)
    assert problems(BARE, opened(running(kind, **fields), THREAD, BARE, cwd=CWD), made) == []
    return made


def seen(update: dict[str, Any]) -> tuple[str, str, str | None]:
    return update["kind"], update["title"], update.get("name")


# ── commands that are more than commands ───────────────────────────────────


@pytest.mark.parametrize(
    ("actions", "kind", "title", "locations"),
    [
        (
            [{"type": "read", "name": "a.py", "path": "/work/src/a.py"}],
            "read",
            "Read src/a.py",
            ["/work/src/a.py"],
        ),
        ([{"type": "read", "name": "a.py", "path": "/etc/a.py"}], "read", "Read /etc/a.py", ["/etc/a.py"]),
        ([{"type": "read", "name": "a.py", "path": "a.py"}], "read", "Read a.py", ["/work/a.py"]),
        ([{"type": "search", "query": "x y", "path": "/work/src"}], "search", "Search for “x y” in src", []),
        ([{"type": "search", "query": None, "path": None}], "search", "Search", []),
        ([{"type": "listFiles", "path": "src"}], "read", "List src", []),
        ([{"type": "listFiles"}], "read", "List files", []),
        ([{"type": "unknown"}], "execute", "make", []),
        ([{"type": "read", "path": "/a"}, {"type": "read", "path": "/a"}], "execute", "make", ["/a"]),
        ("odd", "execute", "make", []),
        (["odd", None], "execute", "make", []),
    ],
)
def test_a_command_that_reads_or_searches_is_shown_as_that(
    actions: Any, kind: str, title: str, locations: list[str]
) -> None:
    """Where Codex takes it for exactly one thing; files that are read are locations."""
    begun = opened(command("make", ended=False, commandActions=actions), THREAD, BARE)
    assert seen(begun) == (kind, title, "shell")
    assert [location["path"] for location in begun.get("locations", [])] == locations
    assert begun["rawInput"]["command"] == "make"
    assert problems(BARE, begun) == []


# ── tools of others ────────────────────────────────────────────────────────


def mcp(**fields: Any) -> dict[str, Any]:
    return over("mcpToolCall", **{"server": "docs", "tool": "find", "arguments": {"q": 1}, **fields})


def test_results_of_mcp_tools_are_content() -> None:
    """Images, too; and nothing is sent twice."""
    content = [{"type": "text", "text": "Found."}, {"type": "image", "data": PNG, "mimeType": "image/png"}]
    made = mcp(status="completed", result={"content": content})
    assert seen(made) == ("other", "docs.find", "docs.find")
    assert made["rawInput"] == {"server": "docs", "tool": "find", "arguments": {"q": 1}}
    assert [part["content"] for part in made["content"]] == content
    assert "rawOutput" not in made
    assert made["status"] == "completed"


def test_an_mcp_tool_that_fails_says_why() -> None:
    """Whether Codex tells an error or the server does."""
    made = mcp(status="failed", error={"message": "no such page"})
    assert (made["status"], texts(made)) == ("failed", ["no such page"])
    made = mcp(status="completed", result={"content": [{"type": "text", "text": "Bad."}], "isError": True})
    assert (made["status"], texts(made)) == ("failed", ["Bad."])


def test_structured_content_is_shown_where_there_is_no_other() -> None:
    """Beside other content it is the raw output."""
    alone = mcp(status="completed", result={"content": [], "structuredContent": {"n": 1}})
    assert texts(alone) == ['```json\n{\n  "n": 1\n}\n```']
    assert "rawOutput" not in alone
    beside = mcp(
        status="completed", result={"content": [{"type": "text", "text": "n"}], "structuredContent": {"n": 1}}
    )
    assert (texts(beside), beside["rawOutput"]) == (["n"], {"structuredContent": {"n": 1}})


@pytest.mark.parametrize(
    "result", ["words", 3, ["a"], {"content": "words"}, {"content": {"a": 1}}, {"content": [None]}]
)
def test_a_malformed_result_is_still_seen(result: Any) -> None:
    """As the JSON that it is."""
    assert texts(mcp(status="completed", result=result)) != []


def test_a_tool_of_the_clients_shows_what_it_returned() -> None:
    """Once, with its namespace."""
    content = [
        {"type": "inputText", "text": "sunny"},
        {"type": "inputImage", "imageUrl": f"data:image/png;base64,{PNG}"},
    ]
    made = over(
        "dynamicToolCall", tool="weather", namespace="sky", arguments={"city": "Bern"}, contentItems=content
    )
    assert seen(made) == ("other", "sky.weather", "sky.weather")
    assert made["rawInput"] == {"city": "Bern"}
    assert texts(made) == ["sunny"]
    assert made["content"][1]["content"] == {"type": "image", "data": PNG, "mimeType": "image/png"}


# ── the web, images ────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("query", "action", "kind", "title"),
    [
        ("", None, "search", "Search the web"),
        ("acp", {"type": "search", "query": "acp"}, "search", "Search the web for “acp”"),
        ("acp", {"type": "other"}, "search", "Search the web for “acp”"),
        ("u", {"type": "openPage", "url": "https://x.y"}, "fetch", "Open https://x.y"),
        (
            "u",
            {"type": "findInPage", "url": "https://x.y", "pattern": "z"},
            "fetch",
            "Find “z” in https://x.y",
        ),
    ],
)
def test_a_web_search_says_what_it_looks_for(query: str, action: Any, kind: str, title: str) -> None:
    """Codex tells it at the end only, so the end corrects the title."""
    assert seen(over("webSearch", query=query, action=action)) == (kind, title, "web_search")


def test_hits_of_a_web_search_are_links() -> None:
    """What is no link is shown as it is."""
    results = [{"title": "ACP", "url": "https://x.y", "score": 1}, "odd"]
    made = over("webSearch", query="acp", results=results)
    assert made["content"][0]["content"] == {"type": "resource_link", "name": "ACP", "uri": "https://x.y"}
    assert texts(made) == ['```json\n"odd"\n```']


def test_an_image_that_codex_looks_at_is_a_link() -> None:
    """And a location."""
    made = over("imageView", path="/work/a b.png")
    assert seen(made) == ("read", "View a b.png", "view_image")
    assert made["content"][0]["content"] == {
        "type": "resource_link",
        "name": "a b.png",
        "uri": "file:///work/a%20b.png",
    }
    assert made["locations"] == [{"path": "/work/a b.png"}]


def test_an_image_that_was_made_is_sent_once() -> None:
    """From the beginning to the end of its call; the raw output tells where it is, and does not repeat it."""
    begun = opened(running("imageGeneration", result=""), THREAD, BARE, cwd=CWD)
    made = over(
        "imageGeneration", status="completed", result=PNG, revisedPrompt="A cat", savedPath="/work/cat.png"
    )
    assert seen(made) == ("other", "Make an image: A cat", "image_generation")
    assert made["content"][0]["content"] == {"type": "image", "data": PNG, "mimeType": "image/png"}
    assert (made["rawInput"], made["rawOutput"]) == ({"prompt": "A cat"}, {"savedPath": "/work/cat.png"})
    assert str([begun, made]).count(PNG) == 1


def test_an_image_that_was_not_made_says_why() -> None:
    """The end is a failure."""
    failure = {"type": "usageLimitExceeded", "limitId": "images"}
    made = over("imageGeneration", status="completed", result="", failure=failure)
    assert (made["status"], texts(made)) == ("failed", ["No image was made: usageLimitExceeded."])


# ── the rest ───────────────────────────────────────────────────────────────


def test_subagents_are_shown_with_what_they_were_told_and_what_they_said() -> None:
    """Under Codex's own name for the tool."""
    states = {"t-2": {"status": "completed", "message": "Done."}}
    made = over("collabAgentToolCall", tool="spawnAgent", prompt="Do it.", agentsStates=states, model="m")
    assert seen(made) == ("other", "Start a subagent", "spawn_agent")
    assert texts(made) == ["Do it.", "Done."]
    assert made["rawInput"] == {"prompt": "Do it.", "model": "m"}


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        ("enteredReviewMode", {"review": "the diff"}, ("think", "Review the diff", "review")),
        ("exitedReviewMode", {"review": "# All\ngood"}, ("think", "The review is done", "review")),
        ("contextCompaction", {}, ("think", "Compact the conversation", None)),
        ("sleep", {"durationMs": 1500}, ("other", "Wait 1.5 s", "sleep")),
        ("functionCallOutput", {"name": "sum", "output": "3"}, ("other", "sum", "sum")),
        ("fromTheFuture", {}, ("other", "fromTheFuture", None)),
    ],
)
def test_every_other_item_has_a_title_and_a_kind(kind: str, fields: Any, expected: Any) -> None:
    """Also one that nobody has heard of."""
    assert seen(over(kind, **fields)) == expected


def test_an_unknown_item_is_attached_whole_when_it_is_small() -> None:
    """For whoever looks for the reason."""
    made = over("fromTheFuture", speed=88)
    assert made["rawOutput"] == {"type": "fromTheFuture", "id": "i-1", "speed": 88}
    assert "rawOutput" not in over("fromTheFuture", speed="x" * 100_000)


def test_a_review_shows_its_text() -> None:
    """It is the result of the review."""
    assert texts(over("exitedReviewMode", review="# All\ngood")) == ["# All\ngood"]


# ── whatever Codex may send ────────────────────────────────────────────────

words = st.text(max_size=8)
scalars = st.none() | st.booleans() | st.integers(-5, 2**40) | words
odd = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
FIELDS = {
    "commandExecution": ["command", "cwd", "aggregatedOutput", "exitCode", "commandActions"],
    "fileChange": ["changes"],
    "mcpToolCall": ["server", "tool", "arguments", "result", "error"],
    "dynamicToolCall": ["tool", "arguments", "contentItems", "namespace", "success"],
    "collabAgentToolCall": ["tool", "prompt", "agentsStates", "receiverThreadIds"],
    "subAgentActivity": ["kind", "agentPath"],
    "webSearch": ["query", "action", "results"],
    "imageView": ["path"],
    "imageGeneration": ["result", "revisedPrompt", "savedPath", "failure"],
    "enteredReviewMode": ["review"],
    "exitedReviewMode": ["review"],
    "contextCompaction": [],
    "sleep": ["durationMs"],
    "functionCallOutput": ["name", "output"],
    "fromTheFuture": ["name", "output"],
}
changes = st.lists(
    st.fixed_dictionaries(
        {"path": words, "diff": words},
        optional={"kind": st.fixed_dictionaries({"type": st.sampled_from(("add", "delete", "update"))})},
    ),
    max_size=3,
)
statuses = st.sampled_from((None, "inProgress", "completed", "failed", "declined", "interrupted", "new"))


@st.composite
def items(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(sorted(FIELDS)))
    item = {
        name: draw(changes if name == "changes" else odd | words)
        for name in FIELDS[kind]
        if draw(st.booleans())
    }
    return {"type": kind, "id": "i-1", "status": draw(statuses), **item}


@given(items(), st.sampled_from((BARE, TERMINAL)), st.sampled_from(("", CWD)))
def test_whatever_an_item_holds_its_call_is_valid_acp(
    item: dict[str, Any], client: EditorClient, cwd: str
) -> None:
    """From its beginning to its end, and in the history. What cannot be an activity never comes here."""
    try:
        begun, finished = activity(TURN, item, ended=False), activity(TURN, item, ended=True)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        return
    updates = [
        opened(begun, THREAD, client, cwd=cwd),
        changed(begun, THREAD, client, cwd=cwd),
        *([printed(begun, THREAD, client, "x", cwd=cwd)] if begun.kind == "command" else []),
        ended(finished, THREAD, client, cwd=cwd),
    ]
    assert problems(client, *updates) == []
    assert updates[-1]["status"] in ("completed", "failed")
    assert problems(client, updates[0], ended_without(CALL, "Gone.", client, last=begun, cwd=cwd)) == []
    assert problems(BARE, replayed(finished, THREAD, cwd=cwd)) == []
