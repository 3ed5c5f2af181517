"""Records the animation at the top of the README: the real Claude Code has the real Codex fix a test.

Both models are scripted and on loopback, so the recording needs no account and no network, and
`make recording` always gives the same one. Everything between the two models is real.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scripts.terminal_svg import Output, frames, svg

from laneway.codex import locate
from laneway.rehearsal import answer as codex_model
from laneway.rehearsal.answer import Piece
from laneway.rehearsal.home import throwaway_home
from laneway.rehearsal.messages import ClaudeModel
from laneway.rehearsal.server import ModelServer
from laneway.testing import claude
from laneway.testing.claude import ClaudeHome, claude_home
from laneway.testing.terminal import Terminal

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "demo.svg"
ROWS, COLUMNS = 24, 104
SERVER = [sys.executable, "-m", "laneway", "mcp"]
KEY_S = 0.035
"""Between two keys, at the pace of a good typist."""

SHOP = "def price_after(discount, price):\n    return price - discount / 100\n"
TEST = """\
from unittest import TestCase

from shop import price_after


class Prices(TestCase):
    def test_discount(self):
        self.assertEqual(price_after(20, 50), 40)
"""
PROMPT = "Have Codex find out why test_discount fails, and let it commit the fix."
TO_CODEX = "Find out why test_discount fails, fix it, run the tests and commit."
MESSAGE = "Take the discount as a share of the price"
CODEX_SCRIPT = f"""\
%run python3 -m unittest -q 2>&1 | tail -4
%edit shop.py     return price - discount / 100 =>     return price * (1 - discount / 100)
%run python3 -m unittest -q 2>&1 | tail -1
%run! git commit -qam "{MESSAGE}"
%say The discount was subtracted as a number, not as a share of the price. Fixed, tested, committed."""
WHY_IN_REHEARSALS, WHY = b"The rehearsal asks to leave the sandbox.", b"The sandbox keeps .git read-only."
ANSWER = (
    "Codex found it: `price_after` subtracted the discount itself instead of that share of the price. "
    "The fix is in shop.py, the tests pass, and it is committed."
)


def for_codex(request: dict[str, Any]) -> Iterator[Piece]:
    """Scripted answers for Codex: its prompt is replaced by the script."""
    scripted = json.loads(json.dumps(request).replace(TO_CODEX, json.dumps(CODEX_SCRIPT)[1:-1]))
    for piece in codex_model.answer(scripted):
        yield piece.replace(WHY_IN_REHEARSALS, WHY) if isinstance(piece, bytes) else piece


class DemoModel(ClaudeModel):
    """A scripted Claude that passes the prompt on to Codex and reports the result."""

    def answer(self, request: dict[str, Any]) -> Iterator[Piece]:
        arguments = json.dumps({"prompt": TO_CODEX, "sandbox": "workspace-write"})
        script = f"%tool mcp__codex__codex {arguments}\n%say {ANSWER}"
        return super().answer(json.loads(json.dumps(request).replace(PROMPT, json.dumps(script)[1:-1])))


async def record() -> list[Output]:
    binary = claude.find()
    assert binary is not None, "make setup installs Claude Code"
    async with ModelServer(for_codex) as model:
        with throwaway_home(model.base_url) as home:
            environment = {"CODEX_HOME": str(home), "LANEWAY_CODEX_BIN": locate.find().path}
            async with claude_home(binary, environment, DemoModel()) as workspace:
                prepare(workspace)
                added = await workspace.run("mcp", "add", "--scope", "user", "codex", "--", *SERVER)
                assert added.end.code == 0, added
                return await record_session(workspace)


def prepare(workspace: ClaudeHome) -> None:
    """A small repository with a bug in it."""
    (workspace.work / "shop.py").write_text(SHOP)
    (workspace.work / "test_shop.py").write_text(TEST)
    for words in (["add", "."], ["commit", "-qm", "A shop"]):
        who = ["-c", "user.name=You", "-c", "user.email=you@example.com"]
        subprocess.run(["git", *who, *words], cwd=workspace.work, check=True)
    for key, value in (("user.name", "You"), ("user.email", "you@example.com")):
        subprocess.run(["git", "config", key, value], cwd=workspace.work, check=True)


async def record_session(workspace: ClaudeHome) -> list[Output]:
    outputs: list[Output] = []
    started = time.monotonic()

    def keep(data: bytes) -> None:
        outputs.append((time.monotonic() - started, data))

    options = ("--allowedTools", "mcp__codex", "--permission-mode", "default")
    async with workspace.interactive(*options, rows=ROWS, columns=COLUMNS, on_output=keep) as screen:
        await type_text(screen, PROMPT)
        screen.press("enter")
        await screen.wait_for("git commit -qam", 60)
        await asyncio.sleep(1.5)  # for the reader of the picture
        await screen.press_until_gone("enter", "git commit -qam")
        await screen.wait_for("it is committed", 60)
        assert await asyncio.to_thread(last_commit, workspace) == MESSAGE
        return outputs.copy()  # without what Claude Code prints at its end


def last_commit(workspace: ClaudeHome) -> str:
    log = ["git", "log", "-1", "--format=%s"]
    return subprocess.run(log, cwd=workspace.work, capture_output=True, check=True, text=True).stdout.strip()


async def type_text(screen: Terminal, text: str) -> None:
    for letter in text:
        screen.type(letter)
        await asyncio.sleep(KEY_S)


def main() -> int:
    outputs = asyncio.run(record())
    title = "Claude Code asks Codex to fix a failing test; a person approves the commit."
    PICTURE.write_text(svg(frames(outputs, ROWS, COLUMNS), ROWS, COLUMNS, title))
    print(f"{PICTURE.relative_to(Path.cwd())}: {PICTURE.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
