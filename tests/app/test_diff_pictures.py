"""Drawing diffs for the bots: in a process of its own, bounded, and text without the extra."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

import laneway
from laneway.app.diff_pictures import MAX_WAITING, DiffDrawer, NoDiffDrawer, diff_pictures
from laneway.base.settings import Settings, load
from laneway.rendering.diff_images.drawn import DrawnDiff

DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-one = 1\n+two = 2\n"
DEADLINE_S = 30.0
LOOK = """\
import sys
import laneway.app.chat
import laneway.app.diff_pictures
import laneway.doors.chat.platforms.bots.place_views
import laneway.doors.chat.platforms.telegram.platform
import laneway.doors.chat.platforms.discord.platform
print(*[name for name in ("PIL", "pygments") if name in sys.modules])
"""


def settings(folder: Path, **variables: str) -> Settings:
    return load({}, variables, folder, folder)


def python(program: str) -> tuple[str, ...]:
    return (sys.executable, "-c", program)


@pytest.mark.covers("003-case.11")
async def test_a_diff_is_drawn_once_and_remembered() -> None:
    drawer = DiffDrawer()
    async with asyncio.timeout(DEADLINE_S):
        first = await drawer.draw(DIFF)
        assert first.is_whole
        assert first.pictures[0].startswith(b"\x89PNG")
        assert await drawer.draw(DIFF) is first


@pytest.mark.parametrize(
    "program",
    [
        "import time; time.sleep(600)",
        "raise SystemExit(3)",
        "import sys; sys.stdin.read(); print('no pictures')",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "pass",
    ],
)
async def test_what_cannot_be_drawn_has_no_pictures(program: str) -> None:
    """Whatever the process does: hang, fail, write something else, die, leave its input unread."""
    async with asyncio.timeout(DEADLINE_S):
        assert await DiffDrawer(python(program), most_s=0.5).draw(DIFF * 10_000) == DrawnDiff()


async def test_a_program_that_is_missing_is_no_trouble() -> None:
    assert await DiffDrawer(("/no/such/python",)).draw(DIFF) == DrawnDiff()


async def test_where_too_many_wait_the_next_ones_are_text() -> None:
    drawer = DiffDrawer(python("import sys; sys.stdin.read()"))
    async with asyncio.timeout(DEADLINE_S):
        waiting = [asyncio.create_task(drawer.draw(f"{DIFF}{at}")) for at in range(MAX_WAITING)]
        await asyncio.sleep(0)
        assert await drawer.draw(DIFF) == DrawnDiff()
        assert not any(task.done() for task in waiting)
        await asyncio.gather(*waiting)


async def test_without_the_extra_diffs_are_text_and_that_is_said_once(tmp_path: Path) -> None:
    told: list[str] = []
    chosen = settings(tmp_path)
    pictures = diff_pictures(chosen, told.append, is_there=lambda module: module != "PIL")
    assert isinstance(pictures, NoDiffDrawer)
    assert told == []  # nothing was to be shown yet
    assert [await pictures.draw(DIFF) for _ in range(3)] == [DrawnDiff()] * 3
    (line,) = told
    assert "laneway[images], which brings PIL: " in line
    assert "pillow pygments" in line


def test_a_setting_switches_pictures_off(tmp_path: Path) -> None:
    off = settings(tmp_path, LANEWAY_CHAT_DIFF_IMAGES="false")
    assert diff_pictures(off) is None
    assert isinstance(diff_pictures(settings(tmp_path)), DiffDrawer)


def test_bots_import_neither_pillow_nor_pygments() -> None:
    """In a Python of its own."""
    ran = subprocess.run(
        [sys.executable, "-c", LOOK],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(laneway.__file__).parent.parent)},
    )
    assert ran.stdout.split() == []
