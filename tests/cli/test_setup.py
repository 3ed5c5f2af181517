"""`laneway setup`: an entry in each client's own form, proved by starting it, or nothing at all."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import laneway as package
from laneway.cli.clients.known import CLIENTS, EDITORS, ConfigFolders, wsl_note
from laneway.cli.main import build_parser
from laneway.cli.setup import CLIENT_NAMES
from laneway.codex import locate
from tests.cli.stub_laneway import Machine, machine


@pytest.fixture
def here(tmp_path: Path) -> Machine:
    return machine(tmp_path)


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def records(home: Path) -> set[str]:
    """What is kept so that a setup can be taken back."""
    return {name for name in names(home) if name.startswith(".local/state/laneway/changes/")}


def data(file: Path) -> Any:
    return tomllib.loads(file.read_text()) if file.suffix == ".toml" else json.loads(file.read_text())


FORMS: list[tuple[str, str, Any]] = [
    ("claude", ".claude.json", {"mcpServers": {"codex": {"type": "stdio", "command": 0, "args": ["mcp"]}}}),
    ("codex", ".codex/config.toml", {"mcp_servers": {"laneway": {"command": 0, "args": ["mcp"]}}}),
    ("cursor", ".cursor/mcp.json", {"mcpServers": {"codex": {"command": 0, "args": ["mcp"]}}}),
    (
        "claude-desktop",
        ".config/Claude/claude_desktop_config.json",
        {"mcpServers": {"codex": {"command": 0, "args": ["mcp"]}}},
    ),
    (
        "windsurf",
        ".codeium/windsurf/mcp_config.json",
        {"mcpServers": {"codex": {"command": 0, "args": ["mcp"]}}},
    ),
    (
        "vscode",
        ".config/Code/User/mcp.json",
        {"servers": {"codex": {"type": "stdio", "command": 0, "args": ["mcp"]}}},
    ),
    ("zed", ".config/zed/settings.json", {"context_servers": {"codex": {"command": 0, "args": ["mcp"]}}}),
    (
        "opencode",
        ".config/opencode/opencode.json",
        {"mcp": {"codex": {"type": "local", "command": [0, "mcp"]}}},
    ),
    ("gemini", ".gemini/settings.json", {"mcpServers": {"codex": {"command": 0, "args": ["mcp"]}}}),
]
AGENTS: list[tuple[list[str], str, Any]] = [
    (
        ["zed", "--door", "acp"],
        ".config/zed/settings.json",
        {"agent_servers": {"Laneway": {"type": "custom", "command": 0, "args": ["acp"]}}},
    ),
    (["jetbrains"], ".jetbrains/acp.json", {"agent_servers": {"Laneway": {"command": 0, "args": ["acp"]}}}),
]


def with_command(form: Any, command: str) -> Any:
    return json.loads(
        json.dumps(form).replace(": 0", f": {json.dumps(command)}").replace("[0", f'["{command}"')
    )


@pytest.mark.parametrize(("client", "file", "form"), FORMS)
async def test_every_client_gets_its_own_form(here: Machine, client: str, file: str, form: Any) -> None:
    """In its usual file, private, answered for, and out again; a second run changes nothing."""
    ran = await here.run("setup", client)
    assert (ran.code, ran.err) == (0, "")
    assert "✔ It answers: stub 1.2, 1 tool: mcp" in ran.out
    path = here.home / file
    assert data(path) == with_command(form, here.laneway)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    written = path.read_bytes()
    again = await here.run("setup", client, "--json")
    assert (again.code, json.loads(again.out)["action"]) == (0, "unchanged")
    assert (path.read_bytes(), names(here.home)) == (written, {file, *records(here.home)})
    assert len(records(here.home)) == 1
    removed = await here.run("setup", client, "--remove", "--json")
    assert json.loads(removed.out)["action"] == "removed"
    assert "laneway" not in path.read_text()


@pytest.mark.parametrize(("words", "file", "form"), AGENTS)
async def test_an_editor_gets_an_agent(here: Machine, words: list[str], file: str, form: Any) -> None:
    """Beside what is in the file, greeted over ACP, and out again; a second run changes nothing."""
    path = here.home / file
    path.parent.mkdir(parents=True)
    path.write_text('{\n  "mine": 1, // stays\n}\n')
    ran = await here.run("setup", *words)
    assert (ran.code, ran.err) == (0, "")
    assert "✔ It answers: stub 1.2, an agent, ACP 1" in ran.out
    assert path.read_text().startswith('{\n  "mine": 1, // stays\n')
    printed = await here.run("setup", *words, "--print")
    assert json.loads(printed.out) == with_command(form, here.laneway)
    written = path.read_bytes()
    again = await here.run("setup", *words, "--json")
    assert (again.code, json.loads(again.out)["action"]) == (0, "unchanged")
    assert path.read_bytes() == written
    removed = await here.run("setup", *words, "--remove", "--json")
    assert json.loads(removed.out)["action"] == "removed"
    assert "laneway" not in path.read_text()


async def test_a_server_is_no_agent(tmp_path: Path) -> None:
    """What answers in another protocol becomes no editor's agent; nor has every client both doors."""
    here = machine(tmp_path, "--server")
    ran = await here.run("setup", "jetbrains")
    assert ran.code == 1
    assert "✘ It answers, but not as an ACP agent does." in ran.out
    assert names(here.home) == set()
    for words, why in (
        (["cursor", "--door", "acp"], "--door acp is for zed and jetbrains"),
        (["jetbrains", "--door", "mcp"], "it has only --door acp"),
    ):
        refused = await here.run("setup", *words)
        assert (refused.code, refused.err.count("\n")) == (2, 1)
        assert why in refused.err


def test_the_command_line_knows_every_client() -> None:
    """And each of them has a file, but the one that is every other."""
    assert tuple({**CLIENTS, **EDITORS}) == CLIENT_NAMES
    where = ConfigFolders(Path("/h"), Path("/p"), {}, "linux")
    for client in (*CLIENTS.values(), *EDITORS.values()):
        assert all(of(where).is_absolute() for of in client.files.values())
        assert client.files or client.name == "generic"


def test_the_environment_moves_the_files() -> None:
    """As the clients themselves have it."""
    moved = {
        "CODEX_HOME": "/c",
        "CLAUDE_CONFIG_DIR": "/d",
        "XDG_CONFIG_HOME": "/e",
        "OPENCODE_CONFIG": "/o.json",
    }
    where = ConfigFolders(Path("/h"), Path("/p"), moved, "linux")
    files = {
        name: str(client.files["user"](where)) for name, client in CLIENTS.items() if "user" in client.files
    }
    assert files == {
        "claude": "/d/.claude.json",
        "claude-desktop": "/e/Claude/claude_desktop_config.json",
        "codex": "/c/config.toml",
        "cursor": "/h/.cursor/mcp.json",
        "windsurf": "/h/.codeium/windsurf/mcp_config.json",
        "vscode": "/e/Code/User/mcp.json",
        "zed": "/e/zed/settings.json",
        "opencode": "/o.json",
        "gemini": "/h/.gemini/settings.json",
    }
    mac = ConfigFolders(Path("/h"), Path("/p"), {}, "darwin")
    apps = "/h/Library/Application Support"
    assert str(CLIENTS["vscode"].files["user"](mac)) == f"{apps}/Code/User/mcp.json"
    assert str(CLIENTS["claude-desktop"].files["user"](mac)) == f"{apps}/Claude/claude_desktop_config.json"


def test_in_wsl_the_windows_side_is_told_how_to_start_it() -> None:
    """Only for clients that are there, and only in WSL."""
    wsl = {"WSL_DISTRO_NAME": "Ubuntu-24.04"}
    note = wsl_note(CLIENTS["claude-desktop"], ("/h/bin/laneway", "mcp"), wsl)
    assert note is not None
    assert "`wsl.exe -d Ubuntu-24.04 -e /h/bin/laneway mcp`" in note
    assert wsl_note(CLIENTS["claude-desktop"], ("laneway", "mcp"), {}) is None
    assert wsl_note(CLIENTS["gemini"], ("laneway", "mcp"), wsl) is None


def listed(codex_home: Path) -> Any:
    """What the real Codex makes of its config."""
    ran = subprocess.run(
        [locate.find().path, "mcp", "list", "--json"],
        env={**os.environ, "CODEX_HOME": str(codex_home)},
        capture_output=True,
        check=True,
        timeout=60,
    )
    return json.loads(ran.stdout)


async def test_the_real_codex_reads_what_is_written_for_it(here: Machine) -> None:
    """Beside a comment and a table of the user's own, which stay."""
    config = here.home / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text('# mine\n[mcp_servers.other]\ncommand = "true"\n')
    ran = await here.run("setup", "codex", "--", "-m", 'a "b"')
    assert ran.code == 0
    found = {each["name"]: each["transport"] for each in listed(config.parent)}
    assert (found["laneway"]["command"], found["laneway"]["args"]) == (here.laneway, ["mcp", "-m", 'a "b"'])
    assert set(found) == {"laneway", "other"}
    assert config.read_text().startswith('# mine\n[mcp_servers.other]\ncommand = "true"\n')


async def test_door_flags_and_name_reach_the_entry(here: Machine) -> None:
    """Everything after `--` is the server's, wherever our own flags stand."""
    words = ("--name", "second", "--door", "mcp-server", "--", "--name", "x", "--", "y")
    assert (await here.run("setup", "cursor", *words)).code == 0
    servers = data(here.home / ".cursor" / "mcp.json")["mcpServers"]
    assert servers == {"second": {"command": here.laneway, "args": ["mcp-server", "--name", "x", "--", "y"]}}
    options = build_parser(["setup"]).parse_args(["setup", "zed", "--print", "--", "-m"])
    assert (options.client, options.print, options.flags) == ("zed", True, ("-m",))


async def test_a_projects_file_gets_the_plain_name(here: Machine, tmp_path: Path) -> None:
    """At the root of its repository, for everyone to read."""
    (tmp_path / "repo/.git").mkdir(parents=True)
    (tmp_path / "repo/.git/HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "repo/sub").mkdir()
    for words, file in [
        (["claude-project"], ".mcp.json"),
        (["claude", "--scope", "project", "--name", "b"], ".mcp.json"),
        (["vscode", "--scope", "project"], ".vscode/mcp.json"),
    ]:
        assert (await here.run("setup", *words, folder=tmp_path / "repo/sub")).code == 0
        assert stat.S_IMODE((tmp_path / "repo" / file).stat().st_mode) == 0o644
        assert here.laneway not in (tmp_path / "repo" / file).read_text()
    assert set(data(tmp_path / "repo/.mcp.json")["mcpServers"]) == {"codex", "b"}
    refused = await here.run("setup", "claude-project", "--scope", "user")
    assert (refused.code, refused.err) == (
        2,
        "laneway: `laneway setup claude-project` has only --scope project.\n",
    )


@pytest.mark.parametrize(
    ("flag", "before"),
    [
        ("--exit", None),
        ("--error", "{}  // mine\n"),
        ("--hang", '{"mcpServers": {"codex": {"command": "laneway"}}}'),
    ],
)
async def test_what_does_not_answer_is_not_registered(tmp_path: Path, flag: str, before: str | None) -> None:
    """The file is as it was, to the byte, and no backup lies about."""
    here = machine(tmp_path, flag)
    file = here.home / ".claude.json"
    if before is not None:
        file.write_text(before)
    ran = await here.run("setup", "claude", "--deadline", "1")
    assert ran.code == 1
    assert "Laneway was not registered in Claude Code" in ran.out
    assert "✘ It " in ran.out
    assert (file.read_text() if file.exists() else None) == before
    assert names(here.home) == (set() if before is None else {".claude.json"})


async def test_what_does_not_answer_is_kept_by_force(tmp_path: Path) -> None:
    """And is said to be broken; last words are shown."""
    here = machine(tmp_path, "--exit")
    ran = await here.run("setup", "claude", "--force")
    assert ran.code == 1
    assert "but what is started does not answer" in ran.out
    assert "| Error: stdin is not a terminal" in ran.out
    assert "codex" in data(here.home / ".claude.json")["mcpServers"]
    again = await here.run("setup", "claude", "--json")
    assert (again.code, json.loads(again.out)["action"]) == (1, "broken")


async def test_the_removed_servers_entry_is_taken_over(here: Machine) -> None:
    """What the user added to it stays; if it was switched off, it is on now, and that is said."""
    old = {"command": "codex", "args": ["mcp-server"], "env": {"A": "1"}, "disabled": True}
    file = here.home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"mcpServers": {"codex": old}}))
    ran = await here.run("setup", "cursor", "--json")
    told = json.loads(ran.out)
    assert (told["action"], told["notes"]) == (
        "replaced",
        ["It was switched off there; it is switched on now."],
    )
    entry = data(file)["mcpServers"]["codex"]
    assert entry == {"command": here.laneway, "args": ["mcp"], "env": {"A": "1"}}
    assert data(here.home / told["backup"])["mcpServers"]["codex"] == old


async def test_somebody_elses_server_is_left_alone(here: Machine) -> None:
    """Unless it is meant: neither replaced nor removed without force."""
    file = here.home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    text = '{"mcpServers": {"codex": {"command": "npx", "args": ["other"]}}}'
    file.write_text(text)
    for words in ((), ("--remove",)):
        ran = await here.run("setup", "cursor", *words)
        assert (ran.code, ran.err.count("\n"), file.read_text()) == (2, 1, text)
    assert (await here.run("setup", "cursor", "--force")).code == 0
    assert data(file)["mcpServers"]["codex"] == {"command": here.laneway, "args": ["mcp"]}


async def test_opencode_2_has_its_servers_one_level_deeper(here: Machine) -> None:
    """A file that is written that way gets the entry there; `.jsonc` is used if it is what there is."""
    file = here.home / ".config/opencode/opencode.jsonc"
    file.parent.mkdir(parents=True)
    file.write_text('{\n  "mcp": {\n    "servers": {}, // two\n  },\n}\n')
    assert (await here.run("setup", "opencode")).code == 0
    assert "// two" in file.read_text()
    assert '"servers": {\n      "codex": {\n        "type": "local",' in file.read_text()


async def test_print_shows_what_can_be_pasted_and_writes_nothing(here: Machine) -> None:
    """Also for a client that we do not know."""
    for words in (["zed", "--print"], ["generic"], ["codex", "--print", "--json"]):
        ran = await here.run("setup", *words)
        assert ran.code == 0
        if "--json" in words:
            assert json.loads(ran.out)["entry"] == {"command": here.laneway, "args": ["mcp"]}
        else:
            table = "context_servers" if words[0] == "zed" else "mcpServers"
            assert json.loads(ran.out) == {table: {"codex": {"command": here.laneway, "args": ["mcp"]}}}
    assert names(here.home) == set()


async def test_any_client_can_be_set_up_by_its_file(here: Machine, tmp_path: Path) -> None:
    """As long as it has `mcpServers`."""
    file = tmp_path / "their.json"
    assert (await here.run("setup", "generic", "--file", str(file))).code == 0
    assert "codex" in data(file)["mcpServers"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": 1', "it is not valid JSON: line 1, column 8"),
        ('{"mcpServers": {}, "mcpServers": {}}', "the key 'mcpServers' is there twice"),
        ('{"mcpServers": 7}', "its 'mcpServers' is not a table"),
        ('{"mcpServers": {"codex": 7}}', "its 'codex' is not an entry for a server"),
        ("[]", "it is not an object with keys"),
    ],
)
async def test_a_file_that_cannot_be_edited_stays_as_it_is(here: Machine, text: str, why: str) -> None:
    """With one sentence, for adding and for removing."""
    file = here.home / ".claude.json"
    file.write_text(text)
    ran = await here.run("setup", "claude")
    assert (ran.code, ran.out) == (1, "")
    assert why in ran.err
    assert ran.err.count("\n") == 1
    assert (file.read_text(), names(here.home)) == (text, {".claude.json"})


@pytest.mark.parametrize(
    "words", [["--name", 'a"b'], ["--name", "a\nb"], ["--name", ""], ["--remove", "--print"]]
)
async def test_a_wrong_command_line_is_told_before_anything_is_done(here: Machine, words: list[str]) -> None:
    """With exit code 2."""
    ran = await here.run("setup", "claude", *words)
    assert (ran.code, ran.out, ran.err.count("\n"), names(here.home)) == (2, "", 1, set())


async def test_removing_what_is_not_there_is_no_failure(here: Machine) -> None:
    """And makes no file."""
    ran = await here.run("setup", "claude", "--remove")
    assert ran.code == 0
    assert ran.out.startswith("There is nothing to remove")
    assert names(here.home) == set()


async def test_the_real_server_answers_when_it_is_registered(tmp_path: Path) -> None:
    """The two tools of the removed one, with its own flags; nothing of it is left running."""
    here = machine(tmp_path)
    executable = tmp_path / "real" / "laneway"
    executable.parent.mkdir()
    source = Path(package.__file__).parent.parent
    executable.write_text(f'#!/bin/sh\nPYTHONPATH="{source}" exec "{sys.executable}" -m laneway "$@"\n')
    executable.chmod(0o755)
    real = Machine(here.home, str(executable))
    ran = await real.run("setup", "claude", "--door", "mcp-server", "--json", "--", "-m", "x")
    told = json.loads(ran.out)
    assert (ran.code, told["action"]) == (0, "added"), told
    assert told["proof"]["tools"] == ["codex", "codex-reply"]
    assert told["proof"]["strange_lines"] == 0
    ran = await real.run("setup", "zed", "--door", "acp", "--json")
    told = json.loads(ran.out)
    assert (ran.code, told["action"]) == (0, "added"), told
    assert (told["proof"]["server"], told["proof"]["protocol"]) == ("Codex by Laneway", "ACP 1")
