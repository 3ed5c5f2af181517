"""Point 11: login anywhere. The registry's rule, a terminal, a key, and a device code by every channel.

Whole processes with the real Codex. What `Login` does by itself is in test_login and test_login_by_code.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from laneway.base.ids import new_id
from tests.cli.support import LANEWAY
from tests.doors.acp.draft import draft
from tests.doors.acp.front_codex import CODE, LOGIN, URL
from tests.doors.acp.golden import golden
from tests.doors.acp.support import (
    DEADLINE_S,
    FULL,
    MARK,
    ZED,
    Client,
    Message,
    Refused,
    Stage,
    assert_gone,
    select,
    stage,
)
from tests.doors.acp.telling import Gate

FRONT = Path(__file__).parents[1] / "front_codex.py"
KEY = "hunter2-is-my-key"
"""Of no shape by which a redactor would know it."""
BY_KEY, BY_CODE = {"methodId": "api-key"}, {"methodId": "chat-gpt-device-code"}
WITH_KEY = {**BY_KEY, "_meta": {"api-key": {"apiKey": KEY}}}
WAY = f"Open {URL} and enter the code {CODE} to log in to Codex."


@asynccontextmanager
async def strict(state: Path) -> AsyncIterator[Stage]:
    """A stage whose model provider wants a login, and nobody is logged in."""
    async with stage(state) as here:
        config = here.home / "config.toml"
        config.write_text(
            config.read_text().replace("requires_openai_auth = false", "requires_openai_auth = true")
        )
        here.environment["XDG_STATE_HOME"] = str(state / "kept")
        for name in ("CODEX_API_KEY", "OPENAI_API_KEY"):
            here.environment.pop(name, None)
        yield here


# ── the registry ───────────────────────────────────────────────────────────

VALIDATOR: Message = {
    "protocolVersion": 1,
    "clientInfo": {"name": "ACP Registry Validator", "version": "1.0.0"},
    "clientCapabilities": {
        "terminal": True,
        "fs": {"readTextFile": True, "writeTextFile": True},
        "_meta": {"terminal_output": True, "terminal-auth": True},
    },
}


def kind_of(method: Message) -> str:
    """As the registry reads it: by its type, else by its `_meta`, else it is the agent's."""
    return method.get("type") or ("terminal" if "terminal-auth" in method.get("_meta", {}) else "agent")


@pytest.mark.parametrize("path", [os.environ["PATH"], "/nowhere"], ids=["with Codex", "without any program"])
async def test_the_registry_admits_it(tmp_path: Path, path: str) -> None:
    """In a bare environment: the first line answers `initialize`, with a method of agent or terminal.

    It is not asked to leave politely, either.
    """
    mark = new_id("agent")
    environment = {"PATH": path, "HOME": str(tmp_path), "TERM": "dumb", MARK: mark}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    process = await asyncio.create_subprocess_exec(
        *LANEWAY, "acp", cwd=tmp_path, env=environment, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    assert process.stdin
    assert process.stdout
    try:
        request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": VALIDATOR}
        process.stdin.write(json.dumps(request).encode() + b"\n")
        async with asyncio.timeout(DEADLINE_S):
            answer = json.loads(await process.stdout.readline())
            process.terminate()
            await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert answer["id"] == 1
    assert {kind_of(method) for method in answer["result"]["authMethods"]} == {"agent", "terminal"}
    await assert_gone(mark)


@pytest.mark.parametrize("capabilities", [{}, FULL, ZED], ids=["bare", "full", "zed"])
async def test_every_client_is_offered_a_browser_a_device_code_and_a_key(
    tmp_path: Path, capabilities: Message
) -> None:
    """Whatever it declares; the browser only where one may be opened."""
    ways = ["chat-gpt", BY_CODE["methodId"], BY_KEY["methodId"]]
    async with stage(tmp_path) as here:
        for quiet, offered in (("", ways), ("1", ways[1:])):
            async with here.agent(capabilities=capabilities, env={"NO_BROWSER": quiet}) as client:
                told = [method["id"] for method in client.hello["authMethods"]]
            assert [each for each in told if each != "terminal"] == offered


# ── in a terminal ──────────────────────────────────────────────────────────


def recording_codex(folder: Path) -> tuple[Path, Path]:
    """A Codex that writes down how it was called, and ends with 7; where it does so."""
    path, record = folder / "codex", folder / "called"
    path.write_text(f"#!/bin/sh\necho \"$@\" >> '{record}'\nexit 7\n")
    path.chmod(0o700)
    return path, record


SCREENS = (
    ({"DISPLAY": ":0"}, "login"),
    ({"DISPLAY": ""}, "login --device-auth"),
    ({"DISPLAY": ":0", "SSH_CONNECTION": "1.2.3.4 1 5.6.7.8 22"}, "login --device-auth"),
)


@pytest.mark.parametrize(
    "capabilities", [FULL, ZED, {"_meta": {"terminal-auth": True}}], ids=["stable", "zed", "old"]
)
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a screen is not told by DISPLAY")
async def test_what_the_client_runs_in_a_terminal_is_codexs_own_login(
    tmp_path: Path, capabilities: Message
) -> None:
    """Of the Codex that the agent uses; in a browser where there is one to see. The exit code is Codex's."""
    codex, record = recording_codex(tmp_path)
    async with stage(tmp_path) as here:
        async with here.agent(capabilities=capabilities) as client:
            (method,) = [each for each in client.hello["authMethods"] if each["id"] == "terminal"]
        run = method["_meta"]["terminal-auth"] if "_meta" in method else {}
        words = [run["command"], *run["args"]] if run else [*LANEWAY, "acp", *method["args"]]
        bare = {"SSH_CONNECTION": "", "SSH_TTY": "", "WAYLAND_DISPLAY": ""}
        for screen, _ in SCREENS:
            given = {**here.environment, **bare, **screen, "LANEWAY_CODEX_BIN": str(codex)}
            process = await asyncio.create_subprocess_exec(
                *words, env=given, stdin=PIPE, stdout=PIPE, stderr=PIPE
            )
            async with asyncio.timeout(DEADLINE_S):
                assert await process.communicate() == (b"", b"")
            assert process.returncode == 7
    assert record.read_text().splitlines() == [called for _, called in SCREENS]


# ── with a key ─────────────────────────────────────────────────────────────


async def test_nothing_is_opened_before_somebody_has_logged_in(tmp_path: Path) -> None:
    """With Codex's own provider and an empty home; whatever would open a session says how to log in."""
    async with strict(tmp_path) as here:
        config = here.home / "config.toml"
        config.write_text(config.read_text().replace('model_provider = "rehearsal"\n', ""))
        async with here.agent() as client:
            where = {"cwd": str(here.work), "mcpServers": []}
            session = {"sessionId": f"sess_{LOGIN}"}
            for method, params in (("new", {}), ("load", session), ("resume", session)):
                error = await client.refusal(f"session/{method}", {**where, **params})
                assert (error["code"], error["message"]) == (-32000, "Log in to Codex first.")
                assert error["data"]["authMethods"] == client.hello["authMethods"]


async def test_a_session_is_opened_with_a_key_and_closed_to_those_without(tmp_path: Path) -> None:
    """The whole story; the key is the request's, or of the environment that the editor gives us."""
    async with strict(tmp_path) as here:
        async with here.agent() as client:
            where = {"cwd": str(here.work), "mcpServers": []}
            assert (await client.refusal("session/new", where))["code"] == -32000
            assert (await client.refusal("authenticate", BY_KEY))["code"] == -32602
            assert await client.ask("authenticate", WITH_KEY) == {}
            session = await client.new()
            assert await client.prompt(session, "%say Hello.") == {"stopReason": "end_turn"}
            assert client.text(session) == "Hello."
            assert await client.ask("logout", {}) == {}
            assert (await client.refusal("session/new", where))["code"] == -32000
        golden("point-11-login", client.trace(without=("usage_update",)))
        async with here.agent(env={"OPENAI_API_KEY": KEY}) as client:
            assert await client.ask("authenticate", BY_KEY) == {}
            await client.new()
        assert json.loads((here.home / "auth.json").read_text())["OPENAI_API_KEY"] == KEY


async def test_a_key_is_kept_by_codex_and_by_nobody_else(tmp_path: Path) -> None:
    """Neither in the record nor in a log that tells everything, nor on standard error."""
    logs = tmp_path / "logs"
    logs.mkdir()
    words = ("--log-level", "trace", "--log-file", str(logs / "acp.log"))
    async with strict(tmp_path) as here, here.agent(*words) as client:
        await client.ask("authenticate", WITH_KEY)
        await client.prompt(await client.new(), "%say Hello.")
        assert KEY in (here.home / "auth.json").read_text()
    written = [
        file.read_text(errors="replace") for file in (*logs.iterdir(), *(tmp_path / "kept").rglob("*.*"))
    ]
    assert any("account/login/start" in each for each in written)
    assert not [each for each in (*written, client.stderr) if KEY in each]


# ── with a device code ─────────────────────────────────────────────────────


@asynccontextmanager
async def fronted(state: Path) -> AsyncIterator[tuple[Stage, Gate]]:
    """A stage where nobody is logged in, and a login by code succeeds when the gate says go."""
    async with strict(state) as here:
        with closing(Gate(state / "gate")) as person:
            codex, front = here.environment["LANEWAY_CODEX_BIN"], state / "codex"
            given = " ".join(
                f"'{each}'" for each in (sys.executable, FRONT, state / "gate", state / "asked", codex)
            )
            front.write_text(f'#!/bin/sh\nexec {given} "$@"\n')
            front.chmod(0o700)
            here.environment["LANEWAY_CODEX_BIN"] = str(front)
            yield here, person


async def settled(client: Client) -> None:
    """What the client has said so far has been heard: a request that came behind it is answered."""
    await client.ask("session/list", {})


async def assert_logged_in(client: Client) -> None:
    session = await client.new()
    assert await client.prompt(session, "%say Hello.") == {"stopReason": "end_turn"}


@pytest.mark.parametrize("mode", ["url", "form"])
async def test_a_device_code_is_shown_in_what_the_client_has_for_it(tmp_path: Path, mode: str) -> None:
    """Before there is any session: as a link, or in a form."""
    async with fronted(tmp_path) as (here, person):
        capabilities: Message = {"elicitation": {mode: {}}}
        async with here.agent(capabilities=capabilities) as client:
            assert (await client.refusal("session/new", {"cwd": str(here.work), "mcpServers": []}))[
                "code"
            ] == -32000
            client.on_elicitation = lambda params: {"action": "accept"}
            going = client.request("authenticate", BY_CODE)
            request_id = client.last_id
            asked = (await client.wait_asked("elicitation/create"))["params"]
            await settled(client)
            person.go()
            assert await going == {}
            await assert_logged_in(client)
        assert (asked["mode"], asked["requestId"]) == (mode, request_id)
        assert CODE in asked["message"]
        assert URL in (asked["url"] if mode == "url" else asked["message"])
        golden(f"point-11-device-code-{mode}", client.trace(without=("usage_update",)))


async def test_a_device_code_is_shown_in_a_session_that_is_open(tmp_path: Path) -> None:
    """As a permission request; and by /login in the conversation. Logging out closes no session."""
    async with fronted(tmp_path) as (here, person), here.agent() as client:
        error = await client.refusal("authenticate", BY_CODE)
        person.go()
        assert await client.ask("authenticate", BY_CODE) == {}
        assert (error["code"], error["data"]["kind"]) == (-32000, "login_pending")
        assert error["message"].startswith(WAY.removesuffix(" to log in to Codex."))
        session = await client.new()

        await client.ask("logout", {})
        client.on_permission = lambda params: select(params, "allow_once")
        going = client.request("authenticate", BY_CODE)
        asked = await client.wait_asked("session/request_permission")
        assert WAY in str(asked["params"]["toolCall"]["content"])
        await settled(client)
        person.go()
        assert await going == {}
        assert client.open_tool_calls() == {}

        assert await client.prompt(session, "/logout") == {"stopReason": "end_turn"}
        saying = client.start_prompt(session, "/login")
        await client.wait_update(lambda each: each.kind == "agent_message_chunk" and WAY in str(each.body))
        person.go()
        assert await saying == {"stopReason": "end_turn"}
        assert client.messages(session)[-1].endswith("You are logged in to Codex.")
        assert await client.prompt(session, "%say Hello.") == {"stopReason": "end_turn"}
        golden("point-11-device-code-bare", client.trace(without=("usage_update",)))


async def test_a_device_code_is_shown_in_an_open_session_of_the_draft_too(tmp_path: Path) -> None:
    """As a permission request of protocol 2, which needs no tool call."""
    async with fronted(tmp_path) as (here, person), draft(here, capabilities={}) as client:
        await client.refusal("auth/login", BY_CODE)
        person.go()
        assert await client.ask("auth/login", BY_CODE) == {}
        await client.open()
        await client.ask("auth/logout", {})
        client.on_permission = lambda params: select(params, "allow_once")
        going = client.request("auth/login", BY_CODE)
        asked = await client.wait_asked("session/request_permission")
        assert WAY in asked["params"]["description"]
        person.go()
        assert await going == {}


async def test_a_login_that_nobody_waits_for_any_more_is_given_up(tmp_path: Path) -> None:
    """The client takes its request back, or is gone."""
    async with fronted(tmp_path) as (here, _), here.agent(capabilities=FULL) as client:
        client.on_elicitation = lambda params: None
        going = client.request("authenticate", BY_CODE)
        await client.wait_asked("elicitation/create")
        client.cancel_request(client.last_id)
        with pytest.raises(Refused, match="cancelled"):
            await going
        client.request("authenticate", BY_CODE).cancel()
        await client.wait_heard(
            lambda told: told.get("method") == "elicitation/create" and told != client.asked[0]
        )
    said = (tmp_path / "asked").read_text().split()
    # The second request may still find the login of the first one, and takes it over.
    assert said.count("account/login/start") == said.count("account/login/cancel") > 0
