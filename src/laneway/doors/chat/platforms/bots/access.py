"""Who may speak to a bot: users, owners and chats by their numeric ids; strangers are named once an hour.

An empty list of users refuses to start: a bot can be found by anybody. Names decide nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from laneway.base.errors import UsageError
from laneway.base.plain import code_label
from laneway.core.ports import Clock

STRANGER_S = 3600.0
"""Between two lines about one stranger."""
MAX_STRANGERS = 1000
"""Strangers that are remembered; whoever has more accounts is named again."""


class BotAccess(msgspec.Struct, frozen=True, kw_only=True):
    """The ids that the user's settings name. All are texts of digits; groups of Telegram have a minus."""

    users: frozenset[str]
    owners: frozenset[str]
    """Whose word approvals take; each is a user, too."""
    chats: frozenset[str]
    """Groups, or channels of a server. Private chats need no entry."""

    def is_owner(self, user_id: str) -> bool:
        return user_id in self.owners

    def may_speak(self, user_id: str, chat_id: str, *, is_private: bool) -> bool:
        return user_id in self.users and (is_private or chat_id in self.chats)

    def may_answer(self, user_id: str, *, for_owners: bool, asked_by: str) -> bool:
        """Owners answer everything; who started the turn answers what is not for owners only."""
        return self.is_owner(user_id) or (not for_owners and bool(asked_by) and user_id == asked_by)


def bot_access(platform: str, users: Iterable[str], owners: Iterable[str], chats: Iterable[str]) -> BotAccess:
    """Check the lists of the table `[laneway.chat.PLATFORM]`. Raises `UsageError`, without any secret."""
    table = f"[laneway.chat.{platform}]"
    allowed = _ids(table, "allowed_users", users)
    if not allowed:
        raise UsageError(
            f"{table} has no allowed_users, so nobody could speak to the bot. "
            f"Run `laneway setup {platform}`, or list the numeric ids of the users there."
        )
    chosen = _ids(table, "owners", owners)
    foreign = sorted(chosen - allowed)
    if foreign:
        raise UsageError(f"{table}: owners must be allowed_users, too: {', '.join(foreign)}.")
    return BotAccess(users=allowed, owners=chosen or allowed, chats=_ids(table, "allowed_chats", chats))


def _ids(table: str, key: str, values: Iterable[str]) -> frozenset[str]:
    ids = [value.strip() for value in values]
    for value in ids:
        digits = value.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()):
            raise UsageError(
                f"{table}: {key} takes numeric ids, and {code_label(value, 40)!r} is none: "
                "names can change hands."
            )
    return frozenset(ids)


class Strangers:
    """Those who were turned away: each is named once an hour, where the bot's user can see it."""

    def __init__(self, platform: str, clock: Clock, tell: Callable[[str], None]) -> None:
        self._platform = platform
        self._clock = clock
        self._tell = tell
        self._told_at: dict[tuple[str, str], float] = {}

    def turned_away(self, user_id: str, name: str, chat_id: str, *, what: str = "a message") -> None:
        now, key = self._clock.now(), (user_id, chat_id)
        told_at = self._told_at.pop(key, None)
        is_due = told_at is None or now - told_at >= STRANGER_S
        self._told_at[key] = now if told_at is None or is_due else told_at
        while len(self._told_at) > MAX_STRANGERS:
            del self._told_at[next(iter(self._told_at))]
        if is_due:
            self._tell(
                f"{self._platform}: ignored {what} of user {user_id} ({code_label(name, 60)!r}) "
                f"in chat {chat_id}, who is not allowed"
            )
