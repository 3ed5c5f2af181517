"""The tour's stop at the mailbox: two sessions of `laneway mcp`, one writes to the other and is answered.

The team lies in the rehearsal's own folder: nobody's real team hears of it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from laneway.cli.tour_mcp import Visitor

TEAM = "tour"
FLAGS = ("--team", TEAM, "--tools", "codex,sessions,mail")
"""For the server: whatever the user's own settings say, there is mail, and its team has this name."""
AUTHOR, REVIEWER = "author", "reviewer"
ANSWER = "It looks good to me."
JOIN_TRIES, JOIN_WAIT_S = 60, 0.05
"""To write to a session that has just begun: it joins its team in the background."""


class Exchange(msgspec.Struct, frozen=True):
    """What came of it."""

    problem: str = ""
    """Why it did not get further."""
    answers: list[dict[str, Any]] = []
    """What the author found in its inbox."""
    counted: dict[str, Any] = {}
    """What `agent_status` says about mail."""


async def exchange(client: Visitor) -> Exchange:
    """Ends when the answer is there; the caller limits the time."""
    for identity, auto_mail in ((REVIEWER, True), (AUTHOR, False)):
        began = await client.call("codex", prompt="%say Ready.", identity=identity, auto_mail=auto_mail)
        if began.get("content") != "Ready.":
            return Exchange(f"the session {identity} answered {began.get('content')!r}")
    uri = f"mail://{TEAM}/{AUTHOR}"
    await client.subscribe(uri)
    # What the reviewer's model does when it reads this: answer with a tool of its thread.
    answer = msgspec.json.encode({"to": AUTHOR, "message": ANSWER}).decode()
    words = f"Please look at src/app.py.\n%tool atm_send {answer}\n%say I have answered."
    for _ in range(JOIN_TRIES):
        if await client.call("atm_send", identity=AUTHOR, to=REVIEWER, message=words):
            break
        await asyncio.sleep(JOIN_WAIT_S)
    else:
        return Exchange(f"the session {REVIEWER} did not join its team")
    await client.wait_updated(uri)
    found = await client.call("atm_read", identity=AUTHOR)
    status = await client.call("agent_status")
    return Exchange(answers=found.get("messages", []), counted=status.get("mail", {}))
