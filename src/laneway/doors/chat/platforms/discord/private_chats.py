"""Whose each private chat is: Discord names a private chat by its channel alone.

Noted when its user speaks there, so that after a change of the settings nothing is shown to whoever may not
speak any more.
"""

from __future__ import annotations

import asyncio
import logging

from laneway.base.errors import StoreError
from laneway.core.conversations import ConversationStore

log = logging.getLogger(__name__)


class PrivateChats:
    def __init__(self, store: ConversationStore) -> None:
        self._store = store
        self._noted: dict[str, str] = {}

    async def note(self, channel_id: str, user_id: str) -> None:
        if self._noted.get(channel_id) == user_id:
            return
        try:
            await asyncio.to_thread(self._store.set_cursor, _cursor_name(channel_id), user_id)
        except StoreError as problem:
            log.warning("whose a private chat is could not be noted: %s", problem)
        else:
            self._noted[channel_id] = user_id

    def user_of(self, channel_id: str) -> str | None:
        """None if nobody has spoken there. Blocking; raises `StoreError`."""
        return self._store.cursor(_cursor_name(channel_id))


def _cursor_name(channel_id: str) -> str:
    return f"discord:private:{channel_id}"
