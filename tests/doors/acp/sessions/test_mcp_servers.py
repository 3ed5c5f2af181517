"""The client's MCP servers on their way into a thread's config."""

from __future__ import annotations

import re
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.base.errors import RemoteError
from laneway.codex.access import folder_config
from laneway.core.model import Activity
from laneway.doors.acp.sessions.mcp_servers import MAX_SERVERS, ClientMcpServers, servers
from tests.codex.support import only, play, real

ECHO = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    result = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "echo", "version": "1"}},
        "tools/list": {"tools": [{"name": "hello", "inputSchema": {"type": "object"},
                                  "annotations": {"readOnlyHint": True}}]},
        "tools/call": {"content": [{"type": "text", "text": "from " + __import__("os").environ["WHO"]}]},
    }.get(asked.get("method"), {})
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def stdio(name: str = "echo", **fields: Any) -> dict[str, Any]:
    return {"name": name, "command": "/bin/echo", "args": [], "env": [], **fields}


def test_programs_and_addresses_become_entries_of_the_thread() -> None:
    """In a table that Codex merges with the user's own: other servers are left alone."""
    wanted = [
        stdio("files", args=["--root", "/"], env=[{"name": "TOKEN", "value": "t"}]),
        {
            "type": "http",
            "name": "web",
            "url": "https://x.test/mcp",
            "headers": [{"name": "X-Key", "value": "k"}],
        },
        {"type": "http", "name": "open", "url": "http://127.0.0.1:1/mcp", "headers": []},
    ]
    assert servers(wanted).config == {
        "mcp_servers": {
            "files": {"command": "/bin/echo", "args": ["--root", "/"], "env": {"TOKEN": "t"}},
            "web": {"url": "https://x.test/mcp", "http_headers": {"X-Key": "k"}},
            "open": {"url": "http://127.0.0.1:1/mcp"},
        }
    }


def test_a_server_of_the_users_own_keeps_its_name() -> None:
    """Codex would mix the two, key by key."""
    config = {"mcp_servers": {"mine": {"command": "x"}, "off": {"enabled": False}}}
    found = servers([stdio("mine"), stdio("other")], folder_config(config).mcp_servers)
    assert set(found.config["mcp_servers"]) == {"other"}
    assert len(found.notes) == 1
    assert "mine" in found.notes[0]


@pytest.mark.parametrize("config", [{}, {"mcp_servers": None}, {"mcp_servers": []}])
def test_a_config_without_servers_takes_no_names(config: Any) -> None:
    """Older versions leave the table out."""
    assert folder_config(config).mcp_servers == frozenset()


@pytest.mark.parametrize("nothing", [None, []])
def test_no_servers_are_no_config(nothing: Any) -> None:
    """`session/resume` may leave the list out."""
    assert servers(nothing) == ClientMcpServers({})


@given(st.text(min_size=1))
def test_a_name_is_made_safe_or_refused(name: str) -> None:
    """It becomes part of the names of tools, and older Codex refuses most of the rest."""
    if any(letter.isascii() and letter.isalnum() for letter in name):
        (made,) = servers([stdio(name)]).config["mcp_servers"]
        assert re.fullmatch(r"[A-Za-z0-9_-]+", made)
    else:
        with pytest.raises(RemoteError, match="needs a name"):
            servers([stdio(name)])


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ("echo", "must be a list"),
        (["echo"], "must be an object"),
        ([stdio(name="")], "needs a name"),
        ([stdio(name=7)], "needs a name"),  # type: ignore[arg-type]
        ([stdio("a b"), stdio("a_b")], "Two MCP servers are called a_b"),
        ([stdio(command="")], "needs a command"),
        ([stdio(args="x")], "must be a list of texts"),
        ([stdio(args=[1])], "must be a list of texts"),
        ([{"type": "http", "name": "w", "url": "ftp://x"}], "http:// or https://"),
        ([{"type": "http", "name": "w"}], "http:// or https://"),
        ([{"type": "sse", "name": "w", "url": "http://x", "headers": []}], "speaks SSE"),
        ([{"type": "carrier-pigeon", "name": "w"}], "neither of type"),
        ([stdio(str(number)) for number in range(MAX_SERVERS + 1)], f"at most {MAX_SERVERS}"),
    ],
)
def test_what_codex_cannot_use_is_refused_with_a_sentence(wanted: Any, says: str) -> None:
    """Before a thread is started."""
    with pytest.raises(RemoteError, match=says) as refused:
        servers(wanted)
    assert refused.value.code == -32602


def test_a_refusal_never_repeats_a_secret() -> None:
    """The client shows it, and logs keep it."""
    secret = "hunter2-and-more"
    for wrong in ([secret], [{"name": secret}], [{"name": "K", "value": [secret]}], secret):
        with pytest.raises(RemoteError) as refused:
            servers([stdio(env=wrong)])
        assert secret not in f"{refused.value.message} {refused.value.data}"


async def test_the_real_codex_starts_it_under_the_name_that_was_made_safe() -> None:
    """With its environment; config.toml stays as it was."""
    wanted = [
        stdio("my echo", command=sys.executable, args=["-c", ECHO], env=[{"name": "WHO", "value": "Ann"}])
    ]
    async with real(model="no-such-model") as here:  # Codex shows such a model all tools at once
        before = (here.rehearsal.home / "config.toml").read_bytes()
        session = await here.session(extras=servers(wanted).config, approval_policy="never")
        # By its name today, and by the one that it had before tools were in namespaces.
        events, _ = await play(session, "%tool hello {}", "%tool mcp__my_echo__hello {}", "%say done")
        told = [
            msgspec.json.encode(event.content).decode() for event in only(events, Activity) if event.content
        ]
        assert any("from Ann" in text for text in told)
        assert (here.rehearsal.home / "config.toml").read_bytes() == before
