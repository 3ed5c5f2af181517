"""The Codex engine: opens, resumes, forks and lists threads on one app-server, started at the first call."""

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
from laneway.codex.running import Connect, EngineBase
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

T = TypeVar("T")

LOGIN_S = 5.0
"""For the answer to `account/read`, which Codex has in memory."""
RELEASE_S = 2.0
"""How long a cancelled caller waits for the release of its thread; then it goes on in the background."""
_LIST_FILTER = {"sourceKinds": ["cli", "vscode", "exec", "appServer", "unknown"], "modelProviders": []}
"""By default Codex hides threads of `codex exec` and of other model providers. Subagents stay hidden."""


class CodexEngine(EngineBase[Link]):
    def __init__(
        self,
        connect: Connect,
        *,
        handshake_s: float = HANDSHAKE_S,
        is_handshake_sent: bool = False,
        diagnose: Callable[[], None] | None = None,
        releases: PendingReleases | None = None,
        home: Path | None = None,
        asks_login: bool = False,
    ) -> None:
        """`releases` are the records of threads that are being released, in the Codex home of `connect`.

        `home` is that folder, where it is known. `asks_login`: a thread whose provider needs a login
        is not opened before somebody has logged in (`NotLoggedIn`).
        """

        async def run() -> Link:
            link = await Link.open(connect, handshake_s, is_handshake_sent=is_handshake_sent)
            self._finish_releases(link)
            return link

        super().__init__(run, diagnose, home)
        self._asks_login = asks_login
        self._opening = 0
        """How many threads are being opened now."""
        self._releases = Releases(releases)
        self._finish_task: asyncio.Task[None] | None = None
        """Finishes releases that killed processes left, while the first calls are served."""
        self._releasing: dict[str, asyncio.Task[None]] = {}
        """By thread id, releases of threads whose `resume` was cancelled."""

    def _finish_releases(self, link: Link) -> None:
        self._finish_task = asyncio.get_running_loop().create_task(self._releases.finish_all(link))

    async def _with_retry(self, work: Callable[[Link], Awaitable[T]]) -> T:
        """Do work that may be repeated; once more on a new link if the old one turns out to be dead."""
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
        return await self._with_retry(lambda link: self._start(link, spec, host))

    async def _start(self, link: Link, spec: ThreadSpec, host: Host) -> CodexThread:
        spec = await _with_roots(link, msgspec.structs.replace(spec, config=merged(spec.config)))
        mode, first_settings = sandbox.trusting_mode(spec.sandbox, spec.config), None
        config = spec.users_config
        if mode is not None or (spec.sandbox is None and "sandbox_mode" not in spec.config):
            config = await link.users_config(spec.cwd) if config is None else config
            first_settings = sandbox.first_settings(mode, config, str(spec.cwd), spec.config)
            if first_settings is not None:
                other_config = sandbox.without_mode(spec.config)
                spec = msgspec.structs.replace(spec, sandbox=sandbox.START, config=other_config)
        params: dict[str, Any] = {"cwd": str(spec.cwd), **_open_params(spec)}
        if spec.ephemeral:
            params["ephemeral"] = True
        if spec.tools:
            params["dynamicTools"] = [dynamic_tool(tool) for tool in spec.tools]
        thread = await self._open(link, host, "thread/start", {**params, **spec.native}, first_settings)
        if config is not None:
            thread.set_provider_host(config, spec.config)
        return thread

    async def resume(self, thread_id: str, spec: ThreadSpec, host: Host) -> CodexThread:
        # The developer instructions are sent every time: compaction drops them otherwise.
        while thread_id in self._releasing:  # that release would take the thread from us, too
            await asyncio.wait((self._releasing[thread_id],))
        return await self._with_retry(lambda link: self._resume(link, thread_id, spec, host))

    async def _resume(self, link: Link, thread_id: str, spec: ThreadSpec, host: Host) -> CodexThread:
        spec = await _with_roots(link, spec)
        params = {"threadId": thread_id, "excludeTurns": True, **_open_params(spec)}
        if spec.moves:
            params["cwd"] = str(spec.cwd)
        return await self._open(link, host, "thread/resume", params | spec.native)

    async def fork(self, thread_id: str, spec: ThreadSpec, host: Host) -> CodexThread:
        params = {"threadId": thread_id, "excludeTurns": True, "cwd": str(spec.cwd), **_open_params(spec)}
        params |= spec.native
        return await self._with_retry(lambda link: self._open(link, host, "thread/fork", params))

    async def _open(
        self,
        link: Link,
        host: Host,
        method: str,
        params: dict[str, Any],
        first_settings: dict[str, Any] | None = None,
    ) -> CodexThread:
        if not self._asks_login or link.is_logged_in:
            return await self._open_thread(link, host, method, params, first_settings)
        # Concurrently, and only until somebody is known to be logged in.
        account = asyncio.ensure_future(link.call("account/read", {"refreshToken": False}))
        self._opening += 1
        try:
            thread = await self._open_thread(link, host, method, params, first_settings)
            try:
                is_missing = await _is_login_missing(link, account, thread, params)
            except asyncio.CancelledError:
                await self._release_unwanted(method, params, _release(thread))
                raise
            if is_missing:
                await self._refuse_login(link, thread)
            return thread
        finally:
            self._opening -= 1
            account.cancel()
            await asyncio.gather(account, return_exceptions=True)

    async def _refuse_login(self, link: Link, thread: CodexThread) -> None:
        """Nobody is logged in. Codex reads its login only when it starts: the next call starts a new one."""
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
        first_settings: dict[str, Any] | None = None,
    ) -> CodexThread:
        if "threadId" in params:
            # Codex neither resumes nor forks an archived thread, and a kill may have left it archived.
            await self._releases.finish_for(link, params["threadId"])
        opened: list[CodexThread] = []

        def attach(raw: Raw) -> None:
            # On the reader: the thread must exist before its first notification, which may follow at once.
            opened.append(CodexThread(link, host, msgspec.json.decode(raw), first_settings, self._releases))

        calling = asyncio.ensure_future(link.call(method, params, on_reply=attach))
        try:
            await asyncio.shield(calling)
        except asyncio.CancelledError:
            # Codex cannot be stopped halfway. It opens the thread, and would lock everybody else out of it.
            await self._release_unwanted(method, params, _release_when_opened(calling, opened))
            raise
        return opened[0]

    async def _release_unwanted(
        self, method: str, params: dict[str, Any], work: Coroutine[Any, Any, None]
    ) -> None:
        """Release a thread whose caller was cancelled; after `RELEASE_S` that goes on in the background."""
        releasing = asyncio.get_running_loop().create_task(work)
        if method == "thread/resume":
            thread_id = params["threadId"]
            self._releasing[thread_id] = releasing

            def forget(done: asyncio.Task[None]) -> None:
                if self._releasing.get(thread_id) is done:  # a later one may have taken its place
                    del self._releasing[thread_id]

            releasing.add_done_callback(forget)
        await asyncio.wait((releasing,), timeout=RELEASE_S)

    async def history(
        self, thread_id: str, older: str | None = None, limit: int = 50, *, oldest_first: bool = False
    ) -> Page:
        return await self._with_retry(
            lambda link: history(link, thread_id, older, limit, oldest_first=oldest_first)
        )

    async def read(self, thread_id: str) -> ThreadInfo:
        answer = await self.call("thread/read", {"threadId": thread_id})
        return thread_info(answer["thread"])

    async def list_threads(
        self, *, cwd: Path | None = None, cursor: str | None = None, limit: int = 50
    ) -> ThreadList:
        params: dict[str, Any] = {"cursor": cursor, "limit": limit, **_LIST_FILTER}
        if cwd is not None:
            params["cwd"] = str(cwd)
        answer = await self._with_retry(lambda link: self._list_threads(link, params))
        return ThreadList(tuple(thread_info(thread) for thread in answer["data"]), answer.get("nextCursor"))

    async def _list_threads(self, link: Link, params: dict[str, Any]) -> Any:
        await self._releases.finish(link)
        return await link.call("thread/list", params)

    async def models(self) -> tuple[Model, ...]:
        from laneway.codex.models import models  # for front ends that show them

        entries: list[Any] = []
        cursor: str | None = None
        while True:
            answer = await self.call("model/list", {"cursor": cursor})
            entries += answer.get("data") or []
            cursor = answer.get("nextCursor")
            if not cursor:
                return models(entries)

    @cached_property
    def offers(self) -> Offers:
        from laneway.codex.offers import offers  # for front ends that have commands and logins

        return offers(self, self._home)

    async def call(self, method: str, params: Any = None) -> Any:
        """Call any other method of app-server. Not for calls that start a turn: use a `TurnSpec`."""
        if method in IDEMPOTENT:
            return await self._with_retry(lambda link: link.call(method, params))
        return await (await self.link()).call(method, params)

    async def aclose(self) -> None:
        await super().aclose()
        if self._finish_task is not None:
            self._finish_task.cancel()
            await asyncio.wait((self._finish_task,))  # it unlocks the records


async def _is_login_missing(
    link: Link, account: asyncio.Future[Any], thread: CodexThread, params: dict[str, Any]
) -> bool:
    """Whether somebody must log in before a turn of this thread. False if Codex does not answer."""
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
    """Add `writable_roots` to the user's own: an override of the key alone would replace those."""
    if not spec.writable_roots:
        return spec
    known = spec.users_config
    config = await link.users_config(spec.cwd) if known is None else known
    roots = [*sandbox.roots(config, merged(spec.config)), *spec.writable_roots]
    with_roots = merged(spec.config, {sandbox.TABLE: {sandbox.ROOTS: list(dict.fromkeys(roots))}})
    return msgspec.structs.replace(spec, config=with_roots, users_config=config)


async def _release_when_opened(calling: Awaitable[Any], opened: list[CodexThread]) -> None:
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
    codex: Binary,
    environment: Mapping[str, str] | None = None,
    launched: Launched | None = None,
    releases: PendingReleases | None = None,
    *,
    asks_login: bool = False,
) -> CodexEngine:
    """The engine on one Codex executable; `launched` is an app-server of it that is already starting."""
    return CodexEngine(
        app_server(codex, environment, launched),
        is_handshake_sent=True,
        releases=releases,
        home=home_of(environment),
        asks_login=asks_login,
        diagnose=lambda: binary.check_age(binary.probe(codex), codex.path),
    )


def home_of(environment: Mapping[str, str] | None) -> Path:
    """The folder that a Codex with this environment writes to."""
    return Path(codex_home(os.environ if environment is None else environment))


def app_server(
    codex: Binary, environment: Mapping[str, str] | None = None, launched: Launched | None = None
) -> Connect:
    """A function that starts app-server as a supervised child, with the handshake already in its pipe."""

    async def connect(on_bytes: Callable[[bytes], None], on_end: Callable[[Exit], None]) -> Child:
        nonlocal launched
        prestarted, launched = launched, None
        try:
            if prestarted is not None:
                return await Child.adopt(prestarted, on_stdout=on_bytes, on_end=on_end)
            return await Child.spawn(
                [codex.path, "app-server"],
                on_stdout=on_bytes,
                on_end=on_end,
                env=child_environment(os.environ if environment is None else environment),
                first=hello.HANDSHAKE,
            )
        except OSError as problem:
            raise binary.cannot_run(codex.path, problem) from problem

    return connect


def _open_params(spec: ThreadSpec) -> dict[str, Any]:
    """The parameters that were asked for; the user's own config decides the rest."""
    params = {
        "model": spec.model,
        "sandbox": spec.sandbox,
        "approvalPolicy": spec.approval_policy,
        "baseInstructions": spec.base_instructions,
        "developerInstructions": spec.developer_instructions,
        "config": merged(spec.config, spec.extras, _live_edits(spec)) or None,
        # For Codex this is the whole list, and they are writable only where the folder itself is.
        "runtimeWorkspaceRoots": [str(spec.cwd), *spec.directories] if spec.directories else None,
    }
    return {key: value for key, value in params.items() if value is not None}


def _live_edits(spec: ThreadSpec) -> dict[str, Any]:
    """The feature that reports an edit while it is written; it changes nothing else."""
    features = (spec.users_config or {}).get("features")
    is_decided = isinstance(features, dict) and features.get(LIVE_EDITS) is not None
    return {"features": {LIVE_EDITS: True}} if spec.streams_edits and not is_decided else {}


def dynamic_tool(tool: Tool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.schema,
    }
