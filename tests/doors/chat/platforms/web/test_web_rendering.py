"""What the page is sent: Markdown as trees, diffs as rows, texts that are being written, exported files."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.core.model import FileChange
from laneway.doors.chat.outputs import TextDelta
from laneway.doors.chat.platforms.web.diff_rows import MAX_ROWS, change_diff, turn_diffs
from laneway.doors.chat.platforms.web.export import export_html
from laneway.doors.chat.platforms.web.live_texts import LiveTexts
from laneway.doors.chat.platforms.web.markdown_tree import MAX_MARKDOWN_CHARS, TAGS, markdown_tree, tree_html
from laneway.doors.chat.ports import PartialText
from laneway.testing.clock import HandClock


def elements(nodes: list[Any]) -> list[tuple[str, dict[str, Any]]]:
    """All elements of a tree."""
    found: list[tuple[str, dict[str, Any]]] = []
    for node in nodes:
        if not isinstance(node, str):
            found += [(node[0], node[1]), *elements(node[2:])]
    return found


# ── Markdown ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "hostile",
    [
        "<img src=x onerror=alert(1)>",
        "<script>alert(1)</script>",
        "a <b onclick=alert(1)>b</b>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        "[x](vbscript:x)",
        "![x](http://203.0.113.1/pixel.png)",
        "![x](javascript:alert(1))",
        '[x](https://e.org "onmouseover=alert(1)")',
        "<https://e.org/\"onclick='alert(1)'>",
        "[x]: javascript:alert(1)\n\n[x]",
        "&lt;script&gt; &#60;script&#62;",
        "```<script>\n</code></pre><script>\n```",
        "| <img src=x> |\n|---|\n| <script> |",
    ],
)
def test_raw_html_is_text_and_only_harmless_links_are_links(hostile: str) -> None:
    """As a tree for the page, and as HTML for an exported file."""
    tree = markdown_tree(hostile)
    for tag, attributes in elements(tree):
        assert tag in TAGS
        assert set(attributes or {}) <= {"href", "start"}
        if "href" in (attributes or {}):
            assert attributes["href"].lower().startswith(("https://", "http://", "mailto:"))
    html = tree_html(tree)
    assert "<script" not in html
    assert "<img" not in html
    assert "onclick=" not in html.replace("&quot;", '"').split(">")[0]


@given(st.text(alphabet=st.sampled_from("<>&\"'`*_[](){}!#|-\\\n\t :/ajs\u202e\x1b\x00"), max_size=60))
def test_no_text_makes_another_element_or_a_hidden_character(text: str) -> None:
    tree = markdown_tree(text)
    assert {tag for tag, _ in elements(tree)} <= TAGS
    assert not set("\u202e\x1b\x00") & set(json.dumps(tree, ensure_ascii=False))
    assert "<script" not in tree_html(tree)


def test_markdown_that_takes_long_is_shown_as_it_is() -> None:
    """And what is nested too deeply is not followed down."""
    long = "*a " * MAX_MARKDOWN_CHARS
    assert [node[0] for node in markdown_tree(long)] == ["pre"]
    assert len(elements(markdown_tree("> " * 5000 + "x"))) < 200
    assert elements(markdown_tree("[" * 5000 + "x" + "](y)" * 5000))


# ── diffs ──────────────────────────────────────────────────────────────────


def test_lines_that_were_replaced_stand_beside_each_other() -> None:
    diff = "@@ -1,4 +1,4 @@ def f\n same\n-old one\n-old two\n+new one\n tail\n"
    rows = change_diff(FileChange(path="a.py", kind="update", diff=diff)).rows
    assert [(row.sign, row.old_number, row.old, row.new_number, row.new) for row in rows] == [
        ("@", None, "def f", None, ""),
        (" ", 1, "same", 1, "same"),
        ("~", 2, "old one", 2, "new one"),
        ("-", 3, "old two", None, ""),
        (" ", 4, "tail", 3, "tail"),
    ]


def test_a_diff_of_a_turn_names_its_files_and_a_long_one_is_counted() -> None:
    added = "".join(f"+line {number}\n" for number in range(MAX_ROWS + 5))
    diff = (
        "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n"
        "diff --git a/gone.py b/gone.py\ndeleted file mode 100644\n"
        "--- a/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
        "diff --git a/new.py b/new.py\nnew file mode 100644\n"
        f"--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n{added}"
    )
    files = turn_diffs(diff)
    assert [(file.path, file.kind) for file in files] == [
        ("x.py", "update"),
        ("gone.py", "delete"),
        ("new.py", "add"),
    ]
    assert (len(files[2].rows), files[2].left_out) == (MAX_ROWS, 6)


@given(st.text(alphabet=st.sampled_from("@-+ \n1,ab\u202e\\"), max_size=80))
def test_any_text_can_be_shown_as_a_diff(text: str) -> None:
    for file in [*turn_diffs(text), change_diff(FileChange(path="a", kind="update", diff=text))]:
        assert all("\u202e" not in row.old + row.new for row in file.rows)


# ── texts that are being written ───────────────────────────────────────────


class Telling:
    def __init__(self) -> None:
        self.clock = HandClock()
        self.told: list[dict[str, Any]] = []
        self.gaps = 0
        self.live = LiveTexts(self.clock, lambda topic, data: self.told.append(data), self._on_gap)

    def _on_gap(self) -> None:
        self.gaps += 1

    def delta(self, offset: int, text: str) -> None:
        self.live.add(TextDelta(lane="claude", ticket="t", part="p", offset=offset, text=text))


def test_finished_blocks_are_told_once_and_the_open_end_again_each_time() -> None:
    here = Telling()
    here.delta(0, "One.\n\nTw")
    here.delta(8, "o.\n\nThr")
    here.clock.advance(1)
    here.delta(15, "ee")
    here.clock.advance(1)
    assert [(each["first"], len(each["trees"]), each["tail"]) for each in here.told] == [
        (0, 1, "Tw"),
        (1, 1, "Thr"),
        (2, 0, "Three"),
    ]
    (whole,) = here.live.snapshot()
    assert (whole["first"], len(whole["trees"]), whole["tail"]) == (0, 2, "Three")


def test_a_piece_that_is_missing_is_noticed_and_one_that_comes_twice_is_not_shown_twice() -> None:
    here = Telling()
    here.delta(0, "One tw")
    here.delta(9, "three")
    assert here.gaps == 1
    here.live.restore((PartialText(lane="claude", ticket="t", part="p", text="One two three"),))
    here.delta(8, "three")
    here.clock.advance(1)
    assert here.live.snapshot()[0]["tail"] == "One two three"


# ── exported files ─────────────────────────────────────────────────────────


def test_an_exported_file_runs_nothing_and_loads_nothing() -> None:
    evil = "<script>alert(1)</script>"
    record = {"title": evil, "cwd": evil, "created_at": 0.0}
    said = {"kind": "said", "sender": evil, "platform": evil, "images": 1, "text": evil}
    file = {"kind": "file", "lane": "codex", "name": evil, "caption": evil}
    text = {"kind": "text", "lane": "codex", "tree": markdown_tree(f"{evil} ![x](http://203.0.113.1/x.png)")}
    page = export_html(record, [said, file, text])
    assert "<script" not in page
    assert "src=" not in page
    assert page.count("&lt;script&gt;") >= 7
    assert "default-src 'none'; style-src 'unsafe-inline'" in page
