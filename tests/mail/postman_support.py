"""A postman with hand-driven sessions and real files, and what other team members write into them."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from laneway.base.errors import TeamGone
from laneway.core.background import TaskSet
from laneway.core.named.session import NamedSession
from laneway.core.ports import Clock
from laneway.mail.delivery import Rules
from laneway.mail.inbox import Inbox
from laneway.mail.locks import Patience, locked
from laneway.mail.membership import PATIENCE, Membership
from laneway.mail.places import Places
from laneway.mail.post import Post
from laneway.mail.postman import Orders, Postman
from laneway.mail.roster import Roster
from laneway.mail.shared import MailNotice, NewMail
from laneway.mail.teams import TeamChoice
from laneway.mail.watch import OnMail, OnMoved
from laneway.store.stamps import stamp, utc_now
from tests.core.named import support as named_support
from tests.core.named.support import texts
from tests.core.support import until
from tests.mail.box import found
from tests.mail.test_envelope import opened

TEAM = "crew"


class NoWatch:
    """A watch that reports nothing: new mail is only found by polling."""

    def aim(self, folder: Path) -> None:
        pass

    def close(self) -> None:
        pass


def no_watch(on_mail: OnMail, on_moved: OnMoved, clock: Clock, tasks: TaskSet) -> NoWatch:
    return NoWatch()


class PostmanStage:
    """A team, its postman and its sessions, driven by a test."""

    def __init__(self, stage: named_support.Stage, places: Places, postman: Postman, post: Post) -> None:
        self.stage = stage
        self.places = places
        self.postman = postman
        self.post = post
        self.mail: list[NewMail] = []
        self.notices: list[MailNotice] = []
        postman.on_mail.append(self.mail.append)
        postman.on_notice.append(self.notices.append)

    # ── what others write ──────────────────────────────────────────────────

    def inbox(self, agent: str = "codex", team: str = TEAM) -> Inbox:
        return Inbox(self.places, team, agent)

    def write(self, *said: str, to: str = "codex", team: str = TEAM, **fields: Any) -> None:
        """Mail as Claude Code writes it, in one go: of the lead, unless it is said otherwise."""
        self.rewrite(lambda before: [*before, *(entry(text, **fields) for text in said)], to, team)

    def rewrite(
        self, change: Callable[[list[Any]], list[Any]], agent: str = "codex", team: str = TEAM
    ) -> None:
        """What another program makes of an inbox, under its lock and in one step."""
        path = self.places.inbox(team, agent)
        path.parent.mkdir(exist_ok=True)
        with locked(path, Patience()):
            beside = path.with_name(f"{path.name}.tmp.claude")
            beside.write_text(json.dumps(change(self.disk(agent, team)), indent=2))
            beside.rename(path)

    def disk(self, agent: str = "codex", team: str = TEAM) -> list[dict[str, Any]]:
        path = self.places.inbox(team, agent)
        entries: list[dict[str, Any]] = json.loads(path.read_bytes()) if path.exists() else []
        return entries

    def unread(self, agent: str = "codex", team: str = TEAM) -> list[str]:
        return [each["text"] for each in self.disk(agent, team) if not each.get("read")]

    def members(self, team: str = TEAM) -> list[str]:
        try:
            return [member.name for member in Roster(self.places, team).read().members]
        except TeamGone:
            return []

    # ── what sessions get ──────────────────────────────────────────────────

    async def open(self, identity: str = "codex", **spec: Any) -> NamedSession:
        """A session that is in the team already."""
        named = await self.stage.open(identity, **spec)
        await until(lambda: identity in self.members(self.postman.team))
        return named

    def turns(self, named: NamedSession) -> list[list[str]]:
        """The texts of each mail turn that Codex was asked for, as a reader by the mark finds them."""
        prompts = [texts(thread, number)[-1] for thread, number in self._started(named)]
        return [
            [text for _, text, _ in opened(each)] for each in prompts if each.startswith("You have team mail")
        ]

    def _started(self, named: NamedSession) -> list[tuple[Any, int]]:
        thread = self.stage.thread(named)
        return [(thread, number) for number in range(len(thread.started))]

    async def turn(self, named: NamedSession, number: int = 1) -> list[str]:
        """The texts of the n-th mail turn, when it runs."""
        await until(lambda: len(self.turns(named)) >= number and self.stage.thread(named).turn_id)
        return self.turns(named)[number - 1]

    async def marked(self, agent: str = "codex") -> None:
        await until(lambda: not self.unread(agent))

    async def end(self, named: NamedSession) -> None:
        """The running turn ends, and the session is idle."""
        self.stage.thread(named).end(text="done")
        await until(lambda: named.state != "busy")
        await self.quiet()

    async def quiet(self) -> None:
        """Everything that the postman had to do is done."""
        for _ in range(3):
            await self.postman._tasks.wait()
            await asyncio.sleep(0)

    async def poll(self) -> None:
        """The interval between two rounds passes."""
        self.stage.clock.advance(self.postman._orders.poll_s)
        await self.quiet()

    async def later(self, seconds: float) -> None:
        self.stage.clock.advance(seconds)
        await self.quiet()

    def accept(self, named: NamedSession) -> None:
        """Codex records the input of the running turn."""
        thread = self.stage.thread(named)
        thread.accept(thread.started[-1][0])


def entry(
    text: str, sender: str = "team-lead", when: datetime | None = None, **fields: Any
) -> dict[str, Any]:
    """As Claude Code 2.1.325 writes one."""
    return {
        "from": sender,
        "text": text,
        "summary": text[:20],
        "timestamp": stamp(when or utc_now()),
        "msgV": 1,
        "msg_id": str(uuid.uuid4()),
        "type": "message",
        "read": False,
        **fields,
    }


@asynccontextmanager
async def postman_stage(
    root: Path,
    *,
    team: str = TEAM,
    choice: TeamChoice | None = None,
    is_there: bool = True,
    has_watch: bool = True,
    founds: bool = False,
    find: Any = None,
    patience: Patience = PATIENCE,
    orders: Orders | None = None,
    stage: dict[str, Any] | None = None,
    **rules: Any,
) -> AsyncIterator[PostmanStage]:
    """`has_watch`: inotify reports mail, as on Linux; else only polling by the test's clock finds it."""
    places = found(root, team=team) if is_there else Places.of({}, root)
    if orders is None:
        orders = Orders(rules=Rules(**rules))
    options: dict[str, Any] = {} if has_watch else {"watcher": no_watch}
    async with named_support.stage(root / "state", **(stage or {})) as here:
        post = Post(places)
        choice = choice or TeamChoice(team, "said")
        membership = Membership(places, choice, founds=founds, find=find, patience=patience)
        async with Postman(here.sessions, here.clock, membership, post, orders, **options) as postman:
            yield PostmanStage(here, places, postman, post)
