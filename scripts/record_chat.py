"""Records the animation of `laneway chat`: Claude explains a bug, Codex fixes it, Claude knows what was done.

Both models are scripted and on loopback, as for `scripts.record_demo`; the real Claude Code and the real
Codex do the work. What a person types is replaced by a script on its way to the model.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scripts.record_demo import SHOP, TEST, WHY, WHY_IN_REHEARSALS, type_text
from scripts.terminal_svg import Output, frames, svg

from laneway.codex import locate
from laneway.rehearsal import answer as codex_model
from laneway.rehearsal.answer import Piece
from laneway.rehearsal.claude_home import ClaudeFolder, throwaway_claude
from laneway.rehearsal.home import throwaway_home
from laneway.rehearsal.messages import ClaudeModel
from laneway.rehearsal.server import ModelServer
from laneway.testing.terminal import Terminal, terminal

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "chat.svg"
ROWS, COLUMNS = 30, 104
READ_S = 1.5
"""For the reader of the picture, before something is typed."""

FIRST = "Why does test_discount fail?"
TASK = "fix it, run the tests and commit"
LAST = "Is that all?"
MESSAGE = "Take the discount as a share of the price"
CONFIG = 'approval_policy = "on-request"\nsandbox_mode = "workspace-write"\n'
FOR_CLAUDE = {
    FIRST: """\
%run grep -n return shop.py
%say `price_after` subtracts the **discount itself**, not that share of the price.""",
    LAST: """\
%say Yes. Codex changed one line of `shop.py`, ran the tests (exit code 0) and committed.""",
}
FOR_CODEX = {
    TASK: f"""\
%think **Fixing the discount**
%edit shop.py     return price - discount / 100 =>     return price * (1 - discount / 100)
%run python3 -m unittest 2>&1 | tail -1
%run! git commit -qam "{MESSAGE}"
%say Fixed: the tests pass, and it is committed."""
}


def scripted(request: dict[str, Any], scripts: dict[str, str]) -> dict[str, Any]:
    """The request with scripts instead of what was typed."""
    text = json.dumps(request)
    for typed, script in scripts.items():
        text = text.replace(json.dumps(typed)[1:-1], json.dumps(script)[1:-1])
    return dict(json.loads(text))


def for_codex(request: dict[str, Any]) -> Iterator[Piece]:
    for piece in codex_model.answer(scripted(request, FOR_CODEX)):
        yield piece.replace(WHY_IN_REHEARSALS, WHY) if isinstance(piece, bytes) else piece


class ChatModel(ClaudeModel):
    def answer(self, request: dict[str, Any]) -> Iterator[Piece]:
        return super().answer(scripted(request, FOR_CLAUDE))


async def record() -> list[Output]:
    async with ModelServer(for_codex) as codex, ChatModel().server() as claude:
        with throwaway_home(codex.base_url) as home, throwaway_claude(claude.origin) as folder:
            prepare(home, folder)
            variables = {
                "CODEX_HOME": str(home),
                "LANEWAY_CODEX_BIN": locate.find().path,
                "HOME": str(folder.work.parent),
                "XDG_STATE_HOME": str(folder.state),
                "TERM": "xterm-256color",
                "PYTHONPATH": str(PICTURE.parent.parent / "src"),
            }
            return await record_session(folder, {**folder.environment(os.environ), **variables})


def prepare(home: Path, folder: ClaudeFolder) -> None:
    """A small repository with a bug in it. Claude may run commands; Codex asks to leave its sandbox."""
    config = home / "config.toml"
    config.write_text(CONFIG + config.read_text())
    (folder.config / "settings.json").write_text(json.dumps({"permissions": {"allow": ["Bash"]}}))
    (folder.work / "shop.py").write_text(SHOP)
    (folder.work / "test_shop.py").write_text(TEST)
    for words in (
        ["init", "--quiet"],
        ["config", "user.name", "You"],
        ["config", "user.email", "you@example.com"],
        ["add", "."],
        ["commit", "-qm", "A shop"],
    ):
        subprocess.run(["git", *words], cwd=folder.work, check=True)


async def record_session(folder: ClaudeFolder, environment: dict[str, str]) -> list[Output]:
    outputs: list[Output] = []
    started = time.monotonic()

    def keep(data: bytes) -> None:
        outputs.append((time.monotonic() - started, data))

    chat = [sys.executable, "-m", "laneway", "chat"]
    async with terminal(
        chat, env=environment, cwd=folder.work, rows=ROWS, columns=COLUMNS, on_output=keep
    ) as screen:
        await screen.wait_for("/help lists the commands")
        await say(screen, FIRST)
        await screen.wait_for("subtracts the discount itself")
        await say(screen, f"/codex {TASK}")
        await screen.wait_for("? Run this command?")
        await asyncio.sleep(READ_S)
        await type_text(screen, "y")
        await screen.press_until_gone("enter", "codex asks: y, n or a number")
        await screen.wait_for("CODEX COMPLETED")
        await say(screen, LAST)
        await screen.wait_for("exit code 0")
        await screen.wait_gone("Ctrl-C stops")
        assert await asyncio.to_thread(last_commit, folder) == MESSAGE
        return outputs.copy()  # without what is printed at its end


async def say(screen: Terminal, text: str) -> None:
    await screen.wait_gone("Ctrl-C stops")
    await asyncio.sleep(READ_S)
    await type_text(screen, text)
    await screen.wait_for(text)
    screen.press("enter")


def last_commit(folder: ClaudeFolder) -> str:
    log = ["git", "log", "-1", "--format=%s"]
    return subprocess.run(log, cwd=folder.work, capture_output=True, check=True, text=True).stdout.strip()


def main() -> int:
    outputs = asyncio.run(record())
    title = "laneway chat: Claude explains a bug, Codex fixes it, a person approves the commit."
    PICTURE.write_text(svg(frames(outputs, ROWS, COLUMNS), ROWS, COLUMNS, title))
    print(f"{PICTURE.relative_to(Path.cwd())}: {PICTURE.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
