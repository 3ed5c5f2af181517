"""What a client would start for an entry: words, variables, folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from laneway.cli.clients.entry import CODEX_PASSES, command_line_of, start_of, with_command_line

WORDS = ["codex", "mcp-server"]
SHAPES: list[dict[str, Any]] = [
    {"command": "codex", "args": ["mcp-server"], "timeout": 9},
    {"type": "local", "command": ["codex", "mcp-server"]},
    {"command": {"path": "codex", "args": ["mcp-server"], "env": {}}},
]
ENVIRONMENT = {"HOME": "/home/a", "PATH": "/bin", "TOKEN": "t", "TERM": "dumb"}


@pytest.mark.parametrize("node", SHAPES)
def test_every_shape_of_an_entry_is_read_and_written(node: dict[str, Any]) -> None:
    """In the shape that it has; what else is in it stays."""
    assert command_line_of(node) == WORDS
    new = with_command_line(node, ["laneway", "mcp"])
    assert command_line_of(new) == ["laneway", "mcp"]
    assert {**new, "command": 0, "args": 0} == {**node, "command": 0, "args": 0}


@pytest.mark.parametrize(
    "node", [{}, {"command": ""}, {"command": []}, {"command": "x", "args": [1]}, {"command": "x", "args": 7}]
)
def test_an_entry_without_a_command_starts_nothing(node: dict[str, Any]) -> None:
    """And says so."""
    assert command_line_of(node) is None
    assert start_of(node, Path("/x/a.json"), ("a",), ENVIRONMENT, Path("/")).problem


def test_variables_are_filled_in_as_the_clients_do() -> None:
    """What only the client can ask for is left out of the environment."""
    node = {
        "command": "${HOME}/bin/x",
        "args": ["${NONE:-y}", "{env:TOKEN}", "${env:TOKEN}", "$TOKEN"],
        "env": {"A": "${TOKEN}", "TOKEN": "${input:secret}", "TERM": None},
    }
    start = start_of(node, Path("/x/a.json"), ("a",), ENVIRONMENT, Path("/"))
    assert start.words == ("/home/a/bin/x", "y", "t", "t", "$TOKEN")
    assert start.environment == {"HOME": "/home/a", "PATH": "/bin", "A": "t"}
    open_ended = start_of({"command": "${input:x}"}, Path("/x/a.json"), ("a",), ENVIRONMENT, Path("/"))
    assert open_ended.problem == "Only the client itself can fill in ${input:x}."


def test_codex_hands_on_only_what_it_names() -> None:
    """So an entry that needs more must say so, and a handshake shows it."""
    node = {"command": "x", "env_vars": ["TOKEN"], "env": {"B": "2"}}
    start = start_of(node, Path("/x/config.toml"), ("mcp_servers", "a"), {**ENVIRONMENT, "C": "3"}, Path("/"))
    assert start.environment == {**ENVIRONMENT, "B": "2"}
    assert "TOKEN" not in CODEX_PASSES


def test_an_entry_starts_in_its_project(tmp_path: Path) -> None:
    """Beside its file, in the project that Claude keeps it for, or where it says."""
    project = tmp_path / "p"
    (project / ".vscode").mkdir(parents=True)
    (project / "sub").mkdir()

    def folder(node: dict[str, Any], file: Path, *keys: str) -> Path:
        return start_of(node, file, keys, {}, project / "sub").folder

    node = {"command": "x"}
    assert folder(node, project / ".mcp.json", "mcpServers", "x") == project
    assert folder(node, project / ".vscode" / "mcp.json", "servers", "x") == project
    assert folder(node, tmp_path / ".claude.json", "projects", str(tmp_path), "mcpServers", "x") == tmp_path
    assert folder(node, tmp_path / ".claude.json", "mcpServers", "x") == project / "sub"
    assert folder({**node, "cwd": "sub"}, project / ".mcp.json", "x") == project / "sub"


def test_a_command_that_is_a_line_is_split() -> None:
    """Unless a program is really called that."""
    start = start_of({"command": "laneway mcp-server"}, Path("/x/a.json"), ("a",), {}, Path("/"))
    assert start.words == ("laneway", "mcp-server")
