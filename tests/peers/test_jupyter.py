"""JupyterLab's client (`jupyter-ai-acp-client`) drives `laneway acp` as a persona of a chat.

All of it but the browser: `jupyter_chat.py` is run on its packages. It shows of a tool call the title and
`rawOutput`, nothing else, and keeps its conversations itself.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.cli.support import LANEWAY
from tests.doors.stage import Message, Scene, scene
from tests.peers.support import DEADLINE_S, brought

pytestmark = pytest.mark.peers

PACKAGE = "jupyter-ai-acp-client-0.3.3"
SCRIPT = Path(__file__).with_name("jupyter_chat.py")
PERSONA = """\
from jupyter_ai_acp_client.base_acp_persona import BaseAcpPersona
from jupyter_ai_persona_manager import PersonaDefaults


class LanewayPersona(BaseAcpPersona):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, executable=["laneway", "acp"], **kwargs)

    @property
    def defaults(self):
        return PersonaDefaults(
            name="Laneway", description="Codex, by Laneway", avatar_path="", system_prompt=""
        )
"""
"""As in docs/acp.md: `.jupyter/personas/laneway_persona.py`."""


class Jupyter(Scene):
    """A scene with a folder as JupyterLab has one, and `laneway` on the path."""

    def __init__(self, requests: list[Message], home: Path, state: Path) -> None:
        super().__init__(requests, home, state)
        personas = self.work / ".jupyter" / "personas"
        personas.mkdir(parents=True)
        (personas / "laneway_persona.py").write_text(PERSONA)
        program = state / "bin" / "laneway"
        program.parent.mkdir()
        path = shlex.quote(self.environment["PYTHONPATH"])
        program.write_text(f'#!/bin/sh\nPYTHONPATH={path} exec {shlex.join(LANEWAY)} "$@"\n')
        program.chmod(0o755)
        self.path = f"{program.parent}:{os.environ['PATH']}"

    async def chat(self, *steps: Message) -> Message:
        """The chat when these steps are done; the next call goes on with it, in processes of its own."""
        packages = brought(PACKAGE, "jupyter_ai_acp_client").parent
        env = {**self.environment, "PYTHONPATH": str(packages), "PATH": self.path, "HOME": str(self.state)}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *(SCRIPT, self.work, json.dumps(steps)),
            env=env,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
        )
        try:
            async with asyncio.timeout(DEADLINE_S):
                out, err = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode == 0, err.decode()
        told: Message = json.loads(out)
        return told


@asynccontextmanager
async def jupyter(state: Path) -> AsyncIterator[Jupyter]:
    async with scene(state) as parts:
        yield Jupyter(*parts)


async def test_a_chat_shows_the_answer_and_what_a_command_printed(tmp_path: Path) -> None:
    """Though it reads no content of a tool call; modes, options and commands are in its toolbar."""
    async with jupyter(tmp_path) as here:
        told = await here.chat({"say": "%run echo seen-$((40 + 2)); exit 3\n%say Hello."})
    assert told["messages"][-1] == "Hello."
    (call,) = told["calls"]
    assert (call["status"], call["raw_output"]) == ("failed", "seen-42\nExit code 3.")
    assert {"/status", "/review"} <= set(told["commands"])
    assert told["settings"] == {"__mode__": "config", "thought_level": "medium", "network": "off"}


@pytest.mark.parametrize(("choice", "written"), [("accept", True), ("decline", False)])
async def test_the_buttons_of_a_chat_decide(choice: str, written: bool, tmp_path: Path) -> None:
    """About a command, and about an edit whose diff it shows."""
    outside = tmp_path / "outside"
    async with jupyter(tmp_path) as here:
        told = await here.chat(
            {"say": f"%run! echo yes > {shlex.quote(str(outside))}", "choose": choice},
            {"say": "%patch made.txt some text", "choose": choice},
        )
        assert (here.work / "made.txt").exists() == written
    assert outside.exists() == written
    assert [call["selected_option_id"] for call in told["calls"]] == [choice, choice]
    assert told["calls"][1]["diffs"][0]["new_text"] == "some text\n"


async def test_a_question_can_be_read_where_only_titles_are_shown(tmp_path: Path) -> None:
    """And the model has the answer."""
    async with jupyter(tmp_path) as here:
        told = await here.chat({"say": "%ask Which colour? Red | Green", "choose": "1"})
        answered = json.dumps(here.requests[-1]["input"])
    assert told["calls"][0]["title"] == "Which colour?"
    assert "Green" in answered.split("%ask")[-1].split("Green", 1)[-1]


async def test_a_turn_is_stopped_and_another_fails_in_words(tmp_path: Path) -> None:
    """The chat goes on after both."""
    async with jupyter(tmp_path) as here:
        told = await here.chat(
            {"say": "%run sleep 600", "stop": "sleep 600"},
            {"say": "%fail 400 The model is on holiday."},
            {"say": "%say Still here."},
        )
    assert told["calls"][0]["status"] == "failed"
    failed, last = told["messages"][-2:]
    assert "(Error -32603: The model is on holiday.)" in failed
    assert last == "Still here."


async def test_a_chat_goes_on_after_a_restart_and_shows_nothing_twice(tmp_path: Path) -> None:
    """It has the conversation itself; the model has it from Codex."""
    async with jupyter(tmp_path) as here:
        before = await here.chat({"say": "%say First."}, {"say": "%run echo once"})
        after = await here.chat({"say": "%say Second."})
        asked = json.dumps(here.requests[-1]["input"])
    assert after["messages"] == [*before["messages"], "Second."]
    assert [call["title"] for call in after["calls"]] == ["echo once"]
    assert "First." in asked
