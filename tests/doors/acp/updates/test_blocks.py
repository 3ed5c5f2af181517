"""What tools of others return, as content that ACP knows: nothing is left out without a word."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.doors.acp.updates import blocks
from laneway.doors.acp.updates.blocks import tool_results
from laneway.rendering.as_code import as_json
from tests.doors.acp.calls import BARE, problems

MANY = 10_000
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
fields = (
    "text",
    "data",
    "mimeType",
    "uri",
    "name",
    "title",
    "size",
    "resource",
    "annotations",
    "imageUrl",
    "blob",
)
kinds = (
    "text",
    "image",
    "audio",
    "resource_link",
    "resource",
    "inputText",
    "inputImage",
    "inputAudio",
    "new",
)
values = json_values | st.sampled_from(("aGk=", "image/png", "data:image/png;base64,aGk=", "https://x.y/z"))
notes = st.fixed_dictionaries(
    {},
    optional={
        "audience": json_values | st.just(["user", 3]),
        "priority": json_values,
        "lastModified": json_values,
    },
)
odd_blocks = st.fixed_dictionaries(
    {"type": st.sampled_from(kinds)},
    optional=dict.fromkeys(fields, values)
    | {"annotations": notes, "resource": st.dictionaries(st.sampled_from(fields), values, max_size=4)},
)


def shown(*given: Any, max_chars: int = MANY) -> list[dict[str, Any]]:
    return [part["content"] for part in tool_results(list(given), max_chars)]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": "Hello."},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
        {
            "type": "resource_link",
            "uri": "file:///a",
            "name": "a",
            "title": "A",
            "size": 3,
            "mimeType": "text/plain",
        },
        {"type": "resource", "resource": {"uri": "file:///a", "text": "pass", "mimeType": "text/x-python"}},
        {"type": "resource", "resource": {"uri": "file:///a", "blob": "aGk="}},
        {"type": "text", "text": "a", "annotations": {"audience": ["user"], "priority": 0.5}},
    ],
)
def test_what_acp_knows_passes_as_it_is(block: dict[str, Any]) -> None:
    """MCP and ACP share these blocks."""
    assert shown(block) == [block]


def test_fields_that_acp_does_not_name_are_left_out() -> None:
    """MCP has some more; a strict client would refuse the whole message."""
    block = {"type": "resource_link", "uri": "file:///a", "icons": [], "_meta": {}, "size": -1, "title": 3}
    assert shown(block) == [{"type": "resource_link", "uri": "file:///a", "name": "file:///a"}]


@pytest.mark.parametrize(
    "block", [{"type": "chart", "x": 1}, {"type": "text"}, "words", 3, None, {"type": ["text"]}]
)
def test_what_acp_does_not_know_is_shown_as_json(block: Any) -> None:
    """A user sees what came, whatever it is."""
    [made] = shown(block)
    assert made == {"type": "text", "text": f"```json\n{as_json(block)}\n```"}


def test_a_result_that_is_no_list_is_one_block() -> None:
    """And none at all is none."""
    assert tool_results({"type": "text", "text": "a"}, MANY) == [blocks.text("a")]
    assert tool_results(None, MANY) == []


def test_media_of_codexs_own_blocks_come_out_of_their_urls() -> None:
    """Data as data, an address as a link."""
    inside = {"type": "inputImage", "imageUrl": "data:image/png;base64,aGk="}
    outside = {"type": "inputAudio", "audioUrl": "https://x.y/z.wav"}
    assert shown(inside, outside) == [
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "resource_link", "name": "audio", "uri": "https://x.y/z.wav"},
    ]


def test_wrapped_base64_is_unwrapped() -> None:
    """Some servers break it into lines."""
    [made] = shown({"type": "image", "data": "aG\nk=\r\n", "mimeType": "image/png"})
    assert made["data"] == "aGk="


def test_bad_base64_is_told_and_not_sent() -> None:
    """A client would fail on it."""
    [made] = shown({"type": "image", "data": "§§", "mimeType": "image/png"})
    assert made == {"type": "text", "text": "This image (image/png) is not valid base64 and is left out."}


def test_images_beyond_the_bound_are_told_and_not_sent() -> None:
    """The first fits, the second would make the line too long."""
    data = "A" * (blocks.MAX_MEDIA_CHARS // 4 * 3)
    first, second = shown(*[{"type": "image", "data": data, "mimeType": "image/png"}] * 2)
    assert first["data"] == data
    assert second["text"].startswith("This image (image/png, ")
    assert second["text"].endswith("too large to show.")


def test_the_bound_of_text_is_one_for_all_blocks() -> None:
    """Many blocks are no way around it."""
    made = shown(*[{"type": "text", "text": "x" * 60}] * 3, max_chars=100)
    assert made[0]["text"] == "x" * 60
    assert "[20 of 60 characters are left out here.]" in made[1]["text"]
    assert made[2]["text"] == "\n[60 of 60 characters are left out here.]\n"


@given(st.lists(odd_blocks | json_values, max_size=4), st.integers(0, 200))
def test_whatever_a_server_returns_the_client_gets_what_acp_knows(given: list[Any], max_chars: int) -> None:
    """One block for one block."""
    made = tool_results(given, max_chars)
    assert len(made) == len(given)
    update = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "t", "content": made}
    assert problems(BARE, update) == []
