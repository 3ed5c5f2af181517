"""The panel of team mail: teams, their members and inboxes, and sending. It marks nothing as read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from laneway.base.errors import BadName, MemberUnknown, TeamGone
from laneway.base.plain import plain
from laneway.core.ports import Clock
from laneway.doors.console.panels.news import news_of
from laneway.doors.console.panels.plain_json import shown
from laneway.doors.console.panels.ports import Letter, TeamMailPort
from laneway.doors.page_parts import PageFeed, PageRefused, PageReply, PageRequest, json_reply, unknown

LOOK_S = 2.0
"""Between two looks at the folders of all teams, while a browser is open."""


class MailPart:
    """A `PagePart`."""

    name = "mail"
    title = "Mail"
    static = Path(__file__).with_name("static") / "mail"

    def __init__(self, mail: TeamMailPort, clock: Clock) -> None:
        self._mail = mail
        self._clock = clock

    @asynccontextmanager
    async def running(self, feed: PageFeed) -> AsyncIterator[None]:
        async with news_of(feed, self._mail.marks, self._clock, LOOK_S):
            yield

    async def get(self, request: PageRequest) -> PageReply:
        try:
            match request.path:
                case ():
                    return json_reply(shown(await self._mail.teams()))
                case (team, "members"):
                    return json_reply(shown(await self._mail.members(team)))
                case (team, "inboxes", name):
                    return json_reply(shown(await self._mail.inbox(team, name)))
                case _:
                    raise unknown()
        except (TeamGone, BadName, MemberUnknown) as problem:
            raise PageRefused(404, plain(str(problem))) from None

    async def post(self, request: PageRequest) -> PageReply:
        match request.path:
            case (team, "send"):
                letter = await request.value(Letter)
                return json_reply(shown(await self._mail.send(team, letter)))
            case _:
                raise unknown()
