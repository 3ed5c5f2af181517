"""Objects that all carriers of one postman share: sessions, membership, post, counters, delivered mail."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from laneway.core.background import TaskSet
from laneway.core.named.session import NamedSession
from laneway.core.named.sessions import NamedSessions
from laneway.core.ports import Clock
from laneway.mail.delivery import Rules
from laneway.mail.entries import Message
from laneway.mail.membership import Membership
from laneway.mail.metrics import Counters
from laneway.mail.post import Post
from laneway.store.stamps import Now

MAX_REMEMBERED = 50_000
"""Keys of messages, of all members together; each costs 200 bytes, and a message has three at most."""


class NewMail(msgspec.Struct, frozen=True):
    """New mail arrived for a session."""

    agent_id: str
    identity: str
    team: str
    new: int
    unread: int


NoticeKind: TypeAlias = Literal["limit", "budget", "join", "inbox"]


class MailNotice(msgspec.Struct, frozen=True):
    """Something about a session's mail that a person should know, as a sentence with a remedy."""

    agent_id: str
    identity: str
    kind: NoticeKind
    text: str


class MessageMemory:
    """Keys of messages by member, for the life of this process; the oldest are forgotten.

    By member, because a broadcast is one message to each.
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


class MemberMemory:
    """One member's part of a `MessageMemory`, as a container of keys."""

    def __init__(self, memory: MessageMemory, identity: str) -> None:
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


class MailShared:
    """The ports and state that `Postman` gives to each `Carrier`."""

    def __init__(
        self,
        sessions: NamedSessions,
        clock: Clock,
        membership: Membership,
        post: Post,
        rules: Rules,
        *,
        tasks: TaskSet,
        now: Now,
        is_auto: Callable[[str], bool],
        tell: Callable[[NewMail | MailNotice], None],
    ) -> None:
        self.sessions = sessions
        self.clock = clock
        self.membership = membership
        self.post = post
        self.rules = rules
        self.tasks = tasks
        self.now = now
        self.is_auto = is_auto
        self.tell = tell
        self.counters = Counters()
        self.delivered = MessageMemory()
        """Messages that Codex has recorded."""
        self.attempted = MessageMemory()
        """Messages that were sent to Codex at least once, and are not recorded yet."""

    def can_begin(self, named: NamedSession) -> bool:
        """Whether its engine can start a turn. Checked first, because a refused turn counts as the one report
        to clients that the engine died."""
        engine = named.session.engine
        return engine.ended is None or engine.renews

    def note(self, event_type: str, named: NamedSession, messages: tuple[Message, ...], **more: str) -> None:
        """Write a line about these messages to the audit log."""
        summary = "; ".join(f"{each.sender}: {each.message_id or each.timestamp}" for each in messages)
        self.sessions.note(event_type, named, message_summary=summary, **more)
