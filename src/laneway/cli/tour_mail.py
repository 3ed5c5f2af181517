"""The tour's mail demo: two sessions of `laneway mcp`; one writes to the other and gets an answer.

The team is in the rehearsal's own folder: no real team is touched.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from laneway.cli.tour_mcp import DemoClient

TEAM = "tour"
FLAGS = ("--team", TEAM, "--tools", "codex,sessions,mail")
"""For the server: turns mail on and names the team, whatever the user's own settings say."""
AUTHOR, REVIEWER = "author", "reviewer"
ANSWER = "It looks good to me."
JOIN_TRIES, JOIN_WAIT_S = 60, 0.05
"""For the first message: a new session joins its team in the background."""


class MailDemo(msgspec.Struct, frozen=True):
    """The results of the demo."""

    problem: str = ""
    """Why it did not get further."""
    answers: list[dict[str, Any]] = []
    """The messages in the author's inbox."""
    counted: dict[str, Any] = {}
    """What `agent_status` says about mail."""


async def exchange(client: DemoClient) -> MailDemo:
    """Send a message and wait for its answer; the caller limits the time."""
    for identity, auto_mail in ((REVIEWER, True), (AUTHOR, False)):
        first = await client.call("codex", prompt="%say Ready.", identity=identity, auto_mail=auto_mail)
        if first.get("content") != "Ready.":
            return MailDemo(f"the session {identity} answered {first.get('content')!r}")
    uri = f"mail://{TEAM}/{AUTHOR}"
    await client.subscribe(uri)
    # The script of the reviewer's model: it answers with a tool of its thread.
    answer = msgspec.json.encode({"to": AUTHOR, "message": ANSWER}).decode()
    words = f"Please look at src/app.py.\n%tool atm_send {answer}\n%say I have answered."
    for _ in range(JOIN_TRIES):
        if await client.call("atm_send", identity=AUTHOR, to=REVIEWER, message=words):
            break
        await asyncio.sleep(JOIN_WAIT_S)
    else:
        return MailDemo(f"the session {REVIEWER} did not join its team")
    await client.wait_updated(uri)
    inbox = await client.call("atm_read", identity=AUTHOR)
    status = await client.call("agent_status")
    return MailDemo(answers=inbox.get("messages", []), counted=status.get("mail", {}))
