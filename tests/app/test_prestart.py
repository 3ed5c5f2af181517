"""Codex on its way while our imports run: taken when it is the right one, gone when nobody takes it."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from pathlib import Path

import pytest

from laneway.app import prestart
from laneway.testing.processes import wait_gone
from laneway.testing.rehearse import rehearsal
from laneway.wire.guardian import descendants
from tests.cli.support import laneway, misbehaving_codex, start
from tests.core.support import LOOK_S

COUNTED = '#!/bin/sh\necho started >> "$STARTS"\nexec "{codex}" "$@"\n'


def counting(folder: Path, codex: str) -> dict[str, str]:
    """A `codex` first on PATH that counts how often it is started."""
    path = folder / "bin" / "codex"
    path.parent.mkdir()
    path.write_text(COUNTED.format(codex=codex))
    path.chmod(0o755)
    return {"PATH": f"{path.parent}:/usr/bin:/bin", "STARTS": str(folder / "starts")}


def starts(folder: Path) -> int:
    counted = folder / "starts"
    return counted.read_text().count("started") if counted.exists() else 0


async def test_the_codex_that_was_started_early_is_the_one_that_answers(tmp_path: Path) -> None:
    """Once, not twice."""
    from laneway.codex import locate

    async with rehearsal() as here:
        env = {"CODEX_HOME": str(here.home), **counting(tmp_path, locate.find().path)}
        ran = await laneway("ask", "%say quick", env=env)
        assert (ran.code, ran.out) == (0, "quick\n")
        assert starts(tmp_path) == 1


@pytest.mark.parametrize(
    "words",
    [
        ["ask", "--help"],
        ["version", "--help"],
        ["ask", "--rehearse", "--timeout", "nonsense", "hi"],
        ["--help"],
    ],
)
async def test_nothing_is_started_for_a_command_line_that_needs_no_codex(
    tmp_path: Path, words: list[str]
) -> None:
    """Help, other commands, rehearsals."""
    env = counting(tmp_path, "/bin/true")
    await laneway(*words, env=env)
    assert starts(tmp_path) == 0


@pytest.mark.parametrize("program", ["atm", "laneway"])
async def test_where_a_settings_file_may_choose_it_is_read_first(tmp_path: Path, program: str) -> None:
    """A configured Codex is the one that is used, and the only one that is started."""
    env = counting(tmp_path, "/bin/false")
    config = tmp_path / ".config" / program / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[laneway]\ncodex_bin = "{misbehaving_codex(tmp_path)}"\n')
    ran = await laneway("ask", "hello", env={**env, "HOME": str(tmp_path)})
    assert ran.code == 0
    assert starts(tmp_path) == 0


async def test_what_nobody_takes_ends_with_us(tmp_path: Path) -> None:
    """An empty prompt is refused after Codex was started."""
    env = {"LANEWAY_CODEX_BIN": misbehaving_codex(tmp_path, "--deaf")}
    async with asyncio.timeout(60):
        process = await start("ask", "-", env=env, stdin=asyncio.subprocess.PIPE)
        tree: list[int] = []
        while len(tree) < 2:
            await asyncio.sleep(LOOK_S)
            tree = descendants(process.pid)
        _, err = await process.communicate(b"  ")
        assert process.returncode == 2
        assert b"There is nothing to ask" in err
        for pid in tree:
            await wait_gone(pid)


async def test_a_codex_that_cannot_be_started_is_told_in_one_sentence(tmp_path: Path) -> None:
    """As without the head start."""
    broken = tmp_path / "codex"
    broken.write_bytes(b"\x7fELF nonsense")
    broken.chmod(0o755)
    ran = await laneway("ask", "hi", env={"LANEWAY_CODEX_BIN": str(broken)})
    assert ran.code == 3
    assert "cannot be run" in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "is_spared"),
    [
        (["mcp-server"], True),
        (["mcp", "--tools", "codex"], True),
        (["acp"], True),
        (["acp", "--ws", "1"], False),
        (["mcp", "--http", "1"], False),
        (["ask"], False),
    ],
)
def test_a_server_on_pipes_starts_without_what_it_never_uses_and_anybody_can_still_have_it(
    words: list[str], is_spared: bool
) -> None:
    """A tenth of its start, for something that it never does."""
    look = (
        "import sys; from laneway.app import prestart; prestart.spare_imports(sys.argv[1:]);"
        "import asyncio, msgspec; was_loaded = {'ssl', 'typing_extensions'} <= sys.modules.keys();"
        "import ssl, typing_extensions; print(was_loaded, ssl.create_default_context() is None)"
    )
    told = subprocess.run([sys.executable, "-c", look, *words], check=True, capture_output=True, text=True)

    assert told.stdout.split() == [str(not is_spared), "False"]


@pytest.mark.parametrize("command", ["mcp", "mcp_server", "acp"])
def test_a_server_can_greet_without_what_stands_behind_it(command: str) -> None:
    """Neither sessions nor Codex nor the disk: they are loaded when the client has its first answer."""
    look = (
        f"import sys, laneway.cli.{command};"
        'print(*(name for name in sys.modules if name.startswith(("laneway.store", "laneway.core.session",'
        ' "laneway.core.hub", "laneway.codex.engine", "laneway.codex.link"))))'
    )
    told = subprocess.run([sys.executable, "-c", look], check=True, capture_output=True, text=True)

    assert told.stdout.split() == []


async def test_what_is_loaded_beside_the_loop_is_there_and_the_collector_at_work_again() -> None:
    """Also where there is nothing to load."""
    await prestart.load("laneway.app.mcp")
    assert "laneway.app.mcp" in sys.modules
    assert gc.isenabled()
    with pytest.raises(ModuleNotFoundError):
        await prestart.load("laneway.cli.nothing_of_the_kind")
    assert gc.isenabled()
