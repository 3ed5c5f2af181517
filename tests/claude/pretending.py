"""Programs that pretend to be Claude Code, for what the real one does not do, or not when it should.

A script is Python in which braces are doubled. It has `asked` for the next line that it is sent, `say`,
`answer` for a request of ours, `begin` and `end` for a turn.
"""

from __future__ import annotations

import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from laneway.base.clock import LoopClock
from laneway.base.programs import Binary
from laneway.claude.engine import ClaudeEngine
from laneway.claude.setup import ClaudeSetup
from laneway.core.hub import Hub
from laneway.core.ports import ThreadSpec
from laneway.core.session import Session, Timing
from tests.codex.support import ME

HELLO = """\
#!{python}
import json, sys, uuid, time, os
def say(**message): print(json.dumps(message), flush=True)
def asked():
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit(0)
def answer(request, **response):
    body = {{"subtype": "success", "request_id": request["request_id"], "response": response}}
    say(type="control_response", response=body)
def begin():
    given = asked()
    while given["type"] != "user":
        given = asked()
    say(type="command_lifecycle", command_uuid=given["uuid"], state="queued")
    say(type="command_lifecycle", command_uuid=given["uuid"], state="started")
    return given
def end(text=""):
    say(type="result", subtype="success", is_error=False, result=text, local_command="none")
if "--version" in sys.argv:
    print("2.1.325 (Claude Code)")
    sys.exit(0)
"""
GREETS = HELLO + "answer(asked(), account={{}}, claude_code_version='2.1.325')\n"

LIVES = """
lives = os.path.join(os.environ["HOME"], "lives")
with open(lives, "a") as file:
    file.write(" ".join(sys.argv) + "\\n")
life = len(open(lives).readlines())
session = [word.partition("=")[2] for word in sys.argv if word.startswith(("--session-id=", "--resume="))][-1]
folder = os.path.join(os.environ["HOME"], ".claude", "projects", "work")
def record(given):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, session + ".jsonl"), "a") as file:
        file.write(json.dumps({{"parentUuid": None, **given}}, separators=(",", ":")) + "\\n")
"""
"""Counts the starts, and writes a transcript."""


def program(folder: Path, script: str) -> Binary:
    path = folder / "claude"
    path.write_text(script.format(python=sys.executable))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return Binary(str(path), "PATH")


@asynccontextmanager
async def pretending(
    folder: Path, script: str, handshake_s: float = 30.0, take_s: float = 60.0, stop_s: float = 10.0
) -> AsyncIterator[tuple[ClaudeEngine, Hub]]:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
    setup = ClaudeSetup(program(folder, script), environment, handshake_s=handshake_s, take_s=take_s)
    engine = ClaudeEngine(setup)
    async with Hub(engine, LoopClock(), timing=Timing(stop_s=stop_s)) as hub:
        yield engine, hub


async def session_of(hub: Hub, folder: Path) -> Session:
    return await hub.start(ME, ThreadSpec(cwd=folder))
