"""Lays out changed files as rows of pictures: lines that are too long go on in further rows. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec

from laneway.rendering.diff_images.changed_files import DiffFile, DiffLine

COLUMNS = 96
"""Of a row. With a font of 20 pixels the picture is 1,280 wide, to which Telegram shrinks larger ones."""
ROWS = 46
"""Of a picture: it is then as high as it is wide."""
MAX_PICTURES = 6
"""What goes beyond is counted, and sent as a file."""
MIN_BEGINNING = 8
"""Rows of the last picture that the beginning of one more file is worth."""
MAX_LINE_ROWS = 6
"""Of one line: minified files have lines of 100,000 characters."""
ELLIPSIS = "…"

RowKind: TypeAlias = Literal["file", "hunk", "same", "added", "removed", "note"]
KINDS: dict[str, RowKind] = {" ": "same", "+": "added", "-": "removed", "@": "hunk"}


class StyledText(msgspec.Struct, frozen=True):
    """Text in one colour."""

    text: str
    style: str = ""
    """As in `highlighting.STYLES`; empty for none."""


class PictureRow(msgspec.Struct, frozen=True, kw_only=True):
    kind: RowKind
    spans: tuple[StyledText, ...] = ()
    number: int = 0
    """Of the line; 0 for none."""
    is_further: bool = False
    """Whether the line has begun in a row above."""
    counts: tuple[int, int] = (0, 0)
    """Of kind `file`: lines that were added and removed."""


class DiffLayout(msgspec.Struct, frozen=True):
    pictures: tuple[tuple[PictureRow, ...], ...]
    is_whole: bool
    """Whether everything is in them."""


Highlight: TypeAlias = Callable[[str, Sequence[str]], list[tuple[StyledText, ...]]]
"""Makes spans of the lines of one side of a hunk, by the file's path."""


def no_colours(path: str, lines: Sequence[str]) -> list[tuple[StyledText, ...]]:
    return [(StyledText(line),) for line in lines]


def lay_out(files: Sequence[DiffFile], highlight: Highlight = no_colours) -> DiffLayout:
    """A file that fits below the one before stands there; else it begins a picture."""
    pictures: list[list[PictureRow]] = []
    is_whole = True
    for index, file in enumerate(files):
        rows = _Rows(file, highlight)
        room = ROWS - len(pictures[-1]) if pictures else 0
        if rows.fits(room - 1):
            pictures[-1] += [PictureRow(kind="note"), *rows]
            is_whole = is_whole and not rows.is_cut
            continue
        for at, piece in enumerate(_pieces(rows, ROWS)):
            if len(pictures) == MAX_PICTURES:
                if not at and room > MIN_BEGINNING:
                    pictures[-1] += [PictureRow(kind="note"), *piece[: room - 1]]
                return DiffLayout(_with_note(pictures, len(files) - index), is_whole=False)
            again = [_title(file, is_continued=True)] if at else []
            pictures.append([*again, *piece])
        is_whole = is_whole and not rows.is_cut
    return DiffLayout(tuple(map(tuple, pictures)), is_whole)


class _Rows:
    """The rows of a file, made as they are asked for: of a huge one only the first are needed."""

    def __init__(self, file: DiffFile, highlight: Highlight) -> None:
        self._file, self._highlight = file, highlight
        self.is_cut = False
        """Whether a line was cut; known once the rows were made."""

    def fits(self, room: int) -> bool:
        return len(self._file.lines) < room and sum(1 for _ in self) <= room

    def __iter__(self) -> Iterator[PictureRow]:
        yield _title(self._file)
        hunk: list[DiffLine] = []
        for line in self._file.lines:
            if line.sign == "@":
                yield from self._hunk(hunk)
                hunk = []
                if line.number > 1 or line.text:
                    yield _separator(line)
            else:
                hunk.append(line)
        yield from self._hunk(hunk)

    def _hunk(self, lines: list[DiffLine]) -> Iterator[PictureRow]:
        """Both sides are read as the code that they are: a text over several lines keeps its colour."""
        spans: dict[int, tuple[StyledText, ...]] = {}
        for side in ("- ", "+ "):
            indexes = [at for at, line in enumerate(lines) if line.sign in side]
            texts = self._highlight(self._file.path, [lines[at].text for at in indexes])
            spans.update(zip(indexes, texts, strict=True))
        for at, line in enumerate(lines):
            wrapped = list(wrap(spans[at], COLUMNS))
            self.is_cut = self.is_cut or len(wrapped) > MAX_LINE_ROWS
            for row, part in enumerate(wrapped[:MAX_LINE_ROWS]):
                is_cut = row == MAX_LINE_ROWS - 1 and len(wrapped) > MAX_LINE_ROWS
                yield PictureRow(
                    kind=KINDS[line.sign],
                    spans=(*part, StyledText(ELLIPSIS, "muted")) if is_cut else part,
                    number=0 if row else line.number,
                    is_further=row > 0,
                )


def _pieces(rows: _Rows, height: int) -> Iterator[list[PictureRow]]:
    """As many rows as fit into one picture; each but the first has a title more."""
    piece: list[PictureRow] = []
    room = height
    for row in rows:
        if len(piece) == room:
            yield piece
            piece, room = [], height - 1
        piece.append(row)
    yield piece


def _title(file: DiffFile, *, is_continued: bool = False) -> PictureRow:
    what = "continued" if is_continued else file.what
    path = _end_of(file.path or "?", COLUMNS - 30)
    spans = (StyledText(path), *((StyledText(f"  {what[:28]}", "muted"),) if what else ()))
    return PictureRow(kind="file", spans=spans, counts=(0, 0) if is_continued else (file.added, file.removed))


def _separator(line: DiffLine) -> PictureRow:
    where = f"line {line.number:,}" if line.number else ""
    text = "  ".join(part for part in (where, line.text[: COLUMNS - 20]) if part)
    return PictureRow(kind="hunk", spans=(StyledText(f"⋯ {text}".rstrip(), "muted"),))


def _end_of(path: str, columns: int) -> str:
    return path if len(path) <= columns else f"{ELLIPSIS}{path[-columns:]}"


def _with_note(pictures: list[list[PictureRow]], files: int) -> tuple[tuple[PictureRow, ...], ...]:
    text = f"⋯ more of {files} file{'' if files == 1 else 's'} is not in these pictures"
    last = [*pictures[-1][: ROWS - 1], PictureRow(kind="note", spans=(StyledText(text, "muted"),))]
    return tuple(map(tuple, [*pictures[:-1], last]))


def wrap(spans: Sequence[StyledText], columns: int) -> Iterator[tuple[StyledText, ...]]:
    """The rows of a line; an empty one has one row."""
    row: list[StyledText] = []
    left = columns
    for span in spans:
        begin = 0
        for at, letter in enumerate(span.text):
            wide = width(letter)
            if wide > left:
                row.append(StyledText(span.text[begin:at], span.style))
                yield tuple(each for each in row if each.text)
                row, left, begin = [], columns, at
            left -= wide
        row.append(StyledText(span.text[begin:], span.style))
    yield tuple(each for each in row if each.text)


def width(letter: str) -> int:
    """In columns."""
    if letter.isascii():
        return 1
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
