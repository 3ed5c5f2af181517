"""Whatever a client sends that makes no sense: a clear error by the right code, and nothing left bound."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from laneway.doors.mcp.presets import MAX_FILE_BYTES
from laneway.testing.processes import wait_gone
from tests.doors.mcp.support import Client, Stage, stage
from tests.doors.mcp.views import QUIET, configure

SHAPES: list[tuple[str, dict[str, Any], str]] = [
    ("codex", {}, "missing field `prompt`"),
    ("codex", {"prompt": None}, "expected a string"),
    ("codex", {"prompt": 5}, "expected a string"),
    ("codex", {"prompt": ["%say x"]}, "expected a string"),
    ("codex", {"prompt": "x", "cwd": 5}, "expected a string"),
    ("codex", {"prompt": "x", "model": {}}, "expected a string"),
    ("codex", {"prompt": "x", "config": "a=b"}, "expected a map"),
    ("codex", {"prompt": "x", "sandbox": "none"}, "unknown variant `none`"),
    ("codex", {"prompt": "x", "approval-policy": True}, "expected string"),
    ("codex", {"prompt": "x", "identity": 5}, "`identity` must be a string"),
    ("codex", {"prompt": "x", "agent_id": []}, "`agent_id` must be a string"),
    ("codex", {"agent_id": "agent-x", "prompt": 5}, "`prompt` must be a string"),
    ("codex", {"prompt": "x", "role": 5}, "`role` must be a string"),
    ("codex", {"prompt": "x", "tag": {}}, "`tag` must be a string"),
    ("codex", {"agent_file": 5}, "`agent_file` must be a string"),
    ("codex", {"prompt": "x", "surprise": 1}, "unknown field `surprise`"),
    ("codex-reply", {"agent_id": "agent-x"}, "missing field `prompt`"),
    ("codex-reply", {"prompt": 5, "agent_id": "agent-x"}, "expected a string"),
    ("codex-reply", {"prompt": "x", "threadId": 5}, "expected a string"),
    ("codex-reply", {"prompt": "x", "agent_id": 5}, "expected a string"),
    ("codex-reply", {"prompt": "x", "agent_id": []}, "expected a string"),
    ("agent_close", {"agent_id": 5}, "agent_id must be a string"),
    ("agent_close", {"surprise": 1}, "There is no argument surprise"),
    ("agent_sessions", {"include_closed": "yes"}, "include_closed must be a boolean"),
    ("agent_answer", {}, "question_id and action"),
    ("agent_answer", {"question_id": 5, "action": "accept"}, "question_id and action"),
    ("agent_answer", {"question_id": "q", "action": "perhaps"}, "question_id and action"),
    ("no_such_tool", {}, "Unknown tool 'no_such_tool'"),
]
"""What is wrong by its shape: -32602."""

SENSE: list[tuple[str, dict[str, Any], int, str]] = [
    ("codex", {"prompt": "x", "agent_file": "x.md"}, -32007, "agent_file or prompt"),
    ("codex", {"agent_id": "agent-x", "agent_file": "x.md"}, -32007, "agent_file or agent_id"),
    ("codex", {"prompt": "x", "role": "nobody"}, -32007, "There is no role 'nobody'"),
    ("codex", {"prompt": "x", "identity": "../../x"}, -32007, "not allowed"),
    ("codex", {"prompt": "x", "identity": "a/b"}, -32007, "not allowed"),
    ("codex", {"prompt": "x", "identity": "a@b"}, -32007, "not allowed"),
    ("codex", {"prompt": "x", "identity": ".hidden"}, -32007, "begins with a dot"),
    ("codex", {"prompt": "x", "identity": ""}, -32007, "empty"),
    ("codex", {"prompt": "x", "identity": "a\nb"}, -32007, "control character"),
    ("codex", {"prompt": "x", "identity": "a\x00b"}, -32007, "control character"),
    ("codex", {"prompt": "x", "identity": "\u202eevil"}, -32007, "cannot be seen"),
    ("codex", {"prompt": "x", "identity": "x" * 500}, -32007, "longer than"),
    ("codex", {"prompt": "x", "identity": "x.lock"}, -32007, "keeps a file"),
    ("codex", {"prompt": "x", "identity": "nul"}, -32007, "device"),
    ("codex", {"prompt": "x", "identity": "team-lead"}, -32007, "reserved"),
    ("codex", {"prompt": "x", "identity": "SYSTEM"}, -32007, "reserved"),
    ("codex", {"prompt": "x", "role": "x" * 100_000}, -32007, "There is no role"),
    ("codex", {"prompt": "x", "cwd": "/nowhere/at/all"}, -32007, "There is no folder /nowhere/at/all"),
    ("codex", {"prompt": "x", "cwd": "/dev/null"}, -32007, "There is no folder"),
    ("codex", {"prompt": "x", "cwd": "a\x00b"}, -32007, "There is no folder"),
    ("codex", {"prompt": "x", "cwd": "~nobody-of-that-name/x"}, -32007, "There is no folder"),
    ("codex", {"prompt": "x", "cwd": "x" * 100_000}, -32007, "There is no folder"),
    ("codex", {"agent_file": "~nobody-of-that-name/x"}, -32008, "does not exist"),
    ("codex", {"prompt": "x", "agent_id": "agent-unknown"}, -32002, "There is no session agent-unknown"),
    ("codex", {"prompt": "x", "agent_id": "../registry.json"}, -32002, "There is no session"),
    ("codex-reply", {"prompt": "x"}, -32007, "needs agent_id or threadId"),
    ("codex-reply", {"prompt": "x", "agent_id": "agent-unknown"}, -32002, "There is no session"),
    ("codex-reply", {"prompt": "x", "agent_id": "x" * 100_000}, -32002, "There is no session"),
    ("codex-reply", {"prompt": "x", "threadId": "not a thread"}, -32002, "There is no session"),
    (
        "codex-reply",
        {"prompt": "x", "threadId": "01900000-0000-7000-8000-000000000000"},
        -32002,
        "There is no session",
    ),
    ("agent_close", {}, -32007, "needs agent_id or identity"),
    ("agent_close", {"agent_id": "agent-unknown"}, -32002, "There is no session"),
    ("agent_close", {"identity": "nobody"}, -32002, "There is no session"),
    ("agent_answer", {"question_id": "q", "action": "accept"}, -32007, "Nobody waits"),
]
"""What has the right shape and makes no sense: the seed's own codes."""


@pytest.mark.covers("FR-16.5", "NFR-6", "NFR-6/-32002", "NFR-6/-32007", "NFR-6/-32602", "NFR-3")
async def test_nonsense_is_refused_by_the_right_code_and_leaves_nothing(tmp_path: Path) -> None:
    """Not even Codex is started for it, and the next good call is served."""
    async with stage(tmp_path) as here, here.server("mcp", env=QUIET) as client:
        for tool, arguments, words in SHAPES:
            await _refused(client, tool, arguments, -32602, words)
        for tool, arguments, code, words in SENSE:
            await _refused(client, tool, arguments, code, words)
        health = await client.content("agent_status")
        assert (health["child_alive"], health["active"], health["identities"]) == (False, 0, {})
        assert (await client.content("agent_sessions"))["sessions"] == []
        assert _names_on_disk(here) == set()
        assert (await client.content("codex", prompt="%say fine"))["content"] == "fine"


async def _refused(client: Client, tool: str, arguments: dict[str, Any], code: int, words: str) -> None:
    error = await client.error(tool, **arguments)
    assert (error["code"], error["data"]["error_source"]) == (code, "proxy"), (tool, arguments, error)
    assert words in error["message"], (tool, arguments, error)
    assert len(error["message"]) < 5000


def _names_on_disk(here: Stage) -> set[str]:
    """Identities that left anything."""
    return {path.name for path in here.sessions.rglob("*") if path.is_dir() and path.parent.name == "default"}


@pytest.mark.covers("NFR-6/-32602", "FR-1.1")
async def test_requests_that_are_none_are_answered_as_such_and_the_pipe_goes_on(tmp_path: Path) -> None:
    """Params of the wrong kind, tools without names, methods nobody knows, ids of every kind."""
    async with stage(tmp_path) as here, here.server("mcp", env=QUIET) as client:
        wrong: list[tuple[str, Any, int]] = [
            ("tools/call", {}, -32602),
            ("tools/call", {"name": 5}, -32602),
            ("tools/call", {"name": "codex", "arguments": "prompt"}, -32602),
            ("tools/call", [], -32602),
            ("tools/list", {"cursor": "page 2"}, -32602),
            ("resources/read", {}, -32602),
            ("custom/x", {}, -32601),
        ]
        for method, params, code in wrong:
            answer = await client.ask(method, params)
            assert answer["error"]["code"] == code, (method, params, answer)
        for request_id in ("text", 0, -7, 2**53, ""):
            answer = await client.ask_as(request_id, "ping")
            assert answer == {"jsonrpc": "2.0", "id": request_id, "result": {}}


@pytest.mark.covers("FR-16.1", "FR-16.6", "NFR-6/-32008", "FR-10.1")
async def test_an_agent_file_is_the_prompt_or_is_refused_before_anything_begins(tmp_path: Path) -> None:
    """Relative to the folder of the call; a file that cannot be read as text is named with the reason."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "dev.md").write_text("---\nname: dev\n---\n%say from a file\n")
    (folder / "huge.md").write_text("x" * (MAX_FILE_BYTES + 1))
    (folder / "binary.md").write_bytes(b"\xff\xfe\x00")
    (folder / "loop.md").symlink_to("loop.md")
    os.mkfifo(folder / "pipe.md")
    bad = {
        "missing.md": "does not exist",
        ".": "is not a file",
        "pipe.md": "is not a file",
        "/dev/zero": "is not a file",
        "huge.md": f"is longer than {MAX_FILE_BYTES} bytes",
        "binary.md": "is not UTF-8 text",
        "loop.md": "is not a file",
        "x" * 5000: "cannot be read",
        "a\x00b": "cannot be read",
    }
    async with stage(tmp_path / "state") as here, here.server("mcp", env=QUIET) as client:
        for name, why in bad.items():
            error = await client.error("codex", agent_file=name, identity="dev", cwd=str(folder))
            assert (error["code"], error["data"]["error_source"]) == (-32008, "proxy"), name
            assert why in error["message"]
        assert _names_on_disk(here) == set()
        done = await client.content("codex", agent_file="dev.md", identity="dev", cwd=str(folder))
        (row,) = (await client.content("agent_sessions"))["sessions"]

    assert done["content"] == "from a file"
    assert (row["agent_name"], row["agent_source"]) == ("dev", str(folder / "dev.md"))


@pytest.mark.covers("NFR-6/-32007", "FR-12.2")
async def test_what_contradicts_the_session_or_the_server_is_refused(tmp_path: Path) -> None:
    """Another name than the session's own; write access where the server was started read-only."""
    async with stage(tmp_path) as here:
        configure(here, '[plugins.atm-agent-mcp.roles.writer]\nsandbox = "workspace-write"\n')
        async with here.server("mcp", "--readonly", env=QUIET) as client:
            session = await client.content("codex", prompt="%say x", identity="dev")
            for arguments in ({"agent_id": session["agent_id"], "identity": "other"},):
                for tool in ("codex", "agent_close"):
                    error = await client.error(tool, **arguments)
                    assert (error["code"], "dev, not other" in error["message"]) == (-32007, True)
            for wider in ({"sandbox": "workspace-write"}, {"role": "writer"}):
                error = await client.error("codex", prompt="%say x", **wider)
                assert (error["code"], "--readonly" in error["message"]) == (-32007, True)
            assert (await client.content("agent_status"))["active"] == 1


@pytest.mark.parametrize(
    "words",
    [
        ["--role", "nobody"],
        ["--fast"],
        ["--identity", "../x"],
        ["--identity", "team-lead"],
        ["--timeout", "0"],
        ["--max-sessions", "0"],
        ["--tools", "everything"],
        ["--events", "some"],
        ["-c", "novalue"],
        ["-s", "none"],
        ["--codex-bin", "/nowhere/codex"],
    ],
)
async def test_a_server_that_cannot_be_what_was_asked_for_says_so_and_does_not_start(
    tmp_path: Path, words: list[str]
) -> None:
    """In a sentence on standard error; standard output stays the protocol's."""
    async with stage(tmp_path) as here, here.server("mcp", *words, greet=False) as client:
        assert await client.process.wait() in (1, 2, 3)
        await client.aclose()
        assert client.process.pid
        await wait_gone(client.process.pid)

    assert client.heard == []
    assert client.stderr.strip()
    assert "Traceback" not in client.stderr
