"""Diffs as pictures: what is read of a diff, how it is laid out, and what Pillow makes of it."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
from PIL import Image

import laneway
from laneway.rendering.diff_images import layout
from laneway.rendering.diff_images.changed_files import DiffLine, changed_files
from laneway.rendering.diff_images.drawn import MAX_DIFF_CHARS, DrawnDiff
from laneway.rendering.diff_images.highlighting import Highlighter
from laneway.rendering.diff_images.layout import StyledText, lay_out, wrap

SOURCE = Path(laneway.__file__).parent.parent
DIFF = """\
diff --git a/src/retry.py b/src/retry.py
--- a/src/retry.py
+++ b/src/retry.py
@@ -12,4 +12,5 @@ class Retry:
     def next_wait(self):
-        return 1
--- x
+        return 2
+++ y
+\tz
\x20
diff --git a/new.txt b/new.txt
new file mode 100644
--- /dev/null
+++ b/new.txt
@@ -0,0 +1 @@
+hello
\\ No newline at end of file
diff --git a/old.bin b/old.bin
deleted file mode 100644
Binary files a/old.bin and /dev/null differ
diff --git a/a.txt b/b.txt
rename from a.txt
rename to b.txt
"""


def drawn(diff: str) -> DrawnDiff:
    """By the process that draws."""
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "laneway.rendering.diff_images"],
        input=diff.encode(errors="surrogatepass"),
        capture_output=True,
        check=True,
        env={"PYTHONPATH": str(SOURCE)},
    )
    return msgspec.msgpack.decode(ran.stdout, type=DrawnDiff) if ran.stdout else DrawnDiff()


def picture(png: bytes) -> Image.Image:
    return Image.open(io.BytesIO(png)).convert("RGB")


def colours(image: Image.Image) -> dict[tuple[int, int, int], int]:
    return {colour: count for count, colour in image.getcolors(1 << 20)}  # type: ignore[misc,union-attr]


def has(image: Image.Image, close_to: Callable[[int, int, int], bool]) -> bool:
    return any(close_to(*colour) for colour in colours(image))


def added(count: int, path: str = "big.py") -> str:
    lines = "".join(f"+line_{number} = {number}\n" for number in range(count))
    return f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{count} @@\n{lines}"


# ── reading ────────────────────────────────────────────────────────────────


def test_the_counts_of_a_hunk_say_what_is_a_line_and_what_a_header() -> None:
    retry, new, binary, renamed = changed_files(DIFF)
    assert (retry.path, retry.added, retry.removed) == ("src/retry.py", 3, 2)
    assert retry.lines == [
        DiffLine("@", 12, "class Retry:"),
        DiffLine(" ", 12, "    def next_wait(self):"),
        DiffLine("-", 13, "        return 1"),
        DiffLine("-", 14, "-- x"),
        DiffLine("+", 13, "        return 2"),
        DiffLine("+", 14, "++ y"),
        DiffLine("+", 15, "    z"),
        DiffLine(" ", 16, ""),
    ]
    assert (new.path, new.what, new.lines[1:]) == ("new.txt", "new", [DiffLine("+", 1, "hello")])
    assert (binary.path, binary.lines) == ("old.bin", [])
    assert (renamed.path, renamed.what) == ("b.txt", "renamed from a.txt")


def test_a_diff_without_git_headers_and_one_without_numbers_are_read_too() -> None:
    first, second = changed_files(
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- a/y\n+++ b/y\n@@\n-c\n+d\n@@\n+e\n"
    )
    assert [first.path, second.path] == ["x", "y"]
    assert [(line.sign, line.number, line.text) for line in second.lines] == [
        ("@", 0, ""),
        ("-", 0, "c"),
        ("+", 0, "d"),
        ("@", 0, ""),
        ("+", 0, "e"),
    ]


def test_hidden_letters_of_a_diff_are_spelt_out() -> None:
    (file,) = changed_files("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+if\u202e admin\n")
    assert "\u202e" not in file.lines[-1].text
    assert file.lines[-1].text == r"if\u202e admin"


# ── laying out ─────────────────────────────────────────────────────────────


def test_small_files_share_a_picture_and_a_large_one_goes_on_in_the_next() -> None:
    both = lay_out(changed_files(added(3, "a.py") + added(4, "b.py")))
    assert ([len(rows) for rows in both.pictures], both.is_whole) == ([10], True)
    long = lay_out(changed_files(added(100)))
    assert ([len(rows) for rows in long.pictures], long.is_whole) == ([46, 46, 11], True)
    assert [rows[0].spans[-1].text.strip() for rows in long.pictures] == ["big.py", "continued", "continued"]


def test_more_than_six_pictures_are_never_made_and_what_is_left_out_is_said() -> None:
    cut = lay_out(changed_files(added(100_000) + added(1, "other.py")))
    assert ([len(rows) for rows in cut.pictures], cut.is_whole) == ([46] * 6, False)
    assert cut.pictures[-1][-1].spans[0].text == "⋯ more of 2 files is not in these pictures"


def test_a_line_of_a_minified_file_has_six_rows() -> None:
    cut = lay_out(changed_files("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+" + "x" * 100_000))
    rows = cut.pictures[0]
    assert (len(rows), rows[-1].spans[-1].text, cut.is_whole) == (8, "…", False)
    assert [row.is_further for row in rows[2:]] == [False, *[True] * 5]


def test_wide_letters_take_two_columns() -> None:
    assert list(wrap((StyledText("ab中"), StyledText("文c", "string")), 4)) == [
        (StyledText("ab中"),),
        (StyledText("文c", "string"),),
    ]
    assert list(wrap((), 4)) == [()]


# ── colours ────────────────────────────────────────────────────────────────


def test_a_text_over_several_lines_keeps_its_colour_and_no_letter_changes() -> None:
    lines = ["def f():", '    """One', "    two", '    """', "", "    return 1"]
    spans = Highlighter()("x.py", lines)
    assert ["".join(span.text for span in line) for line in spans] == lines
    assert [line[-1].style if line else "" for line in spans] == [
        "",
        "string",
        "string",
        "string",
        "",
        "constant",
    ]
    assert Highlighter()("unknown.zzz", ["a b"]) == [(StyledText("a b"),)]
    for path in ("x.html", "Makefile", "x.md", "x.json", "x.yaml"):
        found = Highlighter()(path, ["\tx  ", "", "<a>: {'b'}", ""])
        assert ["".join(span.text for span in line) for line in found] == ["\tx  ", "", "<a>: {'b'}", ""]


# ── drawing ────────────────────────────────────────────────────────────────


def test_a_picture_shows_what_was_added_and_removed_in_its_colours() -> None:
    result = drawn(DIFF)
    (png,) = result.pictures
    image = picture(png)
    assert result.is_whole
    assert has(image, lambda red, green, blue: green > 1.4 * red and green > blue)
    assert has(image, lambda red, green, blue: red > 1.4 * green and red > blue)
    assert len(colours(image)) > 8  # letters are there, with smooth edges


def test_no_picture_is_larger_than_what_telegram_shows_unchanged() -> None:
    long = "".join(f"+{'word ' * 60}{number}\n" for number in range(300))
    result = drawn(f"--- /dev/null\n+++ b/x.md\n@@ -0,0 +1,300 @@\n{long}")
    assert (len(result.pictures), result.is_whole) == (layout.MAX_PICTURES, False)
    assert all(max(picture(png).size) <= 1280 for png in result.pictures)
    assert sum(map(len, result.pictures)) < 8 * 1024 * 1024


def test_no_picture_is_too_flat_for_telegram() -> None:
    name = "folder/" * 12
    (png,) = drawn(f"diff --git a/x b/{name}x\nrename from x\nrename to {name}x\n").pictures
    wide, high = picture(png).size
    assert wide < 20 * high


def test_letters_that_no_font_has_are_not_drawn_as_boxes() -> None:
    """The whole diff is text then: a box in place of a letter would hide what was changed."""
    assert drawn("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+\U00012000\U00012001\n") == DrawnDiff()


def test_nothing_to_draw_and_bytes_that_are_no_text_make_no_trouble() -> None:
    assert drawn("") == DrawnDiff()
    assert drawn("no diff at all\n") == DrawnDiff()
    assert drawn("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+\udcff\x00\x1b[31m\n").pictures


def test_of_a_huge_diff_only_the_beginning_is_read() -> None:
    huge = added(60_000)
    assert len(huge) > MAX_DIFF_CHARS
    result = drawn(huge)
    assert (len(result.pictures), result.is_whole) == (6, False)
