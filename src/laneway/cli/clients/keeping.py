"""What `setup` keeps of the command line that an entry has already: its flags, its server, its `env`.

Whatever cannot be kept is named in a note, for the person who chose it once. Pure but for
asking our own parser which flags a server takes.
"""

from __future__ import annotations

import io
import os
import shlex
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout

import msgspec

from laneway.base.redact import redact
from laneway.cli.clients.rewrite import Rewritten, rewrite
from laneway.cli.registrations import is_stale, program, subcommand_at

DOORS = ("mcp", "mcp-server", "acp")
_KEPT_WRAPPERS = frozenset({"env", "nice", "npx", "npm"})
"""They start what is named by a path; `npx --package=… --` puts a Codex on its PATH. Others look for
Laneway in a package or an environment of their own."""


class Wanted(msgspec.Struct, frozen=True):
    """What the command line of `setup` asks for. None: it says nothing."""

    command: tuple[str, ...]
    door: str | None
    flags: tuple[str, ...] | None
    default_door: str = "mcp"


class CommandLine(msgspec.Struct, frozen=True):
    words: tuple[str, ...]
    door: str
    notes: tuple[str, ...] = ()


class _Old(msgspec.Struct, frozen=True):
    """The parts of a command line that starts Laneway."""

    wrapper: tuple[str, ...]
    door: str | None
    flags: tuple[str, ...]


def fresh(wanted: Wanted) -> CommandLine:
    """For an entry that is not there yet."""
    door = wanted.door or wanted.default_door
    return CommandLine((*wanted.command, door, *(wanted.flags or ())), door)


def renewed(words: Sequence[str], wanted: Wanted) -> CommandLine:
    """For an entry that starts Laneway, or the removed server in whose place Laneway comes."""
    notes: list[str] = []
    was_codex = is_stale(words[0], words[1:])
    if was_codex:
        words, notes = _from_codex(words)
    old = _parts(words)
    if old is None:
        return msgspec.structs.replace(
            fresh(wanted), notes=(f"Its command line was replaced: `{_shown(words)}`",)
        )
    door = wanted.door or (None if was_codex else old.door) or wanted.default_door
    if wanted.door is None and door != wanted.default_door:
        notes.append(f"It stays `laneway {door}`; --door {wanted.default_door} would change that.")
    flags, of_flags = _flags(old, door, wanted)
    wrapper: tuple[str, ...] = ()
    if old.wrapper and program(old.wrapper[0]) in _KEPT_WRAPPERS:
        wrapper = old.wrapper
    elif old.wrapper:
        notes.append(f"It was started through `{_shown(old.wrapper)}`, and is started by itself now.")
    return CommandLine((*wrapper, *wanted.command, door, *flags), door, (*notes, *of_flags))


def _flags(old: _Old, door: str, wanted: Wanted) -> tuple[tuple[str, ...], list[str]]:
    if wanted.flags is not None:
        is_lost = bool(old.flags) and old.flags != wanted.flags
        return wanted.flags, [f"These flags were replaced: {_shown(old.flags)}"] if is_lost else []
    if not old.flags:
        return (), []
    if not _takes(door, old.flags):
        what = f"These flags were dropped, because `laneway {door}` does not take them: {_shown(old.flags)}"
        return (), [what]
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
    """The removed server's line as `laneway mcp-server`; as it is if that cannot be made of it."""
    new, notes = with_laneway(words, ("laneway",))
    return (new.words, notes) if not new.problem else (words, notes)


def with_laneway(words: Sequence[str], laneway: Sequence[str]) -> tuple[Rewritten, list[str]]:
    """`rewrite`, but a Codex that was named by its path and is gone is let go, with a note."""
    new = rewrite(words, laneway)
    if not new.codex or _is_there(new.codex):
        return new, list(new.notes)
    note = f"There is no Codex at {new.codex} any more: Laneway uses the one that it finds."
    new = rewrite(words, laneway, keep_codex=False)
    return new, [*new.notes, note]


def _is_there(codex: str) -> bool:
    """As far as it can be told: a variable or a relative path is the client's to resolve."""
    path = os.path.expanduser(codex)
    if not path.startswith("/") or "$" in path:
        return True
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _takes(door: str, flags: Sequence[str]) -> bool:
    """Whether our own parser takes these flags for this server."""
    from laneway.cli.main import build_parser

    nowhere = io.StringIO()
    try:
        with redirect_stdout(nowhere), redirect_stderr(nowhere):
            build_parser([door]).parse_args([door, *flags])
    except SystemExit:
        return False
    return True


def _shown(words: Sequence[str]) -> str:
    return redact(shlex.join(words))
