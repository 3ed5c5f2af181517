"""Stale `codex mcp-server` registrations: found in every client's file, whatever else is in there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.cli.registrations import (
    MAX_CONFIG_BYTES,
    Registration,
    Unreadable,
    entries,
    places,
    scan,
    without_comments,
)

JSON = Path("a.json")
TOML = Path("a.toml")
SERVER = {"command": "codex", "args": ["mcp-server"]}


@pytest.mark.parametrize(
    ("tree", "keys"),
    [
        ({"mcpServers": {"codex": SERVER}}, ("mcpServers", "codex")),
        ({"projects": {"/a/b": {"mcpServers": {"gpt": SERVER}}}}, ("projects", "/a/b", "mcpServers", "gpt")),
        ({"servers": {"codex": {"type": "stdio", **SERVER}}}, ("servers", "codex")),
        ({"mcp": {"servers": {"codex": SERVER}}}, ("mcp", "servers", "codex")),
        ({"mcp": {"codex": {"type": "local", "command": ["codex", "mcp-server"]}}}, ("mcp", "codex")),
        ({"codex": SERVER}, ("codex",)),
        (
            {"context_servers": {"codex": {"command": {"path": "codex", "args": ["mcp-server"]}}}},
            ("context_servers", "codex"),
        ),
    ],
    ids=["claude", "claude-project", "vscode", "vscode-settings", "opencode", "plugin", "zed"],
)
def test_every_clients_table_is_understood(tree: dict[str, Any], keys: tuple[str, ...]) -> None:
    """By the shape of an entry, with the keys that lead to it."""
    found = entries(json.dumps({"numStartups": 3, **tree}), JSON)
    assert found == [Registration(JSON, keys, "codex", ("mcp-server",))]
    assert found[0].server == keys[-1]


def test_codexs_own_toml_is_understood() -> None:
    """`[mcp_servers.*]`, which a Codex may use to call another."""
    text = '[mcp_servers."my codex"]\ncommand = "codex"\nargs = ["mcp-server"]\nenabled = false\n'
    assert entries(text, TOML) == [
        Registration(TOML, ("mcp_servers", "my codex"), "codex", ("mcp-server",), is_enabled=False)
    ]


def test_an_entry_may_be_switched_off() -> None:
    """Each client says it in its own way."""
    off = {"a": {**SERVER, "disabled": True}, "b": {**SERVER, "enabled": False}, "c": SERVER}
    assert [entry.is_enabled for entry in entries(json.dumps(off), JSON)] == [False, False, True]


def test_entries_of_odd_shapes_are_no_trouble() -> None:
    """Other programs' files hold anything."""
    odd = {"a": {"command": 5}, "b": {"command": []}, "c": {"command": {}}, "d": {"command": "x", "args": 7}}
    more = {"e": {"command": ["codex", 3, "mcp-server"]}, "f": [SERVER], "g": None}
    found = entries(json.dumps({**odd, **more}), JSON)
    assert [(entry.server, entry.command, entry.args) for entry in found] == [
        ("b", "", ()),
        ("c", "", ()),
        ("d", "x", ()),
        ("e", "codex", ("mcp-server",)),
    ]


def test_comments_and_trailing_commas_are_tolerated() -> None:
    """VS Code, OpenCode and Zed allow both; strings that look like comments stay."""
    text = """// mine
    {"mcp": {  /* two
    lines */ "codex": {"command": ["codex", "mcp-server",], "note": "// no /* comment, }",},},}"""
    assert [entry.keys for entry in entries(text, JSON)] == [("mcp", "codex")]


blanks = st.sampled_from(["", " ", "\n", "// x\n", '/* " , } */', "/**/"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(value=values, blank=blanks)
def test_a_text_without_comments_means_the_same(value: Any, blank: str) -> None:
    """Comments before and after anything change nothing, and every character keeps its place."""
    text = blank + json.dumps(value, indent=1) + blank
    plain = without_comments(text)
    assert json.loads(plain) == value
    assert len(plain) == len(text)


@given(text=st.text(alphabet='{}[]":,/*\\ \nab1') | st.text())
def test_any_text_gives_entries_or_a_value_error(text: str) -> None:
    """Nothing else: a config is whatever somebody left there."""
    for file in (JSON, TOML):
        try:
            entries(text, file)
        except ValueError:
            pass


@pytest.mark.parametrize("text", ['"' + '\\"' * 200_000, "/*" * 200_000, '{"a":' * 100_000, "[" * 100_000])
def test_hostile_texts_take_no_time(text: str) -> None:
    """Open strings, open comments, endless nesting: refused, under pytest's own deadline."""
    with pytest.raises(ValueError):
        entries(text, JSON)


# ── files ──────────────────────────────────────────────────────────────────

USER_FILES = [
    ".claude.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/plugins/cache/market/second-opinion/.mcp.json",
    ".claude/plugins/marketplaces/m/p/.claude-plugin/plugin.json",
    ".config/Claude/claude_desktop_config.json",
    ".codex/config.toml",
    ".codex/work.config.toml",
    ".config/opencode/opencode.json",
    ".config/opencode/opencode.jsonc",
    ".config/Code/User/mcp.json",
    ".config/Code/User/settings.json",
    ".config/Code/User/profiles/abc/mcp.json",
    ".config/Code - Insiders/User/mcp.json",
    ".cursor/mcp.json",
    ".codeium/windsurf/mcp_config.json",
    ".gemini/settings.json",
    ".config/zed/settings.json",
    ".mcp.json",
]
PROJECT_FILES = [
    ".mcp.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude-plugin/plugin.json",
    ".codex/config.toml",
    "opencode.json",
    "opencode.jsonc",
    ".vscode/mcp.json",
    ".vscode/settings.json",
    ".cursor/mcp.json",
    ".gemini/settings.json",
    ".zed/settings.json",
]


def put_stale(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".toml":
        file.write_text('[mcp_servers.codex]\ncommand = "codex"\nargs = ["mcp-server"]\n')
    else:
        file.write_text("// by hand\n" + json.dumps({"mcpServers": {"codex": SERVER}}))


@pytest.mark.parametrize("name", USER_FILES)
def test_every_file_of_the_user_is_looked_at(tmp_path: Path, name: str) -> None:
    """And found in it what is stale."""
    put_stale(tmp_path / name)
    found = scan(places(tmp_path, Path("/"), {}, "linux"))
    assert [entry.file for entry in found.stale] == [tmp_path / name]


@pytest.mark.parametrize("name", PROJECT_FILES)
def test_every_file_of_the_project_is_looked_at(tmp_path: Path, name: str) -> None:
    """From the folder up to the root of the repository, and no further."""
    (tmp_path / "repo/.git").mkdir(parents=True)
    (tmp_path / "repo/.git/HEAD").write_text("ref: refs/heads/main\n")
    inner = tmp_path / "repo/a/b"
    inner.mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "repo", inner):
        put_stale(folder / name)
    found = scan(places(tmp_path / "nobody", inner, {}, "linux"))
    assert [entry.file for entry in found.stale] == [inner / name, tmp_path / "repo" / name]


def test_outside_of_a_repository_only_the_folder_itself_is_looked_at(tmp_path: Path) -> None:
    """What lies further up belongs to something else."""
    inner = tmp_path / "a"
    inner.mkdir()
    put_stale(tmp_path / ".mcp.json")
    assert scan(places(tmp_path / "nobody", inner, {}, "linux")).read == ()


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("CLAUDE_CONFIG_DIR", ".claude.json"),
        ("CODEX_HOME", "config.toml"),
        ("XDG_CONFIG_HOME", "opencode/opencode.json"),
        ("XDG_CONFIG_HOME", "Code/User/mcp.json"),
    ],
)
def test_folders_named_by_the_environment_are_looked_at(tmp_path: Path, variable: str, name: str) -> None:
    """As the clients themselves do."""
    put_stale(tmp_path / "elsewhere" / name)
    found = scan(places(tmp_path / "home", Path("/"), {variable: str(tmp_path / "elsewhere")}, "linux"))
    assert [entry.file for entry in found.stale] == [tmp_path / "elsewhere" / name]


def test_a_file_that_opencode_is_told_to_use_is_looked_at(tmp_path: Path) -> None:
    """`OPENCODE_CONFIG` names a file, not a folder."""
    put_stale(tmp_path / "mine.json")
    found = scan(places(tmp_path / "home", Path("/"), {"OPENCODE_CONFIG": str(tmp_path / "mine.json")}))
    assert [entry.file for entry in found.stale] == [tmp_path / "mine.json"]


def test_on_macos_editors_keep_theirs_elsewhere(tmp_path: Path) -> None:
    """Under `Library`."""
    file = tmp_path / "Library/Application Support/Code/User/mcp.json"
    put_stale(file)
    found = scan(places(tmp_path, Path("/"), {}, "darwin"))
    assert [entry.file for entry in found.stale] == [file]


def test_what_cannot_be_read_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    """A folder, a pipe, a loop of links, no JSON, no UTF-8, no TOML, too deep, too large."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "json").write_text('{"a": 1')
    (tmp_path / "latin").write_bytes(b'{"a": "\xe9"}')
    (tmp_path / "x.toml").write_text("= 1")
    (tmp_path / "deep").write_text("[" * 100_000)
    with (tmp_path / "large").open("wb") as stream:
        stream.truncate(MAX_CONFIG_BYTES + 1)
    (tmp_path / "bom").write_text("\ufeff" + json.dumps({"codex": SERVER}))
    names = ["folder", "pipe", "loop", "json", "latin", "x.toml", "deep", "large", "missing", "bom"]
    found = scan([tmp_path / name for name in names])
    assert found.unreadable == tuple(
        Unreadable(tmp_path / name, problem)
        for name, problem in [
            ("folder", "it is not a regular file"),
            ("pipe", "it is not a regular file"),
            ("loop", "Too many levels of symbolic links"),
            ("json", "it is not valid JSON: line 1, column 8"),
            ("latin", "it is not UTF-8"),
            ("x.toml", "it is not valid TOML"),
            ("deep", "it is nested too deeply"),
            ("large", "it is larger than 32 MiB"),
        ]
    )
    assert [entry.file.name for entry in found.stale] == ["bom"]


def test_files_are_only_read(tmp_path: Path) -> None:
    """Also the stale ones: rewriting is for `migrate`, which asks first."""
    for name in USER_FILES:
        put_stale(tmp_path / name)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert len(scan(places(tmp_path, tmp_path, {}, "linux")).stale) == len(before)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
