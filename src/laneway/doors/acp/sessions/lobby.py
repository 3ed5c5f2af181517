"""How a client comes by a session: new, loaded, resumed, forked. Each ends with an open `Room`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from laneway.base.errors import ActiveWriter, RemoteError, SessionUnknown, StoreError, ThreadUnknown
from laneway.base.plain import code_label
from laneway.codex import sandbox, thread_files
from laneway.codex.overrides import merged
from laneway.codex.own_features import LIVE_EDITS
from laneway.codex.rollout import last_access
from laneway.core.ports import ThreadSpec
from laneway.core.session import Session
from laneway.doors.acp.client import Client
from laneway.doors.acp.faults import INVALID_REQUEST, bad_params, fault
from laneway.doors.acp.house import House
from laneway.doors.acp.ids import session_id, thread_id
from laneway.doors.acp.line import Line
from laneway.doors.acp.sessions import mcp_servers, modes, options
from laneway.doors.acp.sessions.reopening import reopened
from laneway.doors.acp.sessions.room import Room
from laneway.doors.acp.telling.voice import Voice
from laneway.store.editor_sessions import SessionRecord

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


class Wish(msgspec.Struct, frozen=True):
    """What every way of opening a session takes along."""

    cwd: Path
    directories: tuple[str, ...]
    servers: Any


def wish_of(params: dict[str, Any]) -> Wish:
    return Wish(
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


class Lobby:
    """Opens rooms for one client."""

    def __init__(
        self,
        house: House,
        principal: str,
        line: Line,
        client: Client,
        login: Callable[[Room], Awaitable[None]],
        voice: Callable[[], Voice],
    ) -> None:
        self._house = house
        self._principal = principal
        self._line = line
        self._client = client
        self._login = login
        self._voice = voice

    async def new(self, params: dict[str, Any]) -> Room:
        wish = await asyncio.to_thread(wish_of, params)
        narrator = self._voice()
        models = asyncio.ensure_future(self._house.models())
        try:
            config = await self._house.config(str(wish.cwd))
            spec, notes, is_narrow = self._first_spec(wish, config)
            session = await self._house.hub.start(self._principal, spec, readers=[narrator])
        except BaseException:
            models.cancel()
            raise
        async with _closed_unless_done(session):
            facts = options.opened(session.info.native, await models, config, wish.directories)
            if is_narrow:
                configured = modes.configured(config, facts.running)
                facts = msgspec.structs.replace(facts, configured=configured)
            return await self._furnish(session, narrator, wish, options.Choices(), facts, notes)

    def _first_spec(self, wish: Wish, config: dict[str, Any]) -> tuple[ThreadSpec, tuple[str, ...], bool]:
        """How a thread begins, what to tell the user, and whether it begins narrower than configured."""
        spec, notes = _spec(wish, config)
        # Codex trusts a folder for good where a thread is started that may write there, even if only
        # config.toml lets it (0.163). So it is started for reading; the turns bring what is configured.
        is_narrow = modes.would_be_trusted(config, str(wish.cwd))
        if is_narrow:
            spec = msgspec.structs.replace(spec, sandbox="read-only")
        return spec, notes, is_narrow

    async def again(self, wanted: str, params: dict[str, Any]) -> Room:
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
            native = session.info.native
            last = await asyncio.to_thread(_last_access, native) if record is None else None
            facts, choices = reopened(native, models, config, defaults, wish.directories, last=last)
            notes = (*lost, *notes)
            return await self._furnish(
                session, narrator, wish, choices, facts, notes, is_titled=session.has_history, name=wanted
            )

    def _is_empty(self, record: SessionRecord | None) -> bool:
        """Whether nothing was said in this session, as far as is known here."""
        return record is not None and record.defaults.empty_in == self._house.codex_home

    async def _resumed(
        self, thread: str, record: SessionRecord | None, wish: Wish, config: dict[str, Any], narrator: Voice
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
        self, record: SessionRecord, wish: Wish, config: dict[str, Any], narrator: Voice
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
            spec, notes, _ = self._first_spec(wish, config)
            session = await self._house.hub.start(self._principal, spec, readers=[narrator])
            async with _closed_unless_done(session):
                change = self._house.records.change_thread
                old, new = record.thread_id, session.thread_id
                if not await asyncio.to_thread(change, record.session_id, old, new):
                    raise ActiveWriter(old, None)  # another process was quicker, just now
            return session, notes

    async def _check_unused(self, thread: str) -> None:
        """Raise `ActiveWriter` where another process has the thread open, which Codex cannot tell us of."""
        is_written = partial(thread_files.has_writer, Path(self._house.codex_home), thread)
        tries = int(WRITER_S / LOOK_S)
        for _ in range(tries):
            if not await asyncio.to_thread(is_written):
                return
            await asyncio.sleep(LOOK_S)  # its Laneway may have ended just now
        raise ActiveWriter(thread, None)

    async def forked(self, wanted: str, params: dict[str, Any], source: Room | None = None) -> Room:
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
            model = options.current_model(source.choices, source.facts)
            spec = msgspec.structs.replace(spec, model=model, extras=source.session.spec.extras)
        elif record is None:
            spec = msgspec.structs.replace(spec, sandbox="read-only")
        narrator = self._voice()
        session = await self._house.hub.fork(
            self._principal, _thread(wanted, record), spec, readers=[narrator]
        )
        async with _closed_unless_done(session):
            defaults = record.defaults if record else None
            facts, choices = reopened(session.info.native, models, config, defaults, wish.directories)
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
        try:
            await self._house.engine.call("thread/delete", {"threadId": thread})
        except ThreadUnknown:
            if not self._is_empty(record):
                raise
        await self._forget(wanted)

    async def discard(self, room: Room) -> None:
        """A session that its client never hears of is not kept either."""
        await room.close()
        await self._forget(room.session_id)

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
        self, wanted: str, source: Room | None = None
    ) -> tuple[SessionRecord | None, tuple[str, ...]]:
        """What the session was set to. A disk that does not tell is no reason not to open it."""
        if source is not None:
            return source.standing.record, ()  # an open one knows best: what is kept may be older, or lost
        try:
            return await asyncio.to_thread(self._house.records.get, wanted), ()
        except StoreError as problem:
            log.error("what a session was set to could not be read: %s", problem)
            return None, (f"What this session was set to could not be read: {problem}",)

    async def _furnish(
        self,
        session: Session,
        narrator: Voice,
        wish: Wish,
        choices: options.Choices,
        facts: options.Facts,
        notes: tuple[str, ...],
        *,
        is_titled: bool = False,
        name: str | None = None,
    ) -> Room:
        room = Room(
            self._house,
            session,
            narrator,
            self._line,
            self._client,
            session_id=name or session_id(session.thread_id),
            cwd=wish.cwd,
            choices=choices,
            facts=facts,
            directories=wish.directories,
            is_titled=is_titled,
            fork=self._fork,
            login=self._login,
        )
        room.notes = notes
        mode = session.info.native.get("collaborationMode")
        room.is_planning = isinstance(mode, dict) and mode.get("mode") == "plan"
        room.standing.keep_soon()
        return room

    async def _fork(self, source: Room) -> str:
        """As a command: the client loads the copy when it wants to, and knows nothing of it until then."""
        params = {"cwd": str(source.cwd), "additionalDirectories": list(source.directories)}
        room = await self.forked(source.session_id, params, source)
        await room.close()
        return room.session_id


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


def _last_access(native: dict[str, Any]) -> dict[str, Any]:
    """Of a thread that others ran, by its record; if that does not tell, as narrow as can be."""
    thread = native.get("thread")
    path = thread.get("path") if isinstance(thread, dict) else None
    return (last_access(Path(path)) if isinstance(path, str) else None) or {}


def _spec(wish: Wish, config: dict[str, Any]) -> tuple[ThreadSpec, tuple[str, ...]]:
    """Nothing but where to work and what to connect: the user's config.toml says the rest."""
    servers = mcp_servers.servers(wish.servers, mcp_servers.names(config))
    # Codex takes these for the whole list, and lets them be written only where the folder itself may be.
    roots = {"runtimeWorkspaceRoots": [str(wish.cwd), *wish.directories]} if wish.directories else {}
    extras = merged(servers.config, _live_edits(config))
    known = (*sandbox.DECIDES, "model_providers")
    decides = {name: config[name] for name in known if config.get(name) is not None}
    return ThreadSpec(cwd=wish.cwd, users_config=decides, extras=extras, native=roots), servers.notes


def _live_edits(config: dict[str, Any]) -> dict[str, Any]:
    """Edits are told while they are written, unless the user has decided. It changes nothing but that."""
    features = config.get("features")
    is_decided = isinstance(features, dict) and features.get(LIVE_EDITS) is not None
    return {} if is_decided else {"features": {LIVE_EDITS: True}}
