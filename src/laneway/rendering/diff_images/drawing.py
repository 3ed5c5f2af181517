"""Draws the rows of a diff by Pillow, as PNG files of few colours.

A letter that no font of this machine has is drawn by none: `CannotDraw`, and the diff is shown as text.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFont

from laneway.rendering.diff_images.layout import PictureRow, StyledText, width

SIZE, LINE, MARGIN = 20, 27, 12
"""In pixels: the font, a row, and around them."""
MIN_COLUMNS = 56
MAX_RATIO = 16
"""Of width to height: Telegram takes no photo beyond 20."""
COLOURS = 64
FONTS = (
    "DejaVuSansMono.ttf",
    "LiberationMono-Regular.ttf",
    "NotoSansMono-Regular.ttf",
    "UbuntuMono-R.ttf",
    "Menlo.ttc",
    "SFNSMono.ttf",
    "Courier New.ttf",
)
"""With letters of one width; the first that is found. Else Pillow's own."""
FURTHER_FONTS = (
    "DejaVuSans.ttf",
    "NotoSansCJK-Regular.ttc",
    "NotoSansSymbols2-Regular.ttf",
    "Arial Unicode.ttf",
    "PingFang.ttc",
    "Hiragino Sans GB.ttc",
)
"""For letters that the first one has not."""
NO_LETTER = "\U0010fffe"
"""In no font: what is drawn for it is what stands for a missing letter."""

BACK, INK, MUTED = "#0d1117", "#d8dee6", "#8b949e"
BACKS = {
    "file": "#21262d",
    "hunk": "#121d2f",
    "same": BACK,
    "added": "#12331f",
    "removed": "#3c1a1f",
    "note": BACK,
}
SIGNS = {"added": ("+", "#56d364"), "removed": ("−", "#ff7b72")}
INKS = {
    "": INK,
    "muted": MUTED,
    "keyword": "#ff8b82",
    "constant": "#79c0ff",
    "name": "#d2a8ff",
    "builtin": "#ffa657",
    "string": "#a5d6ff",
}


class CannotDraw(Exception):
    """A letter is in no font."""


class DiffDrawing:
    def __init__(self, pictures: Sequence[Sequence[PictureRow]]) -> None:
        self._pictures = pictures
        self._fonts = _Fonts()
        self._cell = self._fonts.first.getlength("0")
        rows = [row for picture in pictures for row in picture]
        most = max(sum(width(letter) for span in row.spans for letter in span.text) for row in rows)
        self._gutter = len(str(max((row.number for row in rows), default=0))) + 3
        """Columns in front of the text: the number, a blank, the sign, a blank."""
        columns = self._gutter + max(most, MIN_COLUMNS)
        self._width = round(columns * self._cell) + 2 * MARGIN

    def pngs(self) -> list[bytes]:
        return [self._png(rows) for rows in self._pictures]

    def _png(self, rows: Sequence[PictureRow]) -> bytes:
        height = max(len(rows) * LINE + 2 * MARGIN, self._width // MAX_RATIO + 1)
        image = Image.new("RGB", (self._width, height), BACK)
        draw = ImageDraw.Draw(image)
        for index, row in enumerate(rows):
            self._row(draw, row, MARGIN + index * LINE)
        out = io.BytesIO()
        image.quantize(COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(
            out, "PNG", optimize=True
        )
        return out.getvalue()

    def _row(self, draw: ImageDraw.ImageDraw, row: PictureRow, top: int) -> None:
        draw.rectangle((0, top, self._width, top + LINE - 1), fill=BACKS[row.kind])
        if row.kind in ("file", "hunk", "note"):
            at = self._text(draw, MARGIN, top, row.spans)
            for sign, count in zip("+−", row.counts, strict=True):
                if count:
                    at = self._text(draw, at + self._cell, top, (StyledText(f"{sign}{count:,}", sign),))
            return
        if row.number:
            number = str(row.number).rjust(self._gutter - 3)
            self._text(draw, MARGIN, top, (StyledText(number, "muted"),))
        sign, colour = SIGNS.get(row.kind, ("", INK)) if not row.is_further else ("", INK)
        left = MARGIN + (self._gutter - 2) * self._cell
        draw.text((left, top + 2), sign, font=self._fonts.first, fill=colour)
        self._text(draw, left + 2 * self._cell, top, row.spans)

    def _text(self, draw: ImageDraw.ImageDraw, left: float, top: int, spans: Sequence[StyledText]) -> float:
        """Returns where it ends. Letters of another font, or of several widths, stay in their columns."""
        inks = INKS | dict(SIGNS.values())
        for span in spans:
            for font, text in self._fonts.runs(span.text):
                draw.text((left, top + 2), text, font=font, fill=inks[span.style])
                columns = sum(width(letter) for letter in text)
                left += max(columns * self._cell, font.getlength(text))
        return left


class _Fonts:
    def __init__(self) -> None:
        found = _first_found(FONTS) or ImageFont.load_default(SIZE)
        if not isinstance(found, ImageFont.FreeTypeFont):  # Pillow was built without FreeType
            raise CannotDraw("anything")
        self.first = found
        self._known = [self.first]
        self._further: list[str] = list(FURTHER_FONTS)
        self._of: dict[str, ImageFont.FreeTypeFont] = {}

    def runs(self, text: str) -> list[tuple[ImageFont.FreeTypeFont, str]]:
        """The text in pieces of one font."""
        pieces: list[tuple[ImageFont.FreeTypeFont, str]] = []
        for letter in text:
            font = self.first if letter == " " else self._font_of(letter)
            if pieces and pieces[-1][0] is font:
                pieces[-1] = (font, pieces[-1][1] + letter)
            else:
                pieces.append((font, letter))
        return pieces

    def _font_of(self, letter: str) -> ImageFont.FreeTypeFont:
        if letter not in self._of:
            self._of[letter] = self._look_up(letter)
        return self._of[letter]

    def _look_up(self, letter: str) -> ImageFont.FreeTypeFont:
        for font in self._known:
            if _has(font, letter):
                return font
        while self._further:
            further = _first_found((self._further.pop(0),))
            if further is not None:
                self._known.append(further)
                if _has(further, letter):
                    return further
        raise CannotDraw(f"U+{ord(letter):04X}")


def _first_found(names: Sequence[str]) -> ImageFont.FreeTypeFont | None:
    for name in names:
        try:
            return ImageFont.truetype(name, SIZE)
        except OSError:
            continue
    return None


def _has(font: ImageFont.FreeTypeFont, letter: str) -> bool:
    if not letter.strip():
        return True
    missing, mask = font.getmask(NO_LETTER), font.getmask(letter)
    return (mask.size, bytes(mask)) != (missing.size, bytes(missing))
