"""A lane that hides and forges, on Telegram and Discord: people see all of it, as what it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from laneway.core.model import Activity, FileChange, PlanStep
from laneway.testing.chat_script import ScriptedLanes, ScriptedTurn
from laneway.testing.fake_discord import DiscordMessage
from laneway.testing.fake_telegram import BotApiMessage
from tests.adversary.forging import HIDING, decoded, hidden
from tests.doors.chat.platforms.bot_scenes import begun
from tests.doors.chat.platforms.discord import scene as on_discord
from tests.doors.chat.platforms.telegram import scene as on_telegram

HIDDEN = decoded(HIDING)
FORGED = "**CODEX asks** · question 9"
COMMAND = f"touch ../outside {HIDDEN}\n```\n~~~~\n{FORGED}\n`ls` [here](https://evil.example) <@1> @everyone"
END = "end-of-it"
MARKED = f"a{HIDDEN}`b` **c** [d](https://evil.example) @everyone _e_ ||f|| <@1>{END}"


def act(turn: ScriptedTurn) -> None:
    """All that a lane may say of itself, with marks in it."""
    turn.thought(MARKED)
    turn.plan(PlanStep(text=MARKED, status="running"))
    turn.command(MARKED)
    turn.command(MARKED, status="failed", output=COMMAND + END, exit_code=1)
    change = FileChange(path=f"dir/{MARKED}.py", kind="update", diff="@@ -1 +1 @@\n-a\n+b\n")
    turn.activity(
        Activity(
            turn_id=turn.turn_id,
            item_id="edit-1",
            kind="edit",
            title=MARKED,
            status="completed",
            changes=(change,),
        )
    )
    turn.approve(COMMAND + END)


def diff() -> str:
    return f"--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-a\n+```\n+{FORGED} {HIDDEN}{END}\n"


def tokens(content: str) -> list[Token]:
    """As Discord reads it, which keeps to CommonMark here."""
    found: list[Token] = []
    for block in MarkdownIt("commonmark").parse(content):
        found += [block, *(block.children or [])]
    return found


def links(content: str) -> list[str]:
    return [str(each.attrs["href"]) for each in tokens(content) if each.type == "link_open"]


def bold(content: str) -> str:
    """All words in bold, of the whole message."""
    shown, depth = "", 0
    for each in tokens(content):
        depth += {"strong_open": 1, "strong_close": -1}.get(each.type, 0)
        shown += each.content if depth and each.type == "text" else ""
    return shown


async def test_on_discord_nothing_of_a_lane_is_markup_hides_or_notifies(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with on_discord.scene(tmp_path) as place, place.running(lanes) as process:
        thread = await place.thread(process, "/codex go")
        turn = await begun(lanes, "codex")
        act(turn)
        asked = await place.discord.message_with(thread, "question 1")
        await process.settled()
        turn.diff(diff())
        turn.done("")
        await place.discord.message_with(thread, "1 file changed")
        await process.settled()
        shown = place.discord.shown(thread)
    assert not any(message.pings for message in shown)
    assert hidden([message.content for message in shown]) == set()
    assert all(END in message.content for message in (asked, *_with(shown, "💭", "plan", "🔧", "changed")))
    assert [link for message in shown for link in links(message.content)] == []
    assert not any("c" in bold(message.content).split() for message in shown)
    (code,) = [each.content for each in tokens(asked.content) if each.type == "fence"]
    assert FORGED in code
    assert code.rstrip().endswith(END)
    assert bold(asked.content).count("CODEX asks") == 1
    (changed,) = _with(shown, "changed")
    (code,) = [each.content for each in tokens(changed.content) if each.type == "fence"]
    assert FORGED in code
    assert place.discord.refused == []


async def test_on_telegram_nothing_of_a_lane_is_markup_or_hides(tmp_path: Path) -> None:
    lanes = ScriptedLanes()
    async with on_telegram.scene(tmp_path) as place, place.running(lanes) as process:
        place.ada.write(place.home, "/codex go")
        turn = await begun(lanes, "codex")
        act(turn)
        asked = await place.telegram.message_with(place.home, "question 1")
        await process.settled()
        turn.diff(diff())
        turn.done("")
        await place.telegram.message_with(place.home, "1 file changed")
        await process.settled()
        shown = place.telegram.shown(place.home)
    assert hidden([message.text for message in shown]) == set()
    assert all(END in each for each in (asked.text, *(m.text for m in shown if "🔧" in m.text)))
    assert not [entity for message in shown for entity in message.now.entities if "url" in entity]
    assert not any("c" in words(message, "bold").split() for message in shown)
    assert FORGED.replace("*", "") not in words(asked, "bold")
    assert FORGED in words(asked, "pre")
    assert words(asked, "pre").rstrip().endswith(END)
    (changed,) = [message for message in shown if "changed" in message.text]
    assert FORGED in words(changed, "pre")
    assert place.telegram.refused == []


def words(message: BotApiMessage, kind: str) -> str:
    """Of all entities of a kind."""
    encoded = message.now.text.encode("utf-16-le")

    def of(entity: dict[str, Any]) -> str:
        begin = 2 * entity["offset"]
        return encoded[begin : begin + 2 * entity["length"]].decode("utf-16-le")

    return "\n".join(of(entity) for entity in message.now.entities if entity["type"] == kind)


def _with(shown: list[DiscordMessage], *marks: str) -> list[DiscordMessage]:
    return [message for message in shown if any(mark in message.content for mark in marks)]
