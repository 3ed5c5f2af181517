"""`laneway config trust|untrust`: shows what a repository's settings ask for, and records what was agreed to.

Exactly what was shown is trusted: a file that changes while the user reads is not. Everything that
is shown here is foreign text: it is fenced, and characters that could move the cursor or hide text
are escaped.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from laneway.base import trust, vetting
from laneway.base.errors import ContentUnreadable, UsageError
from laneway.base.kinds import to_text
from laneway.base.layers import RepoFile
from laneway.base.plain import plain
from laneway.base.setting_values import spell
from laneway.base.settings import Settings, load
from laneway.cli.confirming import confirm
from laneway.cli.trust_claude import ClaudeRequest, claude_request
from laneway.terminal.prompting.keyboard import find_keyboard

FENCE = "  │ "
MAX_PREVIEW_LINES = 40
"""Of a prompt file on the screen: to read more, one opens the file."""
MAX_PREVIEW_CHARS = 200
"""Of one of its lines."""


class SettingChange(NamedTuple):
    """A setting that trust is asked for: what it was when it was last trusted, and what it is now."""

    key: str
    before: str | None
    now: str | None
    is_same: bool

    def __str__(self) -> str:
        if self.now is None:
            return f"{self.key} is no longer set (it was {self.before})"
        if self.before is None or self.is_same:
            return f"{self.key} = {self.now}"
        return f"{self.key} = {self.before} → {self.now}"


def give(options: argparse.Namespace, before: Settings, folder: Path) -> int:
    """Show what is asked for, ask the user, record the trust."""
    try:
        claude = claude_request(folder, os.environ, trust_file())
    except ContentUnreadable as problem:
        raise UsageError(f"{problem}: nothing was trusted.") from problem
    root = before.repo.root or (claude.file.root if claude is not None else None)
    if root is None:
        path = to_text(folder.absolute())
        raise UsageError(
            f"{path} is not in a repository and has no settings file: there is nothing to trust."
        )
    if (why := vetting.why_never(root, trust_file())) is not None:
        raise UsageError(f"Nothing was trusted: {why}.")
    asking = [file for file in before.repo_files if file.trust_state in ("not trusted", "changed")]
    try:
        requests = {file.path: vetting.request_of(file) for file in asking}
    except ContentUnreadable as problem:
        raise UsageError(f"{problem}: nothing was trusted.") from problem
    out = sys.stderr if options.json else sys.stdout
    for file in asking:
        for line in lines_of(file, requests[file.path]):
            print(line, file=out)
    if claude is not None and claude.file.trust_state != "trusted":
        for line in lines_of_claude(claude):
            print(line, file=out)
        asking.append(claude.file)
        requests[claude.file.path] = claude.request
    if asking and not options.yes:
        _confirm()
    recorded = [
        trust.give(trust_file(), file.root, {file.path: requests[file.path].settings}) for file in asking
    ]
    files = (*before.repo_files, *((claude.file,) if claude is not None else ()))
    _report(options, root, files, has_changed=any(recorded))
    _print_ignored(folder, out)
    return 0


def take_back(options: argparse.Namespace, root: Path) -> int:
    has_changed = trust.take_back(trust_file(), root)
    real = os.path.realpath(root)
    if options.json:
        print(json.dumps({"root": real, "trusted": False, "changed": has_changed}))
    else:
        print(f"{to_text(real)} {'is now' if has_changed else 'was already'} not trusted.")
    return 0


def trust_file() -> Path:
    return trust.trust_file(os.environ, Path.home())


def lines_of(file: RepoFile, request: vetting.TrustRequest) -> Iterator[str]:
    """What a file asks for, as lines for the person who decides."""
    word = "has changed since you trusted it, and asks" if file.trust_state == "changed" else "asks"
    yield f"{to_text(file.path)} {word} for your trust in:"
    yield ""
    values = {spell(each.keys): each.value for each in file.sensitive}
    for change in changes(file, request):
        yield FENCE + visible(str(change))
        content = request.contents.get(values.get(change.key, Path()))
        if content is not None:
            yield from (f"{FENCE}  {line}" for line in _preview(content))
    yield ""


def lines_of_claude(claude: ClaudeRequest) -> Iterator[str]:
    """What Claude Code would use of a repository."""
    word = "have changed since you trusted them, and ask" if claude.file.before else "ask"
    yield f"The settings for Claude Code in {to_text(claude.file.root)} {word} for your trust in:"
    yield ""
    for change in changes(claude.file, claude.request):
        yield FENCE + visible(str(change))
        content = claude.request.contents.get(claude.paths.get(change.key, Path()))
        if content is not None and not change.is_same:
            yield from (f"{FENCE}  {line}" for line in _preview(content))
    if claude.has_instructions:
        yield FENCE + "CLAUDE.md, as instructions: it may change without a new question"
    yield ""


def changes(file: RepoFile, request: vetting.TrustRequest) -> list[SettingChange]:
    """One change per key; settings that were trusted and are gone come last."""
    now, before = request.settings, file.before
    changed = []
    for key, setting in now.items():
        old = before.get(key)
        is_same = old is not None and old.digest == setting.digest
        changed.append(SettingChange(key, None if old is None else old.text, setting.text, is_same))
    return changed + [
        SettingChange(key, old.text, None, False) for key, old in before.items() if key not in now
    ]


def difference(file: RepoFile) -> list[str]:
    """The changes since the file was trusted, as lines that are safe to show."""
    try:
        lines = [str(change) for change in changes(file, vetting.request_of(file)) if not change.is_same]
    except ContentUnreadable as problem:
        lines = [str(problem)]
    return [FENCE + visible(line) for line in lines]


def visible(line: str) -> str:
    """Foreign text on one line, without zero-width characters, in which instructions can hide."""
    return "".join(
        letter if letter.isprintable() or letter == "\t" else f"\\u{ord(letter):04x}"
        for letter in plain(line)
    )


def _preview(content: bytes) -> Iterator[str]:
    lines = content.decode(errors="backslashreplace").removesuffix("\n").split("\n")
    for line in lines[:MAX_PREVIEW_LINES]:
        yield visible(line[:MAX_PREVIEW_CHARS]) + (" …" if len(line) > MAX_PREVIEW_CHARS else "")
    if len(lines) > MAX_PREVIEW_LINES:
        yield f"… {len(lines) - MAX_PREVIEW_LINES} more lines: read the file before you agree"


def _confirm() -> None:
    """Raises `UsageError` unless the user says yes after everything was shown."""
    keyboard = find_keyboard()
    if keyboard is None or not sys.stderr.isatty():
        raise UsageError(
            "Nothing was trusted: there is no terminal to ask at. In a script, use"
            " `laneway config trust --yes`."
        )
    question = "Trust exactly this? If it changes, you are asked again."
    if not asyncio.run(confirm(keyboard, question)):
        raise UsageError("Nothing was trusted.")


def _report(
    options: argparse.Namespace, root: Path, files: tuple[RepoFile, ...], *, has_changed: bool
) -> None:
    is_any = any(file.trust_state != "asks for nothing" for file in files)
    if options.json:
        data: dict[str, Any] = {"root": str(root), "trusted": is_any, "changed": has_changed}
        print(json.dumps(data))
    elif not is_any:
        print(f"Nothing in the settings of {to_text(root)} needs your trust.")
    else:
        print(f"{to_text(root)} {'is now' if has_changed else 'was already'} trusted, as it is.")


def _print_ignored(folder: Path, out: Any) -> None:
    """Print what is still ignored."""
    for ignored in load({}, os.environ, folder, Path.home()).ignored:
        print(f"  still ignored: {ignored}", file=out)
