"""Checks what a repository's settings file says: against the rules, and against what its user trusted.

    vet(…)           what may be used, what is ignored and why, and how the file stands
    request_of(…)    what is shown to a user who is asked for trust, with what is kept if they agree

A file is trusted as a whole and as it was seen: when one of its settings that need trust changes, or
the content of a file that it names, none of them is used. The content that is checked is the content
that is used: it is read once, here. No program is run, and no log written, where sessions can write.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from laneway.base import trust
from laneway.base.errors import ContentUnreadable
from laneway.base.kinds import jsonable, shown
from laneway.base.layers import Found, Layer, RepoFile
from laneway.base.repo_rules import rule_of
from laneway.base.schema import Ignored, Keys, Value, display, spell
from laneway.base.trust import Fingerprint

MAX_CONTENT_BYTES = 256 * 1024
"""Of a prompt file: more than this does not fit a model's head beside its work."""
MAX_LINKS = 40
"""Links that one path may lead through, as in Linux; more is a circle."""
OF_ROLES = "roles"


class Vetted(NamedTuple):
    layer: Layer
    file: RepoFile
    contents: dict[Path, bytes]
    """Of the files that trusted settings name."""


class TrustRequest(msgspec.Struct, frozen=True):
    """What a settings file asks for, as it is now."""

    settings: dict[str, Fingerprint]
    contents: dict[Path, bytes]


def vet(
    layer: Layer,
    path: Path,
    root: Path,
    own: Mapping[Keys, Value],
    environment: Mapping[str, str],
    trust_file: Path,
) -> Vetted:
    """What of a repository's file holds; `own` is what would hold without the repository."""
    found = {each.keys: each for each in layer.found}  # within a file the last of a key holds
    ignored = list(layer.ignored)
    folders = _where_sessions_write(root, environment)
    for keys, each in list(found.items()):
        if rule_of(keys[0]).is_run_or_written and _is_reachable(each.value, folders, environment):
            ignored.append(_ignored(found.pop(keys), _WRITABLE))
    asks = tuple(each for each in found.values() if not rule_of(each.keys[0]).is_free)
    needing = _needing(asks, own)
    if not needing:
        file = RepoFile(path, root, asks, "asks for nothing", {})
        return Vetted(Layer(list(found.values()), ignored), file, {})
    given = trust.read(trust_file)
    never = why_never(root, trust_file)
    entry = None if never else given.entry(root, path)
    file = RepoFile(path, root, asks, "not trusted", {} if entry is None else entry.settings)
    why = given.problem or never or _why_not_yet(root, given)
    if entry is not None:
        try:
            request = request_of(file)
        except ContentUnreadable as problem:
            why = f"{problem}, so it is not what you trusted"
        else:
            if _digests(request.settings) == _digests(entry.settings):
                file = msgspec.structs.replace(file, standing="trusted")
                return Vetted(Layer(list(found.values()), ignored), file, request.contents)
            why = "this file has changed since you trusted it; `laneway config trust` shows how"
        file = msgspec.structs.replace(file, standing="changed")
    ignored += [_ignored(found.pop(each.keys), why) for each in needing]
    return Vetted(Layer(list(found.values()), ignored), file, {})


def request_of(file: RepoFile) -> TrustRequest:
    """Everything in a file that trust is given to, with the content of the files that it names."""
    settings: dict[str, Fingerprint] = {}
    contents: dict[Path, bytes] = {}
    for each in file.asks:
        content = None
        if rule_of(each.keys[0]).is_file_content:
            content = contents[each.value] = read_content(each.value)
        settings[spell(each.keys)] = _fingerprint(each, content)
    return TrustRequest(settings, contents)


def _fingerprint(found: Found, content: bytes | None) -> Fingerprint:
    import hashlib
    import json  # neither is needed where nothing is trusted

    text = display(found.keys, found.value)
    parts = [spell(found.keys), jsonable(found.value)]
    if content is not None:
        digest = hashlib.sha256(content).hexdigest()
        text += f" ({len(content)} bytes, sha256 {digest[:16]})"
        parts.append(digest)
    return Fingerprint(hashlib.sha256(json.dumps(parts).encode()).hexdigest(), text)


def read_content(path: Path) -> bytes:
    """A file that a repository names; raises `ContentUnreadable`."""
    try:
        # Without O_NONBLOCK a named pipe would hang us for ever.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise ContentUnreadable(f"{shown(path)} is no file")
            with open(fd, "rb", closefd=False) as file:
                data = file.read(MAX_CONTENT_BYTES + 1)
        finally:
            os.close(fd)
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or "its name is none"
        raise ContentUnreadable(f"{shown(path)} cannot be read ({why})") from problem
    if len(data) > MAX_CONTENT_BYTES:
        raise ContentUnreadable(f"{shown(path)} is larger than {MAX_CONTENT_BYTES // 1024} KiB")
    return data


# ── the rules, applied ─────────────────────────────────────────────────────


def _needing(asks: Sequence[Found], own: Mapping[Keys, Value]) -> list[Found]:
    """The settings whose value needs trust; of a role all of them, if one does."""
    needing = {each.keys for each in asks if not _is_allowed(each, own)}
    wide = {keys[:2] for keys in needing if keys[0] == OF_ROLES}
    return [each for each in asks if each.keys in needing or each.keys[:2] in wide]


def _is_allowed(found: Found, own: Mapping[Keys, Value]) -> bool:
    first, last = found.keys[0], found.keys[-1]
    if len(found.keys) == 1:
        return rule_of(first).allows(found.value, own[found.keys].value)
    # Inside of a table: the rule of the key that it stands for, against what holds for that one.
    stands_for = (last,) if first == OF_ROLES else ("auto_mail",)
    held = own.get(found.keys) or own[stands_for]
    return rule_of(stands_for[0]).allows(found.value, held.value)


def _digests(settings: Mapping[str, Fingerprint]) -> dict[str, str]:
    return {key: each.digest for key, each in settings.items()}


# ── why not ────────────────────────────────────────────────────────────────

_WRITABLE = (
    "it names a file in a folder that sessions can write; name it in your own settings or move it elsewhere"
)


def why_never(root: Path, trust_file: Path) -> str | None:
    """Why a repository cannot be trusted at all."""
    kept_in = os.path.realpath(trust_file)
    if os.path.islink(kept_in):
        return None  # links in a circle: it cannot be read, so nothing is trusted anyway
    if _leads_through(kept_in, (str(root),)):
        return f"{shown(root)} holds the file in which trust is kept, so its sessions could forge it"
    return None


def _why_not_yet(root: Path, given: trust.Trust) -> str:
    if str(root) in given.folders:
        return (
            f"an earlier Laneway trusted the folder {shown(root)}, whatever it says; "
            "`laneway config trust` in it shows what it says now and allows that"
        )
    return f"{shown(root)} is not trusted; `laneway config trust` in it allows this"


def _ignored(found: Found, why: str) -> Ignored:
    return Ignored(found.keys, found.value, found.source, why.removesuffix("."))


# ── where sessions can write ───────────────────────────────────────────────


def _where_sessions_write(root: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The workspace, and the temp folders that Codex's `workspace-write` allows."""
    named = environment.get("TMPDIR", "")
    temporary = ("/tmp", named) if named.startswith("/") else ("/tmp",)
    return (str(root), *(os.path.realpath(folder) for folder in temporary))


def _is_reachable(value: Any, folders: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether a session could change what a path leads to: the file, or a link on the way to it."""
    named = str(value)
    path = named if os.sep in named else _on_path(named, environment)
    if path is None:
        return False
    try:
        path = path if os.path.isabs(path) else os.path.join(os.getcwd(), path)
        return _leads_through(path, folders)
    except OSError:
        return True


def _on_path(name: str, environment: Mapping[str, str]) -> str | None:
    for folder in environment.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder or os.curdir, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def _steps(path: str) -> Iterator[str]:
    """Every file and folder that the system looks at on the way along a path, links one by one."""
    at, links = os.sep, 0
    parts = path.split(os.sep)[::-1]
    while parts:
        part = parts.pop()
        if part in ("", os.curdir):
            continue
        if part == os.pardir:
            at = os.path.dirname(at)
            continue
        step = os.path.join(at, part)
        yield step
        if not os.path.islink(step):
            at = step
            continue
        links += 1
        if links > MAX_LINKS:
            raise OSError("too many links")
        target = os.readlink(step)
        at = os.sep if target.startswith(os.sep) else at
        parts += target.split(os.sep)[::-1]


def _leads_through(path: str, folders: Sequence[str]) -> bool:
    """Whether a path leads through one of these folders, by whatever name it calls them.

    Where the file system knows no difference of case, or mounts a folder twice, names do not tell.
    """
    wanted = {_identity(folder) for folder in folders} - {None}
    return any(step in folders or _identity(step) in wanted for step in _steps(path))


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
