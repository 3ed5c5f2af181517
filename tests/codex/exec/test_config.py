"""The user's config as files: whatever lies there, it is read within bounds and never stops a worker."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.codex.exec.command import ServerOff
from laneway.codex.exec.config import MAX_CONFIG_BYTES, levels, ours, read, trust_keys, writes_trust
from laneway.codex.exec.project_docs import project_docs


def home_with(tmp_path: Path, text: str | bytes) -> str:
    home = tmp_path / "home"
    home.mkdir()
    data = text.encode() if isinstance(text, str) else text
    (home / "config.toml").write_bytes(data)
    return str(home)


def test_the_system_is_read_before_the_user(tmp_path: Path) -> None:
    """The user's own values win; servers and decisions of either count."""
    system = tmp_path / "system.toml"
    system.write_text(
        'model = "a"\n[tui]\nx = 1\n[mcp_servers.s]\ncommand = "laneway"\nargs = ["mcp"]\n'
        f'[projects."{tmp_path}"]\ntrust_level = "trusted"\n'
    )
    home = home_with(tmp_path, '\ufeffmodel = "b"\n[tui]\ny = 2\n')
    found = read(str(tmp_path), home, sandbox="workspace-write", system_file=str(system))
    assert found.servers_off == (ServerOff("s"),)
    assert found.untrusted == ()
    assert (found.user["model"], found.user["tui"]) == ("b", {"x": 1, "y": 2})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "projects = 5\nmcp_servers = []\n",
        'projects = { "." = 1 }\n[mcp_servers]\nlaneway = 3\n',
        "[broken",
        b"\xff\xfe",
        "a." * 5000 + "b = 1",
        "x = " + "[" * 5000,
    ],
)
def test_whatever_lies_there_a_worker_can_start(tmp_path: Path, text: str | bytes) -> None:
    """Then the folder is marked: nobody has decided about it."""
    home, nobody = home_with(tmp_path, text), ("/nonexistent",)
    found = read(str(tmp_path), home, sandbox="workspace-write", ask=nobody, system_file=os.devnull)
    assert found.untrusted == (str(tmp_path),)
    assert found.servers_off == ()


def test_files_that_are_none_or_too_large_are_skipped(tmp_path: Path) -> None:
    """A pipe must not block, nor a gigabyte be read."""
    home = tmp_path / "home"
    home.mkdir()
    os.mkfifo(home / "config.toml")
    (tmp_path / ".codex").mkdir()
    with (tmp_path / ".codex" / "config.toml").open("wb") as file:
        file.truncate(MAX_CONFIG_BYTES + 1)
    assert read(str(tmp_path), str(home), sandbox="read-only", system_file=str(tmp_path)).servers_off == ()


def test_a_decision_counts_for_its_exact_path_only(tmp_path: Path) -> None:
    """As Codex has it: not for what lies below, and not in another spelling."""
    folder = tmp_path / "repo" / "in"
    folder.mkdir(parents=True)
    home = tmp_path / "home"
    home.mkdir()
    for key, is_decided in ((folder, True), (folder.parent, False), (f"{folder}/", False)):
        (home / "config.toml").write_text(f'[projects."{key}"]\ntrust_level = "untrusted"\n')
        found = read(str(folder), str(home), sandbox="workspace-write", system_file=os.devnull)
        assert (found.untrusted == ()) == is_decided
    (home / "config.toml").write_text(f'[projects."{folder}"]\nother = 1\n')
    assert read(str(folder), str(home), sandbox="workspace-write", system_file=os.devnull).untrusted


def test_what_is_no_linked_worktree_counts_by_its_folder(tmp_path: Path) -> None:
    """Whatever a `.git` file says; and an empty folder of that name is no repository."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / ".git").mkdir()
    dot_git = tmp_path / ".git"
    for text in ("", "gitdir: /", "gitdir: x\ny", "nonsense", "gitdir: /a/b/worktrees/c", "\0", "g" * 5000):
        dot_git.write_text(text)
        assert trust_keys(str(folder)) == (str(folder),)


def test_the_levels_of_a_project_end_at_its_root(tmp_path: Path) -> None:
    """And outside of one there is only the folder."""
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    assert list(levels("/")) == ["/"]
    (tmp_path / ".git").mkdir()
    assert list(levels(str(folder))) == [str(folder), str(folder.parent), str(tmp_path)]


@pytest.mark.parametrize(
    ("sandbox", "is_resumed", "version", "writes"),
    [
        ("read-only", False, None, False),
        ("workspace-write", False, None, True),
        ("danger-full-access", False, (0, 163, 0), True),
        ("workspace-write", False, (0, 169, 0), False),
        ("workspace-write", True, (0, 163, 0), False),
    ],
)
def test_when_codex_writes_trust(
    sandbox: str, is_resumed: bool, version: tuple[int, ...] | None, writes: bool
) -> None:
    """For new threads that may write; not since 0.169."""
    assert writes_trust(sandbox, is_resumed=is_resumed, version=version) is writes  # type: ignore[arg-type]


def test_ours_are_known_by_name_too() -> None:
    """A URL tells nothing else; nor does a script that starts us."""
    servers: list[tuple[str, dict[str, Any]]] = [
        ("laneway", {"url": "http://127.0.0.1:8000/mcp"}),
        ("codex-mcp", {"command": "/home/me/start.sh"}),
        ("x", {"command": "uvx", "args": ["laneway", 5, "mcp"]}),
        ("y", {"command": "npx", "args": ["server", "/home/me/laneway"]}),
        ("z", {"command": 5, "args": "laneway"}),
        ("x", {"url": "http://127.0.0.1:1/"}),
    ]
    assert ours(servers) == (ServerOff("laneway", has_url=True), ServerOff("codex-mcp"), ServerOff("x"))


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(user=st.dictionaries(st.sampled_from(["project_doc_max_bytes", "project_root_markers"]), values))
def test_any_configuration_gives_some_documents(user: dict[str, object]) -> None:
    """None here, for the root of the file system has none."""
    assert project_docs("/", user) == ""


def test_documents_that_are_no_files_are_skipped(tmp_path: Path) -> None:
    """A folder or a pipe of that name; a link is followed, as Codex does."""
    (tmp_path / "AGENTS.override.md").mkdir()
    os.mkfifo(tmp_path / "AGENTS.md")
    assert project_docs(str(tmp_path), {}) == ""
    (tmp_path / "AGENTS.md").unlink()
    (tmp_path / "real").write_bytes(b"a\xff")
    (tmp_path / "AGENTS.md").symlink_to("real")
    assert project_docs(str(tmp_path), {}) == "a\ufffd"
    fallback = {"project_doc_fallback_filenames": ["../secret", 3, ""], "project_doc_max_bytes": True}
    assert project_docs(str(tmp_path), fallback) == "a\ufffd"
    assert project_docs(str(tmp_path), {"project_doc_max_bytes": 0}) == ""
