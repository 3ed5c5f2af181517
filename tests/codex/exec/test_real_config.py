"""The user's config and the real Codex: no trust is written, nothing of ours is started in a worker."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from laneway.codex import binary, locate
from laneway.codex.exec.command import toml_string
from laneway.codex.exec.config import WorkerConfig, read, trust_keys
from laneway.codex.exec.project_docs import project_docs
from tests.codex.exec.support import Bench, bench, git, seen_by_model

SERVER = Path(__file__).parent / "mcp_stub.py"
FOLDERS = ("main", "below", "linked", "submodule", "nested", "plain", "link", "separate", "of bare", "odd")


def folder_of(here: Bench, kind: str) -> Path:
    """A folder to work in, of each kind that Codex treats in its own way."""
    main = here.repository(here.work / "main")
    match kind:
        case "main":
            return main
        case "below":
            (main / "a" / "b").mkdir(parents=True)
            return main / "a" / "b"
        case "linked":
            git(main, "worktree", "add", "-q", str(here.work / "linked"))
            (here.work / "linked" / "in").mkdir()
            return here.work / "linked" / "in"
        case "submodule":
            git(main, "submodule", "--quiet", "add", str(here.repository(here.work / "other")), "inner")
            (main / "inner" / "in").mkdir()
            return main / "inner" / "in"
        case "nested":
            return here.repository(main / "nested")
        case "plain":
            (here.work / "plain").mkdir()
            return here.work / "plain"
        case "link":
            (here.work / "link").symlink_to(main)
            return here.work / "link"
        case "separate":
            git(
                here.work, "init", "-q", "--separate-git-dir", str(here.work / "git"), str(here.work / "tree")
            )
            (here.work / "tree" / "in").mkdir()
            return here.work / "tree" / "in"
        case "of bare":
            git(here.work, "clone", "-q", "--bare", str(main), str(here.work / "bare.git"))
            git(here.work / "bare.git", "worktree", "add", "-q", "--detach", str(here.work / "bare tree"))
            return here.work / "bare tree"
        case "odd":
            return here.repository(here.work / "q\"uo'te back\\slash tab\t new\nline é .dot\x7f")
    raise AssertionError(kind)


def look(here: Bench, folder: Path, **fields: Any) -> WorkerConfig:
    given = {"sandbox": "workspace-write", "system_file": os.devnull, **fields}
    return read(str(folder), str(here.home), **given)


@pytest.mark.parametrize("kind", FOLDERS)
async def test_a_worker_that_may_write_leaves_no_trust_behind(kind: str) -> None:
    """Wherever it works."""
    async with bench() as here:
        folder = folder_of(here, kind)
        before = here.config.read_bytes()
        marked = look(here, folder).untrusted
        assert marked == trust_keys(str(folder))
        ended = await here.run(
            "%run touch made\n%say x", sandbox="workspace-write", cwd=str(folder), untrusted=marked
        )
        assert ended.verdict().has_succeeded
        assert (folder / "made").exists()
        assert here.config.read_bytes() == before


@pytest.mark.needs("writer_lock")
@pytest.mark.parametrize("kind", FOLDERS)
async def test_what_codex_would_write_down_as_trusted_is_among_what_is_marked(kind: str) -> None:
    """Or nothing is written: outside of git, and from 0.169 on."""
    async with bench() as here:
        folder = folder_of(here, kind)
        await here.run("%say x", sandbox="workspace-write", cwd=str(folder))
        projects = tomllib.loads(here.config.read_text()).get("projects", {})
        keys = trust_keys(str(folder))
        assert projects in ({}, *({key: {"trust_level": "trusted"}} for key in keys))


@pytest.mark.parametrize("level", ["trusted", "untrusted"])
@pytest.mark.parametrize("which", ["folder", "repository"])
async def test_what_the_user_has_decided_is_left_to_codex(level: str, which: str) -> None:
    """About the folder or about its repository: then Codex writes nothing, and we say nothing."""
    async with bench() as here:
        folder = folder_of(here, "linked")
        decided = folder if which == "folder" else here.work / "main"
        with here.config.open("a") as file:
            file.write(f'\n[projects.{toml_string(str(decided))}]\ntrust_level = "{level}"\n')
        before = here.config.read_bytes()
        assert look(here, folder).untrusted == ()
        ended = await here.run("%say x", sandbox="workspace-write", cwd=str(folder))
        assert ended.verdict().has_succeeded
        assert here.config.read_bytes() == before


async def test_nothing_is_marked_where_codex_would_write_nothing() -> None:
    """For reading, and for a thread that goes on, in whatever sandbox."""
    async with bench() as here:
        folder = folder_of(here, "main")
        before = here.config.read_bytes()
        assert look(here, folder, sandbox="read-only").untrusted == ()
        assert look(here, folder, is_resumed=True).untrusted == ()
        assert look(here, folder, version=(0, 169, 0)).untrusted == ()
        ended = await here.run("%say x", cwd=str(folder))
        for sandbox in ("workspace-write", "danger-full-access"):
            thread_id = ended.state.thread_id
            again = await here.run("%say y", cwd=str(folder), sandbox=sandbox, thread_id=thread_id)
            assert again.verdict(thread_id=thread_id).has_succeeded
        assert here.config.read_bytes() == before


@pytest.mark.covers("J-workers.6")
async def test_other_decisions_of_the_user_hold_beside_our_mark() -> None:
    """The tables are merged: a trusted project elsewhere keeps its trust."""
    async with bench() as here:
        other = here.repository(here.work / "other")
        with here.config.open("a") as file:
            file.write(f'\n[projects.{toml_string(str(other))}]\ntrust_level = "trusted"\n')
        (other / ".codex").mkdir()
        log = here.home.parent / "log"
        (other / ".codex" / "config.toml").write_text(entry("theirs", log))
        ended = await here.run("%say x", cwd=str(other), untrusted=("/elsewhere",))
        assert ended.verdict().has_succeeded
        assert log.read_text().split() == ["theirs"]


# ── AGENTS.md ──────────────────────────────────────────────────────────────


async def test_the_documents_are_those_that_codex_would_show_the_model() -> None:
    """From the root down to the folder, overrides first, cut at the user's limit."""
    async with bench() as here:
        folder = folder_of(here, "below")
        (here.work / "main" / "AGENTS.md").write_text("First: tabs.\n")
        (folder.parent / "AGENTS.md").write_text("not me")
        (folder.parent / "AGENTS.override.md").write_text("Second: ünder.")
        (folder / "RULES.md").write_text("Third. " + "x" * 100)
        (here.work / "AGENTS.md").write_text("outside")
        for limit, third in ((32768, "\n\nThird. " + "x" * 100), (60, "\n\nThird. " + "x" * 25), (27, "")):
            names = f'project_doc_max_bytes = {limit}\nproject_doc_fallback_filenames = ["RULES.md"]\n'
            here.config.write_text(names + here.config.read_text().removeprefix(names))
            text = project_docs(str(folder), look(here, folder).user)
            assert text == f"First: tabs.\n\n\nSecond: ünder{'.' if third else ''}{third}"
            await here.run("%say x", cwd=str(folder))
            assert f"\n\n{text}\n" in document_of(here)
            here.config.write_text(here.config.read_text().removeprefix(names))


@pytest.mark.needs("one_command")
async def test_what_the_mark_hides_from_the_model_is_what_we_read() -> None:
    """Codex shows no AGENTS.md of a folder that is marked as untrusted; when its thread goes on, it does."""
    async with bench() as here:
        folder = folder_of(here, "main")
        (folder / "AGENTS.md").write_text("Use tabs.")
        found = look(here, folder)
        fields: dict[str, Any] = {"cwd": str(folder), "sandbox": "workspace-write"}
        ended = await here.run("%say x", untrusted=found.untrusted, **fields)
        assert "Use tabs." not in seen_by_model(here.requests[-1])
        assert project_docs(str(folder), found.user) == "Use tabs."
        await here.run("%say x", thread_id=ended.state.thread_id, **fields)
        assert "Use tabs." in seen_by_model(here.requests[-1])


def document_of(here: Bench) -> str:
    (text,) = (
        part["text"]
        for item in here.requests[-1]["input"]
        for part in item.get("content", [])
        if part.get("text", "").startswith("# AGENTS.md instructions")
    )
    # Codex adds the user's own text and a line before a project's.
    return "\n\n" + str(text).split("<INSTRUCTIONS>\n", 1)[1].split("</INSTRUCTIONS>")[0]


# ── servers ────────────────────────────────────────────────────────────────


def entry(name: str, log: Path, *more: str) -> str:
    words = ", ".join(toml_string(str(word)) for word in (SERVER, log, name, *more))
    return f"\n[mcp_servers.{toml_string(name)}]\ncommand = {toml_string(sys.executable)}\nargs = [{words}]\n"


@pytest.mark.covers("J-workers.3")
async def test_our_servers_are_not_started_in_a_worker_and_all_others_are() -> None:
    """By command, by name, by URL, with odd names, of the user and of a trusted repository."""
    async with bench() as here:
        folder = folder_of(here, "below")
        log = here.home.parent / "log"
        log.touch()
        laneway = here.home.parent / "laneway"
        laneway.symlink_to(sys.executable)
        ours = f"command = {toml_string(str(laneway))}\nargs = [{toml_string(str(SERVER))}"
        with here.config.open("a") as file:
            file.write(entry("others", log, "/home/me/laneway") + entry("codex-mcp", log))
            file.write(f'\n[mcp_servers."my \\"odd\\" = {{name}}.x"]\n{ours}, "mcp"]\n')
            file.write('\n[mcp_servers.laneway]\nurl = "http://127.0.0.1:9/mcp"\nrequired = true\n')
            file.write(f'\n[projects.{toml_string(str(here.work / "main"))}]\ntrust_level = "trusted"\n')
        (here.work / "main" / ".codex").mkdir()
        (here.work / "main" / ".codex" / "config.toml").write_text(
            entry("theirs", log) + entry("atm-agent-mcp", log)
        )
        found = look(here, folder)
        assert {(off.name, off.has_url) for off in found.servers_off} == {
            ("laneway", True),
            ("codex-mcp", False),
            ("atm-agent-mcp", False),
        }
        ended = await here.run("%say x", cwd=str(folder), servers_off=found.servers_off)
        assert ended.verdict().has_succeeded, ended.stderr
        assert sorted(log.read_text().split()) == ["others", "theirs"]


async def test_a_server_of_a_repository_that_is_not_loaded_can_be_disabled_all_the_same() -> None:
    """Whether Codex trusts the repository is its own affair."""
    async with bench() as here:
        folder = folder_of(here, "main")
        (folder / ".codex").mkdir()
        (folder / ".codex" / "config.toml").write_text(
            '[mcp_servers.x]\ncommand = "laneway"\nargs = ["mcp"]\n'
        )
        found = look(here, folder)
        assert [off.name for off in found.servers_off] == ["x"]
        ended = await here.run("%say x", cwd=str(folder), servers_off=found.servers_off)
        assert ended.verdict().has_succeeded, ended.stderr


async def test_codex_is_asked_where_it_reads_a_file_that_python_does_not() -> None:
    """It takes newlines within inline tables. What the user has decided is still found."""
    async with bench() as here:
        folder = folder_of(here, "main")
        log = here.home.parent / "log"
        log.touch()
        with here.config.open("a") as file:
            file.write('\n[mcp_servers]\nodd = { command = "true",\n  enabled = false,\n}\n')
            file.write(entry("codex-mcp", log))
        assert look(here, folder).servers_off == ()
        found = look(here, folder, ask=(here.binary,))
        assert [off.name for off in found.servers_off] == ["codex-mcp"]
        assert found.untrusted == (str(folder),)
        ended = await here.run("%say x", cwd=str(folder), servers_off=found.servers_off)
        assert ended.verdict().has_succeeded, ended.stderr
        assert log.read_text() == ""
        with here.config.open("a") as file:
            file.write(f'\n[projects.{toml_string(str(folder))}]\ntrust_level = "trusted"\n')
        assert look(here, folder).untrusted == ()
        assert look(here, folder, ask=("/nonexistent",)).servers_off == ()


def test_the_version_under_test_is_one_of_those_that_write_trust_or_not() -> None:
    """The bound is of versions that were seen; a new one is looked at by the tests above."""
    version = binary.probe(locate.find())
    assert version < (0, 167) or version >= (0, 169)
