"""What a session of the real Claude Code is started with: tools, instructions, images, environment."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import EngineCannot, UsageError
from laneway.claude.locate import OUTER, claude_environment
from laneway.core.access import Permit
from laneway.core.model import Activity, Answer, Asked, SettingsChanged
from laneway.core.offers import PlanMode, ReviewUncommitted
from laneway.core.ports import ImagePart, Part, TextPart, TurnSpec
from laneway.core.tools import Caller, Tool, ToolBox, ToolResult
from tests.claude.support import ME, real, tool
from tests.codex.support import only, play, say
from tests.core.support import until

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


async def test_a_tool_of_ours_is_called_in_the_sessions_name_and_without_asking() -> None:
    """The model cannot say who it is; it need not search for the tool first; wrong arguments are told."""
    calls: list[tuple[Caller, Mapping[str, Any]]] = []

    async def note(caller: Caller, arguments: Mapping[str, Any]) -> ToolResult:
        calls.append((caller, arguments))
        return ToolResult("noted", notes=("twice",))

    async with real(tools=ToolBox([Tool("note", "Take a note", SCHEMA, note)])) as here:
        session = await here.hub.start(ME, here.spec(), identity="claude-7")
        script = (tool("mcp__laneway__note", text="milk"), tool("mcp__laneway__note", identity="boss"))
        events, _ = await play(session, *script, "%say done")
        ((caller, arguments),) = calls
        assert (caller.identity, caller.thread_id, arguments) == (
            "claude-7",
            session.thread_id,
            {"text": "milk"},
        )
        assert caller.turn_id
        assert only(events, Asked) == []
        ended = [each for each in only(events, Activity) if each.status != "running"]
        assert [(each.kind, each.title, each.status) for each in ended] == [
            ("mcp", "laneway.note", "completed"),
            ("mcp", "laneway.note", "failed"),
        ]
        assert ended[0].output == "noted\ntwice"


async def test_a_tool_of_ours_that_fails_or_takes_too_long_holds_up_nobody() -> None:
    """A failure is told to the model; an interrupt cancels what runs."""
    events: list[str] = []

    async def slow(caller: Caller, arguments: Mapping[str, Any]) -> ToolResult:
        if arguments["text"] == "fail":
            raise RuntimeError("a bug of ours")
        events.append("began")
        try:
            await asyncio.Event().wait()
        finally:
            events.append("cancelled")
        raise AssertionError

    async with real(tools=ToolBox([Tool("slow", "Take long", SCHEMA, slow)])) as here:
        session = await here.session()
        failing = tool("mcp__laneway__slow", text="fail")
        _, result = await play(session, failing, "%say went on")
        assert result.text == "went on"
        assert "a bug of ours" not in here.model_input()
        turn = say(session, tool("mcp__laneway__slow", text="wait"))
        await until(lambda: events == ["began"])
        turn.cancel()
        assert (await turn.result()).status == "interrupted"
        await until(lambda: events == ["began", "cancelled"])


async def test_instructions_reach_the_model_and_stay_out_of_the_process_table() -> None:
    """They go through the pipe: a command line can be read by everybody on the machine."""
    async with real() as here:
        session = await here.session(developer_instructions="SECRET INSTRUCTIONS")
        await play(session, "%say hi")
        assert "SECRET INSTRUCTIONS" in json.dumps(here.model.requests[-1]["system"])
        pid = session._handle.thread.pid  # type: ignore[attr-defined]
        assert b"SECRET" not in command_line(pid)


def command_line(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


async def test_our_secrets_do_not_reach_claude_codes_commands() -> None:
    """The user's own variables do."""
    secrets = {"LANEWAY_HTTP_TOKEN": "s3cret", "MY_OWN": "mine"}
    async with real(variables=secrets) as here:
        session = await here.session()
        yes = Answer(choice_id="accept")
        events, _ = await play(session, "%run env | sort", decide=lambda question: yes)
        output = str(only(events, Activity)[-1].output)
        assert "MY_OWN=mine" in output
        assert "s3cret" not in output


async def test_what_a_claude_code_tells_its_commands_is_kept_from_one_that_they_start() -> None:
    """Its session, its process, its socket and the token for that: we may be such a command ourselves."""
    async with real() as here:
        session = await here.session()
        yes = Answer(choice_id="accept")
        events, _ = await play(session, "%run env", "%say shown", decide=lambda question: yes)
        output = only(events, Activity)[-1].output or ""
        names = {line.partition("=")[0] for line in output.splitlines() if line.startswith("CLAUDE")}
        assert "CLAUDECODE" in names
        assert names - OUTER <= claude_environment(here.rehearsal.environment).keys()


@pytest.mark.parametrize("by_path", [True, False])
async def test_images_reach_the_model(by_path: bool, tmp_path: Path) -> None:
    """From a file or as a data URL."""
    path = tmp_path / "x.png"
    path.write_bytes(PNG)
    url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    image = ImagePart(path=str(path)) if by_path else ImagePart(url=url)
    async with real() as here:
        session = await here.session()
        turn = session.say(TurnSpec(parts=(image, TextPart("%say seen"))))
        assert (await turn.result()).text == "seen"
        assert base64.b64encode(PNG).decode() in here.model_input()


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("big.png", PNG + bytes(5 * 1024 * 1024), "too large: Claude takes images of up to 5 MB"),
        ("odd.bmp", b"BM" + bytes(100), "no image that Claude takes: PNG, JPEG, GIF or WebP"),
        ("none.png", None, "cannot be read: No such file"),
    ],
)
async def test_an_image_that_cannot_be_sent_is_refused_before_anything_is(
    name: str, data: bytes | None, problem: str, tmp_path: Path
) -> None:
    """With one sentence."""
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    parts: tuple[Part, ...] = (TextPart("%say hi"), ImagePart(path=str(path)))
    async with real() as here:
        session = await here.session()
        with pytest.raises(UsageError, match=problem):
            await session.say(TurnSpec(parts=parts)).result()
        assert here.model.requests == []


async def test_model_and_effort_of_a_turn_stay_for_the_turns_after() -> None:
    """The process is another one; the conversation is the same."""
    async with real() as here:
        session = await here.session()
        await play(session, "%say remember me")
        spec = TurnSpec(parts=(TextPart("%say other"),), model="claude-sonnet-5", effort="low")
        await session.say(spec).result()
        await play(session, "%say still")
        request = here.model.requests[-1]
        assert (request["model"], request["output_config"]["effort"]) == ("claude-sonnet-5", "low")
        assert "remember me" in here.model_input()


async def test_plan_mode_is_switched_with_a_turn() -> None:
    """Nothing is changed in it; and back."""
    async with real() as here:
        session = await here.session()
        on, off = (PlanMode(is_on, "", None) for is_on in (True, False))
        turn = session.say(TurnSpec(parts=(TextPart("%say planning"),), plan_mode=on))
        events = [event async for event in turn.events]
        await turn.result()
        assert "Plan mode is active" in here.model_input()
        turn = session.say(TurnSpec(parts=(TextPart("%say acting"),), plan_mode=off))
        events += [event async for event in turn.events]
        await turn.result()
        assert "Exited Plan Mode" in here.model_input()
        assert len(only(events, SettingsChanged)) <= 2


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (TurnSpec(parts=(), special_turn=ReviewUncommitted()), "review as Codex does"),
        (TurnSpec(parts=(TextPart("x"),), permit=Permit()), "change its access from turn to turn"),
        (TurnSpec(parts=(ImagePart(url="https://example.com/x.png"),)), "fetch images by their address"),
    ],
)
async def test_what_claude_code_cannot_do_is_refused_with_a_sentence(spec: TurnSpec, problem: str) -> None:
    """Nothing is left out silently."""
    async with real() as here:
        session = await here.session()
        with pytest.raises(EngineCannot, match=f"Claude cannot {problem}"):
            await session.say(spec).result()


async def test_codexs_own_configuration_is_refused() -> None:
    """But for the one key that has an equivalent."""
    async with real() as here:
        with pytest.raises(EngineCannot, match=r"take Codex's config \(sandbox_mode\)"):
            await here.session(config={"sandbox_mode": "read-only"})
        session = await here.session(config={"model_reasoning_effort": "low"})
        await play(session, "%say hi")
        assert here.model.requests[-1]["output_config"]["effort"] == "low"


async def test_an_effort_that_there_is_not_is_refused_and_codexs_own_become_the_nearest() -> None:
    """Claude Code would take no notice of it."""
    async with real() as here:
        with pytest.raises(
            EngineCannot, match=r"think with the effort lots\. Take low, medium, high, xhigh or"
        ):
            await here.session(config={"model_reasoning_effort": "lots"})
        session = await here.session(config={"model_reasoning_effort": "minimal"})
        await play(session, "%say hi")
        assert here.model.requests[-1]["output_config"]["effort"] == "low"
        with pytest.raises(EngineCannot, match="think with the effort lots"):
            await session.say(TurnSpec(parts=(TextPart("%say hi"),), effort="lots")).result()


async def test_an_ephemeral_session_leaves_nothing() -> None:
    """Its input counts as taken when it comes back, since nothing is written down."""
    async with real() as here:
        session = await here.session(ephemeral=True)
        _, result = await play(session, "%say hi")
        assert result.text == "hi"
        assert session.has_history
        assert (await here.rehearsal.engine.list_threads()).threads == ()
