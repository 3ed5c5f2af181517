"""The Codex engine: threads on one app-server, which is started when it is first needed."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from laneway.base.errors import EngineError, EngineLost, EngineRefused, NotLoggedIn
from laneway.codex import binary, hello, provider, sandbox
from laneway.codex.link import HANDSHAKE_S, IDEMPOTENT, Link
from laneway.codex.locate import Binary, child_environment, codex_home
from laneway.codex.own_features import LIVE_EDITS
from laneway.codex.releases import PendingReleases, Releases
from laneway.codex.running import CodexRunner, Connect
from laneway.codex.thread import CodexThread, history, thread_info
from laneway.core.overrides import merged
from laneway.core.ports import Abilities, Host, Page, ThreadInfo, ThreadList, ThreadSpec
from laneway.core.tools import Tool
from laneway.wire.child import Child, Exit
from laneway.wire.launch import Launched
from laneway.wire.peer import Raw

if TYPE_CHECKING:
    from laneway.core.models import Model
    from laneway.core.offers import Offers

log = logging.getLogger(__name__)

Asked = TypeVar("Asked")

LOGIN_S = 5.0
"""For Codex to tell who is logged in: it looks into its own memory."""
GIVE_BACK_S = 2.0
"""How long somebody who no longer wants a thread is kept until it is given back; then it goes on alone."""
_LISTED = {"sourceKinds": ["cli", "vscode", "exec", "appServer", "unknown"], "modelProviders": []}
"""Left alone, Codex hides what `codex exec` or another model provider ran. Subagents stay hidden."""


class CodexEngine(CodexRunner[Link]):
    def __init__(
        self,
        connect: Connect,
        *,
        handshake_s: float = HANDSHAKE_S,
        is_greeted: bool = False,
        diagnose: Callable[[], None] | None = None,
        releases: PendingReleases | None = None,
        home: Path | None = None,
        asks_login: bool = False,
    ) -> None:
        """`releases` are the records of threads that are being given up, in the Codex home of `connect`.

        `home` is that folder, where it is known. `asks_login`: a thread whose provider wants a login
        is not opened before somebody has logged in (`NotLoggedIn`).
        """

        async def run() -> Link:
            link = await Link.open(connect, handshake_s, is_greeted=is_greeted)
            self._finish_soon(link)
            return link

        super().__init__(run, diagnose, home)
        self._asks_login = asks_login
        self._opening = 0
        """Threads that are being opened now."""
        self._releases = Releases(releases)
        self._finishing: asyncio.Task[None] | None = None
        """What others left unfinished is finished beside the first calls."""
        self._leaving: dict[str, asyncio.Task[None]] = {}
        """Threads that nobody wants any more, while they are opened and given back."""

    def _finish_soon(self, link: Link) -> None:
        self._finishing = asyncio.get_running_loop().create_task(self._releases.finish_all(link))

    async def _asked(self, work: Callable[[Link], Awaitable[Asked]]) -> Asked:
        """Ask for something that may be asked twice: the link may be dead, and we do not know it yet."""
        link = await self.link()
        try:
            return await work(link)
        except EngineLost:
            if not self.renews:
                raise
        return await work(await self.link())

    async def abilities(self) -> Abilities:
        return (await self.link()).abilities

    async def start(self, spec: ThreadSpec, host: Host) -> CodexThread:
        return await self._asked(lambda link: self._start(link, spec, host))

    async def _start(self, link: Link, spec: ThreadSpec, host: Host) -> CodexThread:
        spec = await _with_roots(link, msgspec.structs.replace(spec, config=merged(spec.config)))
        mode, first = sandbox.asked(spec.sandbox, spec.config), None
        config = spec.users_config
        if mode is not None or (spec.sandbox is None and "sandbox_mode" not in spec.config):
            config = await link.users_config(spec.cwd) if config is None else config
            first = sandbox.first_settings(mode, config, str(spec.cwd), spec.config)
            if first is not None:
                kept = sandbox.without(spec.config)
                spec = msgspec.structs.replace(spec, sandbox=sandbox.START, config=kept)
        params: dict[str, Any] = {"cwd": str(spec.cwd), **_common(spec)}
        if spec.ephemeral:
            params["ephemeral"] = True
        if spec.tools:
            params["dynamicTools"] = [dynamic_tool(tool) for tool in spec.tools]
        thread = await self._open(link, host, "thread/start", {**params, **spec.native}, first)
        if config is not None:
            thread.know_provider(config, spec.config)
        return thread

    async def resume(self, thread_id: str, spec: ThreadSpec, host: Host) -> CodexThread:
        # The developer instructions go along every time: compaction drops them otherwise.
        if thread_id in self._leaving:
            await asyncio.wait((self._leaving[thread_id],))  # or it would be taken from us, too
        return await self._asked(lambda link: self._resume(link, thread_id, spec, host))

    async def _resume(self, link: Link, thread_id: str, spec: ThreadSpec, host: Host) -> CodexThread:
        spec = await _with_roots(link, spec)
        params = {"threadId": thread_id, "excludeTurns": True, **_common(spec)}
        if spec.moves:
            params["cwd"] = str(spec.cwd)
        return await self._open(link, host, "thread/resume", params | spec.native)

    async def fork(self, thread_id: str, spec: ThreadSpec, host: Host) -> CodexThread:
        params = {"threadId": thread_id, "excludeTurns": True, "cwd": str(spec.cwd), **_common(spec)}
        params |= spec.native
        return await self._asked(lambda link: self._open(link, host, "thread/fork", params))

    async def _open(
        self,
        link: Link,
        host: Host,
        method: str,
        params: dict[str, Any],
        first: dict[str, Any] | None = None,
    ) -> CodexThread:
        if not self._asks_login or link.is_logged_in:
            return await self._open_thread(link, host, method, params, first)
        # Beside the opening, and only until somebody is known to be logged in.
        account = asyncio.ensure_future(link.call("account/read", {"refreshToken": False}))
        self._opening += 1
        try:
            thread = await self._open_thread(link, host, method, params, first)
            try:
                is_missing = await _is_login_missing(link, account, thread, params)
            except asyncio.CancelledError:
                await self._give_up(method, params, _release(thread))
                raise
            if is_missing:
                await self._refuse(link, thread)
            return thread
        finally:
            self._opening -= 1
            account.cancel()
            await asyncio.gather(account, return_exceptions=True)

    async def _refuse(self, link: Link, thread: CodexThread) -> None:
        """Nobody is logged in. Codex reads its login only as it starts: the next call gets a new one."""
        link.detach(thread.thread_id)
        if self._opening == 1 and not link.has_listeners:
            await link.aclose()
        else:
            await thread.release()
        raise NotLoggedIn

    async def _open_thread(
        self,
        link: Link,
        host: Host,
        method: str,
        params: dict[str, Any],
        first: dict[str, Any] | None = None,
    ) -> CodexThread:
        if "threadId" in params:
            # Codex opens and copies no thread that is archived, and a kill may have left it so.
            await self._releases.finish_for(link, params["threadId"])
        opened: list[CodexThread] = []

        def attach(raw: Raw) -> None:
            # On the reader: the thread must be there before its first notification, which may come along.
            opened.append(CodexThread(link, host, msgspec.json.decode(raw), first, self._releases))

        calling = asyncio.ensure_future(link.call(method, params, on_reply=attach))
        try:
            await asyncio.shield(calling)
        except asyncio.CancelledError:
            # Codex cannot be stopped halfway. It opens the thread, and would keep everybody else out of it.
            await self._give_up(method, params, _give_back(calling, opened))
            raise
        return opened[0]

    async def _give_up(self, method: str, params: dict[str, Any], work: Coroutine[Any, Any, None]) -> None:
        """Give a thread back that nobody wants any more; past `GIVE_BACK_S` that goes on alone."""
        leaving = asyncio.get_running_loop().create_task(work)
        if method == "thread/resume":
            thread_id = params["threadId"]
            self._leaving[thread_id] = leaving
            leaving.add_done_callback(lambda _: self._leaving.pop(thread_id, None))
        await asyncio.wait((leaving,), timeout=GIVE_BACK_S)

    async def history(
        self, thread_id: str, older: str | None = None, limit: int = 50, *, oldest_first: bool = False
    ) -> Page:
        return await self._asked(
            lambda link: history(link, thread_id, older, limit, oldest_first=oldest_first)
        )

    async def read(self, thread_id: str) -> ThreadInfo:
        answer = await self.call("thread/read", {"threadId": thread_id})
        return thread_info(answer["thread"])

    async def list_threads(
        self, *, cwd: Path | None = None, cursor: str | None = None, limit: int = 50
    ) -> ThreadList:
        params: dict[str, Any] = {"cursor": cursor, "limit": limit, **_LISTED}
        if cwd is not None:
            params["cwd"] = str(cwd)
        answer = await self._asked(lambda link: self._listed(link, params))
        return ThreadList(tuple(thread_info(thread) for thread in answer["data"]), answer.get("nextCursor"))

    async def _listed(self, link: Link, params: dict[str, Any]) -> Any:
        await self._releases.finish(link)
        return await link.call("thread/list", params)

    async def models(self) -> tuple[Model, ...]:
        from laneway.codex.models import models  # for front ends that show them

        listed: list[Any] = []
        cursor: str | None = None
        while True:
            answer = await self.call("model/list", {"cursor": cursor})
            listed += answer.get("data") or []
            cursor = answer.get("nextCursor")
            if not cursor:
                return models(listed)

    @cached_property
    def offers(self) -> Offers:
        from laneway.codex.offers import offers  # for front ends that have commands and logins

        return offers(self, self._home)

    async def call(self, method: str, params: Any = None) -> Any:
        """Anything else that app-server offers. Not for what starts a turn: that is a `TurnSpec`'s."""
        if method in IDEMPOTENT:
            return await self._asked(lambda link: link.call(method, params))
        return await (await self.link()).call(method, params)

    async def aclose(self) -> None:
        await super().aclose()
        if self._finishing is not None:
            self._finishing.cancel()
            await asyncio.wait((self._finishing,))  # it lets go of the records


async def _is_login_missing(
    link: Link, account: asyncio.Future[Any], thread: CodexThread, params: dict[str, Any]
) -> bool:
    """Whether somebody must log in before a turn of this thread. A Codex that does not tell lets us in."""
    try:
        async with asyncio.timeout(LOGIN_S):
            answer = await account
    except (EngineRefused, TimeoutError) as problem:
        log.info("Codex did not tell whether somebody is logged in: %r", problem)
        return False
    if not provider.is_login_needed(answer):
        link.is_logged_in = True
        return False
    if thread.provider in ("", provider.OPENAI):
        return True
    config = await link.users_config(thread.info.cwd)
    return provider.wants_login(thread.provider, config, params.get("config") or {})


async def _with_roots(link: Link, spec: ThreadSpec) -> ThreadSpec:
    """Further folders to write to, beside the user's own: as an override alone they would replace those."""
    if not spec.writable_roots:
        return spec
    known = spec.users_config
    config = await link.users_config(spec.cwd) if known is None else known
    roots = [*sandbox.roots(config, merged(spec.config)), *spec.writable_roots]
    with_roots = merged(spec.config, {sandbox.TABLE: {sandbox.ROOTS: list(dict.fromkeys(roots))}})
    return msgspec.structs.replace(spec, config=with_roots, users_config=config)


async def _give_back(calling: Awaitable[Any], opened: list[CodexThread]) -> None:
    try:
        await calling
    except EngineError as problem:
        log.debug("a thread that nobody waits for was not opened: %s", problem)
    else:
        await _release(opened[0])


async def _release(thread: CodexThread) -> None:
    try:
        await thread.release()
    except EngineError as problem:
        log.debug("a thread that nobody waits for was not given back: %s", problem)


def codex_engine(
    found: Binary,
    environment: Mapping[str, str] | None = None,
    launched: Launched | None = None,
    releases: PendingReleases | None = None,
    *,
    asks_login: bool = False,
) -> CodexEngine:
    """The engine on one Codex executable; `launched` is an app-server of it that is already on its way."""
    return CodexEngine(
        app_server(found, environment, launched),
        is_greeted=True,
        releases=releases,
        home=home_of(environment),
        asks_login=asks_login,
        diagnose=lambda: binary.check_age(binary.probe(found), found.path),
    )


def home_of(environment: Mapping[str, str] | None) -> Path:
    """The folder that a Codex with this environment writes to."""
    return Path(codex_home(os.environ if environment is None else environment))


def app_server(
    found: Binary, environment: Mapping[str, str] | None = None, launched: Launched | None = None
) -> Connect:
    """How to reach Codex: its app-server as a supervised child, greeted as it starts.

    Nothing happens before the first call.
    """

    async def connect(on_bytes: Callable[[bytes], None], on_end: Callable[[Exit], None]) -> Child:
        nonlocal launched
        early, launched = launched, None
        try:
            if early is not None:
                return await Child.adopt(early, on_stdout=on_bytes, on_end=on_end)
            return await Child.spawn(
                [found.path, "app-server"],
                on_stdout=on_bytes,
                on_end=on_end,
                env=child_environment(os.environ if environment is None else environment),
                first=hello.FIRST,
            )
        except OSError as problem:
            raise binary.cannot_run(found.path, problem) from problem

    return connect


def _common(spec: ThreadSpec) -> dict[str, Any]:
    """Only what somebody asked for: the user's own config rules the rest."""
    wanted = {
        "model": spec.model,
        "sandbox": spec.sandbox,
        "approvalPolicy": spec.approval_policy,
        "baseInstructions": spec.base_instructions,
        "developerInstructions": spec.developer_instructions,
        "config": merged(spec.config, spec.extras, _live_edits(spec)) or None,
        # Codex takes these for the whole list, and lets them be written only where the folder itself may be.
        "runtimeWorkspaceRoots": [str(spec.cwd), *spec.directories] if spec.directories else None,
    }
    return {key: value for key, value in wanted.items() if value is not None}


def _live_edits(spec: ThreadSpec) -> dict[str, Any]:
    """It changes nothing but when an edit is told."""
    features = (spec.users_config or {}).get("features")
    is_decided = isinstance(features, dict) and features.get(LIVE_EDITS) is not None
    return {"features": {LIVE_EDITS: True}} if spec.tells_live_edits and not is_decided else {}


def dynamic_tool(tool: Tool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.schema,
    }
