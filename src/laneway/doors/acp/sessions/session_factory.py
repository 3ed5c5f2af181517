"""Opens the sessions of one ACP client: new, loaded, resumed or forked; also deletes and lists them.

Each way of opening ends with an `EditorSession`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from laneway.base.errors import ActiveWriter, RemoteError, SessionUnknown, StoreError, ThreadUnknown
from laneway.base.plain import code_label
from laneway.core import session_settings
from laneway.core.access import FolderConfig
from laneway.core.editor_sessions import SessionRecord
from laneway.core.ports import ThreadSpec
from laneway.core.reopening import reopened
from laneway.core.session import Session
from laneway.core.session_settings import Choices, Facts
from laneway.doors.acp import ids
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.client_channel import ClientChannel
from laneway.doors.acp.faults import bad_params, fault
from laneway.doors.acp.sessions import mcp_servers
from laneway.doors.acp.sessions.editor_session import EditorSession, OpenedSession, SessionOwner
from laneway.doors.acp.shared import Shared
from laneway.doors.acp.updates.update_sink import UpdateSink
from laneway.wire.messages import INVALID_REQUEST, METHOD_NOT_FOUND

log = logging.getLogger(__name__)

MAX_DIRECTORIES = 64
"""`additionalDirectories` of one session."""
WRITER_S = 2.0
"""For a Codex whose Laneway was killed to release its threads: its guardian takes less than one second."""
POLL_S = 0.05
"""Between two checks for such a Codex."""
EMPTY_AGE_S = 24 * 3600
"""Sessions without a prompt are listed for this long: editors open many that are never used."""
MAX_EMPTY = 10
"""Sessions without a prompt in one list."""
SHOWN_CHARS = 500
"""Of a path in the error message about it."""


class SessionRequest(msgspec.Struct, frozen=True):
    """The parameters that all methods which open a session have in common."""

    cwd: Path
    directories: tuple[str, ...]
    servers: Any


def request_of(params: dict[str, Any]) -> SessionRequest:
    return SessionRequest(
        folder(params.get("cwd"), "cwd"),
        tuple(str(folder(path, "additionalDirectories")) for path in _directories(params)),
        params.get("mcpServers") or [],
    )


def _directories(params: dict[str, Any]) -> list[Any]:
    directories = params.get("additionalDirectories") or []
    if not isinstance(directories, list):
        raise bad_params("additionalDirectories must be a list of absolute paths.")
    if len(directories) > MAX_DIRECTORIES:
        raise bad_params(f"No more than {MAX_DIRECTORIES} additional directories, please.")
    return directories


def folder(value: Any, name: str) -> Path:
    """The path of an existing folder. Codex would accept a missing one and fail later, less clearly."""
    if not isinstance(value, str) or "\0" in value:
        raise bad_params(f"{name} must be an absolute path.")
    path, path_label = Path(value), code_label(value, SHOWN_CHARS)
    if not path.is_absolute():
        raise bad_params(f"{name} must be an absolute path, not {path_label!r}.")
    try:
        is_folder = path.is_dir()
    except OSError as problem:  # a name that is too long, a parent folder that we may not read
        raise bad_params(f"The folder {path_label} cannot be opened: {problem.strerror}.") from problem
    if not is_folder:
        raise bad_params(f"There is no folder {path_label}.")
    return path


class SessionFactory:
    """Opens sessions for one client."""

    def __init__(
        self,
        shared: Shared,
        principal: str,
        channel: ClientChannel,
        client: EditorClient,
        login: Callable[[EditorSession], Awaitable[None]],
        new_sink: Callable[[], UpdateSink],
    ) -> None:
        self._shared = shared
        self._principal = principal
        self._owner = SessionOwner(client, channel, self._fork_by_command, login)
        self._new_sink = new_sink

    async def new(self, params: dict[str, Any]) -> EditorSession:
        request = await asyncio.to_thread(request_of, params)
        sink = self._new_sink()
        models = asyncio.ensure_future(self._shared.models())
        try:
            config = await self._shared.access.config(str(request.cwd))
            spec, notes = _spec(request, config)
            session = await self._shared.hub.start(self._principal, spec, readers=[sink])
        except BaseException:
            models.cancel()
            await asyncio.gather(models, return_exceptions=True)
            raise
        async with _closed_on_error(session):
            known = await models
            state = self._shared.access.state(session.info.native)
            facts = session_settings.new_facts(state, known, config, request.directories)
            return self._make_session(session, sink, request, Choices(), facts, notes)

    async def reopen(self, session_id: str, params: dict[str, Any]) -> EditorSession:
        """Open the session of an existing thread, whichever program started it, with its last options."""
        request = await asyncio.to_thread(request_of, params)
        (record, warnings), (models, config) = await asyncio.gather(
            self._record(session_id), self._shared.models_and_config(str(request.cwd))
        )
        sink = self._new_sink()
        defaults = record.defaults if record else None
        try:
            session, notes = await self._resume(_thread_id(session_id, record), record, request, config, sink)
        except ThreadUnknown:
            if record is None or not self._is_empty(record):
                raise
            session, notes = await self._start_new_thread(record, request, config, sink)
            # The access that the lost thread was started with says nothing about the new one.
            defaults = msgspec.structs.replace(record.defaults, sent=None)
        async with _closed_on_error(session):
            state = self._shared.access.state(session.info.native)
            last = await self._shared.access.last_permit(session.info.native) if record is None else None
            facts, choices = reopened(state, models, config, defaults, request.directories, last=last)
            notes = (*warnings, *notes)
            return self._make_session(
                session,
                sink,
                request,
                choices,
                facts,
                notes,
                is_titled=session.has_history,
                known_id=session_id,
            )

    def _is_empty(self, record: SessionRecord | None) -> bool:
        """Whether the session had no prompt yet, as far as its record tells."""
        return record is not None and record.defaults.empty_in == self._shared.codex_home

    async def _resume(
        self,
        thread: str,
        record: SessionRecord | None,
        request: SessionRequest,
        config: FolderConfig,
        sink: UpdateSink,
    ) -> tuple[Session, tuple[str, ...]]:
        spec, notes = _spec(request, config)
        spec = msgspec.structs.replace(spec, moves=True)
        try:
            session = await self._shared.hub.resume(
                self._principal, thread, spec, readers=[sink], has_history=not self._is_empty(record)
            )
        except SessionUnknown:
            raise _in_use_error() from None  # the hub hides the sessions of other clients
        return session, notes

    async def _start_new_thread(
        self, record: SessionRecord, request: SessionRequest, config: FolderConfig, sink: UpdateSink
    ) -> tuple[Session, tuple[str, ...]]:
        """Give a session without prompts a new thread: Codex did not record the first one."""
        async with self._shared.thread_change:
            current, _ = await self._record(record.session_id)
            if current is not None and current.thread_id != record.thread_id:  # another client was faster
                record = current
                try:
                    return await self._resume(current.thread_id, current, request, config, sink)
                except ThreadUnknown:
                    pass  # that thread has had no prompt either
            await self._check_unused(record.thread_id)
            spec, notes = _spec(request, config)
            session = await self._shared.hub.start(self._principal, spec, readers=[sink])
            async with _closed_on_error(session):
                change = self._shared.records.change_thread
                old, new = record.thread_id, session.thread_id
                if not await asyncio.to_thread(change, record.session_id, old, new):
                    raise ActiveWriter(old, None)  # another process was faster
            return session, notes

    async def _check_unused(self, thread: str) -> None:
        """Raise `ActiveWriter` if another process has the thread open, which Codex does not report."""
        files = self._shared.engine.offers.thread_files
        tries = int(WRITER_S / POLL_S)
        for _ in range(tries):
            if files is None or not await files.has_writer(thread):
                return
            await asyncio.sleep(POLL_S)  # its Laneway may just have ended
        raise ActiveWriter(thread, None)

    async def fork(
        self, session_id: str, params: dict[str, Any], source: EditorSession | None = None
    ) -> EditorSession:
        """Copy a thread into a new session. The copy never has more access than the original.

        Codex gives a copy the model and the sandbox of config.toml, which may be wider than the
        original's (0.163). So the recorded settings of the original are applied; without a record the
        copy is read-only.
        """
        request = await asyncio.to_thread(request_of, params)
        (record, warnings), (models, config) = await asyncio.gather(
            self._record(session_id, source), self._shared.models_and_config(str(request.cwd))
        )
        spec, notes = _spec(request, config)
        if source is not None:
            model = session_settings.current_model(source.settings.choices, source.settings.facts)
            spec = msgspec.structs.replace(spec, model=model, extras=source.session.spec.extras)
        elif record is None:
            spec = msgspec.structs.replace(spec, sandbox="read-only")
        sink = self._new_sink()
        session = await self._shared.hub.fork(
            self._principal, _thread_id(session_id, record), spec, readers=[sink]
        )
        async with _closed_on_error(session):
            defaults = record.defaults if record else None
            facts, choices = reopened(
                self._shared.access.state(session.info.native), models, config, defaults, request.directories
            )
            notes = (*warnings, *notes)
            return self._make_session(session, sink, request, choices, facts, notes, is_titled=True)

    async def delete(self, session_id: str) -> None:
        """Delete a session, also from the disk. Codex keeps no copy."""
        record, _ = await self._record(session_id)
        thread = _thread_id(session_id, record)
        session = self._shared.hub.by_thread(thread)
        if session is not None and not session.is_closing:
            raise _in_use_error()
        if session is not None:
            await self._shared.hub.wait_gone(session.agent_id)
        files = self._shared.engine.offers.thread_files
        if files is None:
            raise fault(METHOD_NOT_FOUND, "This engine deletes no sessions.")
        try:
            await files.delete(thread)
        except ThreadUnknown:
            if not self._is_empty(record):
                raise
        await self._delete_record(session_id)

    async def discard(self, session: EditorSession) -> None:
        """Close a session and delete its record: `session/new` failed after it was opened."""
        await session.close()
        await self._delete_record(session.session_id)

    async def _delete_record(self, session_id: str) -> None:
        try:
            await asyncio.to_thread(self._shared.records.delete, session_id)
        except StoreError as problem:
            log.error("what a session was set to could not be deleted: %s", problem)

    async def session_ids(self, threads: list[str]) -> dict[str, str]:
        """By thread id: the id of its session."""
        try:
            others = await asyncio.to_thread(self._shared.records.renamed, threads)
        except StoreError as problem:
            log.error("the names of sessions could not be read: %s", problem)
            others = {}
        return {thread: others.get(thread) or ids.session_id(thread) for thread in threads}

    async def empty_sessions(self, cwd: str | None) -> list[SessionRecord]:
        """The latest sessions without a prompt, which are not in Codex's own list.

        Those that are open in this process are left out: no other client could open them.
        """
        try:
            records = await asyncio.to_thread(
                self._shared.records.empty, self._shared.codex_home, EMPTY_AGE_S, MAX_EMPTY, cwd
            )
        except StoreError as problem:
            log.error("empty sessions could not be read: %s", problem)
            return []
        return [record for record in records if self._shared.hub.by_thread(record.thread_id) is None]

    async def _record(
        self, session_id: str, source: EditorSession | None = None
    ) -> tuple[SessionRecord | None, tuple[str, ...]]:
        """The session's record, and warnings. A record that cannot be read does not prevent opening it."""
        if source is not None:
            return source.settings.record, ()  # an open session: the stored record may be older, or lost
        try:
            return await asyncio.to_thread(self._shared.records.get, session_id), ()
        except StoreError as problem:
            log.error("what a session was set to could not be read: %s", problem)
            return None, (f"What this session was set to could not be read: {problem}",)

    def _make_session(
        self,
        session: Session,
        sink: UpdateSink,
        request: SessionRequest,
        choices: Choices,
        facts: Facts,
        notes: tuple[str, ...],
        *,
        is_titled: bool = False,
        known_id: str | None = None,
    ) -> EditorSession:
        editor_session = EditorSession(
            self._shared,
            self._owner,
            OpenedSession(
                session=session,
                sink=sink,
                session_id=known_id or ids.session_id(session.thread_id),
                cwd=request.cwd,
                directories=request.directories,
                choices=choices,
                facts=facts,
                notes=notes,
                is_titled=is_titled,
            ),
        )
        editor_session.settings.save_soon()
        return editor_session

    async def _fork_by_command(self, source: EditorSession) -> str:
        """`/fork`: copy a session and close the copy; the client can load it by the id returned."""
        params = {"cwd": str(source.cwd), "additionalDirectories": list(source.directories)}
        copy = await self.fork(source.session_id, params, source)
        await copy.close()
        return copy.session_id


@asynccontextmanager
async def _closed_on_error(session: Session) -> AsyncIterator[None]:
    """Close the session if its opening fails, since the client would not know of it."""
    try:
        yield
    except BaseException:
        await asyncio.shield(session.close())
        raise


def _in_use_error() -> RemoteError:
    return fault(
        INVALID_REQUEST,
        "This session is open in another client of this Laneway. Close it there first, or fork it.",
        kind="session_in_use",
        source="laneway",
    )


def _thread_id(session_id: str, record: SessionRecord | None) -> str:
    thread_id = record.thread_id if record else ids.thread_id(session_id)
    if not thread_id:
        raise SessionUnknown(session_id)
    return thread_id


def _spec(request: SessionRequest, config: FolderConfig) -> tuple[ThreadSpec, tuple[str, ...]]:
    """The thread's spec, and warnings. Only folders and MCP servers; the user's config has the rest."""
    servers = mcp_servers.servers(request.servers, config.mcp_servers)
    spec = ThreadSpec(
        cwd=request.cwd,
        directories=request.directories,
        users_config=config.native,
        extras=servers.config,
        streams_edits=True,
    )
    return spec, servers.notes
