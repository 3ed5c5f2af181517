"""Reads a unified diff over several files into the lines that are drawn. Pure.

The counts in a hunk's header decide where it ends, because a removed line "-- x" looks like a header.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

import msgspec

from laneway.base.plain import plain_code

TAB = 4
"""Columns of a tab."""
NO_NUMBERS = 1 << 40
"""Lines of a hunk whose header does not say how many it has."""

LineSign: TypeAlias = Literal[" ", "+", "-", "@"]
"""Unchanged, added, removed; or the beginning of a hunk."""

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@ ?(.*)")


class DiffLine(msgspec.Struct, frozen=True):
    sign: LineSign
    number: int = 0
    """In the new file; of a removed line in the old one. 0 where the diff does not say."""
    text: str = ""


class DiffFile(msgspec.Struct, kw_only=True):
    path: str = ""
    what: str = ""
    """What the header says beyond the lines: `new`, `deleted`, `binary`, `renamed from …`."""
    lines: list[DiffLine] = []

    @property
    def added(self) -> int:
        return sum(line.sign == "+" for line in self.lines)

    @property
    def removed(self) -> int:
        return sum(line.sign == "-" for line in self.lines)


def changed_files(diff: str) -> list[DiffFile]:
    """The files in their order. Of a diff that was cut off, what is there."""
    reader = _DiffReader()
    for line in diff.removesuffix("\n").split("\n"):
        reader.read(line.removesuffix("\r"))
    return [file for file in reader.files if file.path or file.lines]


class _DiffReader:
    def __init__(self) -> None:
        self.files: list[DiffFile] = []
        self._old_left = self._new_left = 0
        """Lines of the hunk that are still to come."""
        self._old_at = self._new_at = 0

    def read(self, line: str) -> None:
        is_in_hunk = self._old_left > 0 or self._new_left > 0
        has_counts = self._old_left < NO_NUMBERS // 2
        if is_in_hunk and (has_counts or not line.startswith(("@@", "diff --git "))):
            self._body(line)
        else:
            self._header(line)

    def _body(self, line: str) -> None:
        sign, text = line[:1] or " ", plain_code(line[1:].expandtabs(TAB))
        lines = self.files[-1].lines
        if sign == "+":
            lines.append(DiffLine("+", self._new_at, text))
        elif sign == "-":
            lines.append(DiffLine("-", self._old_at, text))
        elif sign == " ":
            lines.append(DiffLine(" ", self._new_at, text))
        else:
            return  # "\ No newline at end of file"
        if sign in "+ ":
            self._new_at += bool(self._new_at)
            self._new_left -= 1
        if sign in "- ":
            self._old_at += bool(self._old_at)
            self._old_left -= 1

    def _header(self, line: str) -> None:
        if line.startswith("diff --git "):
            self.files.append(DiffFile(path=_path(line.rpartition(" b/")[2])))
            self._old_left = self._new_left = 0
            return
        if line.startswith("--- ") and (not self.files or self.files[-1].lines):
            self.files.append(DiffFile())
        if not self.files:
            if not line.startswith("@@"):
                return
            self.files.append(DiffFile())
        file = self.files[-1]
        if line.startswith("@@"):
            self._hunk(file, line)
        elif line.startswith(("--- ", "+++ ")):
            named = line[4:].partition("\t")[0]
            if named != "/dev/null":
                file.path = _path(named.removeprefix("a/" if line.startswith("-") else "b/"))
        elif line.startswith("new file"):
            file.what = "new"
        elif line.startswith("deleted file"):
            file.what = "deleted"
        elif line.startswith("rename from "):
            file.what = f"renamed from {_path(line.removeprefix('rename from '))}"
        elif line.startswith(("Binary files ", "GIT binary patch")):
            file.what = "binary"

    def _hunk(self, file: DiffFile, line: str) -> None:
        found = _HUNK.match(line)
        if found is None:
            self._old_left = self._new_left = NO_NUMBERS
            self._old_at = self._new_at = 0
            file.lines.append(DiffLine("@"))
            return
        self._old_at, self._new_at = int(found[1]), int(found[3])
        self._old_left = int(found[2]) if found[2] is not None else 1
        self._new_left = int(found[4]) if found[4] is not None else 1
        file.lines.append(DiffLine("@", self._new_at, plain_code(found[5].expandtabs(TAB))))


def _path(text: str) -> str:
    return plain_code(text.strip().strip('"'))
