"""The real Claude Code and the real Codex in one team, offline: they write to each other.

Claude Code runs in a terminal and starts our server itself; both models are scripted on loopback.
Mail carries the script of whoever reads it.
"""

from __future__ import annotations

import asyncio
import json
from functools import partial

from laneway.mail.draft import draft
from laneway.mail.inbox import Inbox
from laneway.testing.mail_rules import config_faults, inbox_faults
from tests.core.support import until
from tests.mail.claude_support import ClaudeStage, claude_stage

LETTERS = 4
"""That Claude Code writes while others write, too."""
POLLS = 3
"""Times that the lead takes mail out of its inbox while Codex puts some in."""


def please_send(text: str) -> str:
    """A mail that makes Codex write to the lead."""
    return f"%tool atm_send {json.dumps({'to': 'team-lead', 'message': text})}"


async def test_claude_code_finds_codex_in_its_team_and_each_gets_the_others_mail() -> None:
    """`SendMessage` becomes a turn of Codex; what that sends stands in the lead's conversation."""
    async with claude_stage() as here:
        async with here.lead():
            await here.start_codex()
            await until(lambda: here.members() == ["team-lead", "codex-1"])
            assert config_faults(here.places.config(here.team).read_bytes(), {"codex-1"}) == []

            letter = f"please answer me\n{please_send('here is my answer')}\n%say this goes to nobody"
            sent = await here.write(letter)
            await until(lambda: here.inbox("team-lead"))
            await until(lambda: here.unread() == [])
            [[(headers, text)]] = here.mail_turns
            assert (headers["From"], headers["Message-ID"], text) == ("team-lead", sent["msg_id"], letter)
            [answer] = here.inbox("team-lead")
            assert (answer["from"], answer["text"]) == ("codex-1", "here is my answer")
            for agent in ("codex-1", "team-lead"):
                assert inbox_faults(here.places.inbox(here.team, agent).read_bytes()) == []

            await here.start_polling()
            await until(here.shown)
            assert here.shown() == ["here is my answer"]
            await until(lambda: here.inbox("team-lead") == [])
            assert here.members() == ["team-lead", "codex-1", "worker"]
        assert here.places.teams() == ()


async def test_a_shutdown_request_of_claude_code_ends_the_session_and_is_answered() -> None:
    """The lead is told that it is done; the name is free for the next, whom the old request does not end."""
    async with claude_stage() as here, here.lead():
        first = await here.start_codex()
        await until(lambda: "codex-1" in here.members())
        asked = await here.write({"type": "shutdown_request", "reason": "all done"})
        await until(lambda: here.members() == ["team-lead"])
        assert [(each["agent_id"], each["status"]) for each in here.records()] == [
            (first["agent_id"], "closed")
        ]
        assert here.unread() == []
        assert here.mail_turns == []  # obeyed, not shown to the model

        second = await here.start_codex("hello again")
        await until(lambda: "codex-1" in here.members())
        await here.write("%say still here")
        await until(lambda: here.told() == ["%say still here"])
        assert {each["agent_id"]: each["status"] for each in here.records()} == {
            first["agent_id"]: "closed",
            second["agent_id"]: "active",
        }

        await here.start_polling()
        await until(here.shown)
        [told] = [json.loads(text) for text in here.shown()]
        assert (told["type"], told["requestId"]) == ("shutdown_approved", asked["request_id"])
        assert told["from"] == "codex-1"


async def test_claude_code_and_codex_write_at_the_same_time_and_nothing_is_lost_or_doubled() -> None:
    """One inbox that three write and one marks, one that we fill while Claude Code empties it."""
    async with claude_stage(LANEWAY_MAIL_TURNS_PER_HOUR="10000") as here, here.lead():
        await here.start_codex()
        await until(lambda: "codex-1" in here.members())
        is_over = asyncio.Event()
        third = asyncio.create_task(keep_writing(here, is_over))
        try:
            letters = [please_send(f"claude {number}") for number in range(LETTERS)]
            for letter in letters:
                await here.write(letter)
            await here.start_polling()
            await until(lambda: here.polls() >= POLLS or third.done())
            is_over.set()
            thirds = await third
        finally:
            third.cancel()
        count = len(letters) + len(thirds)
        await until(lambda: len(here.told()) >= count and here.unread() == [])
        await until(lambda: len(here.shown()) >= count and here.inbox("team-lead") == [])

        told = here.told()
        assert [text for text in told if "claude" in text] == letters
        assert [text for text in told if "bob" in text] == thirds
        assert [please_send(text) for text in here.shown()] == told
        assert inbox_faults(here.places.inbox(here.team, "codex-1").read_bytes()) == []


def has_got(here: ClaudeStage, text: str) -> bool:
    return text in here.told()


async def keep_writing(here: ClaudeStage, is_over: asyncio.Event) -> list[str]:
    """Be a third who writes to Codex, again as soon as it was read; what was written."""
    inbox = Inbox(here.places, here.team, "codex-1")
    written: list[str] = []
    while not is_over.is_set():
        text = please_send(f"bob {len(written)}")
        await asyncio.to_thread(inbox.append, draft("bob", text, team=here.team))
        written.append(text)
        await until(partial(has_got, here, text))
    return written
