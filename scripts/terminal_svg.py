"""Turns a recording of a terminal (outputs with their times) into one animated SVG.

Pure. `pyte` interprets the escape codes; the SVG needs no script, so that it is animated wherever
an image is shown. Equal lines are stored once.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TypeAlias

import msgspec
import pyte
from pyte.screens import Char

CELL_W, CELL_H, MARGIN = 8.4, 18, 14
FONT_PX = 14
FRAME_S = 0.08
"""Output within this time is one frame: the eye sees no more, and the file stays small."""
MAX_PAUSE_S = 1.2
"""Longer pauses are shortened."""
LAST_S = 5.0
"""For reading the last frame before the animation restarts."""

COLOURS = {
    "black": "#1e1e2e",
    "red": "#f38ba8",
    "green": "#a6e3a1",
    "brown": "#f9e2af",
    "yellow": "#f9e2af",
    "blue": "#89b4fa",
    "magenta": "#cba6f7",
    "cyan": "#94e2d5",
    "white": "#cdd6f4",
    "brightblack": "#7f849c",
    "default": "#cdd6f4",
}
BACKGROUND = "#1e1e2e"

Output: TypeAlias = tuple[float, bytes]
"""Seconds since the start, and what was written then."""
Line: TypeAlias = tuple[tuple[str, str], ...]
"""Runs of text, each with its style."""


class Frame(msgspec.Struct, frozen=True):
    """The whole screen at one time."""

    at_s: float
    lines: tuple[Line, ...]


def frames(outputs: Sequence[Output], rows: int, columns: int) -> list[Frame]:
    """The screens that a person would have seen, with pauses shortened and blinking cursors left out."""
    screen = pyte.Screen(columns, rows)
    stream = pyte.ByteStream(screen)
    recorded: list[Frame] = []
    now = before = 0.0
    for at_s, data in outputs:
        stream.feed(data)
        now += min(at_s - before, MAX_PAUSE_S)
        before = at_s
        lines = tuple(_line(screen, row) for row in range(rows))
        if recorded and lines == recorded[-1].lines:
            continue
        if recorded and now - recorded[-1].at_s < FRAME_S:
            recorded[-1] = Frame(recorded[-1].at_s, lines)
        else:
            recorded.append(Frame(now, lines))
    return recorded


def _line(screen: pyte.Screen, row: int) -> Line:
    runs: list[tuple[str, str]] = []
    cells = screen.buffer[row]
    last = max((column for column, cell in cells.items() if cell.data != " " or cell.reverse), default=-1)
    for column in range(last + 1):
        cell = cells[column]
        style = _style(cell)
        if runs and runs[-1][1] == style:
            runs[-1] = (runs[-1][0] + cell.data, style)
        else:
            runs.append((cell.data, style))
    return tuple(runs)


def _style(cell: Char) -> str:
    fore = cell.bg if cell.reverse else cell.fg
    colour = COLOURS.get(fore) or f"#{fore}"
    if cell.reverse and cell.bg == "default":
        colour = BACKGROUND
    weight = ' font-weight="bold"' if cell.bold else ""
    slant = ' font-style="italic"' if cell.italics else ""
    return f'fill="{colour}"{weight}{slant}'


def svg(recorded: Sequence[Frame], rows: int, columns: int, title: str) -> str:
    """The animation, in an endless loop."""
    width = round(columns * CELL_W + 2 * MARGIN)
    height = rows * CELL_H + 2 * MARGIN
    start_s = recorded[0].at_s
    total_s = recorded[-1].at_s - start_s + LAST_S
    known: dict[Line, str] = {}
    body = []
    for number, frame in enumerate(recorded):
        top = number * height
        for row, line in enumerate(frame.lines):
            if line:
                name = known.setdefault(line, f"l{len(known)}")
                y = top + MARGIN + row * CELL_H + FONT_PX
                body.append(f'<use href="#{name}" y="{y}"/>')
    steps = "".join(
        f"{100 * (frame.at_s - start_s) / total_s:.3f}%{{transform:translateY({-number * height}px)}}"
        for number, frame in enumerate(recorded)
    )
    defs = "".join(f'<g id="{name}">{_runs(line)}</g>' for line, name in known.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{escape(title)}">\n'
        f"<style>@keyframes play{{{steps}100%{{transform:translateY({-(len(recorded) - 1) * height}px)}}}}"
        f"#frames{{animation:play {total_s:.2f}s step-end infinite}}"
        f"text{{font:{FONT_PX}px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
        "white-space:pre}</style>\n"
        f'<rect width="{width}" height="{height}" rx="10" fill="{BACKGROUND}"/>\n<defs>{defs}</defs>\n'
        f'<svg width="{width}" height="{height}" overflow="hidden"><g id="frames">'
        + "".join(body)
        + "</g></svg>\n</svg>\n"
    )


def _runs(line: Line) -> str:
    pieces = []
    column = 0
    for text, style in line:
        if text.strip():
            x = MARGIN + column * CELL_W
            width = len(text) * CELL_W
            position = f'x="{x:.1f}" textLength="{width:.1f}" xml:space="preserve"'
            pieces.append(f"<text {position} {style}>{escape(text)}</text>")
        column += len(text)
    return "".join(pieces)
