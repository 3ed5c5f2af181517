"""The bug report of `laneway doctor --report`: all checks and a few facts, without personal data.

Everything that is not our own wording passes `clean`, which removes secrets (by the one redactor),
mail addresses, the home folder, and the names of the user and the machine.
"""

from __future__ import annotations

import getpass
import os
import platform
import re
import socket
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from laneway import __version__
from laneway.base.errors import UsageError
from laneway.base.redact import redact
from laneway.base.schema import Settings
from laneway.base.setting_values import display, spell
from laneway.cli.checks.model import Check, CheckContext
from laneway.codex.binary import spell as spell_version

STDERR_CHARS = 16_000
"""The end of app-server's standard error; its beginning was never of use."""
MIN_NAME_CHARS = 3
"""Replacing a shorter name would damage other words, and it identifies nobody."""

_EMAIL = re.compile(r"[\w.+…%-]{1,256}@[\w…-]{1,64}(?:\.[\w…-]{1,64}){0,8}")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_OURS = ("LANEWAY_", "CODEX_", "OPENAI_", "ATM_", "CLAUDE_", "XDG_")
"""Variables whose names (never their values) help to understand a report."""


class Person(msgspec.Struct, frozen=True):
    """The names and folders of the user, which a report must not show."""

    homes: tuple[str, ...]
    user: str
    host: str


def whoami() -> Person:
    homes = {str(Path.home()), os.path.realpath(Path.home()), os.path.expanduser("~" + _user())}
    usable = {home for home in homes if home.startswith("/") and home != "/"}
    return Person(tuple(sorted(usable, key=len, reverse=True)), _user(), socket.gethostname())


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""  # a user id without a name, as in many containers


def clean(text: str, person: Person) -> str:
    """The text without secrets and without what identifies the user."""
    text = redact(_ESCAPES.sub("", text))
    for home in person.homes:
        text = re.sub(re.escape(home) + r"(?![\w.-])", "~", text)
    text = _EMAIL.sub("[e-mail]", text)
    for name, placeholder in ((person.user, "[user]"), (person.host, "[host]")):
        if len(name) >= MIN_NAME_CHARS:
            text = re.sub(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", placeholder, text)
    return text


def bundle(checks: Iterable[Check], context: CheckContext) -> dict[str, Any]:
    person = whoami()

    def cleaned(text: str) -> str:
        return clean(text, person)

    return {
        "laneway": __version__,
        "codex": None if context.version is None else spell_version(context.version),
        "python": sys.version.split()[0],
        "platform": cleaned(platform.platform()),
        "variables": sorted(name for name in context.environment if name.startswith(_OURS)),
        "checks": [_clean_check(check, cleaned) for check in checks],
        "app_server_stderr": cleaned(context.stderr_tail[-STDERR_CHARS:]),
        "settings": _settings(context.settings, cleaned),
    }


def _settings(settings: Settings | None, cleaned: Callable[[str], str]) -> dict[str, Any] | None:
    if settings is None:
        return None
    return {
        spell(keys): {"value": cleaned(display(keys, value.value)), "source": cleaned(str(value.source))}
        for keys, value in settings.values.items()
    }


def _clean_check(check: Check, cleaned: Callable[[str], str]) -> dict[str, Any]:
    return {
        "name": check.name,
        "severity": check.severity,
        "message": cleaned(check.message),
        "remedy": cleaned(check.remedy),
        "facts": _clean_tree(check.facts, cleaned),
    }


def _clean_tree(node: Any, cleaned: Callable[[str], str]) -> Any:
    match node:
        case str():
            return cleaned(node)
        case list() | tuple():
            return [_clean_tree(part, cleaned) for part in node]
        case dict():
            return {key: _clean_tree(value, cleaned) for key, value in node.items()}
        case _:
            return node


def open_report(path: Path) -> int:
    """Create a file that only its owner may read. Runs before the checks: a wrong path fails at once."""
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        raise UsageError(f"{path} already exists: name a new file for the report.") from None
    except OSError as problem:
        raise UsageError(f"The report cannot be written to {path}: {problem.strerror}.") from None


def write_report(fd: int, report: Mapping[str, Any]) -> None:
    with open(fd, "wb") as stream:
        stream.write(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
