"""The pictures of the README: how a recording becomes an animated SVG."""

from __future__ import annotations

from xml.etree import ElementTree

from scripts import record_chat, record_demo
from scripts.terminal_svg import FRAME_S, MAX_PAUSE_S, frames, svg

OUTPUTS = [(0.0, b"$ laneway"), (0.01, b" ask"), (60.0, b"\r\n\x1b[31m<&>\x1b[0m")]


def test_what_is_written_at_once_is_one_frame_and_pauses_are_short() -> None:
    """Two frames of three writes, and nobody watches a minute of nothing."""
    first, second = frames(OUTPUTS, 3, 20)
    assert first.lines[0] == (("$ laneway ask", 'fill="#cdd6f4"'),)
    assert second.lines[1] == (("<&>", 'fill="#f38ba8"'),)
    assert FRAME_S < second.at_s - first.at_s <= MAX_PAUSE_S + 0.01


def test_the_picture_is_valid_xml_without_a_script_or_anything_from_outside() -> None:
    """It is shown on pages that run no script; foreign text in it is text."""
    pictures = [module.PICTURE.read_text() for module in (record_demo, record_chat)]
    for text in (svg(frames(OUTPUTS, 3, 20), 3, 20, 'a "title"'), *pictures):
        root = ElementTree.fromstring(text)
        tags = {element.tag.rpartition("}")[2] for element in root.iter()}
        assert tags == {"svg", "style", "rect", "defs", "g", "text", "use"}
        assert text.count("http") == 1  # the name of SVG itself
