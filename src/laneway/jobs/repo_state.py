"""What of a repository belongs to its user alone: HEAD, references, stash. Compared before and after a job.

Codex's sandbox keeps `.git` from being written, but not everywhere; what a worker did there all the same is
a breach of its contract, which is told in words that say how to take it back. Blocking; reads only.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Collection
from pathlib import Path

import msgspec

from laneway.base.plain import code_label
from laneway.wire.git import git

MAX_REFS_BYTES = 64 * 1024 * 1024
LITTER = (".agents", ".aws", ".codex")
"""Empty folders that a killed sandbox of Codex leaves in the workspace."""
MAX_BREACHES = 100


class RepoState(msgspec.Struct, frozen=True):
    """HEAD as it is written, and every reference with the object that it names."""

    head: str
    refs: dict[str, str]


def repo_state(tree: str) -> RepoState | None:
    """None where git finds no repository, or cannot read it."""
    folder = Path(tree)
    head = git(folder, "symbolic-ref", "--quiet", "HEAD")
    if head.exit_code != 0:  # it names a commit, no branch
        head = git(folder, "rev-parse", "--verify", "--quiet", "HEAD")
    refs = git(folder, "for-each-ref", "--format=%(objectname) %(refname)", max_bytes=MAX_REFS_BYTES)
    if refs.exit_code != 0:
        return None
    pairs = (line.partition(" ") for line in refs.stdout.decode("utf-8", "replace").splitlines())
    return RepoState(
        head=head.line,
        refs={name: oid for oid, _, name in pairs if name},
    )


def breaches(before: RepoState | None, after: RepoState | None) -> tuple[str, ...]:
    """Pure. What was changed, a sentence each, with the command that takes it back."""
    if before is None or after is None:
        return ("HEAD and references could not be compared: git cannot read the repository.",)
    found: list[str] = []
    if before.head != after.head:
        found.append(
            f"HEAD was moved from {code_label(before.head)} to {code_label(after.head)}:"
            f" `git checkout {code_label(before.head.removeprefix('refs/heads/'))}` goes back."
        )
    for name in sorted({*before.refs, *after.refs}):
        old, new = before.refs.get(name), after.refs.get(name)
        if old != new:
            found.append(_breach(name, old, new))
    return tuple(found[:MAX_BREACHES])


def _breach(name: str, old: str | None, new: str | None) -> str:
    shown = code_label(name)
    if name == "refs/stash":
        return f"The stash was changed: it was {old or 'empty'}, and is {new or 'empty'} now."
    if old is None:
        return f"{shown} was made: `git update-ref -d {shown} {new}` removes it."
    if new is None:
        return f"{shown} was removed: `git update-ref {shown} {old}` brings it back."
    return f"{shown} was moved: `git update-ref {shown} {old} {new}` goes back."


# ── empty folders ──────────────────────────────────────────────────────────


def present_litter(cwd: str) -> frozenset[str]:
    """Which of these folders are there already, and so not left by a sandbox."""
    return frozenset(name for name in LITTER if os.path.lexists(os.path.join(cwd, name)))


def remove_litter(cwd: str, were_there: Collection[str]) -> None:
    """Remove those that are new and hold nothing but empty folders."""
    for name in LITTER:
        path = os.path.join(cwd, name)
        if name not in were_there and _is_hollow(path):
            shutil.rmtree(path, ignore_errors=True)


def _is_hollow(path: str) -> bool:
    try:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            return False
        return all(not files for _, _, files in os.walk(path, followlinks=False))
    except OSError:
        return False
