"""Recognises a command that starts a server of Laneway's, or the removed `codex mcp-server`, by its words.

However it is wrapped: by a path, a package runner, a shell. Pure. Whoever reads the configs of other
programs needs it, and whoever starts a worker that must not get our tools.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

SHELLS = frozenset({"sh", "bash", "zsh", "dash", "fish", "ksh"})
OUR_SERVERS = {
    "laneway": frozenset({"mcp", "mcp-server", "acp"}),
    "atm-agent-mcp": frozenset({"serve"}),
    "codex-mcp": frozenset({"serve"}),
}
"""Our programs, with the commands by which clients start them. A Codex in their arguments is not stale."""
_WITH_VALUE = frozenset(
    {"-c", "--config", "-m", "--model", "-s", "--sandbox", "-a", "--ask-for-approval", "-p", "--profile"}
    | {"-C", "--cd", "--add-dir", "-i", "--image", "--enable", "--disable", "--local-provider"}
    | {"--remote", "--remote-auth-token-env"}
)
"""Options of `codex` that take the next word."""


def is_stale(command: str, args: Sequence[str] = ()) -> bool:
    """Whether these words start the removed server: `codex [options] mcp-server`, however wrapped."""
    words = _words(command, args)
    for at, word in enumerate(words):
        name = program(word)
        if name in OUR_SERVERS:
            return False
        if name == "codex" and subcommand(words[at + 1 :]) == "mcp-server":
            return True
    return False


def is_ours(command: str, args: Sequence[str] = ()) -> bool:
    """Whether these words start a server of ours, however wrapped.

    An argument that only ends in `laneway`, such as a folder, does not count: our subcommand must follow.
    """
    words = _words(command, args)
    if [program(word) for word in words] == ["laneway"]:
        return True
    return any(
        subcommand(words[at + 1 :]) in OUR_SERVERS.get(program(word), ()) for at, word in enumerate(words)
    )


def _words(command: str, args: Sequence[str]) -> list[str]:
    """One flat list of words: a command may be a whole line, and so may a shell's argument."""
    # A path may contain blanks: a command that ends in `codex` is not split.
    words = [command] if args or program(command) == "codex" else _split(command)
    shell = bool(words) and program(words[0]) in SHELLS
    for word in args:
        words += _split(word) if shell and " " in word else [word]
    return words


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def program(word: str) -> str:
    """`codex` for `/usr/bin/codex`, `C:\\x\\codex.cmd` and `@openai/codex@latest` alike."""
    if word.startswith("@openai/codex"):
        return "codex"
    name = re.split(r"[/\\]", word)[-1]
    return re.sub(r"\.(?:exe|cmd|bat|ps1|js)$", "", name)


def subcommand(words: Sequence[str]) -> str:
    at = subcommand_at(words)
    return "" if at is None else words[at]


def subcommand_at(words: Sequence[str]) -> int | None:
    """The index of the subcommand among `codex`'s own options."""
    rest = iter(enumerate(words))
    for at, word in rest:
        if word in _WITH_VALUE:
            next(rest, None)
        elif not word.startswith("-"):
            return at
    return None
