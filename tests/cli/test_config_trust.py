"""`laneway config trust|untrust`: what is shown, who is asked, and what a yes is for."""

from __future__ import annotations

import asyncio
import json
import os
import pty
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.base.folders import Folders
from tests.cli.support import laneway, read_until, start
from tests.cli.test_config import show, surroundings


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


@asynccontextmanager
async def asking(folders: Folders) -> AsyncIterator[tuple[Process, int]]:
    """`laneway config trust` on a terminal that shows its question; it has ended behind this."""
    ours, theirs = pty.openpty()
    try:
        async with asyncio.timeout(60):
            process = await start(
                "config", "trust", str(folders.repo), env=surroundings(folders), stdin=theirs, stderr=theirs
            )
            os.close(theirs)
            await read_until(ours, b"Enter means no: ")
            yield process, ours
            await process.communicate()
    finally:
        os.close(ours)


async def test_trust_shows_what_it_lets_in_and_can_be_taken_back(folders: Folders) -> None:
    """By any folder inside; twice is no error."""
    folders.repo_file.write_text('[laneway]\nsandbox = "danger-full-access"\n')
    home = surroundings(folders)
    ran = await laneway("config", "trust", str(folders.deep), "--yes", env=home)
    assert (ran.code, ran.out) == (
        0,
        f"{folders.repo_file} asks for your trust in:\n\n  │ sandbox = danger-full-access\n\n"
        f"{folders.repo} is now trusted, as it is.\n",
    )
    found = await show(folders)
    assert (found["settings"]["sandbox"]["value"], found["ignored"]) == ("danger-full-access", [])
    assert found["repository"]["trusted"]
    again = await laneway("config", "trust", str(folders.repo), "--json", env=home)
    assert json.loads(again.out) == {"root": str(folders.repo), "trusted": True, "changed": False}
    back = await laneway("config", "untrust", str(folders.repo), env=home)
    assert back.out == f"{folders.repo} is now not trusted.\n"
    assert (await show(folders))["settings"]["sandbox"]["value"] is None


async def test_a_repository_that_asks_for_nothing_needs_no_trust(folders: Folders) -> None:
    """It may narrow what holds."""
    folders.repo_file.write_text("[laneway]\nmax_turns = 3\n")
    ran = await laneway("config", "trust", str(folders.repo), env=surroundings(folders))
    assert (ran.code, ran.out) == (0, f"Nothing in the settings of {folders.repo} needs your trust.\n")


async def test_without_a_terminal_and_without_yes_nothing_is_trusted(folders: Folders) -> None:
    """What is asked for is shown all the same; with --json where it does not disturb."""
    folders.repo_file.write_text('[laneway]\nsandbox = "danger-full-access"\n')
    for words, stream in (((), "out"), (("--json",), "err")):
        ran = await laneway("config", "trust", str(folders.repo), *words, env=surroundings(folders))
        assert ran.code == 2
        assert "  │ sandbox = danger-full-access\n" in getattr(ran, stream)
        assert ran.err.endswith(
            "laneway: Nothing was trusted: there is no terminal to ask at."
            " In a script, use `laneway config trust --yes`.\n"
        )
    assert not (await show(folders))["repository"]["trusted"]


@pytest.mark.parametrize(
    ("typed", "is_trusted"), [("y\n", True), ("yes\n", True), ("\n", False), ("n\n", False)]
)
async def test_on_a_terminal_somebody_is_asked(folders: Folders, typed: str, is_trusted: bool) -> None:
    """Yes or no; Enter is a no."""
    folders.repo_file.write_text('[laneway]\nsandbox = "danger-full-access"\n')
    async with asking(folders) as (process, terminal):
        os.write(terminal, typed.encode())
    assert process.returncode == (0 if is_trusted else 2)
    assert (await show(folders))["repository"]["trusted"] is is_trusted


async def test_a_yes_is_for_what_was_shown(folders: Folders) -> None:
    """A file that is rewritten while its user reads is not trusted by their answer."""
    folders.repo_file.write_text('[laneway]\nsandbox = "workspace-write"\n')
    async with asking(folders) as (process, terminal):
        folders.repo_file.write_text('[laneway]\nsandbox = "danger-full-access"\n')
        os.write(terminal, b"y\n")
    assert process.returncode == 0
    found = await show(folders)
    assert (found["settings"]["sandbox"]["value"], found["repository"]["trusted"]) == (None, False)


async def test_what_changed_since_it_was_trusted_is_shown_key_by_key(folders: Folders) -> None:
    """By `config` and by `config trust`: old and new, added and removed, and nothing that is as it was."""
    prompt = folders.repo / "p.md"
    prompt.write_text("Be good.\n")
    folders.say(
        '[laneway]\nsandbox = "read-only"\napproval_policy = "never"\n'
        'base_prompt_file = "p.md"\nteam = "crew"\nhttp_token = "hunter2"\n'
    )
    prompt.write_text("Be evil.\n")
    folders.repo_file.write_text(
        '[laneway]\nsandbox = "danger-full-access"\nbase_prompt_file = "p.md"\nteam = "crew"\n'
        'http_token = "hunter3"\nidentity = "ceo"\n'
    )
    wanted = [
        "sandbox = read-only → danger-full-access",
        "http_token = [redacted] → [redacted]",
        "identity = ceo",
        "approval_policy is no longer set (it was never)",
    ]
    home = surroundings(folders)
    shown = await laneway("config", "show", str(folders.repo), env=home)
    lines = [line.removeprefix("  │ ") for line in shown.out.splitlines() if line.startswith("  │ ")]
    assert [line for line in lines if not line.startswith("base_prompt_file")] == wanted
    (changed,) = (line for line in lines if line.startswith("base_prompt_file"))
    assert changed.count(f"{prompt} (9 bytes, sha256 ") == 2
    assert f"changed since you trusted it: {folders.repo_file}\n" in shown.out
    assert f"repository: {folders.repo} (no longer trusted: it has changed)" in shown.out
    asked = await laneway("config", "trust", str(folders.repo), "--yes", env=home)
    assert f"{folders.repo_file} has changed since you trusted it, and asks for your trust in:\n" in asked.out
    assert "  │   Be evil.\n" in asked.out
    assert "  │ team = crew\n" in asked.out
    assert all(f"  │ {line}\n" in asked.out for line in wanted)
    assert "hunter" not in asked.out + shown.out
    assert (await show(folders))["repository"]["trusted"]


async def test_nothing_that_is_shown_moves_the_cursor_or_leaves_its_fence(folders: Folders) -> None:
    """A prompt file is a stranger's text: escapes, returns, directions, and letters that take no room."""
    tag = chr(0xE0041)
    text = f"nice\r\x1b[2J\x1b[1;1H\u202eevil\u200b{tag}\n" + "line\n" * 50
    (folders.repo / "p.md").write_text(text + "x" * 500)
    folders.repo_file.write_text('[laneway]\nbase_prompt_file = "p.md"\n')
    ran = await laneway("config", "trust", str(folders.repo), "--yes", env=surroundings(folders))
    assert ran.code == 0
    assert not {"\r", "\x1b", "\u202e", "\u200b", tag} & set(ran.out)
    assert "  │   nice\\x0d\\x1b[2J\\x1b[1;1H\\u202eevil\\u200b\\U000e0041\n" in ran.out
    assert "  │   … 12 more lines: read the file before you agree\n" in ran.out
    inside = ran.out.split("asks for your trust in:\n\n")[1].split("\n\n")[0]
    assert all(line.startswith("  │ ") for line in inside.splitlines())


async def test_a_prompt_file_that_cannot_be_read_is_not_trusted(folders: Folders) -> None:
    """Nobody has seen it."""
    folders.repo_file.write_text('[laneway]\nbase_prompt_file = "p.md"\n')
    ran = await laneway("config", "trust", str(folders.repo), "--yes", env=surroundings(folders))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        f"laneway: {folders.repo}/p.md cannot be read (No such file or directory): nothing was trusted.\n"
    )


async def test_what_trust_cannot_allow_is_told_with_it(folders: Folders) -> None:
    """A program that sessions could change; a repository that holds the trust file."""
    folders.repo_file.write_text('[laneway]\ncodex_bin = "./codex"\nteam = "crew"\n')
    home = surroundings(folders)
    ran = await laneway("config", "trust", str(folders.repo), "--yes", env=home)
    assert (
        f"  still ignored: {folders.repo_file}, line 2: codex_bin = {folders.repo}/codex is ignored"
        in ran.out
    )
    inside = {**home, "XDG_STATE_HOME": str(folders.repo)}
    never = await laneway("config", "trust", str(folders.repo), "--yes", env=inside)
    assert (never.code, "holds the file in which trust is kept" in never.err) == (2, True)


async def test_a_file_with_a_mistake_is_not_trusted(folders: Folders) -> None:
    """Nobody has seen yet what it says."""
    folders.repo_file.write_text("[laneway]\nsandbocks = 1\n")
    ran = await laneway("config", "trust", str(folders.repo), "--yes", env=surroundings(folders))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        f"laneway: {folders.repo_file}, line 2: there is no setting sandbocks; did you mean sandbox?\n"
    )
    folders.repo_file.write_text("")
    assert not (await show(folders))["repository"]["trusted"]


async def test_nothing_to_trust_is_said(folders: Folders, tmp_path: Path) -> None:
    """A folder that is missing, too; a folder that is gone can still be trusted no more."""
    home = surroundings(folders)
    missing = await laneway("config", "trust", str(tmp_path / "none"), env=home)
    assert (missing.code, missing.err) == (2, f"laneway: There is no folder {tmp_path / 'none'}.\n")
    nowhere = await laneway("config", "trust", "/", env=home)
    assert nowhere.err == (
        "laneway: / is not in a repository and has no settings file: there is nothing to trust.\n"
    )
    gone = await laneway("config", "untrust", str(tmp_path / "none"), env=home)
    assert gone.code == 0


async def test_a_folder_that_can_never_be_trusted_is_not_looked_through(
    folders: Folders, tmp_path: Path
) -> None:
    """The file system's root, say: what some repository far below has in `.claude` is no matter of it."""
    (tmp_path / "above/far/below/.claude").mkdir(parents=True)
    (tmp_path / "above/far/below/.claude/dangling").symlink_to("none")
    inside = {**surroundings(folders), "XDG_STATE_HOME": str(tmp_path / "above/state")}
    ran = await laneway("config", "trust", str(tmp_path / "above"), env=inside)
    assert ran.err == (
        f"laneway: {tmp_path / 'above'} is not in a repository and has no settings file: there is nothing to"
        " trust.\n"
    )
