"""Rewrites the command `codex … mcp-server`, however it is wrapped, to `laneway … mcp-server`.

Pure. One word changes; shells, `env` and package runners stay as they are. A Codex that was named
by its path is still used (`--codex-bin`), and so is one that npx installs (`--package`, which
puts it on the PATH where Laneway looks for it).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

import msgspec

from laneway.base.server_words import SHELLS, is_stale, program, subcommand

_RAW = re.compile(r"""(?:[^\s'"\\;&|()<>]|\\.|'[^']*+'|"(?:[^"\\]|\\.)*+")++|[;&|()<>]++""", re.DOTALL)
_RUNTIMES = frozenset({"node", "bun", "deno", "nodejs"})
"""They run a `codex.js`, which can also be run directly."""
_RUNNERS = frozenset({"npx", "npm", "pnpm", "pnpx", "bunx", "yarn", "bun"})
"""They fetch a package and run its program. Laneway is in no such package, so it is started without them."""


class Rewritten(msgspec.Struct, frozen=True):
    """The new command, or the problem why there is none."""

    words: tuple[str, ...] = ()
    codex: str = ""
    """The Codex that was named by its path."""
    notes: tuple[str, ...] = ()
    problem: str = ""
    """Why it was left as it is; a clause that follows the name of the entry."""


class _Token(msgspec.Struct):
    """A word and its position: in a list of words, or within a line."""

    word: str
    unit: int
    start: int = -1
    """Offset within a line; −1 if it is a list item of its own."""
    end: int = -1


def rewrite(words: Sequence[str], laneway: Sequence[str], *, keep_codex: bool = True) -> Rewritten:
    """The words with Laneway in Codex's place. Without `keep_codex`, Laneway finds a Codex by itself."""
    if not is_stale(words[0], words[1:]):
        return Rewritten(problem="it does not start `codex mcp-server`")
    tokens = _tokens(words)
    at = _codex_at(tokens)
    if at is None:
        return Rewritten(problem="its way of starting Codex is not understood")
    codex = tokens[at].word
    after = at + 1 + _mcp_server_at([token.word for token in tokens[at + 1 :]])
    changes: dict[int, list[str]] = {at: list(laneway)}
    notes: list[str] = []
    named = ""
    runner = _runner_at(tokens, at)
    if runner is not None:
        changes, notes = _without_runner(tokens, runner, at, laneway)
    elif codex.startswith("@"):
        return Rewritten(problem="its way of starting Codex is not understood")
    elif "/" in codex or "\\" in codex:
        named = codex
        if keep_codex:
            changes[after] = ["mcp-server", "--codex-bin", codex]
        if at and program(tokens[at - 1].word) in _RUNTIMES and codex.endswith(".js"):
            changes[at - 1] = []
    new = _apply(words, tokens, changes)
    if new is None or is_stale(new[0], new[1:]):
        return Rewritten(problem="its way of starting Codex is not understood")
    return Rewritten(tuple(new), named, tuple(notes))


def _runner_at(tokens: list[_Token], at: int) -> int | None:
    """The index of the package runner that starts this Codex, if the Codex comes from a package."""
    runners = [index for index in range(at) if program(tokens[index].word) in _RUNNERS]
    if not runners or any(token.word.startswith(("-p", "--package")) for token in tokens[runners[-1] : at]):
        return None
    is_path = "/" in tokens[at].word and not tokens[at].word.startswith("@")
    return None if is_path else runners[-1]


def _without_runner(
    tokens: list[_Token], runner: int, at: int, laneway: Sequence[str]
) -> tuple[dict[int, list[str]], list[str]]:
    """npx can run another program beside the package; other runners are dropped."""
    name, spec = program(tokens[runner].word), tokens[at].word
    between = range(runner + 1, at)
    is_npm = name == "npm" and any(tokens[index].word in ("exec", "x") for index in between)
    if (name == "npx" or is_npm) and spec.startswith("@"):
        gone: dict[int, list[str]] = {index: [] for index in between if tokens[index].word == "--"}
        return {**gone, at: [f"--package={spec}", "--", *laneway]}, []
    note = f"{name} brought {spec}; Laneway uses the Codex that it finds: see `laneway version`."
    return {**{index: [] for index in range(runner, at)}, at: list(laneway)}, [note]


def _tokens(words: Sequence[str]) -> list[_Token]:
    """The words as `is_stale` sees them: a command may be a whole line, and so may a shell's argument."""
    is_line = len(words) == 1 and program(words[0]) != "codex"
    tokens = _line(words[0], 0) if is_line else [_Token(words[0], 0)]
    is_shell = bool(tokens) and program(tokens[0].word) in SHELLS
    for unit, word in enumerate(words[1:], 1):
        tokens += _line(word, unit) if is_shell and " " in word else [_Token(word, unit)]
    return tokens


def _line(line: str, unit: int) -> list[_Token]:
    tokens = []
    for raw in _RAW.finditer(line):
        try:
            word = "".join(shlex.split(raw[0]))
        except ValueError:
            word = raw[0]
        tokens.append(_Token(word, unit, raw.start(), raw.end()))
    return tokens


def _codex_at(tokens: list[_Token]) -> int | None:
    for at, token in enumerate(tokens):
        rest = [each.word for each in tokens[at + 1 :]]
        if program(token.word) == "codex" and subcommand(rest) == "mcp-server":
            return at
    return None


def _mcp_server_at(words: list[str]) -> int:
    """The first `mcp-server` that is not the value of an option."""
    return next(at for at in range(len(words)) if words[at] == "mcp-server" and _ends_at(words, at))


def _ends_at(words: list[str], at: int) -> bool:
    marked = [*words[:at], "mcp-server\0", *words[at + 1 :]]
    return subcommand(marked) == "mcp-server\0"


def _apply(words: Sequence[str], tokens: list[_Token], changes: dict[int, list[str]]) -> list[str] | None:
    lines = {unit: words[unit] for unit in range(len(words))}
    lists: dict[int, list[str]] = {}
    for index in sorted(changes, reverse=True):
        token, new = tokens[index], changes[index]
        if token.start < 0:
            lists[token.unit] = new
            continue
        line = lines[token.unit]
        end = token.end
        if not new:  # with the blanks after it
            end += len(line[end:]) - len(line[end:].lstrip(" "))
        lines[token.unit] = line[: token.start] + shlex.join(new) + line[end:]
    result: list[str] = []
    for unit in range(len(words)):
        result += lists.get(unit, [lines[unit]])
    return result or None
