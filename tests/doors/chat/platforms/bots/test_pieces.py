"""Long posts become several messages, or a file with its head and its tail."""

from __future__ import annotations

from laneway.doors.chat.outputs import Button
from laneway.doors.chat.platforms.bots.pieces import pieces
from laneway.doors.chat.platforms.bots.posts import BotPost, PostKind, PostLimits, decode_post, encode_post
from laneway.doors.chat.splitting import utf16_units

LIMITS = PostLimits(units=100, measure=utf16_units)
BUTTON = Button("x", "Go")


def post(text: str, kind: PostKind = "text", *, is_partial: bool = False, diff: str = "") -> BotPost:
    return BotPost(
        key="c/k",
        kind=kind,
        conversation_id="c",
        text=text,
        buttons=(BUTTON,),
        is_partial=is_partial,
        diff=diff,
    )


def test_a_text_that_fits_is_one_message() -> None:
    short = post("😀" * 50)
    assert pieces(short, LIMITS) == [short]


def test_a_longer_one_is_several_with_the_buttons_below_the_last() -> None:
    cut = pieces(post("\n\n".join(["word " * 12] * 5)), LIMITS)
    assert [each.key for each in cut] == ["c/k", "c/k+1", "c/k+2", "c/k+3", "c/k+4"]
    assert [bool(each.buttons) for each in cut] == [False] * 4 + [True]
    assert all(utf16_units(each.text) <= 100 for each in cut)


def test_a_very_long_one_is_a_file_between_its_head_and_its_tail() -> None:
    text = "first\n" + "😀 middle\n" * 100 + "last"
    head, file, tail = pieces(post(text), LIMITS)
    assert head.text.startswith("first")
    assert (file.kind, file.name, file.body) == ("file", "answer.md", text)
    assert tail.text.endswith("last")
    assert tail.buttons == (BUTTON,)
    assert all(utf16_units(each.text) <= 100 for each in (head, file, tail))


def test_a_long_diff_is_a_file_of_the_bare_diff() -> None:
    diff = "+line\n" * 50
    head, file = pieces(post(f"2 files\n```diff\n{diff}```", "diff", diff=diff), LIMITS)
    assert head.text.endswith("```")
    assert (file.name, file.body) == ("changes.diff", diff)


def test_of_a_text_that_grows_the_end_is_shown_with_its_code_block_open_and_closed() -> None:
    (only,) = pieces(post("```py\n" + "code()\n" * 50, is_partial=True), LIMITS)
    assert only.text.startswith("…\n```\ncode()")
    assert only.text.endswith("```")
    assert only.text.count("```") == 2
    assert utf16_units(only.text) <= 100


def test_a_stored_post_comes_back_as_it_was() -> None:
    stored = post("text", "diff", diff="+x")
    assert decode_post(encode_post(stored)) == stored
    assert decode_post(b"\xc1 not ours") is None
