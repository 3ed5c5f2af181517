"""How a client comes by a session: new, loaded, resumed, forked. Each ends with an `EditorSession`."""

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
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.client_channel import ClientChannel
from laneway.doors.acp.faults import INVALID_REQUEST, METHOD_NOT_FOUND, bad_params, fault
from laneway.doors.acp.ids import session_id, thread_id
from laneway.doors.acp.sessions import mcp_servers
from laneway.doors.acp.sessions.editor_session import EditorSession, OpenedSession, SessionOwner
from laneway.doors.acp.shared import Shared
from laneway.doors.acp.updates.update_sink import UpdateSink

log = logging.getLogger(__name__)

MAX_DIRECTORIES = 64
"""Further folders of one session."""
WRITER_S = 2.0
"""For a Codex whose Laneway was killed to let go of its threads: its guardian takes less than one."""
LOOK_S = 0.05
"""Between two looks at that."""
EMPTY_AGE_S = 24 * 3600
"""Of sessions without a prompt that are listed: editors open many that are never used."""
MAX_EMPTY = 10
"""Of those, in one list."""
SHOWN_CHARS = 500
"""Of a path in a sentence that refuses it."""


class SessionRequest(msgspec.Struct, frozen=True):
    """What every way of opening a session takes along."""

    cwd: Path
    directories: tuple[str, ...]
    servers: Any


def wish_of(params: dict[str, Any]) -> SessionRequest:
    return SessionRequest(
        folder(params.get("cwd"), "cwd"),
        tuple(str(folder(each, "additionalDirectories")) for each in _listed(params)),
        params.get("mcpServers") or [],
    )


def _listed(params: dict[str, Any]) -> list[Any]:
    given = params.get("additionalDirectories") or []
    if not isinstance(given, list):
        raise bad_params("additionalDirectories must be a list of absolute paths.")
    if len(given) > MAX_DIRECTORIES:
        raise bad_params(f"No more than {MAX_DIRECTORIES} additional directories, please.")
    return given


def folder(said: Any, name: str) -> Path:
    """A folder that is there. Codex would take one that is not, and fail later, in other words."""
    if not isinstance(said, str) or "\0" in said:
        raise bad_params(f"{name} must be an absolute path.")
    path, shown = Path(said), code_label(said, SHOWN_CHARS)
    if not path.is_absolute():
        raise bad_params(f"{name} must be an absolute path, not {shown!r}.")
    try:
        is_there = path.is_dir()
    except OSError as problem:  # a name that is too long, a folder above it that is closed to us
        raise bad_params(f"The folder {shown} cannot be opened: {problem.strerror}.") from problem
    if not is_there:
        raise bad_params(f"There is no folder {shown}.")
    return path


class SessionFactory:
    """Opens sessions for one client."""

    def __init__(
        self,
        house: Shared,
        principal: str,
        line: ClientChannel,
        client: EditorClient,
        login: Callable[[EditorSession], Awaitable[None]],
        voice: Callable[[], UpdateSink],
    ) -> None:
        self._house = house
        self._principal = principal
        self._owner = SessionOwner(client, line, self._fork, login)
        self._voice = voice

    async def new(self, params: dict[str, Any]) -> EditorSession:
        wish = await asyncio.to_thread(wish_of, params)
        narrator = self._voice()
        models = asyncio.ensure_future(self._house.models())
        try:
            config = await self._house.access.config(str(wish.cwd))
            spec, notes = _spec(wish, config)
            session = await self._house.hub.start(self._principal, spec, readers=[narrator])
        except BaseException:
            models.cancel()
            raise
        async with _closed_unless_done(session):
            facts = session_settings.opened(
                self._house.access.state(session.info.native), await models, config, wish.directories
            )
            return await self._furnish(session, narrator, wish, Choices(), facts, notes)

    async def again(self, wanted: str, params: dict[str, Any]) -> EditorSession:
        """A thread that exists, whoever started it, with the options that it had."""
        wish = await asyncio.to_thread(wish_of, params)
        (record, lost), (models, config) = await asyncio.gather(
            self._record(wanted), self._house.surroundings(str(wish.cwd))
        )
        narrator = self._voice()
        defaults = record.defaults if record else None
        try:
            session, notes = await self._resumed(_thread(wanted, record), record, wish, config, narrator)
        except ThreadUnknown:
            if record is None or not self._is_empty(record):
                raise
            session, notes = await self._begun_anew(record, wish, config, narrator)
            # What this thread was started with is no access that somebody else has given to it.
            defaults = msgspec.structs.replace(record.defaults, sent=None)
        async with _closed_unless_done(session):
            state = self._house.access.state(session.info.native)
            last = await self._house.access.last_permit(session.info.native) if record is None else None
            facts, choices = reopened(state, models, config, defaults, wish.directories, last=last)
            notes = (*lost, *notes)
            return await self._furnish(
                session, narrator, wish, choices, facts, notes, is_titled=session.has_history, name=wanted
            )

    def _is_empty(self, record: SessionRecord | None) -> bool:
        """Whether nothing was said in this session, as far as is known here."""
        return record is not None and record.defaults.empty_in == self._house.codex_home

    async def _resumed(
        self,
        thread: str,
        record: SessionRecord | None,
        wish: SessionRequest,
        config: FolderConfig,
        narrator: UpdateSink,
    ) -> tuple[Session, tuple[str, ...]]:
        spec, notes = _spec(wish, config)
        spec = msgspec.structs.replace(spec, moves=True)
        try:
            session = await self._house.hub.resume(
                self._principal, thread, spec, readers=[narrator], has_history=not self._is_empty(record)
            )
        except SessionUnknown:
            raise _in_use() from None  # to the hub there is none: it is somebody else's
        return session, notes

    async def _begun_anew(
        self, record: SessionRecord, wish: SessionRequest, config: FolderConfig, narrator: UpdateSink
    ) -> tuple[Session, tuple[str, ...]]:
        """A session of ours that nothing was said in: Codex wrote nothing of it, and it gets a new thread."""
        async with self._house.beginning_anew:
            now, _ = await self._record(record.session_id)
            if now is not None and now.thread_id != record.thread_id:  # somebody was quicker
                record = now
                try:
                    return await self._resumed(now.thread_id, now, wish, config, narrator)
                except ThreadUnknown:
                    pass  # and has not said anything either
            await self._check_unused(record.thread_id)
            spec, notes = _spec(wish, config)
            session = await self._house.hub.start(self._principal, spec, readers=[narrator])
            async with _closed_unless_done(session):
                change = self._house.records.change_thread
                old, new = record.thread_id, session.thread_id
                if not await asyncio.to_thread(change, record.session_id, old, new):
                    raise ActiveWriter(old, None)  # another process was quicker, just now
            return session, notes

    async def _check_unused(self, thread: str) -> None:
        """Raise `ActiveWriter` where another process has the thread open, which Codex cannot tell us of."""
        files = self._house.engine.offers.thread_files
        tries = int(WRITER_S / LOOK_S)
        for _ in range(tries):
            if files is None or not await files.has_writer(thread):
                return
            await asyncio.sleep(LOOK_S)  # its Laneway may have ended just now
        raise ActiveWriter(thread, None)

    async def forked(
        self, wanted: str, params: dict[str, Any], source: EditorSession | None = None
    ) -> EditorSession:
        """A copy of a thread, to go on in another way.

        Codex gives a copy the model and the sandbox of config.toml, which may be wider than the
        original's (0.163). What we know of the original holds; a thread of which nothing is known
        is copied for reading.
        """
        wish = await asyncio.to_thread(wish_of, params)
        (record, lost), (models, config) = await asyncio.gather(
            self._record(wanted, source), self._house.surroundings(str(wish.cwd))
        )
        spec, notes = _spec(wish, config)
        if source is not None:
            model = session_settings.current_model(source.settings.choices, source.settings.facts)
            spec = msgspec.structs.replace(spec, model=model, extras=source.session.spec.extras)
        elif record is None:
            spec = msgspec.structs.replace(spec, sandbox="read-only")
        narrator = self._voice()
        session = await self._house.hub.fork(
            self._principal, _thread(wanted, record), spec, readers=[narrator]
        )
        async with _closed_unless_done(session):
            defaults = record.defaults if record else None
            facts, choices = reopened(
                self._house.access.state(session.info.native), models, config, defaults, wish.directories
            )
            notes = (*lost, *notes)
            return await self._furnish(session, narrator, wish, choices, facts, notes, is_titled=True)

    async def delete(self, wanted: str) -> None:
        """Of the disk, too. Codex keeps no copy."""
        record, _ = await self._record(wanted)
        thread = _thread(wanted, record)
        held = self._house.hub.by_thread(thread)
        if held is not None and not held.is_closing:
            raise _in_use()
        if held is not None:
            await self._house.hub.wait_gone(held.agent_id)
        files = self._house.engine.offers.thread_files
        if files is None:
            raise fault(METHOD_NOT_FOUND, "This engine deletes no sessions.")
        try:
            await files.delete(thread)
        except ThreadUnknown:
            if not self._is_empty(record):
                raise
        await self._forget(wanted)

    async def discard(self, opened: EditorSession) -> None:
        """A session that its client never hears of is not kept either."""
        await opened.close()
        await self._forget(opened.session_id)

    async def _forget(self, wanted: str) -> None:
        try:
            await asyncio.to_thread(self._house.records.delete, wanted)
        except StoreError as problem:
            log.error("what a session was set to could not be deleted: %s", problem)

    async def names(self, threads: list[str]) -> dict[str, str]:
        """The sessions of these threads, by thread."""
        try:
            others = await asyncio.to_thread(self._house.records.renamed, threads)
        except StoreError as problem:
            log.error("the names of sessions could not be read: %s", problem)
            others = {}
        return {thread: others.get(thread) or session_id(thread) for thread in threads}

    async def empty(self, cwd: str | None) -> list[SessionRecord]:
        """The latest sessions that nothing was said in yet: Codex's own list does not have them.

        Those that are open here are nobody's to open.
        """
        try:
            found = await asyncio.to_thread(
                self._house.records.empty, self._house.codex_home, EMPTY_AGE_S, MAX_EMPTY, cwd
            )
        except StoreError as problem:
            log.error("empty sessions could not be read: %s", problem)
            return []
        return [record for record in found if self._house.hub.by_thread(record.thread_id) is None]

    async def _record(
        self, wanted: str, source: EditorSession | None = None
    ) -> tuple[SessionRecord | None, tuple[str, ...]]:
        """What the session was set to. A disk that does not tell is no reason not to open it."""
        if source is not None:
            return source.settings.record, ()  # an open one knows best: what is kept may be older, or lost
        try:
            return await asyncio.to_thread(self._house.records.get, wanted), ()
        except StoreError as problem:
            log.error("what a session was set to could not be read: %s", problem)
            return None, (f"What this session was set to could not be read: {problem}",)

    async def _furnish(
        self,
        session: Session,
        narrator: UpdateSink,
        wish: SessionRequest,
        choices: Choices,
        facts: Facts,
        notes: tuple[str, ...],
        *,
        is_titled: bool = False,
        name: str | None = None,
    ) -> EditorSession:
        opened = EditorSession(
            self._house,
            self._owner,
            OpenedSession(
                session=session,
                narrator=narrator,
                session_id=name or session_id(session.thread_id),
                cwd=wish.cwd,
                directories=wish.directories,
                choices=choices,
                facts=facts,
                notes=notes,
                is_titled=is_titled,
            ),
        )
        opened.settings.keep_soon()
        return opened

    async def _fork(self, source: EditorSession) -> str:
        """As a command: the client loads the copy when it wants to, and knows nothing of it until then."""
        params = {"cwd": str(source.cwd), "additionalDirectories": list(source.directories)}
        copy = await self.forked(source.session_id, params, source)
        await copy.close()
        return copy.session_id


@asynccontextmanager
async def _closed_unless_done(session: Session) -> AsyncIterator[None]:
    """A session that its client never hears of must not stay."""
    try:
        yield
    except BaseException:
        await asyncio.shield(session.close())
        raise


def _in_use() -> RemoteError:
    return fault(
        INVALID_REQUEST,
        "This session is open in another client of this Laneway. Close it there first, or fork it.",
        kind="session_in_use",
        source="laneway",
    )


def _thread(wanted: str, record: SessionRecord | None) -> str:
    thread = record.thread_id if record else thread_id(wanted)
    if not thread:
        raise SessionUnknown(wanted)
    return thread


def _spec(wish: SessionRequest, config: FolderConfig) -> tuple[ThreadSpec, tuple[str, ...]]:
    """Nothing but where to work and what to connect: the user's own configuration says the rest."""
    servers = mcp_servers.servers(wish.servers, config.mcp_servers)
    spec = ThreadSpec(
        cwd=wish.cwd,
        directories=wish.directories,
        users_config=config.native,
        extras=servers.config,
        tells_live_edits=True,
    )
    return spec, servers.notes
