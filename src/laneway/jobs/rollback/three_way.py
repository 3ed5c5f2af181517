"""Three versions of a file: merged if nothing is in dispute, and shown side by side.

Git merges and compares copies in a temporary folder, without a repository and without programs.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec

from laneway.base.prepare import prepare
from laneway.wire.git import git_apart

MAX_BYTES = 16 * 1024 * 1024
"""Of each version."""
MAX_SHOWN_BYTES = 256 * 1024
"""Of a difference, and of the merged text, that is shown."""
MAX_CONFLICTS = 127
"""Git counts no further."""


@prepare
class ThreeWay(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What two jobs made of one file."""

    path: str
    one: str = ""
    """The differences from the baseline, as text."""
    other: str = ""
    merged: str = ""
    """Both together; what is in dispute stands between marks, with the baseline in the middle."""
    conflicts: int = 0
    is_binary: bool = False
    """It is no text: then there is nothing to show."""
    is_cut: bool = False


def merge(base: bytes, mine: bytes, theirs: bytes) -> bytes | None:
    """Apply what changed from `base` to `theirs` to `mine`. None if that is not possible without a doubt."""
    merged, conflicts = _merge(base, mine, theirs)
    return merged if conflicts == 0 else None


def three_way(
    path: str,
    baseline: bytes | None,
    one: bytes | None,
    other: bytes | None,
    *,
    labels: tuple[str, str, str] = ("baseline", "one", "other"),
) -> ThreeWay:
    """Compare two versions of a file with what there was before. None is a file that is not there."""
    versions = (baseline or b"", one or b"", other or b"")
    if any(_is_binary(version) for version in versions):
        return ThreeWay(path=path, is_binary=True)
    merged, conflicts = _merge(*versions, labels=labels)
    shown = [
        _difference(path, labels[0], baseline, label, version)
        for label, version in zip(labels[1:], (one, other), strict=True)
    ]
    texts = [_cut(text) for text in (*shown, merged or b"")]
    return ThreeWay(
        path=path,
        one=texts[0][0],
        other=texts[1][0],
        merged=texts[2][0],
        conflicts=conflicts,
        is_cut=any(is_cut for _, is_cut in texts),
    )


def _is_binary(version: bytes) -> bool:
    return b"\0" in version or len(version) > MAX_BYTES


def _merge(
    base: bytes, mine: bytes, theirs: bytes, *, labels: tuple[str, str, str] = ("baseline", "one", "other")
) -> tuple[bytes | None, int]:
    """The merged text and how often it is in dispute; -1 where git cannot merge at all."""
    if any(_is_binary(version) for version in (base, mine, theirs)):
        return None, -1
    with tempfile.TemporaryDirectory(prefix="laneway-merge-") as name:
        folder = Path(name)
        for file, version in (("base", base), ("mine", mine), ("theirs", theirs)):
            (folder / file).write_bytes(version)
        names = [word for label in (labels[1], labels[0], labels[2]) for word in ("-L", label)]
        ran = git_apart(
            folder, "merge-file", "-p", "--diff3", *names, "mine", "base", "theirs", max_bytes=4 * MAX_BYTES
        )
    if ran.is_cut or not 0 <= ran.exit_code <= MAX_CONFLICTS or (ran.exit_code and not ran.stdout):
        return None, -1
    return ran.stdout, ran.exit_code


def _difference(path: str, label: str, before: bytes | None, other_label: str, after: bytes | None) -> bytes:
    if before == after:
        return b""
    with tempfile.TemporaryDirectory(prefix="laneway-diff-") as name:
        folder = Path(name)
        (folder / "before").write_bytes(before or b"")
        (folder / "after").write_bytes(after or b"")
        ran = git_apart(
            folder,
            "diff",
            "--no-index",
            "--no-ext-diff",
            "--no-textconv",
            "before",
            "after",
            max_bytes=4 * MAX_BYTES,
        )
    start = ran.stdout.find(b"\n@@")
    names = [path if version is not None else "no file" for version in (before, after)]
    head = f"--- {label}: {names[0]}\n+++ {other_label}: {names[1]}"
    return head.encode("utf-8", "surrogateescape") + (ran.stdout[start:] if start >= 0 else b"\n")


def _cut(text: bytes) -> tuple[str, bool]:
    return text[:MAX_SHOWN_BYTES].decode("utf-8", "replace"), len(text) > MAX_SHOWN_BYTES
