"""The command line of an entry that `setup` renews: keeps the old one's flags, server and wrapper.

Whatever cannot be kept is named in a note for the user. Pure, except that our own parser is asked
which flags a server takes.
"""

from __future__ import annotations

import io
import os
import shlex
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout

import msgspec

from laneway.base.redact import redact
from laneway.base.server_words import is_stale, program, subcommand_at
from laneway.cli.clients.rewrite import Rewritten, rewrite

DOORS = ("mcp", "mcp-server", "acp")
_KEPT_WRAPPERS = frozenset({"env", "nice", "npx", "npm"})
"""They start a program by its path; `npx --package=… --` puts a Codex on its PATH. Other wrappers would
look for Laneway in a package or an environment of their own."""


class EntryRequest(msgspec.Struct, frozen=True):
    """What the command line of `setup` asks for. None: not given."""

    command: tuple[str, ...]
    door: str | None
    flags: tuple[str, ...] | None
    default_door: str = "mcp"


class CommandLine(msgspec.Struct, frozen=True):
    """The command line to write, and notes for the user."""

    words: tuple[str, ...]
    door: str
    notes: tuple[str, ...] = ()


class _Old(msgspec.Struct, frozen=True):
    """The parts of a command line that starts Laneway."""

    wrapper: tuple[str, ...]
    door: str | None
    flags: tuple[str, ...]


def fresh(request: EntryRequest) -> CommandLine:
    """The command line for a new entry."""
    door = request.door or request.default_door
    return CommandLine((*request.command, door, *(request.flags or ())), door)


def renewed(words: Sequence[str], request: EntryRequest) -> CommandLine:
    """The command line for an entry that starts Laneway, or the removed server that Laneway replaces."""
    notes: list[str] = []
    was_codex = is_stale(words[0], words[1:])
    if was_codex:
        words, notes = _from_codex(words)
    old = _parts(words)
    if old is None:
        return msgspec.structs.replace(
            fresh(request), notes=(f"Its command line was replaced: `{_joined(words)}`",)
        )
    door = request.door or (None if was_codex else old.door) or request.default_door
    if request.door is None and door != request.default_door:
        notes.append(f"It stays `laneway {door}`; --door {request.default_door} would change that.")
    flags, flag_notes = _flags(old, door, request)
    wrapper: tuple[str, ...] = ()
    if old.wrapper and program(old.wrapper[0]) in _KEPT_WRAPPERS:
        wrapper = old.wrapper
    elif old.wrapper:
        notes.append(f"It was started through `{_joined(old.wrapper)}`, and is started by itself now.")
    return CommandLine((*wrapper, *request.command, door, *flags), door, (*notes, *flag_notes))


def _flags(old: _Old, door: str, request: EntryRequest) -> tuple[tuple[str, ...], list[str]]:
    if request.flags is not None:
        is_lost = bool(old.flags) and old.flags != request.flags
        return request.flags, [f"These flags were replaced: {_joined(old.flags)}"] if is_lost else []
    if not old.flags:
        return (), []
    if not _takes(door, old.flags):
        note = f"These flags were dropped, because `laneway {door}` does not take them: {_joined(old.flags)}"
        return (), [note]
    return old.flags, ["The flags that it had were kept; `--` at the end of the command drops them."]


def _parts(words: Sequence[str]) -> _Old | None:
    at = next((at for at, word in enumerate(words) if program(word) == "laneway"), None)
    if at is None:
        return None
    is_module = at >= 2 and words[at - 1] == "-m" and program(words[at - 2]).startswith("python")
    rest = list(words[at + 1 :])
    door_at = subcommand_at(rest)
    if door_at is None or rest[door_at] not in DOORS:
        return None if rest else _Old((), None, ())
    flags = (*rest[:door_at], *rest[door_at + 1 :])
    return _Old(tuple(words[: at - 2 if is_module else at]), rest[door_at], flags)


def _from_codex(words: Sequence[str]) -> tuple[Sequence[str], list[str]]:
    """The removed server's command as `laneway mcp-server`; unchanged if it cannot be rewritten."""
    new, notes = with_laneway(words, ("laneway",))
    return (new.words, notes) if not new.problem else (words, notes)


def with_laneway(words: Sequence[str], laneway: Sequence[str]) -> tuple[Rewritten, list[str]]:
    """`rewrite`, but a Codex that was named by its path and no longer exists is dropped, with a note."""
    new = rewrite(words, laneway)
    if not new.codex or _exists(new.codex):
        return new, list(new.notes)
    note = f"There is no Codex at {new.codex} any more: Laneway uses the one that it finds."
    new = rewrite(words, laneway, keep_codex=False)
    return new, [*new.notes, note]


def _exists(codex: str) -> bool:
    """Whether it exists, as far as we can tell: only the client resolves variables and relative paths."""
    path = os.path.expanduser(codex)
    if not path.startswith("/") or "$" in path:
        return True
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _takes(door: str, flags: Sequence[str]) -> bool:
    """Whether our own parser takes these flags for this server."""
    from laneway.cli.main import build_parser

    discarded = io.StringIO()
    try:
        with redirect_stdout(discarded), redirect_stderr(discarded):
            build_parser([door]).parse_args([door, *flags])
    except SystemExit:
        return False
    return True


def _joined(words: Sequence[str]) -> str:
    return redact(shlex.join(words))
