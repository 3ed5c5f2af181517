"""`laneway doctor` as people run it: on the real Codex, on broken ones, in broken places."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import stat
from pathlib import Path
from typing import Any

import pytest

from laneway.cli.checks.bundle import Person, clean
from laneway.cli.doctor import printable
from laneway.codex import binary, locate
from tests.cli.support import laneway, misbehaving_codex, read_until, start
from tests.lanes.samples import AIDER, IMPORT_LINE

NAMES = [
    "platform",
    "python",
    "settings",
    "folder-sessions",
    "folder-state",
    "folder-cache",
    "codex",
    "codex-versions",
    "app-server",
    "login",
    "codex-config",
    "sandbox",
    "registrations",
]
"""Checks that every run has; notes come and go with the machine."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Of a person called margarethe, with nothing in it."""
    path = tmp_path / "margarethe"
    path.mkdir()
    return path


def no_claude(folder: Path) -> Path:
    """For PATH: what is found first is no Claude Code, which three starts and a turn of it would try."""
    program = folder / "no-claude" / "claude"
    program.parent.mkdir(exist_ok=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program.parent


def as_margarethe(home: Path, **more: str) -> dict[str, str]:
    """Her environment, in which nothing of the machine's own is found by accident."""
    ours = {name: "" for name in os.environ if name.startswith(("XDG_", "ATM_", "LANEWAY_", "CODEX_"))}
    path = f"{no_claude(home.parent)}:/usr/bin:/bin"
    return {
        **ours,
        "HOME": str(home),
        "USER": home.name,
        "LOGNAME": home.name,
        "PATH": path,
        "PYTHONPATH": _sources(),
        **more,
    }


def _sources() -> str:
    import laneway

    return str(Path(laneway.__file__).parent.parent)


async def doctor(home: Path, *words: str, **environment: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Its exit code and its checks by name; where a name comes twice, the last that is not good."""
    ran = await laneway("doctor", "--json", *words, env=as_margarethe(home, **environment))
    assert ran.err == "", ran.err
    checks = sorted(json.loads(ran.out)["checks"], key=lambda check: check["severity"] != "ok")
    return ran.code, {check["name"]: check for check in checks}


async def test_a_rehearsed_check_up_proves_that_everything_works(home: Path) -> None:
    """The real Codex: handshake, sandbox and all; no account is needed."""
    code, checks = await doctor(home, "--rehearse")
    assert code == 0, checks
    assert set(NAMES) <= set(checks)
    assert checks["app-server"]["facts"]["version"] == binary.TESTED[0]
    assert checks["sandbox"]["facts"] == {"ran": True, "wrote_inside": True, "wrote_outside": False}
    assert checks["login"]["facts"] == {"type": None, "needed": False}
    assert {"codex", "rehearse"} <= {name.strip("/") for name in checks["chat"]["facts"]["lanes"]}
    assert checks["codex-versions"]["facts"]["tested"] == list(binary.TESTED)
    assert {check["severity"] for check in checks.values()} <= {"ok", "note"}
    assert not (home / ".codex").exists(), "a rehearsal leaves the user's Codex alone"


async def test_lane_plugins_of_the_settings_are_imported_and_those_of_a_repository_are_not(
    home: Path, tmp_path: Path
) -> None:
    """By their names, from where Python finds them; a broken one is a warning."""
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "a_lane.py").write_text(IMPORT_LINE + AIDER)
    (modules / "a_broken_lane.py").write_text("raise RuntimeError('no brush')")
    settings = home / ".config" / "laneway" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[laneway.chat]\nlanes = ["a_lane"]\n')
    path = f"{modules}:{_sources()}"
    _, checks = await doctor(home, "--rehearse", PYTHONPATH=path)
    assert checks["lanes"]["facts"] == {"a_lane": ["aider"]}
    settings.write_text('[laneway.chat]\nlanes = ["a_broken_lane"]\n')
    code, checks = await doctor(home, "--rehearse", PYTHONPATH=path)
    message = "The module a_broken_lane cannot be imported: RuntimeError: no brush."
    assert (code, checks["lanes"]["severity"], checks["lanes"]["message"]) == (1, "warning", message)
    settings.unlink()
    (home / ".git").mkdir()
    (home / ".laneway.toml").write_text('[laneway.chat]\nlanes = ["a_lane"]\n')
    words = ("doctor", "--json", "--rehearse")
    process = await start(*words, env=as_margarethe(home, PYTHONPATH=path), cwd=home)
    async with asyncio.timeout(60):
        out, _ = await process.communicate()
    seen = [check for check in json.loads(out)["checks"] if check["name"] in ("lanes", "settings")]
    assert [check["severity"] for check in seen] == ["ok", "note"], seen
    assert "chat.lanes" in seen[1]["message"]


async def test_nobody_logged_in_is_a_warning_with_its_remedy(home: Path) -> None:
    """Exit code 1: nothing is broken, but a turn would fail. Plain lines where nobody looks."""
    ran = await laneway("doctor", env=as_margarethe(home))
    assert ran.code == 1
    lines = ran.out.splitlines()
    at = lines.index("! login            Nobody is logged in.")
    assert lines[at + 1].strip().startswith("→ Run `laneway login`")
    assert "✔ sandbox " in ran.out
    assert "checks: 1 warning" in lines[-1]
    assert "\x1b" not in ran.out


async def test_a_terminal_shows_what_is_being_waited_for(home: Path) -> None:
    """And takes the line away again when the result is there."""
    ours, theirs = pty.openpty()
    try:
        async with asyncio.timeout(60):
            env = as_margarethe(home, TERM="xterm")
            env.pop("NO_COLOR", None)
            process = await start("doctor", "--rehearse", env=env, stdout=theirs)
            os.close(theirs)
            shown = await read_until(ours, b" checks: ")
            await process.communicate()
        assert b"\r\x1b[K\xe2\x80\xa6 starting app-server" in shown
        assert b"\x1b[32m\xe2\x9c\x94\x1b[0m app-server" in shown
        assert process.returncode == 0
    finally:
        os.close(ours)


async def test_without_a_codex_everything_else_is_still_checked(home: Path) -> None:
    """Exit code 3: something does not work."""
    code, checks = await doctor(home, "--codex-bin", "/no/codex")
    assert code == 3
    assert set(NAMES) <= set(checks)
    assert checks["codex"]["message"].startswith("There is no Codex at /no/codex")
    graded = {name: check["severity"] for name, check in checks.items() if check["severity"] != "ok"}
    skipped = dict.fromkeys(["app-server", "login", "codex-config", "sandbox", "chat"], "note")
    assert graded == {"codex": "error", "claude": "note", **skipped}


async def test_a_codex_that_never_answers_stops_no_other_check(home: Path, tmp_path: Path) -> None:
    """Each has its own deadline."""
    code, checks = await doctor(home, "--deadline", "1", "--codex-bin", misbehaving_codex(tmp_path, "--mute"))
    assert code == 3
    assert checks["app-server"]["message"] == "There was no result within 1 s."
    # On a busy machine a second may be too short for others as well; what counts is that they had theirs.
    assert {"platform", "settings", "codex", "login", "sandbox", "registrations"} <= set(checks)


async def test_a_codex_that_answers_nonsense_is_told(home: Path, tmp_path: Path) -> None:
    """It shakes hands, and then has nothing to say."""
    code, checks = await doctor(home, "--codex-bin", misbehaving_codex(tmp_path))
    assert code == 3
    assert checks["app-server"]["severity"] == "ok"
    assert checks["login"]["message"] == "Codex did not say whether somebody is logged in."
    assert checks["sandbox"]["message"].startswith("The sandbox does not start here")


async def test_a_codex_that_dies_at_once_is_told_with_its_last_words(home: Path, tmp_path: Path) -> None:
    """Without what is secret in them."""
    path = tmp_path / "codex"
    path.write_text("#!/bin/sh\necho 'cannot use OPENAI_API_KEY=hunter2hunter2' >&2\nexit 9\n")
    path.chmod(0o700)
    code, checks = await doctor(home, "--codex-bin", str(path))
    assert code == 3
    assert (
        "exit code 9, after it said: cannot use OPENAI_API_KEY=[redacted]" in checks["app-server"]["message"]
    )


async def test_a_broken_config_of_codex_is_an_error(home: Path) -> None:
    """Codex starts all the same, on defaults: nobody should find out by a wider sandbox."""
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").write_text('sandbox_mode = "nonsense"\n')
    ran = await laneway("doctor", env=as_margarethe(home))
    assert ran.code == 3
    assert "✘ codex-config     Codex cannot use its configuration and runs on defaults: " in ran.out
    assert "unknown variant `nonsense`" in ran.out
    assert "· codex-says       Codex says: Invalid configuration; using defaults." in ran.out


async def test_a_wrong_setting_of_ours_is_an_error(home: Path) -> None:
    """It names the file; the rest is checked nevertheless."""
    (home / ".config/atm").mkdir(parents=True)
    (home / ".config/atm/config.toml").write_text("[laneway]\nmodle = 'x'\n")
    code, checks = await doctor(home, "--rehearse")
    assert code == 3
    assert "config.toml" in checks["settings"]["message"]
    assert checks["sandbox"]["severity"] == "ok"


@pytest.mark.skipif(
    not Path("/proc/sys").exists(), reason="needs a folder that takes nothing, even from root"
)
async def test_a_read_only_state_folder_is_an_error(home: Path) -> None:
    """And only that: it names the folder."""
    code, checks = await doctor(home, "--rehearse", XDG_STATE_HOME="/proc/sys")
    assert code == 3
    assert checks["folder-state"]["message"].startswith("/proc/sys/laneway cannot be created: /proc/sys:")
    assert [name for name, check in checks.items() if check["severity"] == "error"] == ["folder-state"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="bubblewrap is Linux's")
async def test_a_sandbox_that_cannot_start_is_told_with_its_remedy(home: Path, tmp_path: Path) -> None:
    """As in a container: here bubblewrap is refused, and the real Codex says so."""
    bwrap = tmp_path / "bin" / "bwrap"
    bwrap.parent.mkdir()
    # Codex asks one for its options before it uses it instead of its own.
    bwrap.write_text(
        '#!/bin/sh\n[ "$1" = --help ] && echo --argv0 --perms --as-pid-1 && exit 0\n'
        "echo 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n"
    )
    bwrap.chmod(0o755)
    code, checks = await doctor(
        home, "--rehearse", PATH=f"{bwrap.parent}:{no_claude(tmp_path)}:/usr/bin:/bin"
    )
    assert code == 3
    assert "bwrap: No permissions to create a new namespace" in checks["sandbox"]["message"]
    assert "user namespaces" in checks["sandbox"]["remedy"]


async def test_a_stale_registration_is_found_in_the_users_files(home: Path) -> None:
    """What is in its arguments and variables is nobody's business."""
    server = {"command": "codex", "args": ["-c", "key=hunter2", "mcp-server"], "env": {"T": "hunter3"}}
    claude = {"projects": {"/work/x": {"mcpServers": {"second-opinion": server}}}}
    (home / ".claude.json").write_text(json.dumps(claude))
    ran = await laneway("doctor", "--rehearse", env=as_margarethe(home))
    assert ran.code == 1
    assert "! registrations    ~/.claude.json starts `codex mcp-server` as 'second-opinion'" in ran.out
    assert "hunter" not in ran.out
    data = await laneway("doctor", "--rehearse", "--json", env=as_margarethe(home))
    assert "hunter" not in data.out


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "soon"])
async def test_a_deadline_must_be_some_time(seconds: str) -> None:
    """Refused before anything is started."""
    ran = await laneway("doctor", f"--deadline={seconds}")
    assert ran.code == 2


# ── the report ─────────────────────────────────────────────────────────────

SECRETS = {
    "key": "sk-proj-0123456789abcdefghijklmn",
    "bearer": "abcdef0123456789abcdef",
    "password": "correct-horse-battery",
    "mail": "m.lang@example.org",
}


def talkative_codex(folder: Path, home: Path) -> str:
    """The real one, which says all kinds of things on standard error first."""
    said = (
        f"key {SECRETS['key']} | Authorization: Bearer {SECRETS['bearer']}"
        f" | DB_PASSWORD={SECRETS['password']} | user {SECRETS['mail']}"
        f" | reading {home}/work/notes.txt | hello margarethe"
    )
    path = folder / "codex"
    path.write_text(f"#!/bin/sh\necho '{said}' >&2\nexec '{locate.find().path}' \"$@\"\n")
    path.chmod(0o700)
    return str(path)


async def test_a_report_holds_everything_but_secrets_and_names(home: Path, tmp_path: Path) -> None:
    """Planted in what Codex says, in other programs' configs, in variables and in paths."""
    server = {"command": "codex", "args": ["mcp-server", SECRETS["key"]], "env": {"K": SECRETS["password"]}}
    (home / ".mcp.json").write_text(json.dumps({"mcpServers": {SECRETS["mail"]: server}}))
    (home / ".cursor").mkdir()
    (home / ".cursor/mcp.json").write_text(f'{{"key": "{SECRETS["key"]}"')
    report = tmp_path / "report.json"
    words = ("--report", str(report), "--codex-bin", talkative_codex(home, home))
    code, checks = await doctor(home, *words, OPENAI_API_KEY=SECRETS["key"], ATM_TEAM="x")
    text = report.read_text()
    for secret in (*SECRETS.values(), "margarethe", str(home)):
        assert secret not in text
    data = json.loads(text)
    assert (code, data["codex"]) == (1, binary.TESTED[0])
    assert {check["name"] for check in data["checks"]} == set(checks)
    assert {"OPENAI_API_KEY", "ATM_TEAM"} <= set(data["variables"])
    assert data["app_server_stderr"].startswith("key [redacted] | Authorization: [redacted]")
    assert data["app_server_stderr"].count("reading ~/work/notes.txt | hello [user]") == 1
    assert data["settings"]["team"]["value"] == "x"
    assert stat.S_IMODE(report.stat().st_mode) == 0o600


async def test_a_report_overwrites_nothing(tmp_path: Path) -> None:
    """Told before anything is started; a link is not followed either."""
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("mine", "link", "no/folder"):
        ran = await laneway("doctor", "--report", str(tmp_path / name))
        assert (ran.code, ran.out) == (2, "")
        assert str(tmp_path / name) in ran.err
    assert (tmp_path / "mine").read_text() == "mine"
    assert not (tmp_path / "elsewhere").exists()


def test_a_name_is_removed_as_a_word_and_not_inside_of_others() -> None:
    """A user called `ann` does not tear a channel apart; a too short name is left."""
    ann = Person(("/home/ann",), "ann", "box")
    text = "/home/ann/x /home/anna ann@box.example ann's channel ann_1 boxes on box"
    assert clean(text, ann) == "~/x /home/anna [e-mail] [user]'s channel [user]_1 boxes on [host]"
    assert clean("al at /home/al", Person(("/home/al",), "al", "")) == "al at ~"


def test_other_programs_words_cannot_command_a_terminal() -> None:
    """A server's name may hold anything."""
    assert printable("a\x1b[2Jb\r\nc\u202e") == "a\\x1b[2Jb\\nc\\u202e"
