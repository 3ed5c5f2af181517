"""`laneway setup` over an entry that is there: what the user put into it stays, or is named as lost."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.stub_laneway import Machine, machine
from tests.cli.support import in_terminal


@pytest.fixture
def here(tmp_path: Path) -> Machine:
    return machine(tmp_path)


def write(here: Machine, entry: dict[str, Any]) -> Path:
    file = here.home / ".cursor" / "mcp.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"mcpServers": {"codex": entry}}))
    return file


async def set_up(here: Machine, entry: dict[str, Any], *words: str) -> tuple[Any, Any]:
    """What is registered afterwards, and what `--json` tells of it."""
    file = write(here, entry)
    ran = await here.run("setup", "cursor", "--json", *words)
    assert ran.code == 0, ran.out + ran.err
    return json.loads(file.read_text())["mcpServers"]["codex"], json.loads(ran.out)


async def test_flags_variables_and_folder_of_an_entry_are_kept(here: Machine) -> None:
    """It is set up again because its path changed, not to lose what was chosen."""
    old = {
        "command": "/old/laneway",
        "args": ["mcp", "--tools", "codex"],
        "env": {"A": "1"},
        "cwd": str(here.home),
    }
    entry, told = await set_up(here, old)
    assert entry == {**old, "command": here.laneway}
    assert told["command"] == [here.laneway, "mcp", "--tools", "codex"]
    assert told["notes"] == ["The flags that it had were kept; `--` at the end of the command drops them."]


async def test_a_person_sees_what_was_kept_and_how_to_take_it_back(here: Machine) -> None:
    """At a terminal."""
    write(here, {"command": "/old/laneway", "args": ["mcp", "--tools", "codex"]})
    env = {"HOME": str(here.home), "PATH": f"{os.path.dirname(here.laneway)}:/usr/bin:/bin"}
    async with in_terminal("setup", "cursor", env=env, cwd=here.home) as screen:
        assert (await screen.wait_end()).code == 0
        seen = " ".join(screen.text.split())
    assert f"starts {here.laneway} mcp --tools codex" in seen
    assert "The flags that it had were kept; `--` at the end of the command drops them." in seen
    assert "`laneway setup --undo` takes it back. The file as it was: ~/.local/state/laneway/backups/" in seen


async def test_it_stays_the_server_that_it_was(here: Machine) -> None:
    """Unless another one is named; flags that the other one does not take are named."""
    old = {"command": "laneway", "args": ["mcp-server", "-m", "x"]}
    entry, told = await set_up(here, old)
    assert entry["args"] == ["mcp-server", "-m", "x"]
    assert "It stays `laneway mcp-server`; --door mcp would change that." in told["notes"]
    entry, told = await set_up(here, old, "--door", "mcp")
    assert entry["args"] == ["mcp", "-m", "x"]
    old = {"command": "laneway", "args": ["mcp", "--tools", "codex"]}
    entry, told = await set_up(here, old, "--door", "mcp-server")
    assert entry["args"] == ["mcp-server"]
    assert told["notes"] == [
        "These flags were dropped, because `laneway mcp-server` does not take them: --tools codex"
    ]


async def test_flags_that_are_given_take_the_place_of_those_that_were_there(here: Machine) -> None:
    """And what is lost by that is named, without anybody's keys."""
    old = {"command": "laneway", "args": ["mcp", "-c", "api_key=hunter2", "--tools", "codex"]}
    entry, told = await set_up(here, old, "--", "--identity", "me")
    assert entry["args"] == ["mcp", "--identity", "me"]
    assert len(told["notes"]) == 1
    assert told["notes"][0].startswith("These flags were replaced: -c ")
    assert told["notes"][0].endswith(" --tools codex")
    assert "hunter2" not in json.dumps(told)
    entry, told = await set_up(here, old, "--")
    assert entry["args"] == ["mcp"]


async def test_the_removed_servers_flags_are_kept_too(here: Machine, tmp_path: Path) -> None:
    """And the Codex that it named, if it is there."""
    codex = tmp_path / "codex"
    codex.write_text("#!/bin/sh\n")
    codex.chmod(0o755)
    entry, _ = await set_up(here, {"command": str(codex), "args": ["-m", "x", "mcp-server"]})
    assert entry["args"] == ["mcp", "-m", "x", "--codex-bin", str(codex)]
    entry, told = await set_up(here, {"command": "/gone/codex", "args": ["mcp-server", "-m", "x"]})
    assert entry["args"] == ["mcp", "-m", "x"]
    assert "There is no Codex at /gone/codex any more: Laneway uses the one that it finds." in told["notes"]


async def test_what_stands_before_the_program_is_kept_or_named(here: Machine) -> None:
    """`env` stays; a runner that would look for Laneway in a package of its own does not."""
    entry, _ = await set_up(here, {"command": "env", "args": ["A=1", "laneway", "mcp", "--readonly"]})
    assert entry == {"command": "env", "args": ["A=1", here.laneway, "mcp", "--readonly"]}
    old = {"command": "uvx", "args": ["--from", "/w.whl", "laneway", "mcp"]}
    entry, told = await set_up(here, old)
    assert entry == {"command": here.laneway, "args": ["mcp"]}
    assert told["notes"] == ["It was started through `uvx --from /w.whl`, and is started by itself now."]
    entry, told = await set_up(here, {"command": "/x/python3", "args": ["-m", "laneway", "mcp"]})
    assert (entry, told["notes"]) == ({"command": here.laneway, "args": ["mcp"]}, [])


async def test_an_entry_in_zeds_older_shape_keeps_it(here: Machine) -> None:
    """There the variables are inside of the command."""
    file = here.home / ".config" / "zed" / "settings.json"
    file.parent.mkdir(parents=True)
    old = {"path": "laneway", "args": ["mcp", "--readonly"], "env": {"A": "1"}}
    file.write_text(json.dumps({"context_servers": {"codex": {"command": old}}}))
    assert (await here.run("setup", "zed")).code == 0
    [entry] = json.loads(file.read_text())["context_servers"].values()
    assert entry == {"command": {**old, "path": here.laneway}}


async def test_a_server_that_is_replaced_by_force_is_named(here: Machine) -> None:
    """So that whoever did not mean it can take it back."""
    _, told = await set_up(
        here, {"command": "npx", "args": ["other", "--key", "sk-123456789012345678901234"]}, "--force"
    )
    [note] = told["notes"]
    assert note.startswith("Another server of that name was replaced: `npx other --key ")
    assert note.endswith("`. `laneway setup --undo` brings it back.")
    assert "sk-1234" not in note
