"""Reads a diff from standard input and writes its pictures: `DrawnDiff` as msgpack, or nothing.

Bounded by itself, too: whoever started it may have died.
"""

from __future__ import annotations

import resource
import sys

import msgspec

from laneway.rendering.diff_images.changed_files import changed_files
from laneway.rendering.diff_images.drawing import CannotDraw, DiffDrawing
from laneway.rendering.diff_images.drawn import DRAW_S, MAX_DIFF_CHARS, DrawnDiff
from laneway.rendering.diff_images.highlighting import Highlighter
from laneway.rendering.diff_images.layout import lay_out


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (round(DRAW_S), round(DRAW_S)))
    diff = sys.stdin.buffer.read().decode(errors="replace")
    layout = lay_out(changed_files(diff[:MAX_DIFF_CHARS]), Highlighter())
    if not layout.pictures:
        return
    try:
        pictures = DiffDrawing(layout.pictures).pngs()
    except CannotDraw as problem:
        sys.stderr.write(f"no font has {problem}\n")
        return
    is_whole = layout.is_whole and len(diff) <= MAX_DIFF_CHARS
    drawn = DrawnDiff(pictures=tuple(pictures), is_whole=is_whole)
    sys.stdout.buffer.write(msgspec.msgpack.encode(drawn))


if __name__ == "__main__":
    main()
