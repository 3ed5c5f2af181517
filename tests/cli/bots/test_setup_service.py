"""`laneway setup service`: a file that systemd or launchd takes, whatever its paths; it starts and goes."""

from __future__ import annotations

import asyncio
import json
import os
import plistlib
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from laneway.base.errors import UsageError
from laneway.cli.bots import service_files
from laneway.cli.bots.service_unit import (
    LABEL,
    MADE_BY,
    ServiceWords,
    launchd_file,
    service_words,
    systemd_unit,
)
from laneway.testing.fake_telegram import FakeTelegram
from tests.cli.bots.support import settings_file
from tests.cli.support import Ran, laneway
from tests.cli.test_uninstall import ALONE

TOKEN = "7000000001:AAfake-laneway-tests-only-token-000"
ODD = ("/opt/a b/l$w%h\\y'\"", '/home/ada/50% work; $HOME `x` \\n "q" é')
"""A program and a folder with every letter that a unit could take for something else."""


def words_for(program: str, folder: str, **environment: str) -> ServiceWords:
    return service_words([program], ["telegram"], Path(folder), environment, Path("/state/service.log"))


# ── the texts ──────────────────────────────────────────────────────────────


def systemd_words(unit: str) -> list[str]:
    """As systemd.syntax(7) reads a quoted command line after `:`, which leaves variables alone."""
    line = next(line for line in unit.splitlines() if line.startswith("ExecStart="))
    assert line.startswith('ExecStart=:"')
    text = line.removeprefix("ExecStart=:")
    words, word, at, is_open = [], "", 0, False
    while at < len(text):
        letter = text[at]
        if letter == '"':
            is_open = not is_open
            if not is_open:
                words.append(word)
                word = ""
        elif letter == "\\":
            at += 1
            word += text[at]
        elif letter == "%":
            at += 1
            assert text[at] == "%", "a specifier"
            word += "%"
        elif is_open:
            word += letter
        else:
            assert letter == " "
        at += 1
    assert not is_open
    return words


@pytest.mark.parametrize(("program", "folder"), [("/usr/bin/laneway", "/home/ada/work"), ODD])
def test_a_unit_starts_exactly_these_words(program: str, folder: str) -> None:
    unit = systemd_unit(words_for(program, folder, PATH="/a b:/c%d", SECRET="hunter2"))
    shell = [] if program == "/usr/bin/laneway" else ["/bin/sh", "-c", 'exec "$0" "$@"']
    assert systemd_words(unit) == [*shell, program, "chat", "--platform", "telegram", "-C", folder]
    assert 'Environment="PATH=/a b:/c%%d"' in unit
    assert "hunter2" not in unit
    assert unit.startswith(f"# {MADE_BY}\n")


def verified(unit: Path) -> list[str]:
    """What systemd finds wrong with it."""
    folder = str(unit.parent)
    ran = subprocess.run(
        ["systemd-analyze", "--user", "verify", str(unit)],
        env={**os.environ, "XDG_RUNTIME_DIR": folder, "HOME": folder},
        capture_output=True,
        text=True,
        check=False,
    )
    return [line for line in ran.stderr.splitlines() if unit.name in line]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
@pytest.mark.parametrize("name", ["laneway", "l$w%h\\y'\" z"])
def test_systemd_itself_finds_nothing_wrong_with_a_unit(tmp_path: Path, name: str) -> None:
    """Also where the program's own path is odd: it must exist, or systemd would say so."""
    program = tmp_path / name
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "laneway-chat.service"
    unit.write_text(systemd_unit(words_for(str(program), ODD[1], PATH="/a b:/c%d")))
    assert verified(unit) == []
    again = unit.read_text().replace("KillMode=process", "KillMode=sometimes")
    unit.write_text(again)
    wrong = verified(unit)
    assert any("KillMode" in line or "kill mode" in line for line in wrong), "systemd has not read the unit"


@pytest.mark.parametrize(("program", "folder"), [("/usr/bin/laneway", "/home/ada/work"), ODD])
def test_a_launchd_file_starts_exactly_these_words(program: str, folder: str) -> None:
    text = launchd_file(words_for(program, folder, PATH="/a b:/c%d", SECRET="hunter2"))
    data = plistlib.loads(text.encode())
    assert data["ProgramArguments"] == [program, "chat", "--platform", "telegram", "-C", folder]
    assert data["EnvironmentVariables"] == {"PATH": "/a b:/c%d"}
    assert (data["Label"], data["RunAtLoad"], data["Umask"]) == (LABEL, True, 0o077)
    assert "hunter2" not in text


@pytest.mark.parametrize("folder", ["/a\nExecStartPre=/bin/evil", "/a\x1b[0m"])
def test_a_path_with_control_characters_is_refused(folder: str) -> None:
    """A line break would be a line of the unit."""
    with pytest.raises(UsageError, match="control characters"):
        words_for("/usr/bin/laneway", folder)


def test_a_service_has_its_place_on_each_system() -> None:
    home = Path("/home/ada")
    linux = service_files.place(home, {}, "linux")
    assert str(linux.file) == "/home/ada/.config/systemd/user/laneway-chat.service"
    moved = service_files.place(home, {"XDG_CONFIG_HOME": "/cfg"}, "linux")
    assert str(moved.file) == "/cfg/systemd/user/laneway-chat.service"
    mac = service_files.place(home, {}, "darwin")
    assert str(mac.file) == f"/home/ada/Library/LaunchAgents/{LABEL}.plist"
    assert mac.ending == ("launchctl", "bootout", f"gui/{os.getuid()}/{LABEL}")


def test_a_written_file_is_known_as_ours(tmp_path: Path) -> None:
    words = words_for("/usr/bin/laneway", "/w")
    for text in (systemd_unit(words), launchd_file(words)):
        (tmp_path / "file").write_text(text)
        assert service_files.is_ours(tmp_path / "file")
    (tmp_path / "file").write_text("[Unit]\n")
    assert not service_files.is_ours(tmp_path / "file")
    assert not service_files.is_ours(tmp_path / "none")


# ── the command ────────────────────────────────────────────────────────────

needs_systemd_place = pytest.mark.skipif(sys.platform == "darwin", reason="its service is launchd's")


class ServiceHome:
    """A home with a bot that is set up, and a `systemctl` that notes how it was called."""

    def __init__(self, folder: Path, systemctl: str = "exit 0") -> None:
        self.folder = folder
        self.calls_file = folder / "calls"
        self.unit = folder / ".config" / "systemd" / "user" / "laneway-chat.service"
        binaries = folder / "bin"
        binaries.mkdir()
        for name, script in (
            ("systemctl", f'echo "$@" >>{shlex.quote(str(self.calls_file))}\n{systemctl}'),
            ("laneway", "exit 0"),
        ):
            path = binaries / name
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)
        self.env = {"HOME": str(folder), "PATH": f"{binaries}:/usr/bin:/bin", "XDG_CONFIG_HOME": ""}
        file = settings_file(folder)
        file.parent.mkdir(parents=True)
        file.write_text(f'[laneway.chat.telegram]\ntoken = "{TOKEN}"\nallowed_users = ["1"]\n')
        file.chmod(0o600)

    @property
    def calls(self) -> list[str]:
        return self.calls_file.read_text().splitlines() if self.calls_file.exists() else []

    async def run(self, *words: str, **env: str) -> Ran:
        return await laneway(*words, env={**self.env, **env})


@needs_systemd_place
async def test_a_service_runs_all_bots_that_are_set_up_and_has_no_token(tmp_path: Path) -> None:
    here = ServiceHome(tmp_path)
    ran = await here.run("setup", "service", "-C", str(tmp_path))
    assert ran.code == 0, ran.err
    assert "systemctl --user enable --now laneway-chat.service" in ran.out
    unit = here.unit.read_text()
    assert systemd_words(unit)[1:] == ["chat", "--platform", "telegram", "-C", str(tmp_path)]
    assert os.access(systemd_words(unit)[0], os.X_OK)
    assert TOKEN not in unit + ran.out
    assert stat.S_IMODE(here.unit.stat().st_mode) == 0o600
    assert here.calls == []
    again = await here.run("setup", "service", "-C", str(tmp_path), "--json")
    assert json.loads(again.out)["action"] == "unchanged"


@needs_systemd_place
async def test_start_starts_it_and_remove_ends_it(tmp_path: Path) -> None:
    here = ServiceHome(tmp_path)
    ran = await here.run("setup", "service", "--start")
    assert ran.code == 0, ran.err
    assert "It runs now" in ran.out
    assert here.calls == [
        "--user daemon-reload",
        "--user enable --now laneway-chat.service",
        "--user restart laneway-chat.service",
    ]
    removed = await here.run("setup", "service", "--remove")
    assert removed.code == 0
    assert here.calls[3:] == ["--user disable --now laneway-chat.service"]
    assert not here.unit.exists()
    absent = await here.run("setup", "service", "--remove", "--json")
    assert json.loads(absent.out)["action"] == "absent"


@needs_systemd_place
async def test_a_start_that_fails_is_told_in_systemds_words(tmp_path: Path) -> None:
    here = ServiceHome(tmp_path, 'echo "Failed to connect to bus: No medium found" >&2; exit 1')
    ran = await here.run("setup", "service", "--start")
    assert ran.code == 1
    assert "It was not started" in ran.out
    assert "No medium found" in ran.out
    assert here.unit.exists()
    removed = await here.run("setup", "service", "--remove")
    assert removed.code == 0
    assert "end it by hand" in removed.out
    assert not here.unit.exists()


@needs_systemd_place
async def test_print_shows_it_and_writes_nothing(tmp_path: Path) -> None:
    here = ServiceHome(tmp_path)
    ran = await here.run("setup", "service", "--print")
    assert ran.code == 0
    assert ran.out.startswith("# Written by")
    assert not here.unit.exists()


@needs_systemd_place
async def test_what_a_service_could_not_run_is_refused(tmp_path: Path) -> None:
    """No bot, nobody who may speak, a token that only this terminal has, a unit of somebody else's."""
    here = ServiceHome(tmp_path)
    stored = settings_file(tmp_path).read_text()
    settings_file(tmp_path).write_text('[laneway.chat.telegram]\nallowed_users = ["1"]\n')
    in_environment = await here.run("setup", "service", LANEWAY_TELEGRAM_TOKEN=TOKEN)
    settings_file(tmp_path).write_text(stored)
    assert in_environment.code == 2
    assert "which a service does not have" in in_environment.err
    assert TOKEN not in in_environment.err
    missing = await here.run("setup", "service", "--platform", "discord")
    assert missing.code == 2
    here.unit.parent.mkdir(parents=True)
    here.unit.write_text("[Unit]\n")
    foreign = await here.run("setup", "service")
    assert foreign.code == 2
    assert "was not written by Laneway" in foreign.err
    assert (await here.run("setup", "service", "--remove")).code == 2
    assert here.unit.read_text() == "[Unit]\n"
    assert (await here.run("setup", "service", "--force")).code == 0
    settings_file(tmp_path).write_text(f'[laneway.chat.telegram]\ntoken = "{TOKEN}"\n')
    nobody = await here.run("setup", "service", LANEWAY_CHAT_TELEGRAM_ALLOWED_USERS="1")
    assert nobody.code == 2
    assert "has no allowed_users" in nobody.err
    settings_file(tmp_path).write_text("")
    none = await here.run("setup", "service")
    assert none.code == 2
    assert "No bot is set up yet" in none.err


@needs_systemd_place
async def test_uninstall_ends_the_service_and_removes_its_file(tmp_path: Path) -> None:
    here = ServiceHome(tmp_path)
    assert (await here.run("setup", "service")).code == 0
    wanted = here.unit.parent / "default.target.wants"
    wanted.mkdir()
    (wanted / here.unit.name).symlink_to(here.unit)
    shown = await here.run("uninstall", "--dry-run")
    assert "laneway-chat.service" in shown.out
    assert here.unit.exists()
    # Apart from the servers of other tests, whose sockets are in /tmp.
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", ALONE, str(tmp_path / "last"), "uninstall", "--yes"),
        env={**here.env, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    assert not here.unit.exists()
    assert list(wanted.iterdir()) == []
    assert here.calls == ["--user disable --now laneway-chat.service"]


@needs_systemd_place
async def test_what_the_unit_starts_is_a_bot_that_runs(tmp_path: Path) -> None:
    """The unit's own words, in its own environment: the bot asks Telegram for messages."""
    here = ServiceHome(tmp_path)
    async with asyncio.timeout(90), FakeTelegram() as telegram:
        with settings_file(tmp_path).open("a") as file:
            file.write(f'api_url = "{telegram.api_url}"\n')
        assert (await here.run("setup", "service", "-C", str(tmp_path))).code == 0
        words = systemd_words(here.unit.read_text())
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "laneway",
            *words[1:],
            "--rehearse",
            env={"HOME": str(tmp_path), "PATH": here.env["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        told = await process.stderr.readline()
        assert told == b"laneway: telegram: ready as @laneway_bot\n"
        process.terminate()
        assert await process.wait() == 130
        assert telegram.token.encode() not in await process.stderr.read()
