"""What a session may say to the client that owns it."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec


class Line(Protocol):
    @property
    def is_behind(self) -> bool:
        """Whether the client does not read: hold back what can be merged."""
        ...

    def update(self, session_id: str, update: dict[str, Any] | msgspec.Raw) -> None:
        """A `session/update`; never dropped."""
        ...

    def notify(self, method: str, params: Any) -> None: ...

    async def call(self, method: str, params: Any) -> Any:
        """Ask the client; cancelled, it is told so by `$/cancel_request`."""
        ...

    async def writable(self) -> None:
        """Until the client has taken most of what it was told."""
        ...
