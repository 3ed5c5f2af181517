"""The live sessions of a process as the local server needs them: named ones, or those of a plain hub.

Front ends with identities hand over their `NamedSessions`. Those without (editors, chat, the drop-in server)
hand over `HubSessions`, in which a session has no name and no record of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from laneway.base.errors import UsageError
from laneway.core.hub import Hub
from laneway.core.named.records import Record
from laneway.core.session import Session


class LocalSession(Protocol):
    """A live session. `NamedSession` is one."""

    @property
    def session(self) -> Session: ...
    @property
    def agent_id(self) -> str: ...
    @property
    def identity(self) -> str: ...
    @property
    def principal(self) -> str: ...
    @property
    def thread_id(self) -> str: ...
    @property
    def state(self) -> Literal["busy", "idle", "closed"]: ...
    @property
    def turns(self) -> int: ...
    @property
    def tokens(self) -> int: ...
    @property
    def record(self) -> Record: ...


class LocalSessions(Protocol):
    """All live sessions of a process. `NamedSessions` is one."""

    def live(self) -> Sequence[LocalSession]: ...

    def note(self, event_type: str, named: Any = None, **fields: str | None) -> None:
        """Add a line to the audit log, if there is one."""
        ...

    async def close(self, principal: str, *, agent_id: str) -> Any: ...


class UnnamedSession:
    """A session of a hub, without a name or a record."""

    identity = ""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.agent_id = session.agent_id
        self.principal = session.principal

    @property
    def thread_id(self) -> str:
        return self.session.thread_id

    @property
    def state(self) -> Literal["busy", "idle", "closed"]:
        return self.session.status

    @property
    def turns(self) -> int:
        return self.session.turns

    @property
    def tokens(self) -> int:
        return self.session.usage.total.total if self.session.usage else 0

    @property
    def record(self) -> Record:
        spec = self.session.spec
        return Record(
            agent_id=self.agent_id,
            identity=self.identity,
            team="",
            backend=self.session.engine.backend,
            thread_id=self.thread_id or None,
            cwd=str(spec.cwd),
            model=spec.model,
        )


class HubSessions:
    """The sessions of a hub."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def live(self) -> list[UnnamedSession]:
        return [UnnamedSession(session) for session in self._hub.all_sessions()]

    def note(self, event_type: str, named: Any = None, **fields: str | None) -> None:
        pass  # only named sessions have an audit log

    async def close(self, principal: str, *, agent_id: str) -> Any:
        """Refused: whoever started such a session has it open, and could not get it back by a name."""
        raise UsageError("This session has no name: end it where it was started. Its turn can be stopped.")
