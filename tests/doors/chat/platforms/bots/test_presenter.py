"""What bots post for the outputs of a conversation."""

from __future__ import annotations

from laneway.doors.chat.messages import Place
from laneway.doors.chat.outputs import AnyOutput, Shown, TextDelta, TextDone
from laneway.doors.chat.platforms.bots.presenter import BotPresenter

PLACE = Place(platform="telegram", chat="1")


def test_pieces_that_come_after_the_whole_text_are_no_news() -> None:
    """A place that has just joined reads the whole from the store, and hears the pieces afterwards."""
    presenter = BotPresenter(PLACE, "chat-1", "/work")

    def posted(output: AnyOutput) -> list[tuple[str, bool]]:
        shown = Shown(conversation_id="chat-1", number=0, at=0.0, output=output)
        return [(post.text, post.is_partial) for post in presenter.present(shown)]

    piece = TextDelta(lane="claude", ticket="in-1", part="in-1.1", text="All of", offset=0, kind="text")
    other = TextDelta(lane="claude", ticket="in-1", part="in-1.2", text="More", offset=0, kind="text")
    whole = TextDone(lane="claude", ticket="in-1", part="in-1.1", text="All of it.", kind="text")
    assert posted(piece) == [("All of", True)]
    assert posted(whole) == [("All of it.", False)]
    assert posted(piece) == []
    assert posted(other) == [("More", True)]
