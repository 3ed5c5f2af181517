"""`laneway login`: Codex's own, word for word; and whether somebody is logged in."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from tests.cli.support import laneway, misbehaving_codex

KEY = "sk-test-0123456789abcdefghij"


def echoing_codex(folder: Path, exit_code: int = 0) -> str:
    """Says what it was called with, and what it read."""
    path = folder / "codex"
    path.write_text(f'#!/bin/sh\nfor word; do echo "<$word>"; done\ncat\nexit {exit_code}\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


async def test_everything_but_our_own_options_is_passed_on_in_order(tmp_path: Path) -> None:
    """Also options that we have never heard of, and standard input."""
    words = ["--device-auth", "-c", "a=b c", "--brand-new=1", "status"]
    ran = await laneway("login", *words, "--codex-bin", echoing_codex(tmp_path), stdin="typed")
    assert ran.out.splitlines() == ["<login>", *(f"<{word}>" for word in words), "typed"]
    assert ran.code == 0


async def test_the_exit_code_is_codexs(tmp_path: Path) -> None:
    """Whatever it is."""
    assert (await laneway("login", "--codex-bin", echoing_codex(tmp_path, 7))).code == 7


async def test_codex_gets_the_users_environment_less_our_secrets(tmp_path: Path) -> None:
    """A bot's token is no business of Codex's."""
    path = tmp_path / "codex"
    path.write_text("#!/bin/sh\nenv\n")
    path.chmod(0o700)
    given = {"LANEWAY_TELEGRAM_TOKEN": "abc", "OF_THE_USER": "kept"}
    ran = await laneway("login", "--codex-bin", str(path), env=given)
    assert "OF_THE_USER=kept" in ran.out
    assert "LANEWAY_TELEGRAM_TOKEN" not in ran.out


async def test_a_key_given_to_codex_counts_as_a_login(tmp_path: Path) -> None:
    """With the real Codex, offline; the key itself is shown by nobody."""
    env = {"CODEX_HOME": str(tmp_path)}
    before = await laneway("login", "--status", env=env)
    assert (before.code, before.out.startswith("Nobody is logged in. Run `laneway login`")) == (1, True)
    done = await laneway("login", "--with-api-key", env=env, stdin=KEY + "\n")
    assert done.code == 0, done.err
    after = await laneway("login", "--status", env=env)
    assert (after.code, after.out) == (0, "Logged in with an API key.\n")
    data = await laneway("login", "--status", "--json", env=env)
    assert json.loads(data.out) == {"logged_in": True, "type": "apiKey", "needed": True}
    assert KEY not in before.out + done.out + after.out + data.out + done.err


async def test_the_status_takes_nothing_else(tmp_path: Path) -> None:
    """An argument that would be ignored is refused."""
    ran = await laneway("login", "--status", "--with-api-key")
    assert (ran.code, ran.err) == (2, "laneway: --status takes no --with-api-key.\n")


async def test_a_codex_that_is_none_is_told_in_one_sentence(tmp_path: Path) -> None:
    """No traceback, with a remedy."""
    path = tmp_path / "codex"
    path.write_bytes(b"\x00not a program")
    path.chmod(0o700)
    ran = await laneway("login", "--codex-bin", str(path))
    assert ran.code == 3
    assert ran.err.startswith(f"laneway: {path} cannot be run")
    assert "Traceback" not in ran.err


async def test_a_codex_that_does_not_say_counts_as_nobody(tmp_path: Path) -> None:
    """Fail closed: an odd answer is no login."""
    ran = await laneway("login", "--status", "--codex-bin", misbehaving_codex(tmp_path))
    assert ran.code == 1
    assert ran.out.startswith("Codex did not say whether somebody is logged in.")
