"""`laneway uninstall`: everything of ours is found and goes; nothing of anybody else's does."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import laneway as package
from laneway.base.server_words import is_ours
from laneway.doors.local.socket_files import listen
from laneway.jobs.ledger import Ledger
from laneway.jobs.model import Job
from laneway.store.database import Database, database_path
from laneway.store.layout import AGENT_SESSIONS, CODEX_SESSIONS
from laneway.store.store import Store
from laneway.testing.terminal import terminal
from tests.base.test_installed import bare_environment
from tests.cli.stub_laneway import Machine, machine
from tests.cli.support import Ran
from tests.store.support import entry, event

ALONE = """\
import sys
from pathlib import Path
from laneway.doors.local import socket_files
socket_files.LAST_RESORT = Path(sys.argv.pop(1))  # /tmp belongs to other tests, too
from laneway.cli.main import main
sys.exit(main())
"""
OTHER = {"command": "npx", "args": ["other", "/home/me/laneway"], "env": {"API_KEY": "hunter2"}}
JOIN = """\
from laneway.mail.places import Places
from laneway.mail.roster import Roster
Roster(Places.of(), "crew").register("codex", create=True)
"""


@pytest.fixture
def here(tmp_path: Path) -> Machine:
    return machine(tmp_path)


def environment(here: Machine) -> dict[str, str]:
    return {
        "HOME": str(here.home),
        "PATH": f"{os.path.dirname(here.laneway)}:/usr/bin:/bin",
        "PYTHONPATH": str(Path(package.__file__).parent.parent),
        "TERM": "xterm-256color",
    }


def words(here: Machine, *more: str) -> list[str]:
    return [sys.executable, "-c", ALONE, str(here.home.parent / "last"), "uninstall", *more]


async def uninstall(here: Machine, *more: str, cwd: Path | None = None, **variables: str) -> Ran:
    async with asyncio.timeout(60):
        process = await asyncio.create_subprocess_exec(
            *words(here, *more),
            env={**environment(here), **variables},
            cwd=cwd or here.home,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # without a terminal to ask at, also where the tests have one
        )
        out, err = await process.communicate()
        assert process.returncode is not None
        return Ran(process.returncode, out, err)


def everything(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def put(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def of_others(home: Path) -> dict[str, bytes]:
    """What is not ours, beside what is."""
    put(home / ".codex/sessions/2026/01/01/rollout-x.jsonl", "{}\n")
    put(home / ".codex/auth.json", "{}")
    put(home / ".config/atm/agent-sessions/crew/registry.json", '{"version": 1, "sessions": []}')
    put(home / ".config/atm/agent-sessions/crew/notes.txt", "mine")
    put(home / ".config/atm/codex-sessions/registry.json", '{"version": 1, "sessions": []}')
    put(home / ".config/atm/config.toml", '[core]\ndefault_team = "crew"\n[laneway]\nmodel = "x"\n')
    put(home / ".config/laneway/config.toml", 'model = "x"\n')
    put(home / ".zfunc/_other", "#compdef other\n")
    return everything(home)


async def of_ours(here: Machine) -> None:
    """As the program itself makes it."""
    file = put(here.home / ".claude.json", json.dumps({"mcpServers": {"other": OTHER}}, indent=2))
    for client in (["claude"], ["jetbrains"], ["codex"]):
        assert (await here.run("setup", *client)).code == 0
    tree = json.loads(file.read_text())
    tree["projects"] = {"/p": {"mcpServers": {"old": {"command": "atm-agent-mcp", "args": ["serve"]}}}}
    tree["statusLine"] = {"type": "command", "command": "laneway mcp"}
    file.write_text(json.dumps(tree, indent=2))
    atm = here.home / ".config" / "atm"
    with Store(atm / AGENT_SESSIONS, "crew").claim("codex") as claim:
        claim.registry.update(entry("a"))
        claim.audit.append(event("hello"))
        claim.summaries.write("thread-1", "what was done")
    with Store(atm / CODEX_SESSIONS, "crew", flat=True).claim("codex") as claim:
        claim.registry.update(entry("b"))
    put(here.home / ".cache/laneway/x", "")
    put(here.home / ".local/state/laneway/trust.json", "{}")
    put(here.home / ".claude.json.laneway-backup-20260101T000000Z", "{}")
    put(here.home / ".zfunc/_laneway", "#compdef laneway\n# made by `laneway completion zsh`\n")
    await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", JOIN], env=environment(here), check=True, timeout=60
    )


async def test_everything_of_ours_is_shown_and_nothing_is_touched(here: Machine) -> None:
    """With the fate of each; keys are nobody's business."""
    of_others(here.home)
    await of_ours(here)
    before = everything(here.home)
    ran = await uninstall(here, "--dry-run")
    assert (ran.code, ran.err) == (0, "")
    for line in (
        "✘ codex in ~/.claude.json",
        "✘ old in ~/.claude.json",
        "✘ Laneway in ~/.jetbrains/acp.json",
        "✘ laneway in ~/.codex/config.toml",
        "✘ codex in the team crew",
        "✘ ~/.config/atm/agent-sessions (6 files)",
        "✘ ~/.config/atm/codex-sessions (",
        "✘ ~/.claude.json.laneway-backup-20260101T000000Z",
        "✘ ~/.local/state/laneway/backups: no setup can be taken back afterwards",
        "✘ ~/.zfunc/_laneway",
        "✘ ~/.cache/laneway",
        "✘ ~/.local/state/laneway",
        "· ~/.config/laneway/config.toml stays: you wrote it; --settings removes it, too",
        "· ~/.config/atm/config.toml stays: it is ATM's, too: remove its tables for Laneway by hand",
        "Nothing was removed: `laneway uninstall` removes what is marked with ✘.",
        "The program itself",  # how it goes depends on how it was installed
    ):
        assert line in ran.out
    assert "hunter2" not in ran.out
    assert everything(here.home) == before


async def test_what_is_ours_goes_and_everything_else_stays(here: Machine) -> None:
    """To the byte: other servers in the same files, transcripts, an older program's registry, settings."""
    others = of_others(here.home)
    await of_ours(here)
    ran = await uninstall(here, "--yes")
    assert (ran.code, ran.err) == (0, "")
    left = everything(here.home)
    tree = json.loads(left.pop(".claude.json"))
    assert tree == {
        "mcpServers": {"other": OTHER},
        "projects": {"/p": {"mcpServers": {}}},
        "statusLine": {"type": "command", "command": "laneway mcp"},
    }
    assert left.pop(".codex/config.toml").strip() == b""
    assert json.loads(left.pop(".jetbrains/acp.json")) == {"agent_servers": {}}
    assert json.loads(left.pop(".claude/teams/crew/config.json"))["members"] == []
    assert left.pop(".claude/teams/crew/config.lock") == b""  # every program's that writes the team
    assert left == others
    again = await uninstall(here, "--yes")
    assert (again.code, "✘" in again.out) == (0, False)
    assert everything(here.home).keys() >= others.keys()


async def test_settings_go_if_that_is_asked_for(here: Machine) -> None:
    """The user's own; what ATM shares stays."""
    of_others(here.home)
    assert (await uninstall(here, "--yes", "--settings")).code == 0
    assert not (here.home / ".config/laneway").exists()
    assert (here.home / ".config/atm/config.toml").exists()


async def test_a_person_is_asked_first(here: Machine) -> None:
    """Whatever is no clear yes is a no, and what was typed before the question is no answer."""
    await of_ours(here)
    before = everything(here.home)
    question = "Remove everything that is marked with ✘? [y/N]"
    for answer in ("n", "", "yep"):
        async with terminal(words(here), env=environment(here), cwd=here.home) as screen:
            await screen.wait_for(question)
            screen.type(f"{answer}\r")
            assert (await screen.wait_end()).code == 1
            assert "Nothing was removed." in screen.text
        assert everything(here.home) == before
    async with terminal(words(here), env=environment(here), cwd=here.home) as screen:
        await screen.wait_for(question)
        screen.type("y\r")
        assert (await screen.wait_end()).code == 0
        assert "Removed: " in screen.text
    assert not (here.home / ".local/state/laneway").exists()


async def test_a_script_must_say_so(here: Machine) -> None:
    """Without a terminal nobody can be asked."""
    await of_ours(here)
    before = everything(here.home)
    ran = await uninstall(here)
    assert (ran.code, ran.err) == (
        2,
        "laneway: Nothing was removed: there is no terminal to ask at. "
        "In a script, use `laneway uninstall --yes`.\n",
    )
    assert everything(here.home) == before


async def test_a_machine_without_anything_of_ours_is_told_so(here: Machine) -> None:
    """And nothing is asked."""
    ran = await uninstall(here)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Laneway has left nothing on this machine.\n")


async def test_nothing_goes_while_laneway_runs(here: Machine, run: Path) -> None:
    """It would write its state again, half of it."""
    put(here.home / ".cache/laneway/x", "")
    listening, _ = listen({"XDG_RUNTIME_DIR": str(run), "XDG_STATE_HOME": str(run / "state")})
    with listening:
        ran = await uninstall(here, "--yes", XDG_RUNTIME_DIR=str(run))
    assert ran.code == 1
    assert f"Laneway is still running (process {os.getpid()})" in ran.err
    assert (here.home / ".cache/laneway/x").exists()


async def test_nothing_goes_while_a_background_job_needs_it(here: Machine, tmp_path: Path) -> None:
    """Jobs outlive all servers."""
    path = database_path({"XDG_STATE_HOME": str(tmp_path / "state")})
    with Database(path) as database:
        ledger = Ledger(database)
        job = Job(job_id="job-0123456789abcdef", number=0, owner="local", mode="read", status="queued")
        ledger.add(job)
        ran = await uninstall(here, "--yes", XDG_STATE_HOME=str(tmp_path / "state"))
        assert (ran.code, path.exists()) == (1, True)
        assert ran.err == (
            "laneway: Nothing was removed: 1 background job has not ended. `laneway jobs` shows them.\n"
        )
        ledger.end(job.job_id, "cancelled")
    assert (await uninstall(here, "--yes", XDG_STATE_HOME=str(tmp_path / "state"))).code == 0
    assert not path.exists()


async def test_a_projects_entry_stays_and_the_way_to_remove_it_is_named(
    here: Machine, tmp_path: Path
) -> None:
    """Others have the file, too."""
    repo = tmp_path / "repo"
    put(repo / ".git/HEAD", "ref: refs/heads/main\n")
    put(repo / ".laneway.toml", 'model = "x"\n')
    for client in (["claude-project"], ["vscode", "--scope", "project", "--name", "pal"]):
        assert (await here.run("setup", *client, folder=repo)).code == 0
    before = everything(repo)
    ran = await uninstall(here, "--yes", cwd=repo)
    assert ran.code == 0
    assert "`laneway setup claude --scope project --name codex --remove` takes it out" in ran.out
    assert "`laneway setup vscode --scope project --name pal --remove` takes it out" in ran.out
    assert "it belongs to the repository" in ran.out
    assert everything(repo) == before


async def test_what_cannot_be_removed_is_told_and_the_rest_goes(here: Machine) -> None:
    """A read-only file, one that is broken, a link in the place of a folder."""
    server = {"command": "laneway", "args": ["mcp"]}
    locked = put(here.home / ".cursor/mcp.json", json.dumps({"mcpServers": {"codex": server}}))
    locked.chmod(0o444)
    put(here.home / ".gemini/settings.json", "{ torn")
    elsewhere = put(here.home / "elsewhere/x", "").parent
    (here.home / ".cache").mkdir()
    (here.home / ".cache/laneway").symlink_to(elsewhere)
    put(here.home / ".local/state/laneway/trust.json", "{}")
    ran = await uninstall(here, "--yes")
    assert ran.code == 1
    assert "is read-only, so another program may be making it" in ran.err
    assert "~/.gemini/settings.json stays: it could not be read: it is not valid JSON" in ran.out
    assert "~/.cache/laneway: It could not be removed" in ran.err
    assert (elsewhere / "x").exists()
    assert not (here.home / ".local/state/laneway").exists()


async def test_programs_get_it_as_data_with_the_line_that_fits(here: Machine, tmp_path: Path) -> None:
    """In an environment as pipx makes them."""
    folder = tmp_path / "venvs" / "laneway"
    path = bare_environment(folder)
    (folder / "pipx_metadata.json").write_text("{}")
    put(here.home / ".cache/laneway/x", "")

    def ask() -> Any:
        ran = subprocess.run(
            [folder / "bin/python", "-m", "laneway", "uninstall", "--dry-run", "--json"],
            env={**environment(here), "PYTHONPATH": path},
            capture_output=True,
            check=True,
            timeout=60,
            cwd=here.home,
        )
        return json.loads(ran.stdout)

    told = await asyncio.to_thread(ask)
    assert (told["installed"], told["uninstall"], told["is_dry_run"]) == (
        "pipx",
        "pipx uninstall laneway",
        True,
    )
    assert {
        "kind": "caches",
        "what": "~/.cache/laneway",
        "path": str(here.home / ".cache/laneway"),
        "goes": True,
        "why": "",
        "is_removed": False,
        "problem": "",
    } in told["remnants"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("laneway mcp", True),
        ("/x/bin/laneway -m y mcp-server", True),
        ("laneway", True),
        ("env A=1 laneway acp --readonly", True),
        ("python3 -m laneway mcp", True),
        ("uvx --from /w.whl laneway mcp", True),
        ("wsl.exe -e /home/me/.local/bin/laneway mcp", True),
        ("atm-agent-mcp serve", True),
        ("codex-mcp serve --team x", True),
        ("codex mcp-server", False),
        ("npx codex-mcp", False),
        ("node server.js /home/me/laneway", False),
        ("npx server-filesystem /home/me/laneway /home/me/mcp", False),
        ("laneway-other mcp", False),
    ],
)
def test_only_what_starts_a_server_of_ours_is_ours(line: str, expected: bool) -> None:
    """By whatever way; a folder of that name is none."""
    command, *args = line.split()
    assert is_ours(command, args) is expected
    assert is_ours("sh", ["-c", f"exec {line}"]) is (expected and line != "laneway")
