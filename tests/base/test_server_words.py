"""Commands that start a server of ours or the removed one: known however they are wrapped."""

from __future__ import annotations

import pytest

from laneway.base.server_words import is_ours, is_stale


@pytest.mark.parametrize(
    "words",
    [
        ["codex", "mcp-server"],
        ["codex mcp-server"],
        ["/opt/homebrew/bin/codex", "mcp-server"],
        ["/Applications/My Tools/codex", "mcp-server"],
        [r"C:\Users\x\AppData\npm\codex.cmd", "mcp-server"],
        ["codex", "-m", "gpt-5.3-codex", "mcp-server"],
        ["codex", "-c", "model=x", "--sandbox=read-only", "-a", "never", "mcp-server"],
        ["codex", "--search", "mcp-server", "-c", "x=1"],
        ["npx", "-y", "@openai/codex", "mcp-server"],
        ["npx", "@openai/codex@latest", "-m", "x", "mcp-server"],
        ["npx", "-p", "@openai/codex", "codex", "mcp-server"],
        ["pnpm", "dlx", "@openai/codex@0.153.4", "mcp-server"],
        ["env", "CODEX_HOME=/x", "codex", "mcp-server"],
        ["bash", "-lc", "exec codex -m x mcp-server"],
        ["cmd", "/c", "codex", "mcp-server"],
        ["wsl", "--", "codex", "mcp-server"],
    ],
)
def test_the_removed_server_is_known_however_it_is_started(words: list[str]) -> None:
    """With options in between, by path, through a shell or a package runner."""
    assert is_stale(words[0], words[1:])


@pytest.mark.parametrize(
    "words",
    [
        [""],
        ["codex"],
        ["codex", "app-server"],
        ["codex", "exec", "mcp-server"],
        ["codex", "-m", "mcp-server"],
        ["laneway", "mcp-server"],
        ["laneway", "mcp-server", "--codex-bin", "codex"],
        ["uvx", "laneway", "--codex-bin", "codex", "mcp-server"],
        ["codex-mcp", "serve"],
        ["npx", "codex-mcp-server"],
        ["my-codex", "mcp-server"],
        ["bash", "-c", "echo 'unclosed"],
    ],
)
def test_what_is_something_else_is_left_alone(words: list[str]) -> None:
    """Ours above all: they take a Codex as an argument."""
    assert not is_stale(words[0], words[1:])


@pytest.mark.parametrize(
    "words",
    [
        ["laneway"],
        ["laneway", "mcp"],
        ["laneway", "mcp-server", "--codex-bin", "codex"],
        ["laneway mcp"],
        ["/home/me/.local/bin/laneway", "mcp", "--identity", "x"],
        ["laneway", "acp"],
        ["uvx", "laneway", "mcp"],
        ["uvx", "--from", "laneway[codex]", "laneway", "mcp"],
        ["uv", "run", "--with", "laneway", "laneway", "mcp"],
        ["python", "-m", "laneway", "mcp"],
        ["/usr/bin/python3.11", "-I", "-m", "laneway", "mcp"],
        ["bash", "-lc", "exec laneway mcp"],
        ["env", "A=b", "codex-mcp", "serve"],
        ["codex-mcp", "--config", "x.toml", "serve"],
        ["atm-agent-mcp", "serve"],
        [r"C:\Tools\laneway.exe", "mcp"],
    ],
)
def test_a_server_of_ours_is_known_however_it_is_started(words: list[str]) -> None:
    """Under each of its three names, with options in between."""
    assert is_ours(words[0], words[1:])


@pytest.mark.parametrize(
    "words",
    [
        [""],
        ["codex", "mcp-server"],
        ["npx", "other", "/home/me/laneway"],
        ["npx", "-y", "server-filesystem", "/home/me/laneway", "/home/me/mcp"],
        ["npx", "codex-mcp-server"],
        ["node", "/home/me/laneway/server.js", "mcp"],
        ["my-laneway", "mcp"],
    ],
)
def test_a_server_of_others_is_left_alone(words: list[str]) -> None:
    """Also one that works on our source code."""
    assert not is_ours(words[0], words[1:])
