"""What all carriers of one postman share: the ways in and out, what was brought, and what is told."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from laneway.core.background import Chores
from laneway.core.colleague import Colleague
from laneway.core.colleagues import Colleagues
from laneway.core.ports import Clock
from laneway.mail.delivery import Rules
from laneway.mail.entries import Message
from laneway.mail.membership import Membership
from laneway.mail.metrics import Counters
from laneway.mail.post import Post
from laneway.store.stamps import Now

MAX_REMEMBERED = 50_000
"""Keys of messages, over all members; each costs two hundred bytes, and a message has three at most."""


class NewMail(msgspec.Struct, frozen=True):
    """Something came for a session."""

    agent_id: str
    identity: str
    team: str
    new: int
    unread: int


NoticeKind: TypeAlias = Literal["limit", "budget", "join", "inbox"]


class Notice(msgspec.Struct, frozen=True):
    """Something about a session's mail that a person should know, as a sentence with a remedy."""

    agent_id: str
    identity: str
    kind: NoticeKind
    text: str


class Memory:
    """Messages by member and key, for the life of this process; the oldest are forgotten.

    By member, because what is sent to all is one message to each.
    """

    def __init__(self, size: int = MAX_REMEMBERED) -> None:
        self._size = size
        self._keys: OrderedDict[tuple[str, str], None] = OrderedDict()

    def has(self, identity: str, key: str) -> bool:
        return (identity, key) in self._keys

    def add(self, identity: str, message: Message) -> None:
        for key in message.key:
            self._keys[identity, key] = None
            self._keys.move_to_end((identity, key))
        while len(self._keys) > self._size:
            self._keys.popitem(last=False)

    def drop(self, identity: str, message: Message) -> None:
        for key in message.key:
            self._keys.pop((identity, key), None)

    def __len__(self) -> int:
        return len(self._keys)


class Recalled:
    """A member's part of a memory, as the rules want it: a container of keys."""

    def __init__(self, memory: Memory, identity: str) -> None:
        self._memory = memory
        self._identity = identity

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._memory.has(self._identity, key)

    def has(self, message: Message) -> bool:
        return any(key in self for key in message.key)

    def add(self, message: Message) -> None:
        self._memory.add(self._identity, message)

    def drop(self, message: Message) -> None:
        self._memory.drop(self._identity, message)


class Depot:
    def __init__(
        self,
        colleagues: Colleagues,
        clock: Clock,
        membership: Membership,
        post: Post,
        rules: Rules,
        *,
        chores: Chores,
        now: Now,
        is_auto: Callable[[str], bool],
        tell: Callable[[NewMail | Notice], None],
    ) -> None:
        self.colleagues = colleagues
        self.clock = clock
        self.membership = membership
        self.post = post
        self.rules = rules
        self.chores = chores
        self.now = now
        self.is_auto = is_auto
        self.tell = tell
        self.counters = Counters()
        self.brought = Memory()
        """Recorded by Codex."""
        self.tried = Memory()
        """Handed over at least once, and not recorded yet."""

    @property
    def can_begin(self) -> bool:
        """Asked before a turn is: a refusal would count as having told somebody that Codex died."""
        engine = self.colleagues.hub.engine
        return engine.ended is None or engine.renews

    def note(self, event_type: str, colleague: Colleague, messages: tuple[Message, ...], **more: str) -> None:
        """A line for the audit log about these messages."""
        summary = "; ".join(f"{each.sender}: {each.message_id or each.timestamp}" for each in messages)
        self.colleagues.note(event_type, colleague, message_summary=summary, **more)
