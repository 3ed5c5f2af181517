"""The ACP door on the versions of Codex that people have: what a session needs works on each of them.

What a version lacks is in `laneway.codex.binary.FEATURES`; the door says so in a sentence, and goes on.
"""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from laneway.codex import binary, locate
from tests.doors.acp.support import FULL, Client, Message, Refused, Stage, select, stage
from tests.doors.acp.telling import Gate, last_call
from tests.doors.acp.witness import choose, current
from tests.peers.test_codex_versions import every_codex

pytestmark = pytest.mark.peers

OLD = "This Codex is too old for that"


class Old(Stage):
    """A stage whose agents run on one version of Codex."""

    def __init__(self, requests: list[Message], home: Path, state: Path, codex: str) -> None:
        super().__init__(requests, home, state)
        self.environment["LANEWAY_CODEX_BIN"] = codex
        self.environment["XDG_STATE_HOME"] = str(state)
        self._missing = {each.name for each in binary.missing_features(binary.probe(locate.find(codex)))}

    def has(self, feature: str) -> bool:
        return feature not in self._missing


@asynccontextmanager
async def on(codex: str, state: Path) -> AsyncIterator[Old]:
    async with stage(state) as here:
        yield Old(here.requests, here.home, state, codex)


async def say(client: Client, session: str, command: str) -> str:
    """What a command says, or the error that it ends with."""
    before = len(client.messages(session))
    try:
        assert await client.prompt(session, command) == {"stopReason": "end_turn"}
    except Refused as refused:
        return refused.message
    return "\n".join(client.messages(session)[before:])


@every_codex
async def test_a_session_shows_what_codex_does_and_asks_before_it_may(codex: str, tmp_path: Path) -> None:
    """Text, a command with its output, approvals granted and declined, an edit with its diff."""
    granted, declined = tmp_path / "granted", tmp_path / "declined"
    async with on(codex, tmp_path) as here, here.agent(capabilities=FULL) as client:
        session = await client.new()
        assert await client.prompt(session, "%stream 40 words") == {"stopReason": "end_turn"}
        assert len(client.text(session).split()) == 40

        await client.prompt(session, "%run echo seen-$((40 + 2)); exit 3\n%say After.")
        call = last_call(client, session)
        assert "seen-42" in str(call["content"])
        assert (call["status"], "Exit code 3." in str(call["content"])) == ("failed", True)

        for file, answer in ((granted, "allow_once"), (declined, "reject_once")):
            client.on_permission = lambda params, answer=answer: select(params, answer)  # type: ignore[misc]
            command = f"echo yes > {shlex.quote(str(file))}"
            assert await client.prompt(session, f"%run! {command}\n%say After.") == {"stopReason": "end_turn"}
            assert command in str(client.asked[-1]["params"]["toolCall"]["content"])
        assert (granted.exists(), declined.exists()) == (True, False)
        assert last_call(client, session)["status"] == "failed"

        client.on_permission = lambda params: select(params, "allow_once")
        await client.prompt(session, "%patch made.txt some text\n%say After.")
        assert (here.work / "made.txt").read_text() == "some text\n"
        (diff,) = client.asked[-1]["params"]["toolCall"]["content"]
        assert (diff["type"], diff["newText"]) == ("diff", "some text\n")
        edit = last_call(client, session)
        assert (edit["kind"], edit["status"], edit["content"]) == ("edit", "completed", [diff])
        assert client.open_tool_calls() == {}


@every_codex
async def test_a_turn_is_cancelled_fails_honestly_and_the_next_one_runs(codex: str, tmp_path: Path) -> None:
    """While a command runs whose output has been seen; no call stays open, and a failure is an error."""
    async with on(codex, tmp_path) as here, here.agent() as client:
        session = await client.new()
        with closing(Gate(here.work / "gate")) as waiting:
            going = client.start_prompt(session, "%run read x < gate; echo first; read x < gate\n%say No.")
            await client.wait_kind("tool_call")
            waiting.go()
            await client.wait_update(lambda update: "first" in str(update.body.get("content")))
            client.cancel(session)
            assert await going == {"stopReason": "cancelled"}
        assert client.open_tool_calls() == {}
        with pytest.raises(Refused, match="on holiday"):
            await client.prompt(session, "%fail 400 The model is on holiday.")
        assert await say(client, session, "%say Still here.") == "Still here."


@every_codex
async def test_options_take_effect_and_a_new_process_loads_them_with_the_conversation(
    codex: str, tmp_path: Path
) -> None:
    """In the order of what was said; never with more access than before."""
    async with on(codex, tmp_path) as here:
        async with here.agent(capabilities=FULL) as client:
            session = await client.new()
            model = _other_model(client.opened[session])
            await choose(client, session, "model", model)
            await choose(client, session, "reasoning_summary", "detailed")
            options = await choose(client, session, "mode", "code")
            client.on_permission = lambda params: select(params, "allow_once")
            await client.prompt(session, "%run echo ran-$((40 + 2)) > ran\n%say First.")
            assert (here.work / "ran").exists()  # the sandbox of the mode, and nobody was asked
            assert client.asked == []
            asked = here.requests[-1]
            assert (asked["model"], asked["reasoning"]["summary"]) == (model, "detailed")
            await client.prompt(session, "%say Second.")
        async with here.agent(capabilities=FULL) as client:
            loaded = await client.load(session)
            assert current(loaded["configOptions"]) == current(options)
            said = [
                text
                for kind in ("user_message_chunk", "agent_message_chunk")
                for text in client.messages(session, kind)
            ]
            assert said[1:] == ["%say Second.", "First.", "Second."]
            kinds = [kind for kind in client.kinds(session) if "chunk" in kind or "call" in kind]
            calls = ["tool_call"] if here.has("commands_in_history") else []
            first = ["user_message_chunk", *calls, "agent_message_chunk"]
            assert kinds == [*first, "user_message_chunk", "agent_message_chunk"]
            await client.prompt(session, "%run echo x > again\n%say Third.")
            assert (here.work / "again").exists()
            assert "Second." in str(here.requests[-1]["input"])
            listed = await client.ask("session/list", {"cwd": str(here.work)})
            assert [each["sessionId"] for each in listed["sessions"]] == [session]


def _other_model(opened: Message) -> str:
    (option,) = [each for each in opened["configOptions"] if each["id"] == "model"]
    others = [each["value"] for each in option["options"] if each["value"] != option["currentValue"]]
    return str(others[0])


@every_codex
async def test_every_command_ends_and_says_what_this_version_lacks(codex: str, tmp_path: Path) -> None:
    """Reviews and compactions are turns; whatever is too new is told with the remedy."""
    async with on(codex, tmp_path) as here, here.agent() as client:
        session = await client.new()
        await choose(client, session, "mode", "code")
        await client.prompt(session, "%patch made.txt one\n%say Made.")
        assert "made.txt" in await say(client, session, "/undo")
        assert not (here.work / "made.txt").exists()
        for command, told in (
            ("/review %say All is well.", "All is well."),
            ("%say Between.", "Between."),
            ("/compact", ""),
            ("/status", binary.spell(binary.probe(locate.find(codex)))),
            ("/model", "/model NAME"),
            ("/mcp", "No MCP servers"),
            ("/skills", "skill"),
            ("/fork", "sess_"),
            ("/plan off", "Plan mode is off." if here.has("settings_between_turns") else OLD),
            ("%say After.", "After."),
        ):
            assert told in await say(client, session, command), command
        assert client.open_tool_calls() == {}
        other = await client.new()  # Codex keeps a session that has been copied
        await client.prompt(other, "%say One.")
        going = client.ask("session/delete", {"sessionId": other})
        if here.has("delete"):
            assert await going == {}
        else:
            with pytest.raises(Refused, match=OLD):
                await going


@every_codex
async def test_a_review_is_stopped_by_cancel(codex: str, tmp_path: Path) -> None:
    """Codex knows it by one of two ids, which not every version tells in the same way."""
    async with on(codex, tmp_path) as here, here.agent() as client:
        session = await client.new()
        await client.prompt(session, "%say One.")
        going = client.start_prompt(session, "/review %run read x < gate")
        with closing(Gate(here.work / "gate")):
            await client.wait_update(lambda update: update.body.get("kind") == "execute")
            client.cancel(session)
            assert await going == {"stopReason": "cancelled"}
        assert client.open_tool_calls() == {}
        assert await say(client, session, "%say Still here.") == "Still here."


@every_codex
async def test_further_folders_may_be_written_where_the_first_one_may(codex: str, tmp_path: Path) -> None:
    """In the user's own workspace-write as in the mode for code."""
    async with on(codex, tmp_path) as here:
        config, more = here.home / "config.toml", here.home.parent / "more"
        more.mkdir()
        config.write_text(f'sandbox_mode = "workspace-write"\n{config.read_text()}')
        async with here.agent() as client:
            for mode in ("config", "code"):
                session = await client.new(additionalDirectories=[str(more)])
                await client.ask("session/set_mode", {"sessionId": session, "modeId": mode})
                await client.prompt(session, f"%run echo x > {shlex.quote(str(more))}/{mode}\n%say Ran.")
        assert sorted(path.name for path in more.iterdir()) == ["code", "config"]
