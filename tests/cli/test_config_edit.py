"""`laneway config get|set|unset`: what is written, where, and what is refused."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from tests.base.folders import Folders
from tests.cli.support import Ran, laneway
from tests.cli.test_config import surroundings

COMMENTED = """\
# my settings
[core]
identity = "ada"  # ATM's

[laneway]
# the good one
model = "old"   # for now
max_turns = 5
"""


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    made = Folders(tmp_path)
    made.own_file.parent.mkdir(parents=True)
    return made


async def config(folders: Folders, *words: str, stdin: str | None = None, **environment: str) -> Ran:
    action, *rest = words
    env = {**surroundings(folders), **environment}
    return await laneway("config", action, "-C", str(folders.repo), *rest, env=env, stdin=stdin)


async def refused(folders: Folders, *words: str) -> str:
    """The sentence of a command that must change nothing."""
    before = folders.own_file.read_text() if folders.own_file.exists() else None
    ran = await config(folders, *words)
    assert (ran.code, ran.out) == (2, ""), ran.err
    assert (folders.own_file.read_text() if folders.own_file.exists() else None) == before
    return ran.err.removeprefix("laneway: ").rstrip("\n")


async def test_one_value_is_changed_and_everything_else_stays(folders: Folders) -> None:
    """Comments, order, other tables; `get` tells what holds, `unset` takes it out again."""
    folders.own_file.write_text(COMMENTED)
    ran = await config(folders, "set", "model", "new")
    assert (ran.code, ran.out, ran.err) == (0, f"model = new ({folders.own_file})\n", "")
    assert folders.own_file.read_text() == COMMENTED.replace('"old"', '"new"')
    assert (await config(folders, "get", "model")).out == "new\n"
    ran = await config(folders, "unset", "model")
    assert ran.out == f"model is no longer set ({folders.own_file})\n"
    assert folders.own_file.read_text() == COMMENTED.replace('model = "old"   # for now\n', "")
    gone = await config(folders, "get", "model")
    assert (gone.code, gone.out, gone.err) == (1, "", "laneway: model is not set.\n")


async def test_a_file_is_made_for_the_user_alone_and_its_tables_are_readable(folders: Folders) -> None:
    """Every kind of value, spelt as the schema wants it."""
    folders.own_file.parent.rmdir()
    for key, value in (
        ("auto_mail", "off"),
        ("tools", "codex, mail"),
        ("approval_policy", "on-failure"),
        ("max_turns", "7"),
        ("backend", "app-server"),
        ("roles.reviewer.sandbox", "read-only"),
        ("roles.reviewer.reasoning_effort", "high"),
        ('per_thread_auto_mail."codex:1"', "false"),
    ):
        ran = await config(folders, "set", key, value)
        assert ran.code == 0, ran.err
    assert folders.own_file.read_text() == (
        '[laneway]\nauto_mail = false\ntools = ["codex", "mail"]\napproval_policy = "on-request"\n'
        'max_turns = 7\ntransport = "app-server"\n\n'
        '[laneway.roles.reviewer]\nsandbox = "read-only"\nreasoning_effort = "high"\n\n'
        '[laneway.per_thread_auto_mail]\n"codex:1" = false\n'
    )
    assert stat.S_IMODE(folders.own_file.stat().st_mode) == 0o600
    assert folders.load().roles["reviewer"].sandbox == "read-only"
    ran = await config(folders, "unset", "roles.reviewer")
    assert (ran.code, folders.load().roles) == (0, {})


async def test_unset_removes_a_key_by_all_its_names(folders: Folders) -> None:
    """Whatever table of ours it stands in; what ATM keeps is not ours to remove."""
    folders.own_file.write_text(
        '[core]\nidentity = "a"\n[plugins.codex-mcp]\ndefault_identity = "b"\n[laneway]\nidentity = "c"\n'
    )
    assert (await config(folders, "unset", "default_identity")).code == 0
    assert folders.own_file.read_text() == '[core]\nidentity = "a"\n[plugins.codex-mcp]\n[laneway]\n'
    assert await refused(folders, "unset", "identity") == (
        f"{folders.own_file} does not set identity: nothing was changed."
    )


async def test_keys_of_nested_tables_are_written_into_their_tables(folders: Folders) -> None:
    """With a path, a name of the user's own, and the table as a whole."""
    for key, value in (
        ("jobs.k_read", "4"),
        ("jobs.nodes.gpu1.command", "ssh gpu1 laneway jobs node"),
        ("jobs.mail", "on"),
        ('jobs.repositories."my.app"', "~/app"),
    ):
        ran = await config(folders, "set", key, value)
        assert ran.code == 0, ran.err
    assert folders.own_file.read_text() == (
        "[laneway.jobs]\nk_read = 4\nmail = true\n\n"
        '[laneway.jobs.nodes.gpu1]\ncommand = "ssh gpu1 laneway jobs node"\n\n'
        '[laneway.jobs.repositories]\n"my.app" = "~/app"\n'
    )
    assert (await config(folders, "get", "jobs.k_read")).out == "4\n"
    assert (await config(folders, "get", "jobs.k_read", LANEWAY_JOBS_K_READ="6")).out == "6\n"
    assert (await config(folders, "unset", "jobs.nodes.gpu1")).code == 0
    assert (await config(folders, "unset", "jobs.mail")).code == 0
    assert folders.own_file.read_text().startswith("[laneway.jobs]\nk_read = 4\n")
    assert (folders.load().jobs_nodes, folders.load().jobs_mail) == ({}, False)
    assert (await config(folders, "unset", "jobs")).code == 0
    assert (folders.load().jobs_k_read, folders.load().jobs_repositories) == (8, {})


async def test_what_no_repository_can_set_is_not_written_into_its_file(folders: Folders) -> None:
    """Where it would be ignored; taking it out is allowed."""
    assert await refused(folders, "set", "--repo", "jobs.k_read", "4") == (
        "Only your own settings can set jobs.k_read: leave out --repo."
    )
    folders.own_repo_file.write_text("[laneway.jobs]\nk_read = 4\n")
    ran = await config(folders, "unset", "--repo", "jobs.k_read")
    assert (ran.code, "k_read" in folders.own_repo_file.read_text()) == (0, False)


async def test_wrong_keys_and_values_are_refused_with_a_suggestion(folders: Folders) -> None:
    """Before anything is written."""
    assert await refused(folders, "set", "modle", "x") == "There is no setting modle; did you mean model?"
    assert await refused(folders, "get", "zzzz") == (
        "There is no setting zzzz; `laneway config --all` lists them."
    )
    assert await refused(folders, "set", "model.x", "y") == (
        "There is no setting model.x; did you mean model?"
    )
    assert await refused(folders, "set", "jobs.k_raed", "y") == (
        "There is no setting jobs.k_raed; did you mean jobs.k_read?"
    )
    assert await refused(folders, "set", "k_read", "y") == (
        "There is no setting k_read; did you mean jobs.k_read?"
    )
    assert (await refused(folders, "set", "jobs", "y")).startswith(
        "jobs is a table of settings; use one of jobs.k_read, "
    )
    assert await refused(folders, "set", "jobs.nodes.any.command", "y") == (
        "There is no setting jobs.nodes.any.command; use jobs.nodes.NAME.command."
    )
    assert await refused(folders, "set", "a b", "y") == "a b is not the name of a setting."
    assert await refused(folders, "set", "roles.x", "y") == (
        "There is no setting roles.x; use roles.NAME.FIELD, where FIELD is one of"
        " model, sandbox, approval_policy, reasoning_effort."
    )
    assert (await refused(folders, "set", "roles.'../x'.model", "y")).startswith("There is no setting roles.")
    assert await refused(folders, "set", "max_turns", "many") == (
        "max_turns must be a whole number from 1 to 1000000, not 'many'."
    )
    assert await refused(folders, "set", "model", "a\x1b[2Jb") == (
        "model must be a text of one line that is not empty, not 'a\\x1b[2Jb'."
    )
    assert "hunter" not in await refused(folders, "set", "http_token", "hunter\n2")


async def test_a_file_that_cannot_be_edited_safely_is_left_as_it_is(folders: Folders) -> None:
    """Because it is no TOML, or because our table is none."""
    for text in ("[laneway\n", "laneway = 7\n", "[[laneway]]\n"):
        folders.own_file.write_text(text)
        ran = await config(folders, "set", "model", "x")
        assert (ran.code, "is left as it is" in ran.err) == (1, True), ran.err
        assert folders.own_file.read_text() == text


async def test_paths_are_meant_from_where_the_user_is(folders: Folders) -> None:
    """Absolute in the user's file, in the repository's relative to it; a bare name of a program stays one."""
    here = Path.cwd()
    beside = os.path.relpath(folders.deep / "p.md", here)  # noqa: ASYNC240  looks at no file
    await config(folders, "set", "extra_instructions_file", "x.md")
    await config(folders, "set", "base_prompt_file", "~/p.md")
    await config(folders, "set", "codex_bin", "codex-beta")
    settings = folders.load()
    assert settings.extra_instructions_file == here / "x.md"
    assert settings.base_prompt_file == folders.home / "p.md"
    assert settings.codex_bin == "codex-beta"
    await config(folders, "set", "--repo", "extra_instructions_file", str(folders.repo / "x.md"))
    await config(folders, "set", "--repo", "base_prompt_file", beside)
    assert folders.own_repo_file.read_text() == (
        f'[laneway]\nextra_instructions_file = "{folders.repo}/x.md"\nbase_prompt_file = "deep/down/p.md"\n'
    )


async def test_the_repositorys_file_is_written_only_on_request_and_still_needs_trust(
    folders: Folders,
) -> None:
    """At the root of the repository, or where there is one already; it is said what does not hold yet."""
    ran = await config(folders, "set", "--repo", "team", "crew")
    assert ran.out == f"team = crew ({folders.own_repo_file})\n"
    assert "team = crew is ignored" in ran.err
    assert stat.S_IMODE(folders.own_repo_file.stat().st_mode) == 0o644
    folders.trust()
    again = await config(folders, "set", "--repo", "team", "other")
    assert "has changed since you trusted it" in again.err
    assert folders.load().team == "default"
    inner = folders.deep / ".laneway.toml"
    inner.write_text("")
    ran = await laneway(
        "config", "set", "-C", str(folders.deep), "--repo", "events", "full", env=surroundings(folders)
    )
    assert (ran.code, inner.read_text()) == (0, '[laneway]\nevents = "full"\n')
    await config(folders, "unset", "--repo", "team")
    assert folders.own_repo_file.read_text() == "[laneway]\n"


async def test_a_link_in_a_repository_lends_our_pen_to_nobody(folders: Folders, tmp_path: Path) -> None:
    """It could lead to any file of the user's; and where there is no repository, there is no file of one."""
    victim = folders.home / "victim.toml"
    victim.write_text("")
    folders.own_repo_file.symlink_to(victim)
    error = await refused(folders, "set", "--repo", "team", "crew")
    assert error == f"{folders.own_repo_file} is a link that leads elsewhere: nothing was written."
    assert victim.read_text() == ""
    ran = await laneway(
        "config", "set", "-C", str(tmp_path), "--repo", "team", "x", env=surroundings(folders)
    )
    assert (ran.code, ran.err) == (2, f"laneway: {tmp_path} is not in a repository: leave out --repo.\n")


async def test_what_holds_nevertheless_is_told(folders: Folders) -> None:
    """A variable goes before any file; `get` tells the source to programs."""
    ran = await config(folders, "set", "model", "mine", LANEWAY_MODEL="other")
    assert ran.err == "laneway: model = other still applies here, from LANEWAY_MODEL.\n"
    got = await config(folders, "get", "model", "--json", LANEWAY_MODEL="other")
    assert json.loads(got.out) == {
        "key": "model",
        "value": "other",
        "source": {"kind": "environment", "name": "LANEWAY_MODEL", "line": None},
    }


async def test_a_secret_comes_from_standard_input_and_is_never_shown(folders: Folders) -> None:
    """Command lines are seen by everybody; so is a file that others can read, and that is said."""
    ran = await config(folders, "set", "http_token", "-", stdin="hunter2\n")
    assert (ran.out, ran.err) == (f"http_token = [redacted] ({folders.own_file})\n", "")
    assert folders.load().http_token == "hunter2"
    assert (await config(folders, "get", "http_token")).out == "[redacted]\n"
    folders.own_file.chmod(0o644)
    ran = await config(folders, "set", "http_token", "-", stdin="hunter3\n")
    assert (
        ran.err
        == f"laneway: other users can read {folders.own_file}, including the secret. Run `chmod 600` on it.\n"
    )
