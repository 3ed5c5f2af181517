"""Bad input: whatever a client sends, it gets a clear error, and everything else goes on."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from laneway.base.ids import new_id
from tests.doors.acp.shared import Shared
from tests.doors.acp.support import FULL, Client, Message, stage
from tests.doors.acp.witness import refused

UNKNOWN = "sess_01a1e496-4f0f-71a0-a6c1-deb8d4950250"
ENDED = {"stopReason": "end_turn"}
TEXT = [{"type": "text", "text": "%say Hello."}]


async def error_of(client: Client, method: str, params: Any) -> tuple[int, str]:
    error = await client.refusal(method, params, lint=False)
    assert error["message"].endswith((".", "first", "`")), error
    return error["code"], error["message"]


async def test_a_folder_must_be_absolute_and_there(shared: Shared, tmp_path: Path) -> None:
    """So must every further one; Codex itself would take what is not there."""
    file = tmp_path / "file"
    file.touch()
    wrong: dict[Any, str] = {
        "work": "cwd must be an absolute path, not 'work'.",
        "": "cwd must be an absolute path, not ''.",
        "~": "cwd must be an absolute path, not '~'.",
        str(tmp_path / "missing"): f"There is no folder {tmp_path / 'missing'}.",
        str(file): f"There is no folder {file}.",
        "/a\0b": "cwd must be an absolute path.",
        None: "cwd must be an absolute path.",
        7: "cwd must be an absolute path.",
    }
    async with shared.stage() as here, here.agent() as client:
        good = {"sessionId": UNKNOWN, "cwd": str(here.work), "mcpServers": []}
        for method in ("session/new", "session/load", "session/resume"):
            for cwd, words in wrong.items():
                assert await error_of(client, method, {**good, "cwd": cwd}) == (-32602, words)
            for folders in ("/", [7], ["relative"], ["/"] * 65):
                params = {**good, "additionalDirectories": folders}
                assert (await error_of(client, method, params))[0] == -32602
            long = await client.refusal(method, {**good, "cwd": "/" + "x" * 5000}, lint=False)
            assert (long["code"], len(long["message"]) < 1000) == (-32602, True)
        assert await client.prompt(await client.new(), "%say Hello.") == ENDED


async def test_a_session_that_there_is_not_is_not_found(shared: Shared) -> None:
    """By whatever method, and whatever the id looks like; one that was closed must be opened again."""
    async with shared.stage() as here, here.agent() as client:
        where = {"cwd": str(here.work), "mcpServers": []}
        calls: dict[str, Message] = {
            "session/prompt": {"prompt": TEXT},
            "session/set_mode": {"modeId": "code"},
            "session/set_config_option": {"configId": "mode", "value": "code"},
            "session/close": {},
            "session/delete": {},
            "session/load": where,
            "session/resume": where,
        }
        closed = await client.new()
        await client.ask("session/close", {"sessionId": closed})
        for method, params in calls.items():
            for session in (UNKNOWN, "sess_", "", "x" * 5000, "sess_../../etc/passwd", closed):
                if session == closed and method in ("session/delete", "session/load", "session/resume"):
                    continue
                error = await client.refusal(method, {"sessionId": session, **params}, lint=False)
                assert (method, session, error["code"]) == (method, session, -32002)
                facts = {"kind": "session_unknown", "source": "laneway", "details": error["message"]}
                assert error["data"] == facts
                assert len(error["message"]) < 4001


WRONG: list[tuple[str, Any]] = [
    ("session/new", []),
    ("session/new", {"cwd": "/", "mcpServers": "none"}),
    ("session/new", {"cwd": "/", "mcpServers": [{"name": "x"}]}),
    (
        "session/new",
        {"cwd": "/", "mcpServers": [{"type": "sse", "name": "x", "url": "http://x", "headers": []}]},
    ),
    ("session/prompt", {"sessionId": 7, "prompt": TEXT}),
    ("session/prompt", {"prompt": TEXT}),
    ("session/prompt", {"sessionId": "S"}),
    ("session/prompt", {"sessionId": "S", "prompt": "Hello."}),
    ("session/prompt", {"sessionId": "S", "prompt": ["Hello."]}),
    ("session/prompt", {"sessionId": "S", "prompt": []}),
    ("session/prompt", {"sessionId": "S", "prompt": [{"type": "text"}]}),
    ("session/prompt", {"sessionId": "S", "prompt": [{"type": "hologram"}]}),
    ("session/prompt", {"sessionId": "S", "prompt": [{"type": "image", "mimeType": "image/png"}]}),
    (
        "session/prompt",
        {"sessionId": "S", "prompt": [{"type": "image", "mimeType": "image/png", "data": "%"}]},
    ),
    ("session/prompt", {"sessionId": "S", "prompt": [{"type": "resource", "resource": {}}]}),
    (
        "session/prompt",
        {"sessionId": "S", "prompt": [{"type": "audio", "mimeType": "audio/wav", "data": "AA=="}]},
    ),
    ("session/set_mode", {"sessionId": "S", "modeId": "yolo"}),
    ("session/set_mode", {"sessionId": "S"}),
    ("session/set_config_option", {"sessionId": "S", "configId": "no-such", "value": "x"}),
    ("session/set_config_option", {"sessionId": "S", "configId": "mode", "value": True}),
    ("session/set_config_option", {"sessionId": "S", "configId": "model", "value": "no-such-model"}),
    ("session/set_config_option", {"sessionId": "S", "configId": ["mode"], "value": "code"}),
    ("session/list", {"cursor": 7}),
    ("session/list", {"cwd": "relative"}),
    ("session/close", {"sessionId": None}),
    ("authenticate", {"methodId": 7}),
    ("authenticate", {"methodId": "by-magic"}),
]


async def test_wrong_types_and_values_are_invalid_params(shared: Shared) -> None:
    """With a sentence that says which; nothing of it reaches the model, and the session works on."""
    async with shared.stage() as here, here.agent() as client:
        session = await client.new()
        for method, params in WRONG:
            given = json.loads(json.dumps(params).replace('"S"', json.dumps(session)))
            code, message = await error_of(client, method, given)
            assert (method, params, code) == (method, params, -32602)
            assert len(message.split()) > 2
        assert here.requests == []
        assert await client.prompt(session, "%say Still here.") == ENDED
        assert client.messages(session) == ["Still here."]


async def test_what_is_no_message_is_told_and_passed_over(tmp_path: Path) -> None:
    """Before and after the greeting: nonsense, unknown methods, notifications that make no sense."""
    async with stage(tmp_path) as here, here.agent(greet=False) as client:
        code, message = await error_of(client, "session/new", {"cwd": str(here.work), "mcpServers": []})
        assert (code, message) == (-32600, "Say `initialize` first.")
        assert (await error_of(client, "initialize", {}))[0] == -32602
        assert (await error_of(client, "initialize", {"protocolVersion": "one"}))[0] == -32602
        await client.initialize(FULL)
        for nonsense in (b"{nonsense\n", b"\n", b"[]\n", b"7\n", b'{"jsonrpc":"2.0"}\n', b"\xff\xfe\n"):
            client.send_bytes(nonsense)
        for method in ("session/fly", "fs/read_text_file", "", "session/update"):
            assert (await error_of(client, method, {}))[0] == -32601
        for method, params in (
            ("session/cancel", []),
            ("session/cancel", {}),
            ("session/cancel", {"sessionId": 7}),
            ("session/cancel", {"sessionId": UNKNOWN}),
            ("$/cancel_request", {}),
            ("$/cancel_request", []),
            ("$/cancel_request", {"requestId": "never asked"}),
            ("session/unheard-of", {"x": 1}),
        ):
            client.send({"jsonrpc": "2.0", "method": method, "params": params}, lint=False)
        assert await client.prompt(await client.new(), "%say Hello.") == ENDED
    assert {stray["error"]["code"] for stray in client.strays} <= {-32700, -32600}


async def test_a_cancel_without_a_turn_does_nothing(shared: Shared) -> None:
    """Not to the next prompt either."""
    async with shared.stage() as here, here.agent() as client:
        session = await client.new()
        client.cancel(session)
        assert await client.prompt(session, "%say One.") == ENDED
        client.cancel(session)
        client.cancel(session)
        assert await client.prompt(session, "%say Two.") == ENDED
        assert client.messages(session) == ["One.", "Two."]


async def test_an_image_of_50_mb_and_a_sound_are_refused_and_harm_nobody(shared: Shared) -> None:
    """By its size and by its kind, before anything is done with it."""
    async with shared.stage() as here, here.agent() as client:
        session = await client.new()
        data = base64.b64encode(bytes(50 * 1024 * 1024)).decode()
        picture = {"type": "image", "mimeType": "image/png", "data": data}
        params = {"sessionId": session, "prompt": [*TEXT, picture]}
        error = await client.refusal("session/prompt", params, lint=False)
        assert (error["code"], error["message"]) == (-32602, "An image may have 20 MiB. Make it smaller.")
        sound = {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"}
        error = await refused(client.start_prompt(session, [*TEXT, sound]))
        assert (error["code"], "audio" in error["message"].lower()) == (-32602, True)
        assert await client.prompt(session, "%say Still here.") == ENDED
        assert len(here.requests) == 1


async def test_a_permission_that_is_never_answered_is_declined_in_time(shared: Shared) -> None:
    """The request is taken back, the turn goes on, and the person is told."""
    short = {"LANEWAY_APPROVAL_TIMEOUT_SECS": "1"}
    async with shared.stage() as here, here.agent(capabilities=FULL, env=short) as client:
        session = await client.new()
        client.on_permission = lambda params: None
        assert await client.prompt(session, "%run! touch ../outside\n%say After.") == ENDED
        (asked,) = client.asked
        taken_back = await client.wait_heard(lambda each: each["method"] == "$/cancel_request")
        assert taken_back["params"] == {"requestId": asked["id"]}
        assert [notice["title"] for notice in client.of("notice")] == [
            "Declined, because nobody answered in time."
        ]
        (call,) = client.tool_calls().values()
        assert (call["status"], client.messages(session)) == ("failed", ["After."])
        assert not (here.home.parent / "outside").exists()


async def test_names_that_are_nobodys_are_no_trouble(tmp_path: Path) -> None:
    """Fields that the protocol does not have are passed over, in whatever message."""
    async with stage(tmp_path) as here, here.agent(greet=False) as client:
        await client.request(
            "initialize",
            {"protocolVersion": 99, "clientCapabilities": None, "clientInfo": 7, new_id("x"): [{}]},
            lint=False,
        )
        result = await client.request(
            "session/new",
            {"cwd": str(here.work), "mcpServers": [], "_meta": {"cwd": "/x"}, "y": 1},
            lint=False,
        )
        assert await client.prompt(result["sessionId"], "%run pwd\n%say Hello.") == ENDED
        assert str(here.work) in str(client.tool_calls())
