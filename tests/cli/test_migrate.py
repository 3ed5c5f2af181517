"""`laneway migrate`: found, shown, changed when told to, proved, and taken back."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from laneway.cli.clients.journal import Journal
from laneway.cli.clients.show import MAX_LINE_CHARS, difference
from tests.cli.stub_laneway import Machine, machine
from tests.cli.support import everything

SERVER = {"command": "codex", "args": ["-m", "x", "mcp-server"], "env": {"API_KEY": "hunter2"}}
CLAUDE = f"""\
{{
  // my own
  "numStartups": 7,
  "mcpServers": {{
    "gpt": {json.dumps(SERVER)}
  }}
}}
"""
CODEX = '# mine\n[mcp_servers.old] # why\ncommand = "codex"\nargs = [\n  "mcp-server", # the server\n]\n'


@pytest.fixture
def here(tmp_path: Path) -> Machine:
    return machine(tmp_path)


def put(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o600)
    return file


def states(told: Any) -> list[str]:
    return [item["state"] for file in told["files"] for item in file["items"]]


def backups(folder: Path) -> set[str]:
    return {name for name in everything(folder) if "laneway/backups/" in name}


async def test_a_diff_is_shown_and_nothing_is_changed(here: Machine) -> None:
    """With an exit code that says that something is left to do; keys are nobody's business."""
    put(here.home / ".claude.json", CLAUDE)
    put(here.home / ".codex/config.toml", CODEX)
    before = everything(here.home)
    ran = await here.run("migrate")
    assert ran.code == 1
    assert "--- ~/.claude.json\n+++ ~/.claude.json (new)\n@@ -3,5 +3,5 @@" in ran.out
    assert f'+command = "{here.laneway}"' in ran.out
    assert '-command = "codex"' in ran.out
    assert "2 entries still start the removed `codex mcp-server`; nothing was changed." in ran.out
    assert "hunter2" not in ran.out
    assert everything(here.home) == before
    told = json.loads((await here.run("migrate", "--json")).out)
    assert states(told) == ["stale", "stale"]


async def test_what_is_written_differs_in_the_one_word(here: Machine) -> None:
    """Proved, with a backup; the second time there is nothing to do; and it can be taken back."""
    claude = put(here.home / ".claude.json", CLAUDE)
    codex = put(here.home / ".codex/config.toml", CODEX)
    ran = await here.run("migrate", "--write")
    assert ran.code == 0
    assert ran.out.count("✔ It answers: stub 1.2") == 2
    assert "hunter2" not in ran.out
    assert claude.read_text() == CLAUDE.replace('"codex"', f'"{here.laneway}"')
    assert codex.read_text() == CODEX.replace('"codex"', f'"{here.laneway}"')
    assert [stat.S_IMODE(file.stat().st_mode) for file in (claude, codex)] == [0o600, 0o600]
    assert len(backups(here.home)) == 2
    again = await here.run("migrate", "--write")
    assert (again.code, again.out) == (0, "Nothing here starts the removed `codex mcp-server`.\n")
    undone = await here.run("migrate", "--undo")
    assert (undone.code, undone.out) == (
        0,
        "~/.claude.json is as it was.\n~/.codex/config.toml is as it was.\n",
    )
    assert everything(here.home) == {".claude.json": CLAUDE.encode(), ".codex/config.toml": CODEX.encode()}
    assert (await here.run("migrate", "--undo")).out == "There is no migration to take back.\n"


FILES: list[tuple[str, Any]] = [
    (".claude.json", {"projects": {"/no/such": {"mcpServers": {"codex": SERVER}}}}),
    (".claude/plugins/cache/m/p/.mcp.json", {"codex": SERVER}),
    (
        ".config/opencode/opencode.json",
        {"mcp": {"codex": {"type": "local", "command": ["codex", "mcp-server"]}}},
    ),
    (".config/Code/User/mcp.json", {"servers": {"codex": {"type": "stdio", **SERVER}}}),
    (".cursor/mcp.json", {"mcpServers": {"codex": {"command": "codex mcp-server"}}}),
    (
        ".config/zed/settings.json",
        {"context_servers": {"codex": {"command": {"path": "codex", "args": ["mcp-server"]}}}},
    ),
    (".mcp.json", {"mcpServers": {"codex": {"command": "sh", "args": ["-c", "exec codex mcp-server"]}}}),
    (
        ".gemini/settings.json",
        {"mcpServers": {"codex": {"command": "env", "args": ["A=1", "codex", "mcp-server"]}}},
    ),
]


@pytest.mark.parametrize(("file", "tree"), FILES)
async def test_every_clients_entry_is_migrated_in_its_own_shape(here: Machine, file: str, tree: Any) -> None:
    """And answers as that client would start it; taking it back gives the very bytes."""
    path = put(here.home / file, json.dumps(tree, indent=4))
    before = path.read_bytes()
    ran = await here.run("migrate", "--write", "--json")
    told = json.loads(ran.out)
    assert (ran.code, states(told)) == (0, ["migrated"])
    [item] = told["files"][0]["items"]
    assert item["proof"]["server"] == "stub"
    assert "mcp-server" in item["proof"]["tools"]
    expected = json.dumps(tree, indent=4).replace('"codex",', f'"{here.laneway}",')
    for line in ("codex mcp-server", "exec codex mcp-server"):
        expected = expected.replace(f'"{line}"', f'"{line.replace("codex", here.laneway)}"')
    assert json.loads(path.read_text()) == json.loads(expected)
    assert any("plugin" in note for note in item["notes"]) == ("plugins" in file)
    assert (await here.run("migrate", "--undo")).code == 0
    assert path.read_bytes() == before


async def test_a_codex_that_was_named_is_kept_if_it_is_there(here: Machine, tmp_path: Path) -> None:
    """And let go, with a word, if it is not."""
    codex = tmp_path / "codex"
    codex.write_text("#!/bin/sh\n")
    codex.chmod(0o755)
    for path, words in [
        (str(codex), ["mcp-server", "--codex-bin", str(codex)]),
        ("/gone/codex", ["mcp-server"]),
    ]:
        file = put(here.home / ".mcp.json", json.dumps({"c": {"command": path, "args": ["mcp-server"]}}))
        told = json.loads((await here.run("migrate", "--write", "--json")).out)
        assert states(told) == ["migrated"]
        assert json.loads(file.read_text()) == {"c": {"command": here.laneway, "args": words}}
        notes = told["files"][0]["items"][0]["notes"]
        assert [("no Codex at /gone/codex" in note) for note in notes] == ([True] if path[1] == "g" else [])


async def test_an_entry_that_is_off_stays_off(here: Machine) -> None:
    """It is migrated all the same, so that nobody stumbles when it is switched on."""
    file = put(here.home / ".mcp.json", json.dumps({"c": {**SERVER, "disabled": True}}))
    ran = await here.run("migrate", "--write")
    assert ran.code == 0
    assert "It is switched off there, and stays so." in ran.out
    assert json.loads(file.read_text())["c"]["disabled"] is True


@pytest.mark.parametrize("flags", [["--exit"], ["--hang"]])
async def test_what_does_not_answer_is_put_back(tmp_path: Path, flags: list[str]) -> None:
    """To the byte; no backup and no record is left."""
    here = machine(tmp_path, *flags)
    put(here.home / ".claude.json", CLAUDE)
    ran = await here.run("migrate", "--write", "--deadline", "1")
    assert ran.code == 1
    assert "It was put back as it was" in ran.out
    assert everything(here.home) == {".claude.json": CLAUDE.encode()}


async def test_only_the_entry_that_does_not_answer_is_put_back(here: Machine) -> None:
    """Its neighbours in the same file stay migrated, and undo knows of them alone."""
    bad = {"command": "sh", "args": ["-c", "exit 3; codex mcp-server"]}
    text = json.dumps({"good": SERVER, "bad": bad}, indent=2)
    file = put(here.home / ".mcp.json", text)
    ran = await here.run("migrate", "--write", "--json")
    assert (ran.code, states(json.loads(ran.out))) == (1, ["migrated", "put back"])
    now = json.loads(file.read_text())
    assert (now["good"]["command"], now["bad"]) == (here.laneway, bad)
    assert (await here.run("migrate", "--undo")).code == 0
    assert file.read_text() == text


async def test_force_keeps_what_does_not_answer(tmp_path: Path) -> None:
    """And still says so."""
    here = machine(tmp_path, "--exit")
    file = put(here.home / ".claude.json", CLAUDE)
    ran = await here.run("migrate", "--write", "--force", "--json")
    assert (ran.code, states(json.loads(ran.out))) == (1, ["broken"])
    assert here.laneway in file.read_text()
    assert (await here.run("migrate", "--undo")).code == 0
    assert file.read_text() == CLAUDE


async def test_a_file_that_was_changed_since_is_not_undone_unasked(here: Machine) -> None:
    """The difference is shown; by force only our entry goes back, and the change stays."""
    file = put(here.home / ".claude.json", CLAUDE)
    assert (await here.run("migrate", "--write")).code == 0
    changed = file.read_text().replace('"numStartups": 7', '"numStartups": 8')
    file.write_text(changed)
    refused = await here.run("migrate", "--undo")
    assert refused.code == 1
    assert "It was changed since." in refused.out
    assert "+++ ~/.claude.json (new)" in refused.out
    assert file.read_text() == changed
    forced = await here.run("migrate", "--undo", "--force", "--json")
    assert (forced.code, json.loads(forced.out)["undone"][0]["state"]) == (0, "entries restored")
    assert file.read_text() == CLAUDE.replace('"numStartups": 7', '"numStartups": 8')


async def test_undo_works_without_the_backup(here: Machine) -> None:
    """People tidy up; the record knows the entries."""
    file = put(here.home / ".claude.json", CLAUDE)
    assert (await here.run("migrate", "--write")).code == 0
    [name] = backups(here.home)
    (here.home / name).unlink()
    refused = await here.run("migrate", "--undo")
    assert refused.code == 1
    assert "The copy of the old file is gone. With --force only the entries" in refused.out
    assert (await here.run("migrate", "--undo", "--force")).code == 0
    assert json.loads(file.read_text().replace("// my own", "")) == json.loads(
        CLAUDE.replace("// my own", "")
    )


async def test_a_migration_of_an_earlier_version_can_be_taken_back(here: Machine) -> None:
    """Its record lies elsewhere, and its copy beside the file."""
    file = put(here.home / ".mcp.json", json.dumps({"gpt": SERVER}))
    before = file.read_bytes()
    assert (await here.run("migrate", "--write")).code == 0
    state = here.home / ".local/state/laneway"
    [record] = (state / "changes").iterdir()
    told = json.loads(record.read_text())
    [changed] = told["files"]
    beside = here.home / ".mcp.json.laneway-backup-20260101T000000Z"
    os.rename(changed["backup"], beside)
    del changed["made_folders"]
    old = {"at": told["at"], "files": [{**changed, "backup": str(beside)}], "version": 1}
    put(state / "migrations" / record.name, json.dumps(old))
    record.unlink()
    assert (await here.run("migrate", "--undo")).code == 0
    assert everything(here.home) == {".mcp.json": before}


async def test_a_damaged_record_is_told(here: Machine) -> None:
    """It is never taken for none."""
    put(here.home / ".local/state/laneway/migrations/20260101T000000Z-00.json", "{ torn")
    ran = await here.run("migrate", "--undo")
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert "is damaged" in ran.err


async def test_what_cannot_be_changed_is_told_and_the_rest_is_done(here: Machine) -> None:
    """A read-only file, keys that are there twice, words that are none, a broken file."""
    put(here.home / ".cursor/mcp.json", json.dumps({"mcpServers": {"a": SERVER}})).chmod(0o444)
    put(here.home / ".gemini/settings.json", f'{{"b": {{}}, "b": {json.dumps(SERVER)}}}')
    put(here.home / ".config/Code/User/mcp.json", '{"c": {"command": ["codex", 3, "mcp-server"]}}')
    put(here.home / ".config/zed/settings.json", "{ torn")
    before = everything(here.home)
    good = put(here.home / ".claude.json", CLAUDE)
    ran = await here.run("migrate", "--write")
    assert ran.code == 1
    assert "is read-only, so another program may be making it" in ran.out
    assert "b: The file cannot be edited: the key 'b' is there twice." in ran.out
    assert "c: One of its arguments is no text." in ran.out
    assert "~/.config/zed/settings.json could not be looked at: it is not valid JSON" in ran.err
    assert here.laneway in good.read_text()
    after = everything(here.home)
    assert {name: after[name] for name in before} == before
    assert len(backups(here.home)) == 1


async def test_links_are_followed_and_each_file_is_changed_once(here: Machine, tmp_path: Path) -> None:
    """Dotfiles often lie elsewhere."""
    real = put(tmp_path / "dotfiles" / "claude.json", CLAUDE)
    (here.home / ".claude.json").symlink_to(real)
    (here.home / ".mcp.json").symlink_to(real)
    ran = await here.run("migrate", "--write", "--json")
    assert (ran.code, states(json.loads(ran.out))) == (0, ["migrated"])
    assert (here.home / ".claude.json").is_symlink()
    assert here.laneway in real.read_text()


async def test_only_the_files_that_are_named_are_changed(here: Machine, tmp_path: Path) -> None:
    """Wherever they are."""
    mine = put(tmp_path / "some.json", CLAUDE)
    other = put(here.home / ".claude.json", CLAUDE)
    assert (await here.run("migrate", "--write", str(mine))).code == 0
    assert here.laneway in mine.read_text()
    assert other.read_text() == CLAUDE


async def test_a_named_file_that_does_not_exist_is_an_error(here: Machine, tmp_path: Path) -> None:
    """Not a file in which nothing is stale: the name was mistyped."""
    ran = await here.run("migrate", str(tmp_path / "nothing.json"))
    assert (ran.code, ran.err) == (2, f"laneway: There is no file {tmp_path / 'nothing.json'}.\n")


async def test_a_projects_file_gets_the_plain_name(here: Machine, tmp_path: Path) -> None:
    """Others have no such path."""
    project = tmp_path / "project"
    file = put(project / ".mcp.json", json.dumps({"mcpServers": {"codex": SERVER}}))
    assert (await here.run("migrate", "--write", folder=project)).code == 0
    assert json.loads(file.read_text())["mcpServers"]["codex"]["command"] == "laneway"


def test_the_newest_record_is_the_last(tmp_path: Path) -> None:
    """And only so many are kept."""
    from laneway.cli.clients import journal

    for number in range(journal.MAX_KEPT + 3):
        run = Journal.begin(tmp_path, "migrate")
        run.record.files.append(journal.ChangedFile(str(number), "", "", "", []))
        run.save()
    last = Journal.last(tmp_path, "migrate")
    assert last is not None
    assert last.record.files[0].file == str(journal.MAX_KEPT + 2)
    assert len(os.listdir(tmp_path)) == journal.MAX_KEPT


def test_a_difference_shows_little_around_it() -> None:
    """Also of a file that is one endless line, and of one with many."""
    many = [f"line {number}" for number in range(50_000)]
    changed = [*many[:40_000], "new", *many[40_001:]]
    lines = difference("\n".join(many), "\n".join(changed), Path("/x")).split("\n")
    assert lines[2:] == [
        "@@ -39999,5 +39999,5 @@",
        " line 39998",
        " line 39999",
        "-line 40000",
        "+new",
        " line 40001",
        " line 40002",
    ]
    long = difference("a" * 9999, "b" * 9999, Path("/x")).split("\n")
    assert max(len(line) for line in long) <= MAX_LINE_CHARS + 2
    assert difference("same", "same", Path("/x")) == ""
    assert "too much" in difference("\n".join(many), "\n".join(reversed(many)), Path("/x"))
