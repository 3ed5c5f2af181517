"""`laneway setup --undo`: the last setup taken back, byte for byte; copies lie in our own folder."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from tests.cli.stub_laneway import Machine, machine
from tests.cli.support import everything, in_terminal

CLAUDE = '{\r\n  // mine\r\n  "mcpServers": {"gpt": {"command": "x", "env": {"API_KEY": "hunter2"}}}\r\n}\r\n'


@pytest.fixture
def here(tmp_path: Path) -> Machine:
    return machine(tmp_path)


def backups(home: Path) -> list[Path]:
    return sorted((home / ".local/state/laneway/backups").glob("*"))


async def test_the_last_setup_is_taken_back_byte_for_byte(here: Machine) -> None:
    """Comments, ends of lines and all; nothing of ours is left behind."""
    file = here.home / ".claude.json"
    file.write_bytes(CLAUDE.encode())
    ran = await here.run("setup", "claude")
    assert ran.code == 0
    assert "`laneway setup --undo` takes it back" in ran.out
    assert file.read_bytes() != CLAUDE.encode()
    undone = await here.run("setup", "--undo")
    assert (undone.code, undone.out) == (0, "~/.claude.json is as it was.\n")
    assert everything(here.home) == {".claude.json": CLAUDE.encode()}
    again = await here.run("setup", "--undo")
    assert (again.code, again.out) == (0, "There is no setup to take back.\n")


async def test_a_person_sees_what_undo_did(here: Machine) -> None:
    """At a terminal."""
    assert (await here.run("setup", "windsurf")).code == 0
    async with in_terminal(
        "setup", "--undo", "windsurf", env={"HOME": str(here.home)}, cwd=here.home
    ) as screen:
        assert (await screen.wait_end()).code == 0
        assert screen.text == "~/.codeium/windsurf/mcp_config.json is gone again: there was none before."


async def test_a_file_that_setup_made_goes_with_the_folders_made_for_it(here: Machine) -> None:
    """But for what somebody else has put there since."""
    assert (await here.run("setup", "cursor")).code == 0
    assert (await here.run("setup", "--undo", "cursor")).code == 0
    assert not (here.home / ".cursor").exists()
    assert (await here.run("setup", "cursor")).code == 0
    (here.home / ".cursor" / "other").write_text("")
    assert (await here.run("setup", "--undo", "cursor")).code == 0
    assert os.listdir(here.home / ".cursor") == ["other"]


async def test_each_undo_takes_back_one_more(here: Machine) -> None:
    """Of any client, or of the one that is named; removing an entry is a setup, too."""
    file = here.home / ".claude.json"
    file.write_text("{}")
    states = [file.read_bytes()]
    for words in ([], ["--", "--readonly"], ["--remove"]):
        assert (await here.run("setup", "claude", *words)).code == 0
        states.append(file.read_bytes())
    assert (await here.run("setup", "gemini")).code == 0
    assert len(set(states)) == 4
    for state in reversed(states[:-1]):
        assert (await here.run("setup", "--undo", "claude")).code == 0
        assert file.read_bytes() == state
    assert (await here.run("setup", "--undo", "claude")).out == "There is no setup of claude to take back.\n"
    assert (here.home / ".gemini" / "settings.json").exists()
    assert (await here.run("setup", "--undo")).code == 0
    assert not (here.home / ".gemini" / "settings.json").exists()


async def test_a_file_that_was_changed_since_is_not_undone_unasked(here: Machine) -> None:
    """By force only the entry goes back, and the change stays."""
    file = here.home / ".claude.json"
    old = {"command": "npx", "args": ["other"], "env": {"A": "1"}}
    file.write_text(json.dumps({"mcpServers": {"codex": old}}))
    assert (await here.run("setup", "claude", "--force")).code == 0
    tree = json.loads(file.read_text())
    file.write_text(json.dumps({**tree, "more": 1}))
    refused = await here.run("setup", "--undo")
    assert refused.code == 1
    assert (
        "It was changed since. With --force only the entries that were written are put back." in refused.out
    )
    forced = await here.run("setup", "--undo", "--force", "--json")
    assert (forced.code, json.loads(forced.out)["undone"][0]["state"]) == (0, "entries restored")
    assert json.loads(file.read_text()) == {"mcpServers": {"codex": old}, "more": 1}


@pytest.mark.parametrize("words", [[], ["--remove"]])
async def test_an_entry_that_was_added_or_removed_is_undone_by_force_too(
    here: Machine, words: list[str]
) -> None:
    """In a file that was changed since: it goes, or comes back whole."""
    file = here.home / ".claude.json"
    entry = {"command": here.laneway, "args": ["mcp"], "env": {"A": "1"}}
    file.write_text(json.dumps({"mcpServers": {"codex": entry} if words else {}}))
    assert (await here.run("setup", "claude", *words)).code == 0
    file.write_text(json.dumps({**json.loads(file.read_text()), "more": 1}))
    assert (await here.run("setup", "--undo", "--force")).code == 0
    assert json.loads(file.read_text()) == {"mcpServers": {"codex": entry} if words else {}, "more": 1}


async def test_undo_of_setup_and_of_migrate_do_not_mix(here: Machine) -> None:
    """One record for both, but each takes back its own."""
    stale = '{"mcpServers": {"gpt": {"command": "codex", "args": ["mcp-server"]}}}'
    (here.home / ".cursor").mkdir()
    (here.home / ".cursor" / "mcp.json").write_text(stale)
    assert (await here.run("migrate", "--write")).code == 0
    assert (await here.run("setup", "claude")).code == 0
    assert (await here.run("migrate", "--undo")).code == 0
    assert (here.home / ".cursor" / "mcp.json").read_text() == stale
    assert (here.home / ".claude.json").exists()
    assert (await here.run("migrate", "--undo")).out == "There is no migration to take back.\n"
    assert (await here.run("setup", "--undo")).code == 0
    assert not (here.home / ".claude.json").exists()


async def test_copies_lie_in_our_state_folder_for_the_user_alone(here: Machine, tmp_path: Path) -> None:
    """Never beside a file with a token, and never in a repository."""
    (tmp_path / "repo/.git").mkdir(parents=True)
    (tmp_path / "repo/.git/HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "repo/.mcp.json").write_text(CLAUDE)
    (tmp_path / "repo/.mcp.json").chmod(0o644)
    (here.home / ".claude.json").write_text(CLAUDE)
    for client in ("claude", "claude-project"):
        ran = await here.run("setup", client, "--json", folder=tmp_path / "repo")
        assert ran.code == 0
        kept = here.home / json.loads(ran.out)["backup"]
        assert kept in backups(here.home)
        assert kept.read_bytes() == CLAUDE.encode()
    assert sorted(os.listdir(tmp_path / "repo")) == [".git", ".mcp.json"]
    assert sorted(os.listdir(here.home)) == [".claude.json", ".local"]
    folder = here.home / ".local/state/laneway/backups"
    modes = {stat.S_IMODE(path.stat().st_mode) for path in backups(here.home)}
    assert (stat.S_IMODE(folder.stat().st_mode), modes, len(backups(here.home))) == (0o700, {0o600}, 2)


async def test_a_migration_keeps_its_copies_there_too(here: Machine) -> None:
    """As private."""
    (here.home / ".cursor").mkdir()
    file = here.home / ".cursor" / "mcp.json"
    file.write_text('{"mcpServers": {"gpt": {"command": "codex", "args": ["mcp-server"]}}}')
    assert (await here.run("migrate", "--write")).code == 0
    assert os.listdir(here.home / ".cursor") == ["mcp.json"]
    assert len(backups(here.home)) == 1


@pytest.mark.parametrize(
    "words", [["--undo", "--remove"], ["--undo", "--print"], ["claude", "--undo", "--", "-x"], []]
)
async def test_undo_stands_alone_and_all_else_needs_a_client(here: Machine, words: list[str]) -> None:
    """With one sentence, and nothing done."""
    ran = await here.run("setup", *words)
    assert (ran.code, ran.out, ran.err.count("\n"), everything(here.home)) == (2, "", 1, {})
