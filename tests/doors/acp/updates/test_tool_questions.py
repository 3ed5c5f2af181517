"""What a permission request shows of the call it is about: all that somebody needs to decide."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from laneway.codex.questions import question_of
from laneway.core.model import Question
from laneway.doors.acp.updates.tool_calls import call_id_of, ended, opened, permission_tool_call, resumed
from tests.doors.acp.calls import BARE, CALL, CWD, TERMINAL, THREAD, TURN, command, problems, texts

CHANGE = {"path": "/work/a.py", "kind": {"type": "update"}, "diff": "@@ -7 +7 @@\n-a\n+b\n"}


def question(method: str, item: dict[str, Any] | None = None, **params: Any) -> Question:
    """As Codex asks it."""
    given = {"threadId": THREAD, "turnId": TURN, "itemId": "i-1", **params}
    made = question_of(method, given, "q-1", item)
    assert made is not None
    return made


def on_command(**params: Any) -> Question:
    return question("item/commandExecution/requestApproval", **{"command": "make", "cwd": "/else", **params})


def on_patch(item: dict[str, Any] | None, **params: Any) -> Question:
    return question("item/fileChange/requestApproval", item, **params)


def test_a_command_is_shown_with_its_folder_and_the_reason() -> None:
    """The folder is the command's own."""
    shown = permission_tool_call(on_command(reason="To build\n```sh\nit."), THREAD, BARE, cwd=CWD)
    assert shown == {
        "toolCallId": CALL,
        "status": "pending",
        "title": "make",
        "kind": "execute",
        "name": "shell",
        "content": [
            {
                "type": "content",
                "content": {
                    "type": "text",
                    "text": "```sh\nmake\n```\n\nIn `/else`.\n\nReason: To build ```sh it.",
                },
            }
        ],
        "rawInput": {"command": "make", "cwd": "/else"},
    }
    assert problems(BARE, permission=shown) == []


def test_a_command_cannot_hide_itself() -> None:
    """Neither by an escape, nor by being long, nor behind a fence of its own."""
    words = "true\r\x1b[2K; ```; " + "x" * 300 + "\nrm -rf ~"
    shown = permission_tool_call(on_command(command=words), THREAD, BARE)
    assert "\x1b" not in shown["title"]
    assert shown["title"].endswith("…")
    [text] = texts(shown)
    visible = words.replace("\r", "\\x0d").replace("\x1b", "\\x1b")
    assert text.startswith(f"````sh\n{visible}\n````\n")


def test_access_to_the_network_says_to_where() -> None:
    """The host is what the question is about."""
    network = {"host": "example.org", "protocol": "https"}
    shown = permission_tool_call(on_command(networkApprovalContext=network), THREAD, BARE)
    assert shown["title"] == "Allow network access to example.org?"
    assert "It wants to reach `example.org` by `https`." in texts(shown)[0]
    assert "```sh\nmake\n```" in texts(shown)[0]


def test_further_permissions_of_a_command_are_shown() -> None:
    """They are part of the yes."""
    shown = permission_tool_call(
        on_command(additionalPermissions={"network": {"enabled": True}}), THREAD, BARE
    )
    assert "With these further permissions:\n\n```json\n" in texts(shown)[0]
    assert '"enabled": true' in texts(shown)[0]


def test_a_patch_is_shown_with_its_diff() -> None:
    """As in the call itself: title, kind, diff and location."""
    shown = permission_tool_call(on_patch({"changes": [CHANGE]}, reason="Fix it."), THREAD, BARE, cwd=CWD)
    assert shown == {
        "toolCallId": CALL,
        "status": "pending",
        "title": "Edit a.py (+1 −1)",
        "kind": "edit",
        "name": "apply_patch",
        "content": [
            {"type": "content", "content": {"type": "text", "text": "Reason: Fix it."}},
            {"type": "diff", "path": "/work/a.py", "oldText": "a\n", "newText": "b\n"},
        ],
        "locations": [{"path": "/work/a.py", "line": 7}],
    }
    assert problems(BARE, permission=shown) == []


def test_a_patch_that_codex_does_not_show_says_so() -> None:
    """Nobody should think that it is empty."""
    shown = permission_tool_call(on_patch(None, grantRoot="/work/src"), THREAD, BARE)
    assert texts(shown) == [
        "A yes for the session covers all files below `/work/src`.\n\nCodex did not tell which changes."
    ]
    assert problems(BARE, permission=shown) == []


def test_permissions_are_listed() -> None:
    """Exactly what a yes would grant."""
    wanted = {"fileSystem": {"write": ["/data"]}}
    method = "item/permissions/requestApproval"
    shown = permission_tool_call(
        question(method, permissions=wanted, cwd="/else", reason="Data."), THREAD, BARE
    )
    assert (shown["title"], shown["kind"], shown["rawInput"]) == ("Grant these permissions?", "other", wanted)
    [text] = texts(shown)
    assert '"/data"' in text
    assert text.endswith("In `/else`.\n\nReason: Data.")


def test_what_an_mcp_server_asks_names_the_server_and_the_arguments() -> None:
    """Also where it is a tool call that Codex wants approved."""
    meta = {"codex_approval_kind": "mcp_tool_call", "tool_params": {"id": 7}}
    method = "mcpServer/elicitation/request"
    made = question(
        method, message="Allow docs to run tool “drop”?", serverName="docs", _meta=meta, url="https://x.y"
    )
    shown = permission_tool_call(made, THREAD, BARE, call_id="mine")
    assert (shown["toolCallId"], shown["title"], shown["rawInput"]) == ("mine", made.message, {"id": 7})
    assert texts(shown) == [
        'Asked by the MCP server `docs`.\n\nThe address is `https://x.y`.\n\n```json\n{\n  "id": 7\n}\n```'
    ]
    assert problems(BARE, permission=shown) == []


def test_a_question_about_no_item_has_an_id_of_its_own() -> None:
    """Two of them are not the same call."""
    method = "mcpServer/elicitation/request"
    assert call_id_of(question(method, message="?", itemId=None), THREAD) == f"codex:{THREAD}:{TURN}:q-1"


def test_after_a_yes_the_call_goes_on_in_its_terminal() -> None:
    """The question took its place; to another client only the status changes."""
    begun = command("make\nall", ended=False)
    made = on_command(command="make\nall")
    on = resumed(made, THREAD, TERMINAL)
    told = opened(begun, THREAD, TERMINAL, cwd=CWD)
    assert on == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": CALL,
        "status": "in_progress",
        "content": told["content"],
    }
    over = ended(command("make\nall"), THREAD, TERMINAL, cwd=CWD)
    assert problems(TERMINAL, told, on, over, permission=permission_tool_call(made, THREAD, TERMINAL)) == []
    assert "content" not in resumed(made, THREAD, BARE)


words = st.text(max_size=8)
odd = st.recursive(
    st.none() | st.booleans() | st.integers() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)


@given(
    kind=st.sampled_from(("command", "patch", "permissions", "input", "elicitation")),
    message=st.text(max_size=300),
    reason=st.none() | words,
    text=st.none() | st.text(alphabet="`a\n\x1b", max_size=20),
    cwd=st.none() | words,
    params=st.dictionaries(
        st.sampled_from(
            ("_meta", "serverName", "networkApprovalContext", "additionalPermissions", "grantRoot")
        ),
        odd,
    )
    | odd,
    schema=odd,
)
def test_whatever_is_asked_the_request_is_valid_acp(
    kind: Any, message: str, reason: str | None, text: str | None, cwd: str | None, params: Any, schema: Any
) -> None:
    """However odd the question."""
    made = Question(
        question_id="q",
        kind=kind,
        thread_id=THREAD,
        turn_id=None,
        item_id=None,
        message=message,
        choices=(),
        reason=reason,
        command=text,
        cwd=cwd,
        url=text,
        params=params,
        schema=schema,
    )
    assert problems(BARE, permission=permission_tool_call(made, THREAD, BARE)) == []
