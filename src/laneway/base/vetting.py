"""Checks a repository's settings file against the rules and against what the user has trusted.

    vet(…)           which settings may be used, which are ignored and why, and whether the file is trusted
    request_of(…)    the settings to show to a user who is asked for trust, with their fingerprints

A file is trusted as a whole and as it was: when one of its settings that need trust changes, or the
content of a file that it names, none of them is used. The content that is checked is the content that
is used: it is read once, here. No program is run, and no log written, in a folder where sessions can write.
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
from laneway.base.kinds import jsonable, to_text
from laneway.base.layers import FoundValue, Layer, RepoFile
from laneway.base.repo_rules import rule_of
from laneway.base.setting_values import Ignored, Keys, SettingValue, display, spell
from laneway.base.trust import Fingerprint

MAX_CONTENT_BYTES = 256 * 1024
"""Of a prompt file: more than this takes too much of a model's context."""
MAX_LINKS = 40
"""Links that one path may lead through, as in Linux; more is a loop."""
OF_ROLES = "roles"
STANDS_FOR = {OF_ROLES: "", "per_thread_auto_mail": "auto_mail"}
"""Tables whose entries stand for a key; a field of a role stands for the key of its name."""


class Vetted(NamedTuple):
    """The permitted settings of one repository file."""

    layer: Layer
    file: RepoFile
    contents: dict[Path, bytes]
    """Of the files that trusted settings name."""


class TrustRequest(msgspec.Struct, frozen=True):
    """The settings of a file that trust is asked for, as they are now."""

    settings: dict[str, Fingerprint]
    contents: dict[Path, bytes]


def vet(
    layer: Layer,
    path: Path,
    root: Path,
    own: Mapping[Keys, SettingValue],
    environment: Mapping[str, str],
    trust_file: Path,
) -> Vetted:
    """Check a repository's file; `own` are the settings without the repository."""
    values = {each.keys: each for each in layer.values}  # within a file the last value of a key wins
    ignored = list(layer.ignored)
    folders = _where_sessions_write(root, environment)
    for keys, each in list(values.items()):
        if rule_of(keys).is_never:
            ignored.append(_ignored(values.pop(keys), _OWN_ONLY))
        elif rule_of(keys).is_run_or_written and _is_reachable(each.value, folders, environment):
            ignored.append(_ignored(values.pop(keys), _WRITABLE))
    sensitive = tuple(each for each in values.values() if not rule_of(each.keys).is_free)
    need_trust = _needing(sensitive, own)
    if not need_trust:
        file = RepoFile(path, root, sensitive, "asks for nothing", {})
        return Vetted(Layer(list(values.values()), ignored), file, {})
    trusted = trust.read(trust_file)
    never_reason = why_never(root, trust_file)
    entry = None if never_reason else trusted.entry(root, path)
    file = RepoFile(path, root, sensitive, "not trusted", {} if entry is None else entry.settings)
    why = trusted.problem or never_reason or _why_not_yet(root, trusted)
    if entry is not None:
        try:
            request = request_of(file)
        except ContentUnreadable as problem:
            why = f"{problem}, so it is not what you trusted"
        else:
            if _digests(request.settings) == _digests(entry.settings):
                file = msgspec.structs.replace(file, trust_state="trusted")
                return Vetted(Layer(list(values.values()), ignored), file, request.contents)
            why = "this file has changed since you trusted it; `laneway config trust` shows how"
        file = msgspec.structs.replace(file, trust_state="changed")
    ignored += [_ignored(values.pop(each.keys), why) for each in need_trust]
    return Vetted(Layer(list(values.values()), ignored), file, {})


def request_of(file: RepoFile) -> TrustRequest:
    """All settings of a file that trust is given to, with the content of the files that they name."""
    settings: dict[str, Fingerprint] = {}
    contents: dict[Path, bytes] = {}
    for each in file.sensitive:
        content = None
        if rule_of(each.keys).is_file_content:
            content = contents[each.value] = read_content(each.value)
        settings[spell(each.keys)] = _fingerprint(each, content)
    return TrustRequest(settings, contents)


def _fingerprint(setting: FoundValue, content: bytes | None) -> Fingerprint:
    import hashlib
    import json  # neither is needed where nothing is trusted

    text = display(setting.keys, setting.value)
    parts = [spell(setting.keys), jsonable(setting.value)]
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
                raise ContentUnreadable(f"{to_text(path)} is no file")
            with open(fd, "rb", closefd=False) as file:
                data = file.read(MAX_CONTENT_BYTES + 1)
        finally:
            os.close(fd)
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or "its name is none"
        raise ContentUnreadable(f"{to_text(path)} cannot be read ({why})") from problem
    if len(data) > MAX_CONTENT_BYTES:
        raise ContentUnreadable(f"{to_text(path)} is larger than {MAX_CONTENT_BYTES // 1024} KiB")
    return data


# ── the rules, applied ─────────────────────────────────────────────────────


def _needing(sensitive: Sequence[FoundValue], own: Mapping[Keys, SettingValue]) -> list[FoundValue]:
    """The settings whose value needs trust; of a role all of them, if one does."""
    need_trust = {each.keys for each in sensitive if not _is_allowed(each, own)}
    wide_roles = {keys[:2] for keys in need_trust if keys[0] == OF_ROLES}
    return [each for each in sensitive if each.keys in need_trust or each.keys[:2] in wide_roles]


def _is_allowed(setting: FoundValue, own: Mapping[Keys, SettingValue]) -> bool:
    rule, own_value = rule_of(setting.keys), own.get(setting.keys)
    if setting.keys[0] in STANDS_FOR:
        # The rule of the key that it stands for, compared with that key's own value.
        stands_for = (STANDS_FOR[setting.keys[0]] or setting.keys[-1],)
        rule, own_value = rule_of(stands_for), own_value or own[stands_for]
    return own_value is not None and rule.allows(setting.value, own_value.value)


def _digests(settings: Mapping[str, Fingerprint]) -> dict[str, str]:
    return {key: each.digest for key, each in settings.items()}


# ── why not ────────────────────────────────────────────────────────────────

_WRITABLE = (
    "it names a file in a folder that sessions can write; name it in your own settings or move it elsewhere"
)


_OWN_ONLY = "only your own settings can set this, because it applies to all your repositories"


def why_never(root: Path, trust_file: Path) -> str | None:
    """Why a repository cannot be trusted at all."""
    trust_path = os.path.realpath(trust_file)
    if os.path.islink(trust_path):
        return None  # a loop of links: it cannot be read, so nothing is trusted anyway
    if _leads_through(trust_path, (str(root),)):
        return f"{to_text(root)} holds the file in which trust is kept, so its sessions could forge it"
    return None


def _why_not_yet(root: Path, trusted: trust.Trust) -> str:
    if str(root) in trusted.folders:
        return (
            f"an earlier Laneway trusted the folder {to_text(root)}, whatever it says; "
            "`laneway config trust` in it shows what it says now and allows that"
        )
    return f"{to_text(root)} is not trusted; `laneway config trust` in it allows this"


def _ignored(setting: FoundValue, why: str) -> Ignored:
    return Ignored(setting.keys, setting.value, setting.source, why.removesuffix("."))


# ── where sessions can write ───────────────────────────────────────────────


def _where_sessions_write(root: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The workspace, and the temporary folders that Codex's `workspace-write` allows."""
    temp_dir = environment.get("TMPDIR", "")
    temporary = ("/tmp", temp_dir) if temp_dir.startswith("/") else ("/tmp",)
    return (str(root), *(os.path.realpath(folder) for folder in temporary))


def _is_reachable(value: Any, folders: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether a session could change what a path leads to: the file, or a link on the way to it."""
    name = str(value)
    path = name if os.sep in name else _on_path(name, environment)
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
    """Every file and folder that the system passes while it resolves a path, links one by one."""
    folder, links = os.sep, 0
    yield folder
    parts = path.split(os.sep)[::-1]
    while parts:
        part = parts.pop()
        if part in ("", os.curdir):
            continue
        if part == os.pardir:
            folder = os.path.dirname(folder)
            continue
        step = os.path.join(folder, part)
        yield step
        if not os.path.islink(step):
            folder = step
            continue
        links += 1
        if links > MAX_LINKS:
            raise OSError("too many links")
        target = os.readlink(step)
        folder = os.sep if target.startswith(os.sep) else folder
        parts += target.split(os.sep)[::-1]


def _leads_through(path: str, folders: Sequence[str]) -> bool:
    """Whether a path leads through one of these folders, whatever their names in it.

    Names alone do not show that where the file system ignores case, or where a folder is mounted twice.
    """
    inodes = {_identity(folder) for folder in folders} - {None}
    return any(step in folders or _identity(step) in inodes for step in _steps(path))


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
